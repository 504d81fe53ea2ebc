"""Evidence of both kinds: observed states, and likelihoods that only lean towards some; the model is not touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.model.keys import as_text, pairs_of
from powersum.model.model import Model, log_of_probabilities


class Observed(NamedTuple):
    """A model as the evidence shows it: one more factor for each likelihood, and the states that are certain."""

    model: Model
    states: dict[int, int]


class Evidence(NamedTuple):
    """Evidence by numbers: observed states, and likelihoods of all states of a variable, by rising variable."""

    states: dict[int, int]
    likelihoods: dict[int, tuple[float, ...]]

    def shown_by(self, model: Model) -> Observed:
        """The model as this evidence shows it; without likelihoods it is the model as it is.

        A Bayesian network stays one: barren nodes are found by their numbers, and a variable with a likelihood lies in
        two factors, so that it is none.
        """
        if not self.likelihoods:
            return Observed(model, self.states)
        scopes = np.fromiter(self.likelihoods, dtype=np.int64)
        sizes = model.cardinalities[scopes]
        shown = replace(
            model,
            scope_starts=np.append(model.scope_starts, model.scope_starts[-1] + np.arange(1, len(scopes) + 1)),
            scope_variables=np.append(model.scope_variables, scopes),
            table_starts=np.append(model.table_starts, model.table_starts[-1] + np.cumsum(sizes)),
            log_values=np.concatenate([model.log_values, *self.log_likelihoods()]),
        )
        return Observed(shown, self.states)

    def log_likelihoods(self) -> list[FloatArray]:
        """The tables of the factors that likelihoods are."""
        return [log_of_probabilities(np.array(table)) for table in self.likelihoods.values()]


def evidence_of(model: Model, evidence: Any) -> Evidence:
    """Divide evidence into states and likelihoods.

    Parameters
    ----------
    model
        The model that the evidence is about.
    evidence
        A dictionary, a list of pairs, or a row of a table (a pandas Series or a named tuple, in which what is missing
        is not observed). For each variable, by name or number, its state, or its likelihoods: a dictionary
        ``{state: likelihood}`` or an array in the order of the states. Only their ratios tell anything about the
        answer; the value of the question is multiplied by them as they are. Likelihood 0 excludes a state.
    """
    certain: list[tuple[Any, Any]] = []
    likelihoods: dict[int, tuple[float, ...]] = {}
    for key, value in pairs_of(evidence, "evidence"):
        if _holds_many(value):
            variable = model.variable(key, argument="evidence")
            if variable in likelihoods:
                raise InputError(f"evidence gives variable {model.name(variable)} likelihoods twice")
            likelihoods[variable] = tuple(_likelihood(model, variable, value).tolist())
        else:
            certain.append((key, value))
    states = model.evidence(certain)
    for variable in likelihoods:
        if variable in states:
            raise InputError(f"evidence gives variable {model.name(variable)} both a state and likelihoods")
    return Evidence(states, dict(sorted(likelihoods.items())))


def observe(model: Model, evidence: Any) -> Observed:
    """A model as evidence shows it, see :func:`evidence_of`; the model itself is not touched."""
    return evidence_of(model, evidence).shown_by(model)


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
