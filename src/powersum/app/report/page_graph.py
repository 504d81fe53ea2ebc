"""The graph of a model as SVG: shapes and classes for roles, names and states as text that screen readers find."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from powersum.app.report.graph import MOST_NAMED, important_of
from powersum.app.report.layout import MOST_DRAWN, Drawing, apart, draw
from powersum.model.model import Model

WIDTH, HEIGHT, MARGIN = 560, 400, 26
LINE = 20
"""Room for a name below its variable."""
UPPER, LOWER, BOLD = 9.0, 7.3, 1.12
"""Pixels of a capital or a digit and of other letters, in the widest of the usual fonts; what bold ones take more."""
WORDS = {
    "max": "maximised",
    "sum": "summed",
    "evidence": "observed",
    "decision": "decision",
    "chance": "chance",
    "utility": "utility",
}
# For pages without a style sheet of their own; a style sheet overrides presentation attributes.
FILLS = {"max": "#1f5fa8", "sum": "#ffffff", "evidence": "#8a8a8a"} | {
    "decision": "#1f5fa8",
    "chance": "#ffffff",
    "utility": "#ffffff",
}
SQUARE, BOLD_ROLES = ("evidence", "decision"), ("max", "decision")


def legend_of(roles: list[str]) -> str:
    """What the shapes of a graph mean, as far as they occur."""
    keys = [f'<span class="key {role}"></span> {WORDS[role]}' for role in WORDS if role in roles]
    return f'<p class="legend">{" ".join(keys)}</p>'


def graph_svg(model: Model, roles: list[str], states: Mapping[int, str]) -> str:
    """The graph with known states beside their variables; each variable is a group with its number as data.

    Parameters
    ----------
    model
        The model; of a large one only what is nearest to the query is drawn.
    roles
        For each variable one of :data:`WORDS`.
    states
        Label of the state of each variable whose state is known.
    """
    important = important_of(roles)
    few = min(model.n_variables, MOST_DRAWN) <= MOST_NAMED
    named = few and (model.names is not None or model.n_variables <= 30)
    texts = [f"{model.name(v)} = {states[v]}" if v in states else model.name(v) for v in range(model.n_variables)]
    widths_of_all = [_text_width(text, roles[v] in BOLD_ROLES) if named else 0.0 for v, text in enumerate(texts)]
    # What a usual name takes; longer ones are pushed apart.
    usual = float(np.mean(widths_of_all)) + 16 if named and texts else 40.0
    drawing = draw(model, important, widest=max(int(WIDTH / usual), 2))
    radius = float(np.clip(130 / np.sqrt(max(len(drawing.variables), 1)), 4, 13))
    widths = np.array([widths_of_all[v] for v in drawing.variables.tolist()])
    box = 2 * radius + (LINE if named else 3)
    size = np.array([WIDTH, max(HEIGHT, drawing.rows * (box + 12))])
    places = apart(drawing.places * size, np.maximum(widths + 8, 2 * radius + 3), box)
    half = np.stack([np.maximum(widths / 2, radius), np.full(len(widths), radius)], axis=1)
    low, high = ((places - half).min(axis=0), (places + half).max(axis=0)) if len(places) else np.zeros((2, 2))
    places = places - low + MARGIN
    width, height = (high - low + 2 * MARGIN).tolist()
    drawn = drawing._replace(places=places)
    parts = [
        f'<svg class="graph" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="Graph of {len(places)} of '
        f'{model.n_variables} variables" xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#9a9a9a"/></marker></defs>',
        _edges(drawn, radius),
    ]
    names = []
    for v, (x, y) in zip(drawing.variables.tolist(), places, strict=True):
        text = texts[v]
        parts.append(_shape(v, float(x), float(y), radius, roles[v], text))
        if named:
            weight = ' font-weight="bold"' if roles[v] in BOLD_ROLES else ""
            place = f'x="{x:.1f}" y="{y + radius + 12:.1f}"'
            names.append(f'<text {place} text-anchor="middle" fill="currentColor"{weight}>{escape(text)}</text>')
    # Names last: nothing covers them.
    return "".join([*parts, *names, "</svg>"])


def _text_width(text: str, bold: bool) -> float:
    """Pixels that a name takes at most; which font a browser has nobody knows."""
    pixels = sum(LOWER if letter.islower() or letter in " .,:;'|()[]!-" else UPPER for letter in text)
    return pixels * BOLD if bold else pixels


def _edges(drawing: Drawing, radius: float) -> str:
    """All edges as one path; arrows end at the rim of the child."""
    start, end = drawing.places[drawing.edges[:, 0]], drawing.places[drawing.edges[:, 1]]
    along = end - start
    length = np.maximum(np.sqrt((along**2).sum(axis=1, keepdims=True)), 1e-9)
    end = end - along / length * radius
    tip = ' marker-end="url(#tip)"' if drawing.directed else ""
    return "".join(
        f'<path class="edge" d="M{a:.1f} {b:.1f} {c:.1f} {d:.1f}" fill="none" stroke="#b8b8b8"{tip}/>'
        for (a, b), (c, d) in zip(start, end, strict=True)
    )


def _shape(variable: int, x: float, y: float, radius: float, role: str, text: str) -> str:
    """A square for what is observed or decided, a diamond for a utility, else a circle; its title is its name."""
    if role in SQUARE:
        shape = f'<rect x="{x - radius:.1f}" y="{y - radius:.1f}" width="{2 * radius:.1f}" height="{2 * radius:.1f}"'
    elif role == "utility":
        r = f"{radius:.1f}"
        shape = f'<path d="M{x:.1f} {y - radius:.1f}l{r} {r} -{r} {r} -{r} -{r}z"'
    else:
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"'
    return (
        f'<g class="variable {role}" data-variable="{variable}"><title>{escape(text)} ({WORDS[role]})</title>'
        f'{shape} fill="{FILLS[role]}" stroke="#333"/></g>'
    )
