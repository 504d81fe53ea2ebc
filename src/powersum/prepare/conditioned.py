"""Evidence put in and nothing else: every table entry that is left is one of the model's, and it is known which."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from powersum.core.arrays import IntArray, positions_of, starts_of
from powersum.model.graph import components
from powersum.model.model import Model
from powersum.model.question import Question
from powersum.model.rounding import elimination_error
from powersum.prepare.fates import Fates
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import states_of_evidence
from powersum.prepare.simplify.restriction import restrict
from powersum.prepare.simplify.tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class Conditioned:
    """A problem whose tables are stretches of the model's.

    Parameters
    ----------
    problem
        The problem; unlike after simplification, states may be impossible and scopes lie inside others.
    entries
        For each table entry of the problem's model, its number among those that the evidence shows: the model's own,
        then those of likelihoods.
    constants
        The same for factors all of whose variables are observed: their entries are the problem's constant, with
    log_free
        what variables in no factor add to it.
    """

    problem: Problem
    entries: IntArray
    constants: IntArray
    log_free: float


def conditioned(question: Question) -> Conditioned:
    """Put the evidence in; the model itself is not touched."""
    model, evidence = question.observed
    tau = question.query.weights
    starts = starts_of(model.cardinalities)
    possible = states_of_evidence(model, evidence)
    whole = Tables.of(model)
    # Numbers of entries take the same way as the entries.
    numbers = restrict(replace(whole, log_values=np.arange(model.log_values.size, dtype=np.float64)), possible)
    every = numbers.log_values.astype(np.int64)
    constant = np.diff(numbers.scope_starts) == 0
    own = np.repeat(~constant, np.diff(numbers.table_starts))
    tables = replace(numbers, log_values=model.log_values[every]).select(~constant)
    constants = every[~own]

    in_factor = np.zeros(model.n_variables, dtype=np.bool_)
    in_factor[tables.scope_variables] = True
    variables = np.flatnonzero(in_factor)
    alone = ~in_factor
    fixed = np.full(model.n_variables, -1, dtype=np.int64)
    fixed[alone & (tau == 0.0)] = 0
    for variable, state in evidence.items():
        fixed[variable] = state
    free = float((tau[alone] * np.log(tables.cardinalities[alone])).sum())
    kept = np.flatnonzero(possible) - np.repeat(starts[:-1], model.cardinalities)[possible]
    reduced = Model(
        cardinalities=tables.cardinalities[variables],
        scope_starts=tables.scope_starts,
        scope_variables=positions_of(variables, model.n_variables)[tables.scope_variables],
        table_starts=tables.table_starts,
        log_values=tables.log_values,
    )
    fates = Fates.of(model)
    fates.table_of = tables.table_of
    problem = Problem(
        model=reduced,
        tau=tau[variables],
        log_constant=math.fsum([free, *model.log_values[constants].tolist()]),
        log_error=elimination_error(model, float(tau.max(initial=1.0))),
        variables=variables,
        kept_state_starts=starts_of(reduced.cardinalities),
        kept_states=kept[np.repeat(in_factor, tables.cardinalities)],
        fixed_states=fixed,
        component=components(reduced.n_variables, reduced.scope_starts, reduced.scope_variables),
        original_tau=tau,
        possible=possible,
        fates=Fates.of(model),
        blocks=None if question.query.blocks is None else question.query.blocks[variables],
    )
    return Conditioned(problem, every[own], constants, free)
