"""The bound of a covering tree and its gradient as a function of one flat vector of parameters."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from powersum.bounds.buckets.kernels import NOTHING, backward, forward
from powersum.bounds.buckets.statics import fill_static
from powersum.bounds.buckets.wiring import Layout
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.core.speed import TREE_NODE, TREE_PASS, VALUE_SHARE
from powersum.core.work_time import spend
from powersum.model.model import Model
from powersum.model.rounding import EXPONENTIAL, IMPOSSIBLE, UNIT

LEAST_WEIGHT_SHARE = 1e-7
"""Least share of a variable's weight that a mini-bucket keeps, unless there are millions: nothing is divided by 0."""

_NO_TABLES = np.empty(0)


class Passes:
    """Numeric state of a covering tree: pool, tables, gradients, and the passes over them.

    ``parameters`` is a view into the pool: shifts first, then a logit for each weight that is free.
    """

    def __init__(self, layout: Layout, model: Model, order: IntArray, tau: FloatArray, *, threads: int = 1) -> None:
        self.layout = layout
        self._model, self._order = model, order
        self.pool = np.zeros(layout.pool_size)
        self.parameters: FloatArray = self.pool[layout.n_static + layout.n_messages :]
        self.gradient = np.zeros(layout.n_parameters)
        self.weights = np.zeros(layout.n_nodes)
        self._node_tau = tau[order][layout.bucket]
        self._constant = fill_static(layout, model, order, self.pool)
        lonely = np.setdiff1d(np.arange(len(order)), layout.bucket)
        self._constant += float(np.sum(tau[order][lonely] * np.log(model.cardinalities[order][lonely])))
        self._roots = np.flatnonzero(layout.parent < 0)
        self._nodes = np.arange(layout.n_nodes)
        is_max = self._node_tau == 0.0
        self._first_max = int(np.argmax(is_max)) if is_max.any() else layout.n_nodes
        self._last = self._nodes[self._first_max :]
        self.has_max = bool(is_max.any())
        self._crown, self._branches = _branches(layout, threads)
        self._workspaces = [np.empty(4 * layout.largest_block) for _ in range(1 + len(self._branches))]
        self._threads = ThreadPoolExecutor(len(self._branches) - 1) if len(self._branches) > 1 else None
        self._tables = _NO_TABLES
        self._entropies = _NO_TABLES
        self._slopes = _NO_TABLES
        self._weight_slopes = np.zeros(layout.n_nodes)
        # Every input and every message begins a stretch of the pool; where each input's is.
        self._stretches = np.unique(np.concatenate((layout.wiring.source, layout.wiring.message[: layout.n_nodes])))
        self._stretch_of_input = np.searchsorted(self._stretches, layout.wiring.source)
        inputs = np.diff(layout.wiring.input_starts)
        self._times_of_input = np.repeat(inputs + 3.0, inputs)
        self._message_end = layout.n_static + layout.n_messages + layout.n_shifts
        self._fixed_errors = FixedError(layout, model, self._node_tau)
        self._fixed_error = self._fixed_errors.of(model)
        self._seconds = TREE_PASS * layout.n_entries + TREE_NODE * layout.n_nodes

    def value(self, temperature: float = 0.0, *, sums_are_fresh: bool = False) -> float:
        """The bound with max variables at a temperature; 0 is the true one. Leaves the gradient as it is.

        ``sums_are_fresh`` says that parameters have not changed since the last pass, so that only the max variables
        need to be eliminated anew.
        """
        self._set_weights(temperature)
        if sums_are_fresh:
            self._forward_over(self._last, _NO_TABLES)
        else:
            self._run_forward(_NO_TABLES)
        spend(VALUE_SHARE * self._seconds)
        return self._total()

    def error(self) -> float:
        """How far rounding can have moved the value of the latest forward pass.

        :mod:`powersum.model.rounding` says why. Reads the messages: they must be those of the present parameters.
        """
        wiring = self.layout.wiring
        if not np.isfinite(self.parameters).all():
            # Kernels take what is no number for something impossible, which it does not prove.
            return math.inf
        if not self._stretches.size:
            return self._fixed_error
        largest = np.empty(len(self._stretches))
        _largest_of_stretches(self.pool[: self._message_end], self._stretches, largest)
        # The stretch of the last shifts would go on over the logits, which are no inputs.
        inputs = float((self._times_of_input * largest[self._stretch_of_input]).sum())
        roots = np.abs(self.pool[wiring.message[self._roots]])
        ends = (len(roots) + 2.0) * float(roots[roots < -IMPOSSIBLE].sum())
        return self._fixed_error + UNIT * (inputs + ends)

    def value_and_gradient(self, temperature: float = 0.0) -> float:
        """The bound with max variables at a temperature > 0; its gradient goes to ``gradient``."""
        layout = self.layout
        if not self._tables.size:
            self._tables = np.empty(layout.n_entries)
            self._entropies = np.empty(layout.n_entropies)
            self._slopes = np.empty(layout.slopes_size)
        self._set_weights(temperature)
        self._run_forward(self._tables)
        self._slopes[layout.wiring.message[self._roots] - layout.n_static] = 1.0
        self._run_backward()
        _gather_gradient(
            self._slopes[layout.n_messages : layout.factor_slopes],
            self._weight_slopes,
            layout.shared_starts,
            layout.shared_nodes,
            self._shares,
            self._scale,
            self.gradient,
        )
        spend(self._seconds)
        return self._total()

    def variable_beliefs(self) -> list[FloatArray]:
        """Beliefs of each variable, in the order of elimination; where it is split, the mean over its mini-buckets.

        They are the marginals themselves where all variables are summed and none is split. A maximised variable has
        its belief at the least temperature for which there is a gradient.
        """
        self.value_and_gradient(LEAST_WEIGHT_SHARE)
        layout = self.layout
        cardinalities = self._model.cardinalities[self._order]
        beliefs = [np.zeros(int(card)) for card in cardinalities]
        for node, position in enumerate(layout.bucket.tolist()):
            start, states = int(layout.wiring.table[node]), int(layout.wiring.states[node])
            table = self._tables[start : start + states * int(layout.wiring.columns[node])]
            beliefs[position] += table.reshape(states, -1).sum(axis=1)
        return [b / b.sum() if b.sum() > 0 else np.full(len(b), 1.0 / len(b)) for b in beliefs]

    @property
    def tables(self) -> FloatArray:
        """Beliefs of all nodes at the latest gradient, one after the other; empty before the first."""
        return self._tables

    def release(self) -> None:
        """Give back what only gradients need; it is allocated again when one is asked for."""
        self._tables = self._entropies = self._slopes = _NO_TABLES

    def refill(self) -> None:
        """Compute the static tables anew from the model."""
        fill_static(self.layout, self._model, self._order, self.pool)

    def message(self, node: int) -> FloatArray:
        """The message of a node, as a view."""
        start = self.layout.wiring.message[node]
        return self.pool[start : start + self.layout.wiring.columns[node]]

    def _total(self) -> float:
        return total_of(self.pool[self.layout.wiring.message[self._roots]], self._constant)

    def _set_weights(self, temperature: float) -> None:
        layout = self.layout
        tau = np.where(self._node_tau == 0.0, temperature, self._node_tau)
        self.weights[:] = tau
        self._scale = tau[layout.shared_nodes]
        self._shares = shares_of(self.parameters[layout.n_shifts :], layout.shared_starts)
        self.weights[layout.shared_nodes] = self._scale * self._shares

    def _forward_over(self, nodes: IntArray, tables: FloatArray, worker: int = 0) -> None:
        forward(self.layout.wiring, nodes, self.weights, self.pool, tables, self._entropies, self._workspaces[worker])

    def _backward_over(self, nodes: IntArray) -> None:
        layout = self.layout
        backward(
            layout.wiring, nodes, layout.n_static, self._tables, self._entropies, self._slopes, self._weight_slopes
        )

    def _run_forward(self, tables: FloatArray) -> None:
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
        waiting = [self._threads.submit(self._backward_over, nodes) for nodes in self._branches[1:]]
        self._backward_over(self._branches[0])
        for task in waiting:
            task.result()


def total_of(roots: FloatArray, constant: float) -> float:
    """The bound that the messages of the roots make. What is no number bounds nothing: infinity."""
    total = float(roots.sum()) + constant
    if math.isnan(total):
        return math.inf
    # One impossible component makes the whole impossible.
    return total if total > 0.5 * NOTHING else -math.inf


class FixedError:
    """Rounding that does not depend on the point: power sums, weights, and the adding up of factors.

    Parameters
    ----------
    layout, model, tau
        The wiring, the structure of the model, and the weight of each node's variable.
    """

    def __init__(self, layout: Layout, model: Model, tau: FloatArray) -> None:
        inside = layout.factor_group >= 0
        together = np.bincount(layout.factor_group[inside], minlength=1)
        alone = model.n_factors + model.n_variables + 2.0
        self._times = np.full(model.n_factors, alone)
        self._times[inside] = together[layout.factor_group[inside]]
        states = layout.wiring.states.astype(np.float64)
        shares = np.ones(layout.n_nodes)
        shares[layout.shared_nodes] = np.repeat(np.diff(layout.shared_starts), np.diff(layout.shared_starts))
        sums = (2.0 * states + EXPONENTIAL + (shares + 8.0) * np.log(states)) * np.maximum(tau, 1e-3)
        lonely = alone * float(np.log(model.cardinalities).sum()) * (layout.n_nodes == 0)
        self._sums = lonely + float(sums.sum())

    def of(self, model: Model) -> float:
        """With the numbers of this model, which has the same structure."""
        factors = np.empty(model.n_factors)
        _largest_of_stretches(model.log_values, model.table_starts[:-1], factors)
        return UNIT * (float((self._times * factors).sum()) + self._sums)


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


@compiled
def _largest_of_stretches(pool: FloatArray, starts: IntArray, largest: FloatArray) -> None:
    """As :func:`powersum.model.rounding.magnitudes`, in one walk and without copies: it is asked for in every round."""
    for number in range(starts.size):
        end = starts[number + 1] if number + 1 < starts.size else pool.size
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        whole = end - (end - starts[number]) % 4
        # Four strands, which do not wait for each other. Entries that stand for impossible states do not count.
        for i in range(starts[number], whole, 4):
            a = max(a, abs(pool[i]) if pool[i] > IMPOSSIBLE else 0.0)
            b = max(b, abs(pool[i + 1]) if pool[i + 1] > IMPOSSIBLE else 0.0)
            c = max(c, abs(pool[i + 2]) if pool[i + 2] > IMPOSSIBLE else 0.0)
            d = max(d, abs(pool[i + 3]) if pool[i + 3] > IMPOSSIBLE else 0.0)
        for i in range(whole, end):
            a = max(a, abs(pool[i]) if pool[i] > IMPOSSIBLE else 0.0)
        largest[number] = max(max(a, b), max(c, d))
