"""Simplify: from a model, a query and evidence to the smallest problem with the same answer, and the way back."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, given_up, positions_of, starts_of
from powersum.model.graph import components
from powersum.model.keys import Place
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.model.question import EvidenceLike, Question
from powersum.model.rounding import elimination_error
from powersum.prepare.fates import Fates
from powersum.prepare.problem import Problem
from powersum.prepare.simplify.absorption import absorb
from powersum.prepare.simplify.barren import remove_barren
from powersum.prepare.simplify.flat import drop_flat_axes
from powersum.prepare.simplify.restriction import restrict
from powersum.prepare.simplify.support import possible_states
from powersum.prepare.simplify.tables import Tables

__all__ = ["simplified", "simplify", "states_of_evidence"]


def simplify(model: Model, query: Query, evidence: EvidenceLike | None = None, *, barren: bool = True) -> Problem:
    """:func:`simplified` of a question that is asked by its parts; whole numbers are places, whatever the names."""
    pairs = evidence.items() if isinstance(evidence, Mapping) else evidence or ()
    known = [tuple(Place(x) if isinstance(x, int) else x for x in pair) for pair in pairs]
    return simplified(Question.of(model, evidence=known, weights=query), barren=barren)


def simplified(question: Question, *, barren: bool = True, possible: BoolArray | None = None) -> Problem:
    """The smallest problem found with the same value as the question; the model itself is not touched.

    Evidence is put in; states without support, axes on which a table does not depend, barren variables, constants,
    factors inside other factors, variables with one state or in no factor are taken out, until nothing changes.
    Contradictions give an infeasible problem with the constant ``-inf``.

    Every step keeps the value under any elimination order that the query allows, also for weights other than 0 and 1
    (barren variables are left in place then, see :func:`powersum.prepare.simplify.barren.remove_barren`).

    Parameters
    ----------
    question
        What is asked. Maximised variables may be observed: that state is their answer.
    barren
        Whether variables whose sum is a constant may go; a caller that asks for their marginals wants them to stay.
    possible
        For each state of each variable False where it is known that every configuration with it has a zero.
    """
    model, evidence = question.observed
    query = question.query
    tau = query.weights
    allowed = states_of_evidence(model, evidence)
    possible = allowed if possible is None else allowed & possible
    # kept holds the original numbers of the states that are left, variable by variable.
    kept = np.arange(len(possible)) - np.repeat(starts_of(model.cardinalities)[:-1], model.cardinalities)
    tables = Tables.of(model)
    fates = Fates.of(model)
    constants: list[float] = []
    log_width = 0.0

    # A pass may open the way for another: absorbed zeros leave states without support, fixed variables leave scopes.
    first = True
    while True:
        before = tables
        possible = possible_states(tables, possible)
        owner = np.repeat(np.arange(model.n_variables), tables.cardinalities)
        if np.bincount(owner[possible], minlength=model.n_variables).min(initial=1) == 0:
            return _infeasible(model, tau, evidence, fates)
        kept = kept[possible]
        tables = drop_flat_axes(restrict(tables, possible))
        constant, values = tables.constants()
        constants.append(math.fsum(values[constant]))
        if constants[-1] == -math.inf:
            return _infeasible(model, tau, evidence, fates)
        tables = tables.select(~constant)
        if barren:
            whole = tables
            tables, gone, log_sum, width = remove_barren(whole, tau, query.blocks)
            fates.note_barren(whole, gone)
            constants.append(log_sum)
            log_width += width
        if first or tables is not before:
            tables = absorb(tables)
            fates.note_groups(tables)
        if tables is before:
            break
        possible = np.ones(len(kept), dtype=np.bool_)
        first = False
    # Tables are added to each other and barren variables summed out: no more than an elimination does.
    log_error = log_width + elimination_error(model, float(tau.max(initial=1.0)))
    return _assemble(model, tables, query, fates, kept, math.fsum(constants), log_error)


def states_of_evidence(model: Model, evidence: Mapping[int, int]) -> BoolArray:
    """One entry for each state of each variable: whether the evidence allows it."""
    state_starts = starts_of(model.cardinalities)
    possible = np.ones(int(state_starts[-1]), dtype=np.bool_)
    for variable, state in evidence.items():
        possible[state_starts[variable] : state_starts[variable + 1]] = False
        possible[state_starts[variable] + state] = True
    return possible


def _infeasible(model: Model, tau: FloatArray, evidence: Mapping[int, int], fates: Fates) -> Problem:
    """The empty problem of value ``-inf``; observed variables keep their states, no other has one."""
    fixed = np.full(model.n_variables, -1, dtype=np.int64)
    for variable, state in evidence.items():
        fixed[variable] = state
    none = np.zeros(0, dtype=np.int64)
    return Problem(
        model=Model.from_factors([], []),
        tau=np.zeros(0),
        log_constant=-math.inf,
        log_error=0.0,
        variables=none,
        kept_state_starts=np.zeros(1, dtype=np.int64),
        kept_states=none,
        fixed_states=fixed,
        component=none,
        original_tau=tau,
        possible=np.zeros(int(model.cardinalities.sum()), dtype=np.bool_),
        fates=fates,
    )


def _assemble(
    model: Model,
    tables: Tables,
    query: Query,
    fates: Fates,
    kept: IntArray,
    log_constant: float,
    log_error: float,
) -> Problem:
    """Number the remaining variables anew and account for those that are in no factor."""
    tau = query.weights
    n_variables = len(tau)
    in_factor = np.zeros(n_variables, dtype=np.bool_)
    in_factor[tables.scope_variables] = True
    removed = np.zeros(n_variables, dtype=np.bool_)
    removed[[scope[0] for scope in fates.barren]] = True
    fates.table_of = tables.table_of
    fixed = np.full(n_variables, -1, dtype=np.int64)
    # Variables with one state have no choice; a maximised one in no factor may take any.
    decided = ~in_factor & ~removed & ((tables.cardinalities == 1) | (tau == 0.0))
    state_starts = starts_of(tables.cardinalities)
    fixed[decided] = kept[state_starts[:-1][decided]]
    isolated = ~in_factor & ~removed
    log_constant += math.fsum(tau[isolated] * np.log(tables.cardinalities[isolated]))

    possible = np.zeros(int(model.cardinalities.sum()), dtype=np.bool_)
    possible[np.repeat(starts_of(model.cardinalities)[:-1], tables.cardinalities) + kept] = True

    variables = np.flatnonzero(in_factor)
    number = positions_of(variables, n_variables)
    reduced = Model(
        cardinalities=tables.cardinalities[variables],
        scope_starts=tables.scope_starts,
        scope_variables=given_up(number[tables.scope_variables]),
        table_starts=tables.table_starts,
        log_values=given_up(tables.log_values),
    )
    return Problem(
        model=reduced,
        tau=tau[variables],
        log_constant=log_constant,
        log_error=log_error,
        variables=variables,
        kept_state_starts=starts_of(reduced.cardinalities),
        kept_states=kept[np.repeat(in_factor, tables.cardinalities)],
        fixed_states=fixed,
        component=components(reduced.n_variables, reduced.scope_starts, reduced.scope_variables),
        original_tau=tau,
        possible=possible,
        fates=fates,
        blocks=None if query.blocks is None else query.blocks[variables],
    )
