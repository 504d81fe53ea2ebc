"""Evidence of both kinds: observed states, and likelihoods that only lean towards some; the model is not touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.model.keys import as_text, mapped
from powersum.model.model import Model, log_of_probabilities


class Observed(NamedTuple):
    """A model as the evidence shows it: one more factor for each likelihood, and the states that are certain."""

    model: Model
    states: dict[int, int]


def observe(model: Model, evidence: Mapping[Any, Any] | None) -> Observed:
    """Divide evidence into states and likelihoods, and put the likelihoods beside the model's factors.

    Parameters
    ----------
    model
        The model; without likelihoods it is returned as it is.
    evidence
        For each variable, by name or number, its state, or its likelihoods: a dictionary ``{state: likelihood}`` or an
        array in the order of the states. Only their ratios tell anything about the answer; the value of the question is
        multiplied by them as they are. Likelihood 0 excludes a state.

    Notes
    -----
    A Bayesian network stays one: barren nodes are found by their numbers, and a variable with a likelihood lies in two
    factors, so that it is none.
    """
    certain: dict[Any, Any] = {}
    likelihoods: dict[int, FloatArray] = {}
    for key, value in mapped(evidence, "evidence").items():
        if _holds_many(value):
            variable = model.variable(key, argument="evidence")
            if variable in likelihoods:
                raise InputError(f"evidence gives variable {model.name(variable)} likelihoods twice")
            likelihoods[variable] = _likelihood(model, variable, value)
        else:
            certain[key] = value
    states = model.evidence(certain)
    if not likelihoods:
        return Observed(model, states)
    scopes = np.fromiter(likelihoods, dtype=np.int64)
    tables = [log_of_probabilities(table) for table in likelihoods.values()]
    sizes = model.cardinalities[scopes]
    return Observed(
        replace(
            model,
            scope_starts=np.append(model.scope_starts, model.scope_starts[-1] + np.arange(1, len(scopes) + 1)),
            scope_variables=np.append(model.scope_variables, scopes),
            table_starts=np.append(model.table_starts, model.table_starts[-1] + np.cumsum(sizes)),
            log_values=np.concatenate([model.log_values, *tables]),
        ),
        states,
    )


def _holds_many(value: Any) -> bool:
    """True where a value can only be meant as likelihoods."""
    if isinstance(value, (str, bytes)):
        return False
    return isinstance(value, (Mapping, Sequence)) or getattr(value, "ndim", 0) > 0


def _likelihood(model: Model, variable: int, value: Any) -> FloatArray:
    """One likelihood for each state of a variable, in their order."""
    size = int(model.cardinalities[variable])
    name = model.name(variable)
    if isinstance(value, Mapping):
        found = {model.state(variable, key, argument="evidence"): number for key, number in value.items()}
        missing = [str(model.label(variable, state)) for state in range(size) if state not in found]
        if missing or len(found) < len(value):
            problem = f"none for {', '.join(missing)}" if missing else "two for one state"
            raise InputError(f"the likelihoods of variable {name} must name each of its states once: {problem}")
        value = [found[state] for state in range(size)]
    if not all(isinstance(number, (Real, np.bool_)) for number in value):
        raise InputError(f"the likelihoods of variable {name} must be one number for each state: {as_text(value)}")
    table: FloatArray = np.asarray(value, dtype=np.float64)
    if table.shape != (size,):
        raise InputError(f"the likelihoods of variable {name} have shape {table.shape}: it has {size} states")
    if not (np.isfinite(table) & (table >= 0)).all():
        raise InputError(f"the likelihoods of variable {name} must be finite and not negative: {table.tolist()}")
    return table
