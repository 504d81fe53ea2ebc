"""What passes over a covering tree need in either precision: weights, tables, gradients, and threads to run on."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from powersum.bounds.buckets.kernels import backward, beliefs_into, forward, send, workspace_size
from powersum.bounds.buckets.wiring import Layout
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.core.lanes import roomy
from powersum.core.speed import TREE_NODE, TREE_PASS
from powersum.core.work_time import spend

LEAST_WEIGHT_SHARE = 1e-7
"""Least share of a variable's weight that a mini-bucket keeps, unless there are millions: nothing is divided by 0."""

NO_NUMBERS = np.empty(0)


class Sweeps:
    """Numeric state of a covering tree and the passes over it, in the precision of ``pool``.

    ``parameters`` is a view into the pool: shifts first, then a logit for each weight that is free. With ``offsets``
    messages are centred (see :mod:`powersum.bounds.buckets.kernels`). ``node_tau`` has the weight of each node's
    variable.
    """

    def __init__(
        self, layout: Layout, node_tau: FloatArray, pool: Any, *, offsets: FloatArray = NO_NUMBERS, threads: int = 1
    ) -> None:
        self.layout = layout
        self.pool = pool
        self.parameters: Any = pool[layout.n_static + layout.n_messages :]
        self.gradient = np.zeros(layout.n_parameters, pool.dtype)
        self.weights = np.zeros(layout.n_nodes)
        self.has_max = bool((node_tau == 0.0).any())
        self._node_tau, self._offsets = node_tau, offsets
        self._roots = layout.wiring.message[np.flatnonzero(layout.parent < 0)]
        self._root_slopes = self._roots - layout.n_static
        self._temperature = math.nan
        self._nodes = np.arange(layout.n_nodes)
        self._crown, self._branches = _branches(layout, threads)
        size = workspace_size(layout.wiring)
        self._workspaces = [roomy(size, pool.dtype) for _ in range(1 + len(self._branches))]
        self._threads = ThreadPoolExecutor(len(self._branches) - 1) if len(self._branches) > 1 else None
        self._empty = np.empty(0, pool.dtype)
        self._tables = self._entropies = self._slopes = self._empty
        self._weight_slopes = np.zeros(layout.n_nodes)
        self._seconds = TREE_PASS * layout.n_entries + TREE_NODE * layout.n_nodes

    def beliefs(self) -> Any:
        """Beliefs of all nodes at the latest gradient, one after the other."""
        layout = self.layout
        beliefs = np.empty(layout.n_entries, self.pool.dtype)
        beliefs_into(layout.wiring, layout.n_static, self._tables, self._slopes, beliefs)
        return beliefs

    def release(self) -> None:
        """Give back what only gradients need; it is allocated again when one is asked for."""
        self._tables = self._entropies = self._slopes = self._empty

    def _allocate(self) -> None:
        """Make room for what only gradients need."""
        layout, kind = self.layout, self.pool.dtype
        self._tables = roomy(layout.n_entries, kind)
        self._entropies = np.empty(layout.n_entropies, kind)
        self._slopes = roomy(layout.slopes_size, kind)

    def _run_both(self, temperature: float) -> FloatArray:
        """Forward and backward pass with max variables at a temperature > 0; leaves the gradient.

        Returns the messages of the roots.
        """
        layout = self.layout
        if not self._tables.size:
            self._allocate()
        self._set_weights(temperature)
        self._run_forward(self._tables)
        roots: FloatArray = self.pool[self._roots]
        self._slopes[self._root_slopes] = 1.0
        self._run_backward()
        _gather_gradient(
            self._slopes[layout.shift_slopes : layout.factor_slopes],
            self._weight_slopes,
            layout.shared_starts,
            layout.shared_nodes,
            self._shares,
            self._scale,
            self.gradient,
        )
        spend(self._seconds)
        return roots

    def _set_weights(self, temperature: float) -> None:
        layout = self.layout
        if temperature != self._temperature:
            # Passes at one temperature follow each other, and only shared weights differ between them.
            self._temperature = temperature
            self.weights[:] = np.where(self._node_tau == 0.0, temperature, self._node_tau)
            self._scale = self.weights[layout.shared_nodes]
        self._shares = shares_of(self.parameters[layout.n_shifts :], layout.shared_starts)
        self.weights[layout.shared_nodes] = self._scale * self._shares

    def _forward_over(self, nodes: IntArray, tables: FloatArray | None, worker: int = 0) -> None:
        wiring, workspace = self.layout.wiring, self._workspaces[worker]
        if tables is None:
            send(wiring, nodes, self.weights, self.pool, workspace)
        else:
            forward(wiring, nodes, self.weights, self.pool, tables, self._entropies, self._offsets, workspace)

    def _backward_over(self, nodes: IntArray, worker: int = 0) -> None:
        layout = self.layout
        backward(
            layout.wiring,
            nodes,
            layout.n_static,
            self._tables,
            self._entropies,
            self._slopes,
            self._weight_slopes,
            self._workspaces[worker],
        )

    def _run_forward(self, tables: FloatArray | None) -> None:
        if self._threads is None:
            self._forward_over(self._nodes, tables)
            return
        waiting = [
            self._threads.submit(self._forward_over, nodes, tables, number + 1)
            for number, nodes in enumerate(self._branches[1:])
        ]
        self._forward_over(self._branches[0], tables)
        for task in waiting:
            task.result()
        self._forward_over(self._crown, tables)

    def _run_backward(self) -> None:
        if self._threads is None:
            self._backward_over(self._nodes)
            return
        self._backward_over(self._crown)
        waiting = [
            self._threads.submit(self._backward_over, nodes, number + 1)
            for number, nodes in enumerate(self._branches[1:])
        ]
        self._backward_over(self._branches[0])
        for task in waiting:
            task.result()


def _branches(layout: Layout, threads: int) -> tuple[IntArray, list[IntArray]]:
    """Cut the tree into a crown and as many sets of whole subtrees as there are threads, of about equal cost.

    A subtree needs nothing from any other, so the sets run side by side; the crown follows when all are done.
    """
    nodes = np.arange(layout.n_nodes)
    wiring = layout.wiring
    cost = (wiring.states * wiring.columns * np.diff(wiring.input_starts) + 100).astype(np.float64)
    # A pass below a millisecond or so would spend more on starting threads than it saves.
    if threads < 2 or cost.sum() < 1e6:
        return nodes, [nodes]
    below = cost.copy()
    for node in nodes[layout.parent >= 0].tolist():
        below[layout.parent[node]] += below[node]
    most = below[layout.parent < 0].sum() / (4 * threads)
    small = below <= most
    tops = np.flatnonzero(small & ((layout.parent < 0) | ~small[layout.parent]))
    load = np.zeros(threads)
    owner = np.full(layout.n_nodes, -1)
    for top in tops[np.argsort(-below[tops], kind="stable")].tolist():
        owner[top] = int(np.argmin(load))
        load[owner[top]] += below[top]
    for node in nodes[::-1].tolist():
        if small[node] and owner[node] < 0:
            owner[node] = owner[layout.parent[node]]
    sets = [np.flatnonzero(owner == t) for t in range(threads)]
    return np.flatnonzero(owner < 0), [s for s in sets if s.size]


@inner
def least_share(count: int) -> float:
    """The least share of each of ``count`` mini-buckets: all of them together leave half of the weight to divide."""
    return min(LEAST_WEIGHT_SHARE, 0.5 / count)


def least_shares(counts: IntArray) -> FloatArray:
    """The same for groups of mini-buckets."""
    return np.minimum(LEAST_WEIGHT_SHARE, 0.5 / np.maximum(counts, 1))


@compiled
def shares_of(logits: FloatArray, starts: IntArray) -> FloatArray:
    """Softmax of each group of logits: shares that sum to 1, none below :func:`least_share`."""
    shares = np.empty(logits.size)
    for group in range(starts.size - 1):
        start, end = starts[group], starts[group + 1]
        top = logits[start]
        for i in range(start, end):
            top = max(top, logits[i])
        total = 0.0
        for i in range(start, end):
            shares[i] = math.exp(logits[i] - top)
            total += shares[i]
        least = least_share(end - start)
        free = 1.0 - (end - start) * least
        for i in range(start, end):
            shares[i] = free * shares[i] / total + least
    return shares


@compiled
def _gather_gradient(
    slopes: FloatArray,
    weight_slopes: FloatArray,
    starts: IntArray,
    nodes: IntArray,
    shares: FloatArray,
    scale: FloatArray,
    gradient: FloatArray,
) -> None:
    """Gradient of the parameters from those of both ends of each shift and of all weights."""
    n = slopes.size // 2
    plus, minus, out = slopes[:n], slopes[n:], gradient[:n]
    for i in range(n):
        out[i] = plus[i] - minus[i]
    logits = gradient[n:]
    for group in range(starts.size - 1):
        start, end = starts[group], starts[group + 1]
        least = least_share(end - start)
        free = 1.0 - (end - start) * least
        mean = 0.0
        for i in range(start, end):
            mean += (shares[i] - least) / free * weight_slopes[nodes[i]]
        for i in range(start, end):
            logits[i] = scale[i] * (shares[i] - least) * (weight_slopes[nodes[i]] - mean)
