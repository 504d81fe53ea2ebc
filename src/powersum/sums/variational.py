"""Lower bounds on sums too wide to eliminate, by Jensen's inequality: exact where narrow, in product form elsewhere.

For any distribution q of the summed variables the log of a sum is at least ``E_q[log terms] + entropy of q``. Here the
summed variables are of two kinds. The *core* is narrow, and whatever the others do it is summed exactly. The others
have independent distributions, each variable its own; with point masses this is the sum with those variables held at
one state, the place where it starts. From there every update of one variable's distribution, all others given, raises
the bound. Maximised variables are point masses throughout, and may move to a better state in the same way.

With ``q`` the distributions of the others, the bound is

    log of the sum over the core of exp(Σ_f E_q[f]) + Σ entropies of q,

a sum of expectations and one exact elimination: whatever led to ``q``, this number is a bound.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from powersum.bounds.buckets.passes import Passes
from powersum.bounds.buckets.scopes import scopes_in_order
from powersum.bounds.buckets.wiring import lay_out
from powersum.bounds.tree.budget import exact_within
from powersum.core import work_time as time
from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen, starts_of
from powersum.core.speed import EXPECTATION, ROUND
from powersum.model.graph import incidence
from powersum.model.model import Model
from powersum.model.rounding import UNIT, elimination_error, magnitudes
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.proof.elimination import elimination_forest
from powersum.proof.format import Forest
from powersum.sums.by_state import UNDERFLOW, StateSums
from powersum.sums.variational_kernels import IncidentTables, all_fields, contract, update_others

ENOUGH = 1e-6
"""A round that raises the bound by less than this is the last."""


class Variational:
    """A lower bound that rises round by round.

    Parameters
    ----------
    problem
        The simplified problem, of weights 0 and 1.
    core
        Which of the summed variables are summed exactly; what is left of the model on them must be narrow.
    states
        A state of every variable, of a configuration that is possible: where all distributions begin.
    memory
        Bytes that the elimination of the core may take.

    Attributes
    ----------
    log_lower
        The best bound so far, rounding taken off; ``-inf`` where the core does not fit the memory.
    states
        States of the maximised variables that it belongs to; of others the state of largest probability.
    core
        The variables summed exactly: those given, less some where a table has several beside one that is not.
    """

    def __init__(
        self, problem: Problem, core: BoolArray, states: IntArray, *, memory: float = 5e8, seed: int = 0
    ) -> None:
        model = problem.model
        self._problem, self._model = problem, model
        self.states: IntArray = states.copy()
        self.log_lower = self._present = -math.inf
        self.core = _single_neighbours(model, core & (problem.tau > 0.0))
        self._starts = starts_of(model.cardinalities)
        self._q = np.zeros(int(self._starts[-1]))
        self._q[self._starts[:-1] + states] = 1.0
        self.best_q = self._q.copy()
        others = np.flatnonzero(~self.core)
        self._others = others.astype(np.int64)
        self._is_max: BoolArray = problem.tau == 0.0
        places = incidence(model.n_variables, model.scope_starts, model.scope_variables)
        self._tables = IncidentTables(
            model.cardinalities,
            model.scope_starts,
            model.scope_variables,
            model.table_starts,
            model.log_values,
            places.starts,
            places.factors,
            self._starts,
        )
        self._passes: Passes | None = None
        self._prepare_core(memory, seed)
        sizes = np.diff(model.table_starts)
        lengths = np.diff(model.scope_starts)
        owner = np.repeat(np.arange(model.n_factors), lengths)
        domains = np.bincount(owner, model.cardinalities[model.scope_variables], minlength=model.n_factors)
        largest = magnitudes(model.log_values, model.table_starts[:-1]) if model.n_factors else np.zeros(0)
        # Weights of a table's entries are products of probabilities that sum to 1 up to a few units each.
        self._expectation_error = UNIT * float(((sizes + 4.0 * lengths + 2.0 * domains) * largest).sum())
        self._expectation_error += UNIT * 8.0 * float((model.cardinalities * np.log(model.cardinalities + 1.0)).sum())
        self._expectation_error += elimination_error(model)
        if self.possible:
            self._refresh()

    @property
    def possible(self) -> bool:
        """False where the core does not fit the memory: there is no bound then."""
        return self._passes is not None or not self.core.any()

    def run(self, deadline: float) -> bool:
        """Rounds until the deadline; False when nothing more is gained."""
        while self.possible and time.monotonic() < deadline:
            before = self._present
            moved = update_others(self._others, self._is_max, self._tables, self._q)
            time.spend(ROUND + EXPECTATION * self._model.log_values.size)
            self._refresh()
            if not moved or not self._present - before >= ENOUGH:
                return False
        return self.possible

    def restart(self, states: IntArray) -> None:
        """Begin again at another configuration; the best bound so far is kept."""
        self._q[:] = 0.0
        self._q[self._starts[:-1] + states] = 1.0
        self._refresh()

    def leave(self, variables: IntArray, states: IntArray) -> None:
        """Begin again at the best distributions, with these maximised variables in other states."""
        self._q[:] = self.best_q
        for v, state in zip(variables.tolist(), states.tolist(), strict=True):
            self._q[self._starts[v] : self._starts[v + 1]] = 0.0
            self._q[self._starts[v] + state] = 1.0
        self._refresh()

    def state_sums(self, log_upper: float) -> StateSums:
        """Lower bounds on the sums with each state of each variable set, at the best distributions.

        With a state of an outside variable set and all other distributions as they are, Jensen's inequality for the
        core at its present distribution, too, gives a bound in closed form; states of the core have their share of the
        sum over it. ``log_upper`` bounds the whole sum.
        """
        model, starts = self._model, self._starts
        self._q[:] = self.best_q
        # The distribution of the core is that at the best point from here on.
        self._refresh()
        found = np.zeros(len(self._q))
        all_fields(self._others, self._tables, self._q, found)
        time.spend(EXPECTATION * model.log_values.size)
        largest = magnitudes(model.log_values, model.table_starts[:-1]) if model.n_factors else np.zeros(0)
        backward = 8.0 * elimination_error(model)
        lowers = []
        for v in range(model.n_variables):
            own = slice(int(starts[v]), int(starts[v + 1]))
            q, field = self._q[own], found[own]
            with np.errstate(divide="ignore"):
                if self.core[v]:
                    lowers.append(self._present + np.log(np.maximum(q - UNDERFLOW, 0.0)) - backward)
                    continue
            some = q > 0.0
            mean = float((q[some] * (field[some] - np.log(q[some]))).sum())
            at = slice(self._tables.incident_starts[v], self._tables.incident_starts[v + 1])
            around = float(largest[self._tables.incident[at]].sum())
            error = 4.0 * (backward + UNIT * 64.0 * (model.cardinalities[v] + 8.0)) * (1.0 + around)
            error += self._expectation_error
            lowers.append(self._present - mean + field - error)
        whole = self._present, log_upper
        return StateSums(list(range(model.n_variables)), lowers, [np.full(len(one), np.inf) for one in lowers], whole)

    def core_forest(self, problem: Problem) -> Forest | None:
        """The elimination of the core, as a certificate has it; None where there is no core."""
        if self._passes is None:
            return None
        inside = replace(
            problem,
            model=self._core_model.with_log_values(self._targets),
            variables=problem.variables[self.core],
            tau=problem.tau[self.core],
        )
        return elimination_forest(inside, self._order)

    def _prepare_core(self, memory: float, seed: int) -> None:
        """Wire the elimination of the core, with one table for each scope that the model leaves on it."""
        model = self._model
        number = np.cumsum(self.core) - 1
        inside = self.core[model.scope_variables]
        owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
        lengths = np.bincount(owner[inside], minlength=model.n_factors)
        cards = model.cardinalities[model.scope_variables]
        log_sizes = np.bincount(owner[inside], np.log(cards[inside]), minlength=model.n_factors)
        sizes = np.rint(np.exp(log_sizes)).astype(np.int64)
        self._target_starts = starts_of(sizes)
        self._targets = np.zeros(int(self._target_starts[-1]))
        if not self.core.any():
            return
        scopes = number[model.scope_variables[inside]]
        self._core_model = Model(
            model.cardinalities[self.core], starts_of(lengths), scopes, self._target_starts, self._targets
        )
        weights = np.ones(self._core_model.n_variables)
        order = elimination_order(self._core_model, weights, seed=seed)
        in_order = scopes_in_order(self._core_model, order)
        parts = exact_within(in_order, self._core_model.cardinalities[order], entries=memory / 24.0, size=memory)
        if parts is None:
            return
        layout = lay_out(parts, in_order, self._core_model.cardinalities[order])
        # It is built on tables of zeros, to be filled later: the rounding of adding factors up is counted with the
        # expectations, and the factors outside the core are added here, not by it.
        self._passes = Passes(layout, self._core_model, order, weights)
        self._outside = np.flatnonzero(lengths == 0)
        self._order = order

    def _refresh(self) -> None:
        """The bound at the present distributions, and the core's marginals, which the others are updated by."""
        contract(self.core, self._tables, self._q, self._target_starts, self._targets)
        entropy = _entropy(self._q, self._starts, self._others)
        error = self._expectation_error
        if self._passes is None:
            value = math.fsum(self._targets) + entropy
        else:
            self._passes.refill(frozen(self._targets, np.float64))
            outside = math.fsum(self._targets[self._target_starts[self._outside]])
            value = self._passes.value() + outside + entropy
            error += self._passes.error()
        # What is no number bounds nothing.
        log_lower = value - error if math.isfinite(value) and math.isfinite(error) else -math.inf
        self._present = log_lower
        if log_lower > self.log_lower:
            self.log_lower = log_lower
            self.best_q = self._q.copy()
            self._note_states()
        if self._passes is not None and math.isfinite(value):
            beliefs = self._passes.variable_beliefs()
            variables = np.flatnonzero(self.core)[self._order]
            for variable, belief in zip(variables.tolist(), beliefs, strict=True):
                self._q[self._starts[variable] : self._starts[variable + 1]] = belief

    def _note_states(self) -> None:
        for v in self._others.tolist():
            self.states[v] = int(np.argmax(self._q[self._starts[v] : self._starts[v + 1]]))


def _single_neighbours(model: Model, core: BoolArray) -> BoolArray:
    """The core without what stands beside a variable outside it together with another of the core, in one table.

    Then the expectation of such a table needs the marginal of one variable of the core only.
    """
    core = core.copy()
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    while True:
        inside = core[model.scope_variables]
        number = np.bincount(owner, inside, minlength=model.n_factors)
        mixed = (number > 1) & (number < np.diff(model.scope_starts))
        if not mixed.any():
            return core
        # Of each such table the first variable may stay; the next round sees what that leaves.
        places = np.flatnonzero(mixed[owner] & inside)
        first = np.ones(len(places), dtype=np.bool_)
        first[1:] = owner[places[1:]] != owner[places[:-1]]
        core[model.scope_variables[places[~first]]] = False


def _entropy(q: FloatArray, starts: IntArray, variables: IntArray) -> float:
    chosen = np.zeros(len(starts) - 1, dtype=np.bool_)
    chosen[variables] = True
    own = q[np.repeat(chosen, np.diff(starts))]
    own = own[own > 0.0]
    return -math.fsum(own * np.log(own))
