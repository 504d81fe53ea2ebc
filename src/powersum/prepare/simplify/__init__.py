"""Simplify: from a model, a query and evidence to the smallest problem with the same answer, and the way back."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, starts_of
from powersum.core.errors import InputError
from powersum.model.graph import components
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.model.rounding import elimination_error
from powersum.prepare.problem import Problem
from powersum.prepare.simplify.absorb import absorb
from powersum.prepare.simplify.barren import remove_barren
from powersum.prepare.simplify.restrict import restrict
from powersum.prepare.simplify.support import possible_states
from powersum.prepare.simplify.tables import Tables

__all__ = ["simplify"]


def simplify(model: Model, query: Query, evidence: Mapping[int, int]) -> Problem:
    """The smallest problem found with the same value as the question; the model itself is not touched.

    Evidence is put in; states without support, barren nodes, constants, factors inside other factors, variables with
    one state or in no factor are taken out, until nothing changes. Contradictions give an infeasible problem with the
    constant ``-inf``.

    Every step keeps the value under any elimination order that has its max variables last, also for weights other
    than 0 and 1 (barren nodes are left in place then, see :func:`powersum.prepare.simplify.barren.remove_barren`).

    Parameters
    ----------
    model, query
        The question.
    evidence
        State index of each observed variable index. Maximised variables may be observed: that state is their answer.
    """
    tau = query.weights
    if len(tau) != model.n_variables:
        raise InputError(f"the query has {len(tau)} weights for {model.n_variables} variables")
    possible = _states_of_evidence(model, evidence)
    # kept holds the original numbers of the states that are left, variable by variable.
    kept = np.arange(len(possible)) - np.repeat(starts_of(model.cardinalities)[:-1], model.cardinalities)
    tables = Tables.of(model)
    barren = np.zeros((0, 2), dtype=np.int64)
    groups = np.arange(model.n_factors)
    constants: list[float] = []
    log_width = 0.0

    # A pass may open the way for another: absorbed zeros leave states without support, fixed variables leave scopes.
    first = True
    while True:
        before = tables
        possible = possible_states(tables, possible)
        owner = np.repeat(np.arange(model.n_variables), tables.cardinalities)
        if np.bincount(owner[possible], minlength=model.n_variables).min(initial=1) == 0:
            return _infeasible(model, tau, evidence, groups)
        kept = kept[possible]
        tables = restrict(tables, possible)
        constant, values = tables.constants()
        constants.append(math.fsum(values[constant]))
        if constants[-1] == -math.inf:
            return _infeasible(model, tau, evidence, groups)
        tables = tables.select(~constant)
        if first and model.directed:
            child = _children(model)[~constant]
            tables, barren, log_sum, log_width = remove_barren(tables, child, tau)
            # By the numbers of the model: no factor has been added to another yet.
            barren[:, 1] = np.flatnonzero(~constant)[barren[:, 1]]
            constants.append(log_sum)
        if first or tables is not before:
            tables = absorb(tables)
            _note_groups(tables.table_of, groups)
        if tables is before:
            break
        possible = np.ones(len(kept), dtype=np.bool_)
        first = False
    # Tables are added to each other and barren variables summed out: no more than an elimination does.
    log_error = log_width + elimination_error(model, float(tau.max(initial=1.0)))
    return _assemble(model, tables, tau, barren, groups, kept, math.fsum(constants), log_error)


def _states_of_evidence(model: Model, evidence: Mapping[int, int]) -> BoolArray:
    """One entry for each state of each variable: whether the evidence allows it."""
    state_starts = starts_of(model.cardinalities)
    possible = np.ones(int(state_starts[-1]), dtype=np.bool_)
    for variable, state in evidence.items():
        if not 0 <= variable < model.n_variables:
            raise InputError(f"evidence on variable {variable}: the model has variables 0 to {model.n_variables - 1}")
        if not 0 <= state < model.cardinalities[variable]:
            raise InputError(
                f"evidence on variable {variable}: state {state} is not one of its {model.cardinalities[variable]}"
            )
        possible[state_starts[variable] : state_starts[variable + 1]] = False
        possible[state_starts[variable] + state] = True
    return possible


def _note_groups(table_of: IntArray, groups: IntArray) -> None:
    """Give factors that are in one table by now the number of the first of them; others keep theirs."""
    inside = np.flatnonzero(table_of >= 0)
    _, first, number = np.unique(table_of[inside], return_index=True, return_inverse=True)
    groups[inside] = inside[first][number]


def _children(model: Model) -> IntArray:
    """The child of each factor of a Bayesian network, the last of its scope; -1 for constants."""
    child = np.full(model.n_factors, -1, dtype=np.int64)
    filled = np.diff(model.scope_starts) > 0
    child[filled] = model.scope_variables[model.scope_starts[1:][filled] - 1]
    return child


def _infeasible(model: Model, tau: FloatArray, evidence: Mapping[int, int], groups: IntArray) -> Problem:
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
        table_of=np.full(model.n_factors, -1),
        groups=groups,
        barren=np.zeros((0, 2), dtype=np.int64),
    )


def _assemble(
    model: Model,
    tables: Tables,
    tau: FloatArray,
    barren: IntArray,
    groups: IntArray,
    kept: IntArray,
    log_constant: float,
    log_error: float,
) -> Problem:
    """Number the remaining variables anew and account for those that are in no factor."""
    n_variables = len(tau)
    in_factor = np.zeros(n_variables, dtype=np.bool_)
    in_factor[tables.scope_variables] = True
    removed = np.zeros(n_variables, dtype=np.bool_)
    removed[barren[:, 0]] = True
    fixed = np.full(n_variables, -1, dtype=np.int64)
    # Variables with one state have no choice; a maximised one in no factor may take any.
    settled = ~in_factor & ~removed & ((tables.cardinalities == 1) | (tau == 0.0))
    state_starts = starts_of(tables.cardinalities)
    fixed[settled] = kept[state_starts[:-1][settled]]
    isolated = ~in_factor & ~removed
    log_constant += math.fsum(tau[isolated] * np.log(tables.cardinalities[isolated]))

    possible = np.zeros(int(model.cardinalities.sum()), dtype=np.bool_)
    possible[np.repeat(starts_of(model.cardinalities)[:-1], tables.cardinalities) + kept] = True

    variables = np.flatnonzero(in_factor)
    number = np.full(n_variables, -1, dtype=np.int64)
    number[variables] = np.arange(len(variables))
    reduced = Model(
        cardinalities=tables.cardinalities[variables],
        scope_starts=tables.scope_starts,
        scope_variables=number[tables.scope_variables],
        table_starts=tables.table_starts,
        log_values=tables.log_values,
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
        table_of=tables.table_of,
        groups=groups,
        barren=barren,
    )
