"""The compiled part of an engine: plans that are made once, and run in one call."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from powersum.api.distribution import Marginals, known_marginals
from powersum.api.marginals import impossible
from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen, positions_of, starts_of
from powersum.exact.distributions import marginals_of
from powersum.exact.elimination import full_domains
from powersum.exact.kernels import Buckets, Domains, Scratch, choice_type, new_scratch
from powersum.exact.plans import WIDEST, PlanLayout, Structure, make_plan, run_plan
from powersum.exact.wiring import EliminationWiring, message_sizes, wire
from powersum.model.factors import factors_of
from powersum.model.graph import incidence
from powersum.model.limits import Limits
from powersum.model.model import Model
from powersum.model.question import Question
from powersum.model.rounding import certain, error_of_tables, magnitude, magnitudes
from powersum.prepare.ordering import elimination_order, order_cost
from powersum.prepare.problem import Problem
from powersum.prepare.sizes import order_sizes, question_sizes
from powersum.prepare.small import BARREN_TOLERANCE, log_sum
from powersum.run.board import Board

MOST_WORK = 1e9
"""Table entries beyond which a question is left to :func:`powersum.solve`, which looks at the clock meanwhile."""

PLANS_SHARE = 0.1
"""Share of the memory that plans kept for later may take."""

MESSAGES_SHARE = 0.1
"""The same for the messages of marginals."""


class _Plan(NamedTuple):
    """What all questions with these observed and maximised variables have in common."""

    wiring: EliminationWiring
    layout: PlanLayout
    log_constant: float
    log_width: float
    work: float
    bytes: int


class _Messages(NamedTuple):
    """Those of the latest marginals, and under which states of the observed variables; -1 for all others."""

    places: IntArray
    values: FloatArray
    above: FloatArray
    """Room for what comes back to them."""
    given: IntArray
    lasting: bool
    """True where there is room for the messages under any evidence."""


class Planner:
    """Answers questions about one model by plans, kept by which variables are observed and maximised.

    Parameters
    ----------
    model
        The model, and after its own factors one for each variable that questions give likelihoods of.
    limits
        What a question may take.
    n_likelihoods
        The number of those; their numbers come with the questions.
    """

    def __init__(self, model: Model, limits: Limits, *, n_likelihoods: int = 0) -> None:
        self.model = model
        self._n_likelihoods = n_likelihoods
        self._limits = limits
        largest = int(model.cardinalities.max(initial=1))
        self._choice_type = choice_type(largest)
        self._largest = largest
        self._factors = factors_of(model)
        self._structure, wide = _structure_of(model, n_likelihoods)
        # The same factors, and after them sums that are known beforehand.
        self._wide, self._wide_starts = factors_of(wide), wide.table_starts
        self._known_values = wide.log_values[len(model.log_values) :]
        # Writable, as where other kernels make such arrays: one signature, compiled once.
        self._sizes_of = model.cardinalities.copy()
        self._log2_sizes = np.log2(model.cardinalities)
        self._domains = full_domains(model)
        own = model.n_factors - n_likelihoods
        self._own_values = model.log_values[: model.table_starts[own]]
        self._largest_values = float(magnitudes(self._own_values, model.table_starts[:own]).sum()) if own else 0.0
        self._soft = model.scope_variables[len(model.scope_variables) - n_likelihoods :]
        constants = np.diff(model.scope_starts) == 0
        self._excluded = bool((model.log_values[model.table_starts[:-1][constants]] == -math.inf).any())
        # Answers are in the model's own variables; those that have no state are none of the answer.
        self._whole = Problem.whole(model, np.zeros(model.n_variables), {})
        facts = question_sizes(Question.of(model), self._whole)
        self._facts = facts | {"factors": own, "entries": len(self._own_values)}
        self._plans: OrderedDict[tuple[bytes, bytes], _Plan] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()
        self._own = threading.local()
        self._looked = False
        self._tree: EliminationWiring | None = None
        self._messages: _Messages | None = None

    def solve(self, question: Question) -> tuple[Board, tuple[float, float], dict[str, int | float]] | None:
        """The answer on a board, both sides of the sum it is a share of, and its sizes.

        None where it would take too much, or rounding may have moved it too far.
        """
        plan = self._plan(question)
        if plan is None:
            return None
        given = self._given(question)
        states = given.copy()
        log_values, log_error = self._numbers(question)
        log_value, log_sum = run_plan(
            plan.wiring,
            plan.layout,
            self._wide._replace(log_values=log_values),
            self._structure,
            self._wide_starts,
            question.query.weights,
            self._domains,
            self._scratch(),
            np.empty(int(plan.layout.needed[1]), dtype=self._choice_type),
            given,
            states,
        )
        board = Board(self.model.n_variables)
        error = log_error + plan.log_width
        reason = f"Exact elimination, of constrained width {int(plan.layout.facts[-1])}."
        board.offer_exact(self._whole, log_value + plan.log_constant, error, states, reason)
        log_sum += plan.log_constant
        sides = log_sum - error, certain(log_sum, error)
        return (board, sides, self._sizes(question, plan)) if board.proven and sides[1] < math.inf else None

    def marginals(self, question: Question) -> Marginals | None:
        """The distributions of all variables; None where they would take too much."""
        tree = self._whole_tree()
        if tree is None:
            return None
        sizes, starts, states = self._domains
        if question.evidence.states:
            sizes, states = sizes.copy(), states.copy()
            for v, observed in question.evidence.states.items():
                sizes[v] = 1
                states[starts[v]] = observed
        entries, work = message_sizes(tree, sizes, math.inf)
        if work > MOST_WORK or 16.0 * float(entries.sum()) > self._limits.bytes:
            return None
        given = self._given(question)
        # Whoever takes the messages has them alone; a thread that comes meanwhile makes its own.
        with self._lock:
            kept, self._messages = self._messages, None
        if kept is None:
            kept = self._no_messages(tree, entries)
        beliefs = np.zeros(len(states))
        log_values, log_error = self._numbers(question)
        changed = kept.given != given
        changed[self._soft] = True
        log_value = marginals_of(
            Buckets(
                tree, Domains(sizes, starts, states), self.model.table_starts[:-1].copy(), log_values, self._scratch()
            ),
            question.query.weights,
            np.empty(0, dtype=self._choice_type),
            kept.places,
            kept.values,
            kept.above,
            changed,
            beliefs,
        )
        if kept.lasting:
            with self._lock:
                self._messages = kept._replace(given=given)
        if log_value == -math.inf or self._excluded:
            raise impossible(question)
        bounds = starts[:-1]
        beliefs /= np.repeat(np.add.reduceat(beliefs, bounds), self._sizes_of) if len(bounds) else 1.0
        possible = np.ones(len(beliefs), dtype=np.bool_)
        for v, observed in question.evidence.states.items():
            possible[starts[v] : starts[v + 1]] = False
            possible[starts[v] + observed] = True
        return known_marginals(self.model, beliefs, possible, log_error)

    def _numbers(self, question: Question) -> tuple[FloatArray, float]:
        """All numbers with the question's likelihoods, and how far rounding can move an elimination of them."""
        log_values, largest = self._wide.log_values, self._largest_values
        if self._n_likelihoods:
            tables = question.evidence.log_likelihoods()
            largest += sum(magnitude(table) for table in tables)
            log_values = frozen(np.concatenate([self._own_values, *tables, self._known_values]), np.float64)
        return log_values, error_of_tables(self._sizes_of, self.model.n_factors, largest)

    def _given(self, question: Question) -> IntArray:
        """The state of each observed variable, -1 for all others."""
        given = np.full(self.model.n_variables, -1, dtype=np.int64)
        for v, observed in question.evidence.states.items():
            given[v] = observed
        return given

    def _no_messages(self, tree: EliminationWiring, entries: IntArray) -> _Messages:
        """Room for messages, under any evidence if they may be kept, of which none is known yet."""
        whole, _ = message_sizes(tree, self._sizes_of, math.inf)
        lasting = 16.0 * float(whole.sum()) <= MESSAGES_SHARE * self._limits.bytes
        starts = starts_of(whole if lasting else entries)
        unknown = np.full(self.model.n_variables, -2, dtype=np.int64)
        total = max(1, int(starts[-1]))
        return _Messages(starts[:-1], np.empty(total), np.empty(total), unknown, lasting)

    def _plan(self, question: Question) -> _Plan | None:
        """The plan of a question, made if there is none yet; None where it would take too much."""
        is_max = question.query.weights == 0.0
        given = np.zeros(self.model.n_variables, dtype=np.bool_)
        for v in question.evidence.states:
            given[v] = True
        key = (is_max.tobytes(), given.tobytes())
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
        if plan is None:
            plan = self._new_plan(is_max, given)
            self._keep(key, plan)
        needed = 8.0 * int(plan.layout.needed[0]) + self._choice_type.itemsize * float(plan.layout.needed[1])
        return plan if plan.work <= MOST_WORK and needed <= self._limits.bytes else None

    def _new_plan(self, is_max: BoolArray, given: BoolArray) -> _Plan:
        wired, laid, log_constant, log_width, work = make_plan(
            self._wide,
            self._structure,
            self._wide_starts,
            self._sizes_of,
            self._log2_sizes,
            is_max,
            given,
        )
        wiring, layout = EliminationWiring(*wired), PlanLayout(*laid)
        held = sum(array.nbytes for array in (*wiring, *layout)) + 2 * len(given) + 1000
        return _Plan(wiring, layout, log_constant, log_width, work, held)

    def _keep(self, key: tuple[bytes, bytes], plan: _Plan) -> None:
        """Remember a plan, and forget those that were not asked for longest, where all take too much."""
        with self._lock:
            if key not in self._plans:
                self._plans[key] = plan
                self._held += plan.bytes
            while self._held > PLANS_SHARE * self._limits.bytes and self._plans:
                self._held -= self._plans.popitem(last=False)[1].bytes

    def _whole_tree(self) -> EliminationWiring | None:
        """The wiring of all variables, for marginals; evidence only makes its tables smaller. None for wide models."""
        with self._lock:
            if not self._looked:
                self._looked = True
                model = self.model
                order = elimination_order(model, np.ones(model.n_variables), seed=self._limits.seed)
                if order_cost(model, order).log2_total <= WIDEST:
                    wired, _ = wire(order, positions_of(order), np.arange(model.n_factors), self._factors)
                    self._tree = EliminationWiring(*wired)
            return self._tree

    def _scratch(self) -> Scratch:
        """Working memory of this thread."""
        found: Scratch | None = getattr(self._own, "scratch", None)
        if found is None:
            found = self._own.scratch = new_scratch(self._largest)
        return found

    def _sizes(self, question: Question, plan: _Plan) -> dict[str, int | float]:
        variables, maximised, entries, components, width = plan.layout.facts.tolist()
        return self._facts | {
            "max_variables": len(question.query.answered),
            "evidence": len(question.evidence.states),
            "reduced_variables": variables,
            "reduced_max_variables": maximised,
            "reduced_factors": len(plan.layout.factor_ids),
            "reduced_entries": entries,
            "components": components,
            **order_sizes(width, math.log2(plan.work) if plan.work else -math.inf),
        }


def _structure_of(model: Model, n_likelihoods: int) -> tuple[Structure, Model]:
    """Where each variable occurs, and which tables have a constant sum over which of their variables.

    Also the model with further factors: sums over variables that are in one table only, where they are not constant.
    The last factors of the model are likelihoods, whose numbers are not known yet.
    """
    n_places = len(model.scope_variables)
    log_sums: list[float] = [0.0] * n_places
    widths: list[float] = [math.inf] * n_places
    summed: list[int] = [-1] * n_places
    degree = np.bincount(model.scope_variables, minlength=model.n_variables)
    known: list[tuple[list[int], FloatArray]] = []
    for number, (scope, table) in enumerate(islice(model.factors(), model.n_factors - n_likelihoods)):
        for axis, v in enumerate(scope):
            rows = log_sum(np.moveaxis(table, axis, 0))
            least, most = float(rows.min()), float(rows.max())
            place = int(model.scope_starts[number]) + axis
            if least > -math.inf:
                log_sums[place], widths[place] = most, most - least
            if widths[place] > BARREN_TOLERANCE and degree[v] == 1:
                summed[place] = model.n_factors + len(known)
                known.append(([u for u in scope if u != v], rows.ravel()))
    wide = replace(
        model,
        scope_starts=_longer(model.scope_starts, [len(scope) for scope, _ in known]),
        scope_variables=np.concatenate([model.scope_variables, *(np.array(scope, np.int64) for scope, _ in known)]),
        table_starts=_longer(model.table_starts, [len(rows) for _, rows in known]),
        log_values=np.concatenate([model.log_values, *(rows for _, rows in known)]),
    )
    # No sums of sums: of those nothing more is known.
    more = len(wide.scope_variables) - n_places
    spread = np.array(widths + [math.inf] * more)
    constant = spread <= BARREN_TOLERANCE
    places = incidence(wide.n_variables, wide.scope_starts, wide.scope_variables)
    at: IntArray = wide.scope_starts[:-1][places.factors] + places.positions
    structure = Structure(
        frozen(places.starts, np.int64),
        frozen(places.factors, np.int64),
        frozen(at, np.int64),
        frozen(constant, np.bool_),
        frozen(log_sums + [0.0] * more, np.float64),
        frozen(np.where(constant, spread, 0.0), np.float64),
        frozen(summed + [-1] * more, np.int64),
        model.n_factors,
    )
    return structure, wide


def _longer(starts: IntArray, lengths: list[int]) -> IntArray:
    """Where stretches begin, with more of them at the end."""
    return np.concatenate([starts, starts[-1] + np.cumsum(np.array(lengths, dtype=np.int64))])
