"""The picture of a model: maximised, summed and observed variables apart, with the answer on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from powersum.app.report.layout import WIDEST_ROW, Drawing, draw
from powersum.model.keys import pairs_of
from powersum.model.model import Model, VariableKey
from powersum.model.question import EvidenceLike, Question

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from powersum.core.arrays import FloatArray, IntArray

# Colour and marker of each role: nobody has to tell them apart by colour alone.
ROLES = {"max": ("#1f5fa8", "o"), "sum": ("#ffffff", "o"), "evidence": ("#8a8a8a", "s")}
INK, EDGE = "#333333", "#b8b8b8"
MOST_NAMED = 60
"""With more variables than this only those that matter get their names."""


def roles_of(question: Question) -> list[str]:
    """For each variable ``"max"``, ``"sum"`` or ``"evidence"``; a likelihood counts as evidence."""
    roles = np.where(question.query.weights == 0.0, "max", "sum").tolist()
    for variable in question.all_evidence:
        roles[variable] = "evidence"
    return [str(role) for role in roles]


def important_of(roles: list[str]) -> IntArray:
    """The variables that a picture must show: maximised ones first, then the evidence."""
    return np.array([v for role in ("max", "evidence") for v, own in enumerate(roles) if own == role], dtype=np.int64)


def plot_model(
    model: Model,
    maximize: Iterable[VariableKey] | str | None = None,
    evidence: EvidenceLike | None = None,
    *,
    assignment: Mapping[VariableKey, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the graph of a model; see :meth:`powersum.model.model.Model.plot`."""
    question = Question.of(model, maximize, evidence=evidence)
    roles = roles_of(question)
    given = pairs_of(assignment, "assignment")
    shown = {model.variable(key, argument="assignment"): str(state) for key, state in given}
    shown.update({v: str(model.label(v, s)) for v, s in question.evidence.states.items()})
    texts = [f"{model.name(v)} = {shown[v]}" if v in shown else model.name(v) for v in range(model.n_variables)]
    longest = max(map(len, texts), default=0) if model.n_variables <= MOST_NAMED else 0
    drawing = draw(model, important_of(roles), widest=int(np.clip(90 / (longest + 2), 2, WIDEST_ROW)))
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
    _draw_edges(ax, drawing)
    drawn = [roles[v] for v in drawing.variables.tolist()]
    size = float(np.clip(4000 / max(len(drawn), 1), 22, 260))
    for role, (colour, marker) in ROLES.items():
        rows = [row for row, own in enumerate(drawn) if own == role]
        if rows:
            x, y = drawing.places[rows].T
            label = {"max": "maximised", "sum": "summed", "evidence": "observed"}[role]
            ax.scatter(x, y, s=size, c=colour, marker=marker, edgecolors=INK, linewidths=0.8, zorder=2, label=label)
    _name(ax, model, drawing, drawn, shown, below=size**0.5 / 2 + 1.5)
    # More room below than above, for the names.
    ax.set_xlim(-0.08, 1.08)
    ax.set_ylim(1.1, -0.06)
    ax.set_axis_off()
    # Below the axes, where no variable can be.
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.05), ncols=3, frameon=False, markerscale=min(1, 90 / size))
    if len(drawn) < model.n_variables:
        ax.set_title(f"{len(drawn)} of {model.n_variables} variables", color=INK, fontsize="medium")
    return ax


def _draw_edges(ax: Axes, drawing: Drawing) -> None:
    from matplotlib.collections import LineCollection

    lines: FloatArray = drawing.places[drawing.edges]
    ax.add_collection(LineCollection(list(lines), colors=EDGE, linewidths=0.8, zorder=1))
    if drawing.directed and len(drawing.variables) <= MOST_NAMED:
        for start, end in lines:
            arrow = {"arrowstyle": "-|>", "color": EDGE, "shrinkA": 8, "shrinkB": 9, "linewidth": 0.8}
            ax.annotate("", end, start, arrowprops=arrow, zorder=1)


def _name(
    ax: Axes, model: Model, drawing: Drawing, roles: list[str], shown: Mapping[int, str], *, below: float
) -> None:
    """Names below the variables, with the state where it is known; the numbers of many nameless ones say nothing."""
    from matplotlib.patheffects import withStroke

    few = len(roles) <= MOST_NAMED
    if model.names is None and not few:
        return
    for v, (x, y), role in zip(drawing.variables.tolist(), drawing.places, roles, strict=True):
        if not few and (role == "sum" or roles.count(role) > MOST_NAMED):
            continue
        text = f"{model.name(v)} = {shown[v]}" if v in shown else model.name(v)
        ax.annotate(
            text,
            (x, y),
            xytext=(0, -below),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=8 if len(roles) <= 25 else 6,
            color=INK,
            weight="bold" if role == "max" else "normal",
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )
