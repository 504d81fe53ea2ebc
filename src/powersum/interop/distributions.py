"""The tables of a Bayesian network: one for each variable, which sum to one, or a word about those that do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.model.model import Model

ROUNDING = 1e-6
"""What a state may add to the distance of a sum from one: numbers in files often have six digits."""

MAX_ENTRIES = 1 << 28
"""Table entries a source may ask for in all; those it writes down are fewer, but a default fills any number of rows."""


def with_sum_note(model: Model, where: str = "") -> Model:
    """The model, with one more note if it is a Bayesian network with tables that do not sum to one.

    Parameters
    ----------
    model
        Any model; its numbers stay as they are.
    where
        What the note begins with, such as ``"clinic.bif: "``.
    """
    note = sum_note(model) if model.directed else None
    return model if note is None else replace(model, notes=(*model.notes, where + note))


def sum_note(model: Model) -> str | None:
    """What to say about tables that do not sum to one over their last variable; the first is named."""
    factors, lengths, sums = _rows(model)
    wrong = np.flatnonzero(~sums_to_one(sums, lengths))
    if not wrong.size:
        return None
    first = int(wrong[0])
    factor = int(factors[first])
    scope = model.scope(factor).tolist()
    row = np.unravel_index(first - int(np.searchsorted(factors, factor)), model.cardinalities[scope[:-1]])
    given = ", ".join(f"{model.name(v)} = {model.label(v, int(x))}" for v, x in zip(scope[:-1], row, strict=True))
    others = len(np.unique(factors[wrong])) - 1
    more = f", and so for {others} more table{'s' if others > 1 else ''}" if others else ""
    return (
        f"the distribution of variable {model.name(scope[-1])}{' given ' if given else ''}{given} "
        f"sums to {sums[first]:.10g}, not to 1{more}; the numbers are taken as they are"
    )


def sums_to_one(sums: FloatArray, states: IntArray | int) -> BoolArray:
    """Which sums of distributions over so many states are one, but for the rounding of their numbers."""
    close: BoolArray = np.abs(sums - 1.0) <= ROUNDING * np.maximum(states, 2)
    return close


def factor_of_each(model: Model, where: str = "") -> list[int]:
    """The factor that is the distribution of each variable; refuses a model that is no Bayesian network.

    ``where`` is what the message begins with.
    """
    if not model.directed:
        raise InputError(f"{where}only a Bayesian network can be that; write a Markov network as .uai")
    found: dict[int, int] = {}
    for factor in range(model.n_factors):
        scope = model.scope(factor)
        if not scope.size or found.setdefault(int(scope[-1]), factor) != factor:
            raise InputError(
                f"{where}not a Bayesian network: each variable needs exactly one table, of which it is the last"
            )
    if len(found) < model.n_variables:
        missing = min(set(range(model.n_variables)) - set(found))
        raise InputError(f"{where}not a Bayesian network: variable {model.name(missing)} has no table")
    return [found[v] for v in range(model.n_variables)]


def _rows(model: Model) -> tuple[IntArray, IntArray, FloatArray]:
    """For each distribution, one after another: the factor it is in, its states, its sum. Constants have none."""
    own = np.flatnonzero(np.diff(model.scope_starts) > 0)
    lengths = model.cardinalities[model.scope_variables[model.scope_starts[own + 1] - 1]]
    counts = np.diff(model.table_starts)[own] // lengths
    if not counts.sum():
        return own[:0], own[:0], np.zeros(0)
    lengths = np.repeat(lengths, counts)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.repeat(model.table_starts[own], counts) + within * lengths
    with np.errstate(over="ignore", under="ignore"):
        # Constants lie between tables: rows end where they end, not where the next begins.
        edges = np.column_stack((starts, starts + lengths)).ravel()
        if edges[-1] == model.log_values.size:
            edges = edges[:-1]
        sums = np.add.reduceat(np.exp(model.log_values), edges)[::2]
    return np.repeat(own, counts), lengths, sums
