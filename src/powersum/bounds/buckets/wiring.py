"""Where every table of a covering tree lies and how its axes meet those of its neighbours; built once, never changed.

Each mini-bucket ("node") adds up its *inputs*: static tables of factors, messages of earlier nodes and shifts. All
inputs have the eliminated variable as their first axis, and their other axes are some of the node's, in the same
order. So an input is described by where each column of the node's table (a state of the other variables) is found in
it. Columns are worked on in blocks of trailing axes; within a block the places follow a *pattern*, which many inputs
share, and from block to block only a base moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.bounds.buckets.partition import Partition
from powersum.bounds.buckets.patterns import wire
from powersum.bounds.buckets.scopes import Scopes, intersection_of, log_size_of
from powersum.bounds.buckets.tree_wiring import (
    TreeWiring,
)
from powersum.core.arrays import FloatArray, IntArray, starts_of
from powersum.core.jit import compiled


class Layout(NamedTuple):
    """A wiring with the sizes and places of everything that is allocated for it."""

    wiring: TreeWiring
    n_nodes: int
    n_static: int
    n_messages: int
    n_shifts: int
    n_entropies: int
    n_entries: int
    bucket: IntArray
    parent: IntArray
    scope_starts: IntArray
    scope_positions: IntArray
    shared_starts: IntArray
    shared_nodes: IntArray
    """Nodes that share a variable: group g is ``shared_nodes[shared_starts[g]:shared_starts[g + 1]]``."""
    group_starts: IntArray
    group_positions: IntArray
    group_source: IntArray
    """Static tables: scopes, and where they start in the pool."""
    factor_group: IntArray

    @property
    def n_parameters(self) -> int:
        """Shifts and one logit for each weight that is free."""
        return self.n_shifts + len(self.shared_nodes)

    @property
    def pool_size(self) -> int:
        """Static tables, messages, parameters."""
        return self.n_static + self.n_messages + self.n_parameters

    @property
    def slopes_size(self) -> int:
        """Gradients of messages, from both ends of each edge those of shifts, and those of factors where asked for."""
        return self.factor_slopes + (self.n_static if (self.wiring.slope >= 0).all() else 0)

    @property
    def shift_slopes(self) -> int:
        """Where those of shifts begin: as far behind those of messages as a pool would hold parameters.

        So gradients can take the place of messages in a pool that has no further use for them.
        """
        return self.n_messages + self.n_parameters

    @property
    def factor_slopes(self) -> int:
        """Where gradients of static tables begin among all gradients."""
        return self.shift_slopes + 2 * self.n_shifts

    def with_factor_slopes(self) -> Layout:
        """The same wiring, but that gradients of static tables are computed with the others."""
        wiring = self.wiring
        slope = np.where(wiring.slope >= 0, wiring.slope, self.factor_slopes + wiring.source)
        return self._replace(wiring=wiring.with_slopes(slope))


def lay_out(parts: Partition, scopes: Scopes, cardinalities: IntArray) -> Layout:
    """Place the tables of a partition; ``cardinalities`` are by position in the elimination order."""
    n_nodes = len(parts.bucket)
    n_groups, group_starts, group_positions, group_node, factor_group = _group_factors(
        parts.factor_home, parts.starts, parts.positions, scopes.starts, scopes.positions, scopes.log_sizes
    )
    group_starts, group_node = group_starts[: n_groups + 1].copy(), group_node[:n_groups].copy()
    group_positions = group_positions[: group_starts[-1]].copy()
    sizes = products(parts.starts, parts.positions, cardinalities)
    states = cardinalities[parts.bucket]
    columns = sizes // states
    group_sizes = products(group_starts, group_positions, cardinalities)
    group_source = starts_of(group_sizes)
    n_static = int(group_source[-1])
    message = starts_of(columns)
    n_messages = int(message[-1])
    edge_starts, edge_positions = intersections(parts.edges, parts.starts, parts.positions)
    shift = starts_of(products(edge_starts, edge_positions, cardinalities))
    n_shifts = int(shift[-1])

    # Inputs of each node: its static tables, then the messages it receives, then its shifts, each kind by number.
    # Each edge is two inputs, its shift added at one end and taken away at the other.
    sent = np.flatnonzero(parts.parent >= 0)
    edge, end = np.divmod(np.arange(parts.edges.size), 2)
    owner = np.concatenate((group_node, parts.parent[sent], parts.edges.ravel()))
    by_node = np.argsort(owner, kind="stable")
    input_starts = starts_of(np.bincount(owner, minlength=n_nodes))
    shift_start = n_messages + shift[edge]
    source = np.concatenate((group_source[:-1], n_static + message[sent], n_static + shift_start))
    same = parts.bucket[:, None] == np.stack([np.roll(parts.bucket, 1), np.roll(parts.bucket, -1)], axis=1)
    if n_nodes:
        same[0, 0] = same[-1, 1] = False
    shared_nodes = np.flatnonzero(same.any(axis=1))
    shift_slope = shift_start + n_shifts + len(shared_nodes) + n_shifts * end
    slope = np.concatenate((np.full(n_groups, -1), message[sent], shift_slope))
    sign = np.concatenate((np.ones(n_groups + len(sent), dtype=np.int64), 1 - 2 * end))
    # Their scopes, one kind after the other in one array; a message has its node's but for the eliminated variable.
    n_before = len(group_positions), len(group_positions) + len(parts.positions)
    lows = np.concatenate((group_starts[:-1], n_before[0] + parts.starts[sent] + 1, n_before[1] + edge_starts[edge]))
    highs = np.concatenate(
        (group_starts[1:], n_before[0] + parts.starts[sent + 1], n_before[1] + edge_starts[edge + 1])
    )

    _, group_counts = np.unique(parts.bucket[shared_nodes], return_counts=True)
    entropy = np.full(n_nodes, -1, dtype=np.int64)
    entropy_starts = starts_of(columns[shared_nodes])
    entropy[shared_nodes] = entropy_starts[:-1]

    wiring = wire(
        parts.starts,
        parts.positions,
        cardinalities,
        lows[by_node],
        highs[by_node],
        np.concatenate((group_positions, parts.positions, edge_positions)),
        states=states,
        columns=columns,
        table=starts_of(sizes),
        packed=starts_of(np.where(states == 2, columns, sizes)),
        message=n_static + message,
        entropy=entropy,
        input_starts=input_starts,
        source=source[by_node],
        slope=slope[by_node],
        sign=sign[by_node],
    )
    return Layout(
        wiring=wiring,
        n_nodes=n_nodes,
        n_static=n_static,
        n_messages=n_messages,
        n_shifts=n_shifts,
        n_entropies=int(entropy_starts[-1]),
        n_entries=int(sizes.sum()),
        bucket=parts.bucket,
        parent=parts.parent,
        scope_starts=parts.starts,
        scope_positions=parts.positions,
        shared_starts=starts_of(group_counts),
        shared_nodes=shared_nodes,
        group_starts=group_starts,
        group_positions=group_positions,
        group_source=group_source,
        factor_group=factor_group,
    )


UNCOUNTED = 1 << 62
"""Stands for any larger number of entries."""


@compiled
def products(starts: IntArray, positions: IntArray, cardinalities: IntArray) -> IntArray:
    """Number of table entries of each scope, :data:`UNCOUNTED` at most: a product must not wrap to a small number."""
    sizes = np.ones(starts.size - 1, np.int64)
    for k in range(sizes.size):
        for i in range(starts[k], starts[k + 1]):
            states = cardinalities[positions[i]]
            sizes[k] = sizes[k] * states if sizes[k] <= UNCOUNTED // states else UNCOUNTED
    return sizes


@compiled
def intersections(edges: IntArray, starts: IntArray, positions: IntArray) -> tuple[IntArray, IntArray]:
    """Scopes that the two ends of each edge share."""
    shared_starts = np.zeros(edges.shape[0] + 1, np.int64)
    room = 0
    for e in range(edges.shape[0]):
        room += min(starts[edges[e, 0] + 1] - starts[edges[e, 0]], starts[edges[e, 1] + 1] - starts[edges[e, 1]])
    shared = np.empty(room, np.int64)
    n = 0
    for e in range(edges.shape[0]):
        one, two = edges[e, 0], edges[e, 1]
        n += intersection_of(
            positions[starts[one] : starts[one + 1]], positions[starts[two] : starts[two + 1]], shared[n:]
        )
        shared_starts[e + 1] = n
    return shared_starts, shared[:n].copy()


@compiled
def _group_factors(
    factor_home: IntArray,
    node_starts: IntArray,
    node_positions: IntArray,
    scope_starts: IntArray,
    scope_positions: IntArray,
    log_sizes: FloatArray,
) -> tuple[int, IntArray, IntArray, IntArray, IntArray]:
    """Put factors of one node together into one static table where that table stays small beside the node's own.

    Returns the number of these groups, their scopes and nodes with room for more, and the group of each factor. Fewer
    inputs make a pass quicker; a static table as large as the node's would cost memory instead.
    """
    n_factors = factor_home.size
    n_nodes = node_starts.size - 1
    # Factors by node: a linked list each.
    head = np.empty(n_nodes, np.int64)
    for node in range(n_nodes):
        head[node] = -1
    following = np.empty(n_factors, np.int64)
    group_of = np.empty(n_factors, np.int64)
    for factor in range(n_factors - 1, -1, -1):
        node = factor_home[factor]
        group_of[factor] = -1
        if node >= 0:
            following[factor] = head[node]
            head[node] = factor
    group_node = np.empty(n_factors, np.int64)
    group_starts = np.zeros(n_factors + 1, np.int64)
    group_positions = np.empty(scope_positions.size, np.int64)
    n_groups, filled = 0, 0
    member = np.zeros(log_sizes.size, np.bool_)
    for node in range(n_nodes):
        own = node_positions[node_starts[node] : node_starts[node + 1]]
        most = max(log_size_of(own, own.size, log_sizes) - np.log(8.0), np.log(256.0))
        factor = head[node]
        while factor >= 0:
            size, first = 0.0, True
            while factor >= 0:
                scope = scope_positions[scope_starts[factor] : scope_starts[factor + 1]]
                more = 0.0
                for p in scope:
                    if not member[p]:
                        more += log_sizes[p]
                if more > 0.0 and not first and size + more > most:
                    break
                size += more
                first = False
                for p in scope:
                    member[p] = True
                group_of[factor] = n_groups
                factor = following[factor]
            for p in own:
                if member[p]:
                    group_positions[filled] = p
                    filled += 1
                    member[p] = False
            group_node[n_groups] = node
            n_groups += 1
            group_starts[n_groups] = filled
    return n_groups, group_starts, group_positions, group_node, group_of
