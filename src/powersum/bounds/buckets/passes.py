"""The bound of a covering tree and its gradient as a function of one flat vector of parameters, in double precision."""

from __future__ import annotations

import math

import numpy as np

from powersum.bounds.buckets.kernels import NOTHING
from powersum.bounds.buckets.statics import fill_static
from powersum.bounds.buckets.sweeps import LEAST_WEIGHT_SHARE, Sweeps
from powersum.bounds.buckets.wiring import Layout
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.core.lanes import roomy
from powersum.core.speed import VALUE_SHARE
from powersum.core.work_time import spend
from powersum.model.model import Model
from powersum.model.rounding import EXPONENTIAL, IMPOSSIBLE, UNIT


class Passes(Sweeps):
    """The passes that claims are made of: the bound at any point, and how far rounding can have moved it."""

    def __init__(self, layout: Layout, model: Model, order: IntArray, tau: FloatArray, *, threads: int = 1) -> None:
        super().__init__(layout, tau[order][layout.bucket], roomy(layout.pool_size, np.float64), threads=threads)
        self._model, self._order = model, order
        self._constant = fill_static(layout, model, order, self.pool) + lonely_constant(layout, model, order, tau)
        # Every input and every message begins a stretch of the pool; where each input's is.
        self._stretches = np.unique(np.concatenate((layout.wiring.source, layout.wiring.message[: layout.n_nodes])))
        self._stretch_of_input = np.searchsorted(self._stretches, layout.wiring.source)
        inputs = np.diff(layout.wiring.input_starts)
        self._times_of_input = np.repeat(inputs + 3.0, inputs)
        self._message_end = layout.n_static + layout.n_messages + layout.n_shifts
        self._fixed_errors = FixedError(layout, model, self._node_tau)
        self._fixed_error = self._fixed_errors.of(model)

    def value(self, temperature: float = 0.0) -> float:
        """The bound with max variables at a temperature; 0 is the true one. Leaves the gradient as it is."""
        self._set_weights(temperature)
        self._run_forward(None)
        spend(VALUE_SHARE * self._seconds)
        return self._total()

    def error(self) -> float:
        """How far rounding can have moved the value of the latest forward pass.

        :mod:`powersum.model.rounding` says why. Reads the messages: they must be those of the present parameters.
        """
        if not np.isfinite(self.parameters).all():
            # Kernels take what is no number for something impossible, which it does not prove.
            return math.inf
        if not self._stretches.size:
            return self._fixed_error
        largest = np.empty(len(self._stretches))
        _largest_of_stretches(self.pool[: self._message_end], self._stretches, largest)
        # The stretch of the last shifts would go on over the logits, which are no inputs.
        inputs = float((self._times_of_input * largest[self._stretch_of_input]).sum())
        roots = np.abs(self.pool[self._roots])
        ends = (len(roots) + 2.0) * float(roots[roots < -IMPOSSIBLE].sum())
        return self._fixed_error + UNIT * (inputs + ends)

    def value_and_gradient(self, temperature: float = 0.0) -> float:
        """The bound with max variables at a temperature > 0; its gradient goes to ``gradient``."""
        return total_of(self._run_both(temperature), self._constant)

    def guide(self, temperature: float) -> float:
        """The same, where a descent is guided in double precision."""
        return self.value_and_gradient(temperature)

    def variable_beliefs(self) -> list[FloatArray]:
        """Beliefs of each variable, in the order of elimination; where it is split, the mean over its mini-buckets.

        They are the marginals themselves where all variables are summed and none is split. A maximised variable has
        its belief at the least temperature for which there is a gradient.
        """
        self.value_and_gradient(LEAST_WEIGHT_SHARE)
        layout, nodes = self.layout, self.beliefs()
        cardinalities = self._model.cardinalities[self._order]
        beliefs = [np.zeros(int(card)) for card in cardinalities]
        for node, position in enumerate(layout.bucket.tolist()):
            start, states = int(layout.wiring.table[node]), int(layout.wiring.states[node])
            table = nodes[start : start + states * int(layout.wiring.columns[node])]
            beliefs[position] += table.reshape(states, -1).sum(axis=1)
        return [b / b.sum() if b.sum() > 0 else np.full(len(b), 1.0 / len(b)) for b in beliefs]

    def refill(self, log_values: FloatArray | None = None) -> None:
        """Compute the static tables anew from the model, or from other log values of its tables."""
        fill_static(self.layout, self._model, self._order, self.pool, log_values)

    def message(self, node: int) -> FloatArray:
        """The message of a node, as a view."""
        start = self.layout.wiring.message[node]
        view: FloatArray = self.pool[start : start + self.layout.wiring.columns[node]]
        return view

    def _total(self) -> float:
        return total_of(self.pool[self._roots], self._constant)


def lonely_constant(layout: Layout, model: Model, order: IntArray, tau: FloatArray) -> float:
    """What variables add that are in no mini-bucket: the power sums of nothing."""
    lonely = np.setdiff1d(np.arange(len(order)), layout.bucket)
    return float(np.sum(tau[order][lonely] * np.log(model.cardinalities[order][lonely])))


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
