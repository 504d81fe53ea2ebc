"""What an answer rests on: how it changes without each piece of evidence, and what each alternative would cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from powersum.model.above import above
from powersum.model.interval import Interval
from powersum.model.model import StateKey
from powersum.model.strict_json import strict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ENTRIES = 8
"""So many table entries are printed."""

MOST_CHANGES = 6
"""More changed states than this are only counted when the table is printed."""


@dataclass(frozen=True, slots=True)
class Without:
    """One piece of evidence left out.

    Parameters
    ----------
    name, state
        The variable, and its observed state or its likelihoods.
    changes
        Maximised variables whose best state is then another one, with that state.
    proven
        Whether that is proven: otherwise it is the best that was found in time.
    probability
        Of the answer that is explained, without this evidence.
    best_probability
        Of the answer without this evidence.
    """

    name: str
    state: StateKey | tuple[float, ...]
    changes: Mapping[str, StateKey]
    proven: bool
    probability: Interval
    best_probability: Interval


@dataclass(frozen=True, slots=True)
class Alternative:
    """A maximised variable in another state, everything else the best that goes with it.

    Parameters
    ----------
    name, state
        The variable and its state in the answer.
    other
        Its best other state, or the best that was found; None where no other is possible.
    log_loss_lower, log_loss_upper
        How much less the log value is then. It is below 0 where an alternative might be better, and infinite where
        there is none.
    """

    name: str
    state: StateKey
    other: StateKey | None
    log_loss_lower: float
    log_loss_upper: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One table entry, and how the answer depends on it, all other entries as they are.

    Parameters
    ----------
    factor, states, directed
        Number of the factor, the states of its variables, and whether it is a distribution of the last of them.
    log_value
        Log of the entry.
    slope
        Derivative of the answer's log value with respect to it: the probability of these states given the answer and
        the evidence. None where it would not be exact.
    log_factor_lower, log_factor_upper
        The answer is proven to stay the best while the entry is multiplied by anything whose log lies between these;
        both are 0 where nothing is proven. It may stay the best beyond them. Probabilities that may grow to 1 have
        infinity above.
    """

    factor: int
    states: Mapping[str, StateKey]
    directed: bool
    log_value: float
    slope: float | None
    log_factor_lower: float
    log_factor_upper: float

    def __str__(self) -> str:
        words = [f"{name}={state}" for name, state in self.states.items()]
        if self.directed and len(words) > 1:
            return f"{words[-1]} | {', '.join(words[:-1])}"
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What an answer rests on; prints as a table.

    Parameters
    ----------
    evidence
        One entry for each piece of evidence.
    alternatives
        One entry for each maximised variable that was not observed, the most easily changed first.
    entries
        Table entries, those first that may move least before the answer changes; no more than fifty, and
        none that may be anything.
    """

    evidence: tuple[Without, ...]
    alternatives: tuple[Alternative, ...]
    entries: tuple[Sensitivity, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything as dictionaries, lists, strings and numbers."""
        found: dict[str, Any] = strict(self)
        return found

    def __str__(self) -> str:
        tables = []
        if self.evidence:
            heads: tuple[str, ...] = ("without", "the answer is", "its probability", "this answer's")
            tables.append(_table([heads, *map(_evidence_row, self.evidence)]))
        if self.alternatives:
            heads = ("variable", "instead", "log value lost", "times less probable")
            tables.append(_table([heads, *map(_alternative_row, self.alternatives)]))
        if self.entries:
            heads = ("table entry", "is", "slope", "same answer from", "to")
            tables.append(_table([heads, *map(_entry_row, self.entries[:MOST_ENTRIES])]))
        return "\n\n".join(tables)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the cost of each other state, or the ranges of table entries for log Z."""
        found: Axes = above("plot_explanation")(self, ax)
        return found


def _evidence_row(one: Without) -> tuple[str, ...]:
    state = one.state if not isinstance(one.state, tuple) else ",".join(f"{value:g}" for value in one.state)
    changes = [f"{name}={other}" for name, other in one.changes.items()]
    shown = " ".join(changes[:MOST_CHANGES]) + (f" … {len(changes)} in all" if len(changes) > MOST_CHANGES else "")
    answer = f"{shown or 'the same'}{'' if one.proven else ' (not proven)'}"
    return f"{one.name}={state}", answer, str(one.best_probability), str(one.probability)


def _alternative_row(one: Alternative) -> tuple[str, ...]:
    least, most = one.log_loss_lower, one.log_loss_upper
    if one.other is None and least == math.inf:
        return f"{one.name}={one.state}", "none is possible", "", ""
    other = "?" if one.other is None else str(one.other)
    if most - least <= 1e-5:
        middle = 0.5 * (least + most)
        times = f"{math.exp(middle):.3g}" if middle < 700.0 else "over 1e300"
        return f"{one.name}={one.state}", other, f"{max(middle, 0.0):.4g}", times
    return f"{one.name}={one.state}", other, f"{least:.4g} to {most:.4g}", ""


def _entry_row(one: Sensitivity) -> tuple[str, ...]:
    slope = "?" if one.slope is None else f"{one.slope:.3g}"
    if one.log_factor_lower == one.log_factor_upper:
        return str(one), probability_text(one.log_value), slope, "not proven", ""
    least, most = one.log_value + one.log_factor_lower, one.log_value + one.log_factor_upper
    return (
        str(one),
        probability_text(one.log_value),
        slope,
        probability_text(least),
        "anything" if most == math.inf else probability_text(most),
    )


def probability_text(log_value: float) -> str:
    """A table entry from its log; what is too large or too small for a double as a power of e."""
    return f"{math.exp(log_value):.4g}" if log_value == -math.inf or abs(log_value) < 700.0 else f"e^{log_value:.6g}"


def _table(rows: list[tuple[str, ...]]) -> str:
    """Rows in columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)
