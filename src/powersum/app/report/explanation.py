"""What an answer rests on, as a picture and as a section of the report page."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from powersum.core.errors import InputError
from powersum.model.explanation import Explanation, probability_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, PALE, BAR = "#333333", "#d9d9d9", "#1f5fa8"
WITHOUT = "The answer without one observation, and probabilities given the rest"
COSTS = "What the best other state of one variable costs, in nats"
SLOPES = (
    "The table entries that the answer depends on most. The slope is how many nats the log value gains "
    "for each nat that is added to the log of the entry"
)
MOST_BARS = 20
"""More rows than this no picture shows."""


def plot_explanation(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Bars: what the best other state of each maximised variable would cost, the cheapest first.

    A bar is as long as the loss is proven to be; a thin line goes on to where it may end.
    """
    bars = [one for one in explanation.alternatives if one.log_loss_lower < math.inf][:MOST_BARS]
    if not bars:
        raise InputError("there is nothing to draw: no maximised variable has another possible state")
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(6.4, 1.2 + 0.32 * len(bars)), layout="constrained")
    places = list(range(len(bars)))
    proven = [max(one.log_loss_lower, 0.0) for one in bars]
    ends = [
        one.log_loss_upper if one.log_loss_upper < math.inf else sure for one, sure in zip(bars, proven, strict=True)
    ]
    ax.barh(places, proven, height=0.6, color=BAR)
    ax.hlines(places, proven, ends, color=BAR, linewidth=1.0)
    names = [f"{one.name}={one.state}, else {'?' if one.other is None else one.other}" for one in bars]
    ax.set_yticks(places, names, color=INK)
    ax.invert_yaxis()
    ax.set_xlim(left=0.0)
    ax.set_xlabel("log value that the best other state would cost", color=INK)
    ax.grid(axis="x", color=PALE, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(PALE)
    ax.tick_params(colors=INK, length=0)
    return ax


def explanation_section(explanation: Explanation) -> str:
    """The tables of an explanation for the report page."""
    parts = []
    rows: list[tuple[str, ...]]
    if explanation.evidence:
        rows = [
            (
                f"{one.name}={_state(one.state)}",
                ", ".join(f"{name}={state}" for name, state in one.changes.items()) or "the same",
                str(one.best_probability),
                str(one.probability),
            )
            for one in explanation.evidence
        ]
        parts.append(
            _table(
                WITHOUT,
                ("without", "the answer is", "its probability", "this answer's"),
                rows,
            )
        )
    if explanation.alternatives:
        rows = [
            (f"{one.name}={one.state}", _word(one.other), _loss(one.log_loss_lower), _loss(one.log_loss_upper))
            for one in explanation.alternatives
        ]
        parts.append(
            _table(
                COSTS,
                ("variable", "instead", "log value lost, at least", "at most"),
                rows,
            )
        )
    if explanation.entries:
        rows = [
            (
                str(one),
                probability_text(one.log_value),
                "?" if one.slope is None else f"{one.slope:.3g}",
                "not proven" if one.log_factor_lower == one.log_factor_upper else _factor(one.log_factor_lower),
                "" if one.log_factor_lower == one.log_factor_upper else _factor(one.log_factor_upper),
            )
            for one in explanation.entries
        ]
        parts.append(_table(SLOPES, ("table entry", "is", "slope", "same answer if multiplied by", "up to"), rows))
    return (
        '<section id="explanation" aria-labelledby="explanation-title">\n'
        f'<h2 id="explanation-title">What it rests on</h2>\n{"".join(parts)}\n</section>'
    )


def _state(state: object) -> str:
    return ",".join(f"{value:g}" for value in state) if isinstance(state, tuple) else str(state)


def _word(other: object) -> str:
    return "—" if other is None else str(other)


def _loss(value: float) -> str:
    return "any" if value == math.inf else f"{value:.4g}"


def _factor(log_factor: float) -> str:
    return "anything" if log_factor == math.inf else probability_text(log_factor)


def _table(caption: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    said = f"<caption>{escape(caption)}.</caption>"
    return f'<div class="scroll"><table>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
