"""Contexts: AND/OR search and partial sums, as elimination of only those contexts that matter.

Given its *context*, the variables that its message would have in exact elimination, what is below a variable in the
bucket tree depends on nothing else. So the value below variable v given context c is

    V(v, c) = power sum over the states s of v:  factors of v at (s, c)  +  Σ over children b of V(b, (s, c) on b)

and a certificate lists the contexts (v, c) to be computed in this way. All others are taken from the mini-bucket tree:
the sum of the messages that leave the subtree of b is an upper bound on V(b, ·), and where the tree splits none of the
subtree's variables, its value. Below a context that is marked *settled* everything is computed, listed or not.

Values are kept relative to the tree: V(b, c) less the constants of the nodes in the subtree of b. So all numbers are
small, and so are their errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersum_check.box import Located, Scope, Step
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import afford, spend
from powersum_check.numbers import Table, U, add, outward, power_sum
from powersum_check.tree import Pass, Tree, run

Columns = NDArray[np.int32]
Keys = NDArray[np.uint64]


@dataclass(slots=True)
class Bucket:
    """What hangs on one variable."""

    variable: int
    size: int
    """Its number of states."""
    context: Scope = ()
    lengths: list[int] = field(default_factory=list)
    """Numbers of states of the variables of the context."""
    children: list[Bucket] = field(default_factory=list)
    factors: list[Located] = field(default_factory=list)
    leaving: list[Located] = field(default_factory=list)
    """Messages with variables that leave the subtree."""
    up: float = 0.0
    down: float = 0.0
    """Errors of the sum of all messages that leave the subtree."""
    exact: bool = True
    """Whether that sum is the value."""
    constant: float = 0.0
    """Of the variable's own nodes."""
    columns: Columns = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    """Contexts to compute, one a column, as places of states in the box; rows are the variables of the context."""
    settled: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Their keys, rising."""
    bounds: tuple[Table, Table] | None = None
    """Their values from above and from below, once computed."""

    def row(self, variable: int, columns: Columns) -> NDArray[np.integer]:
        """The states of a variable at contexts, to be broadcast: a row for each state of the bucket's own variable."""
        own = np.arange(self.size)[:, None]
        return own if variable == self.variable else columns[self.context.index(variable)]

    def merge(self, columns: Columns, settled: NDArray[np.bool_]) -> None:
        """Add contexts, each once. Of different ones with the same key one is lost, and taken from the tree."""
        spend(4 * (10 + len(self.context)) * (len(self.keys) + columns.shape[1]))
        columns = np.concatenate([self.columns.reshape(len(self.context), len(self.keys)), columns], axis=1)
        settled = np.concatenate([self.settled, settled])
        keys = np.zeros(columns.shape[1], np.uint64) + keys_of(list(columns), self.lengths)
        self.keys, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        self.columns = np.take(columns, first, axis=1)
        self.settled = np.zeros(len(first), np.bool_)
        self.settled[inverse[settled]] = True

    def places(self, rows: Sequence[NDArray[np.integer]], shape: tuple[int, int]) -> NDArray[np.int64]:
        """Where contexts are among those of this bucket; -1 where they are not."""
        spend(4 * (10 + len(rows)) * math.prod(shape))
        keys = np.zeros(shape, np.uint64) + keys_of(rows, self.lengths)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        same = self.keys[place] == keys
        # Keys tell contexts apart unless they had to be cut off.
        for column, row in zip(self.columns, rows, strict=True) if _is_cut_off(self.lengths) else ():
            same &= column[place] == row
        return np.where(same, place, -1)


def _radices(lengths: Sequence[int]) -> list[int]:
    """What each place of a context counts in its key: mixed radix, odd ones, so that none is lost beyond 64 bits."""
    radices = [1]
    for length in lengths:
        radices.append(radices[-1] * (length | 1))
    return radices


def _is_cut_off(lengths: Sequence[int]) -> bool:
    return _radices(lengths)[-1] >= 1 << 64


def keys_of(rows: Sequence[NDArray[np.integer]], lengths: Sequence[int]) -> Keys:
    """The keys of contexts, as far as 64 bits hold them."""
    total: Keys = np.zeros(1, np.uint64)
    # From the end: the first row may be one that broadcasts to many, see Bucket.row.
    for row, radix in reversed(list(zip(rows, _radices(lengths), strict=False))):
        total = total + row.astype(np.uint64) * np.uint64(radix % (1 << 64))
    return total


def evaluate(step: Step, tree: Tree) -> tuple[float, float]:
    """Lower and upper bound by a tree with contexts."""
    found = run(step, tree, keep=True)
    if found is None:
        return -math.inf, -math.inf
    buckets, rest = _buckets(step, tree, found)
    _read(step, buckets)
    held = sum(bucket.columns.size for bucket in buckets.values())
    for bucket in reversed(buckets.values()):
        if bucket.settled.any():
            _settle(bucket, step.memory)
            held += sum(child.columns.size for child in bucket.children)
            afford("contexts", 8 * held, step.memory)
    high = [*found.constants, *(float(number.values) for number in found.fixed)]
    low = list(high)
    up, down = (sum(getattr(t, side) for t in [*rest, *found.fixed]) for side in ("up", "down"))
    for bucket in buckets.values():
        if len(bucket.keys):
            bucket.bounds = _computed(bucket, step)
        if not bucket.context:
            nothing = np.zeros(1) if bucket.exact else np.full(1, -math.inf)
            above, below = bucket.bounds or (Table(np.zeros(1), bucket.up), Table(nothing, 0.0, bucket.down))
            high.append(float(above.values[0]))
            low.append(float(below.values[0]))
            up, down = up + above.up, down + below.down
    return outward(low, 0.0, down)[0], outward(high, up, 0.0)[1]


def _buckets(step: Step, tree: Tree, found: Pass) -> tuple[dict[int, Bucket], list[Table]]:
    """The bucket tree of exact elimination in its order, with what leaves each subtree; and what has no part in it.

    A variable whose only node drops its message is summed out for itself (a barren leaf): it and its node's factors are
    not part of the bucket tree. What it loses is in the error of its node. No other table may have it.
    """
    rest: list[Table] = []
    barren: set[int] = set()
    for v, nodes in tree.nodes_of.items():
        if len(nodes) == 1 and tree.parent[nodes[0]] < 0 and len(tree.scopes[nodes[0]]) > 1:
            barren.add(nodes[0])
            lost = found.messages[nodes[0]]
            rest.append(Table(np.zeros(()), lost.up, lost.down if tree.exact[v] else math.inf))
    buckets = {
        v: Bucket(v, len(step.domains[v])) for v, nodes in tree.nodes_of.items() if nodes and nodes[0] not in barren
    }
    context: dict[int, set[int]] = {v: set() for v in buckets}
    for node, (scope, table) in found.factors:
        if node < 0 or node in barren:
            continue
        if not buckets.keys() >= set(scope):
            raise Rejected(f"a factor over {scope} has a barren variable, but is not given to its node")
        first = tree.scopes[node][0]
        buckets[first].factors.append((scope, table))
        context[first].update(v for v in scope if v != first)
    held = 0
    for v, bucket in buckets.items():
        spend(50 * len(context[v]))
        held += 128 * len(context[v])
        afford("the contexts of variables", held, step.memory)
        bucket.context = tuple(sorted(context[v], key=lambda u: tree.position[u]))
        bucket.lengths = [len(step.domains[u]) for u in bucket.context]
        if bucket.context:
            above = bucket.context[0]
            buckets[above].children.append(bucket)
            context[above].update(bucket.context[1:])
        bucket.exact = tree.exact[v] and all(child.exact for child in bucket.children)
        bucket.constant = math.fsum(found.constants[node] for node in tree.nodes_of[v])
    for a, b, _ in tree.edges:
        if tree.scopes[a][0] != tree.scopes[b][0]:
            raise Rejected(f"a shift joins nodes {a} and {b} of different variables, which contexts do not allow")
    for node, scope in enumerate(tree.scopes):
        if node in barren:
            continue
        message, target, sent = found.messages[node], tree.scope_of(tree.parent[node]), scope[1:]
        if not set(sent) <= context[scope[0]] or not set(sent) <= set(target):
            raise Rejected(f"node {node} has variables beyond the context of its own, or drops some")
        if sent and target[0] != sent[0]:
            raise Rejected(f"node {node} sends its message past the bucket of its next variable, which contexts forbid")
        # The message leaves every subtree from that of its own variable up to its parent's, or to the root.
        at, end = scope[:1], sent[:1]
        while at and at != end:
            spend(100)
            held += 128
            afford("messages that leave subtrees", held, step.memory)
            bucket = buckets[at[0]]
            bucket.up += message.up
            bucket.down += message.down
            if sent:
                bucket.leaving.append((sent, message))
            at = bucket.context[:1]
    return buckets, rest


def _read(step: Step, buckets: dict[int, Bucket]) -> None:
    """The contexts of the certificate: for some variables, rows of states in the order of elimination."""
    variables = step.integers("context_variables", high=len(step.domains)).tolist()
    counts = step.integers("context_counts").tolist()
    states = step.integers("context_states")
    settled = step.integers("context_settled", high=2).astype(np.bool_)
    if len(counts) != len(variables) or len(set(variables)) < len(variables) or sum(counts) != len(settled):
        raise BadFile("context_variables, context_counts and context_settled do not fit together")
    for v, count in zip(variables, counts, strict=True):
        if v not in buckets:
            raise Rejected(f"contexts of variable {v}, which is not part of the search")
        context = buckets[v].context
        size = count * len(context)
        if size > len(states):
            raise BadFile("context_states ends too early")
        rows = states[:size].reshape(count, len(context)).T
        places = np.empty(rows.shape, np.int32)
        for k, u in enumerate(context):
            domain = step.domains[u]
            places[k] = np.minimum(np.searchsorted(domain, rows[k]), len(domain) - 1)
            if (domain[places[k]] != rows[k]).any():
                raise Rejected(f"a context of variable {v} has a state of variable {u} that is not in the box")
        buckets[v].merge(places, settled[:count])
        states, settled = states[size:], settled[count:]
    if len(states):
        raise BadFile(f"context_states has {len(states)} numbers too many")


def _looked_up(bucket: Bucket, columns: Columns, scope: Scope, values: NDArray[Any]) -> NDArray[Any]:
    """A table at all states of a bucket's variable and the given contexts: rows are states, columns contexts."""
    spend(1000 + 2 * (1 + len(scope)) * bucket.size * columns.shape[1])
    lengths = dict(zip(bucket.context, bucket.lengths, strict=True))
    flat: NDArray[np.integer] = np.zeros(columns.shape[1], np.int32 if values.size < 1 << 31 else np.int64)
    for u in scope:
        if u != bucket.variable:
            flat = flat * lengths[u] + bucket.row(u, columns)
    return np.take(values.reshape(bucket.size if bucket.variable in scope else 1, -1), flat, axis=1)


def _gathered(bucket: Bucket, columns: Columns, tables: Sequence[Located]) -> list[Table]:
    """Tables at all states of a bucket's variable and the given contexts."""
    return [Table(_looked_up(bucket, columns, scope, t.values), t.up, t.down) for scope, t in tables]


def _settle(bucket: Bucket, memory: int) -> None:
    """Put all below the settled contexts of a bucket that is possible among the settled contexts of its children."""
    columns = bucket.columns[:, bucket.settled]
    shape = (bucket.size, columns.shape[1])
    children = [child for child in bucket.children if not child.exact]
    tables = bucket.factors + [table for child in bucket.children for table in child.leaving]
    supports = [(scope, table.values > -math.inf) for scope, table in tables]
    widest = max((len(c.context) for c in children), default=0)
    afford("contexts", 8 * math.prod(shape) * (8 + len(tables) + widest), memory)
    possible = np.ones(shape, np.bool_)
    for scope, support in supports:
        if not support.all():
            possible &= _looked_up(bucket, columns, scope, support)
    state, column = np.nonzero(possible)
    spend(4 * (2 + widest) * (1 + len(children)) * len(state))
    for child in children:
        rows = np.empty((len(child.context), len(state)), np.int32)
        for row, u in zip(rows, child.context, strict=True):
            row[:] = state if u == bucket.variable else np.take(bucket.row(u, columns), column)
        child.merge(rows, np.ones(len(state), np.bool_))


def _computed(bucket: Bucket, step: Step) -> tuple[Table, Table]:
    """The values of all listed contexts of a bucket, from above and from below."""
    columns, shape = bucket.columns, (bucket.size, len(bucket.keys))
    widest = max((8 + len(child.leaving) for child in bucket.children), default=0)
    entries = 8 + len(bucket.factors) + len(bucket.leaving) + 2 * len(bucket.children) + widest
    afford("contexts", 8 * math.prod(shape) * entries, step.memory)
    high = _gathered(bucket, columns, bucket.factors)
    low = list(high)
    for child in bucket.children:
        above, below = _from_tree(child, shape, _gathered(bucket, columns, child.leaving))
        if child.bounds is not None:
            place = child.places([bucket.row(u, columns) for u in child.context], shape)
            above, below = (_replaced(old, new, place) for old, new in zip((above, below), child.bounds, strict=True))
        high.append(above)
        low.append(below)
    taken_off = Table(np.array([-bucket.constant]), U * abs(bucket.constant), U * abs(bucket.constant))
    weight = step.question.weights[bucket.variable]
    above, below = (add(shape[1:], [power_sum(add(shape, tables), weight), taken_off]) for tables in (high, low))
    of_tree, _ = _from_tree(bucket, (1, shape[1]), _gathered(bucket, columns, bucket.leaving))
    return Table(np.minimum(above.values, of_tree.values[0]), max(above.up, of_tree.up)), below


def _from_tree(bucket: Bucket, shape: tuple[int, int], leaving: list[Table]) -> tuple[Table, Table]:
    """The value below a bucket from above and from below, as the messages that leave its subtree give it."""
    # Their errors are counted once, by the bucket, together with those of messages that have no variables left.
    total = add(shape, [Table(message.values) for message in leaving])
    up, down = bucket.up + total.up, bucket.down + total.down
    nothing = np.full(shape, -math.inf)
    return Table(total.values, up, up), Table(total.values if bucket.exact else nothing, down, down)


def _replaced(table: Table, other: Table, place: NDArray[np.int64]) -> Table:
    """A table with entries of another where these have a place in it."""
    values = np.where(place >= 0, other.values[place], table.values)
    return Table(values, max(table.up, other.up), max(table.down, other.down))
