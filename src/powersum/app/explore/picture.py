"""What of a model is drawn, and where: boxes with a line for each state, near what a person looks at."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from powersum.app.explore.routes import routes
from powersum.app.report.layout import MOST_IN_LAYERS, Drawing, apart, draw, links
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.model.model import Model

MOST_BOXES = MOST_IN_LAYERS
"""More boxes than this are no picture that anybody reads; a larger model is seen part by part."""
MOST_STATES = 5
"""States in a box; all of them are shown for the variable that is chosen."""
MOST_LABELS = 200
"""States of a variable that are sent at all."""
MOST_FOUND = 30
"""Variables that a search offers."""

WIDTH, HEAD, LINE, FOOT = 186, 32, 26, 8
GAP_X, GAP_Y, MARGIN = 20, 56, 16
"""Pixels: a box, its name, a line of a state, what is below them, and the room between boxes."""
LOOSE = 1.4
"""Room for boxes that stand by their distances, as a share of what they take in rows."""


class PictureBox(NamedTuple):
    """A variable in the picture; ``hidden`` is how many of its neighbours are not in it."""

    id: int
    name: str
    states: list[str]
    state_count: int
    x: float
    y: float
    width: float
    height: float
    hidden: int


class Pictures:
    """Pictures of one model; what they have in common is computed once."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def _pairs(self) -> IntArray:
        return links(self.model)

    @cached_property
    def _degrees(self) -> IntArray:
        return np.bincount(self._pairs.ravel(), minlength=self.model.n_variables)

    @cached_property
    def _folded(self) -> list[str]:
        return [self.model.name(v).casefold() for v in range(self.model.n_variables)]

    def around(self, centre: list[int], *, most: int = 40, widest: int = 5) -> dict[str, Any]:
        """The variables nearest to some of them, each with its place, and the edges between them.

        Parameters
        ----------
        centre
            What must be in the picture, most important first.
        most
            Boxes at most.
        widest
            Boxes that have room beside each other.
        """
        n = self.model.n_variables
        if any(not 0 <= v < n for v in centre):
            raise InputError(f"there are variables 0 to {n - 1} only")
        important = np.array(list(dict.fromkeys(centre)), dtype=np.int64)
        drawing = draw(
            self.model,
            important,
            widest=int(np.clip(widest, 1, 12)),
            most=int(np.clip(most, 1, MOST_BOXES)),
            pairs=self._pairs,
        )
        drawn = drawing.variables
        heights = np.array([self._height(v) for v in drawn.tolist()])
        places = _in_rows(drawing, heights, widest) if drawing.rows else _scattered(drawing, heights, widest)
        size = (places + np.stack([np.full(len(drawn), WIDTH / 2), heights / 2], axis=1)).max(axis=0, initial=0)
        inside = np.bincount(drawing.edges.ravel(), minlength=len(drawn))
        boxes = [
            self._box(v, place, height, int(self._degrees[v]) - int(inside[row]))
            for row, (v, place, height) in enumerate(zip(drawn.tolist(), places, heights, strict=True))
        ]
        return {
            "boxes": [box._asdict() for box in boxes],
            "edges": drawn[drawing.edges].tolist(),
            "routes": routes(places, heights, WIDTH, drawing.edges) if drawing.rows else [],
            "directed": drawing.directed,
            "layered": drawing.rows > 0,
            "width": float(size[0]) + MARGIN,
            "height": float(size[1]) + MARGIN,
            "total": n,
        }

    def variable(self, v: int) -> dict[str, Any]:
        """Name and states of a variable."""
        count = int(self.model.cardinalities[v])
        return {"id": v, "name": self.model.name(v), "states": self._labels(v, MOST_LABELS), "state_count": count}

    def search(self, text: str) -> list[dict[str, Any]]:
        """Variables whose names have this in them: those that begin with it first, shorter names first."""
        wanted = text.strip().casefold()
        if not wanted:
            return []
        found = [v for v, name in enumerate(self._folded) if wanted in name]
        found.sort(key=lambda v: (not self._folded[v].startswith(wanted), len(self._folded[v]), v))
        return [self.variable(v) for v in found[:MOST_FOUND]]

    def _labels(self, v: int, most: int) -> list[str]:
        return [str(self.model.label(v, s)) for s in range(min(int(self.model.cardinalities[v]), most))]

    def _height(self, v: int) -> float:
        count = int(self.model.cardinalities[v])
        lines = min(count, MOST_STATES) + (count > MOST_STATES)
        return float(HEAD + LINE * lines + FOOT)

    def _box(self, v: int, place: FloatArray, height: float, hidden: int) -> PictureBox:
        count = int(self.model.cardinalities[v])
        x, y = float(place[0]) - WIDTH / 2, float(place[1]) - height / 2
        return PictureBox(
            v, self.model.name(v), self._labels(v, MOST_STATES), count, x, y, WIDTH, float(height), hidden
        )


def _in_rows(drawing: Drawing, heights: FloatArray, widest: int) -> FloatArray:
    """Middles of boxes in rows from top to bottom; a row keeps its order and is as near to the layout as it can be."""
    rows = [np.flatnonzero(drawing.places[:, 1] == y) for y in np.unique(drawing.places[:, 1])]
    step = WIDTH + GAP_X
    across = step * max(max(len(row) for row in rows), min(widest, 3))
    middle = np.zeros((len(heights), 2))
    top = float(MARGIN)
    for row in rows:
        order = row[np.argsort(drawing.places[row, 0], kind="stable")]
        wanted = drawing.places[order, 0] * across
        slots = step * np.arange(len(order))
        # Least movement that keeps the order and the distance: the mean of pushing to the right and to the left.
        right = np.maximum.accumulate(wanted - slots)
        left = np.minimum.accumulate((wanted - slots)[::-1])[::-1]
        x = (right + left) / 2 + slots
        middle[order, 0] = x
        tall = float(heights[order].max())
        middle[order, 1] = top + tall / 2
        top += tall + GAP_Y
    middle[:, 0] += MARGIN + WIDTH / 2 - middle[:, 0].min()
    return middle


def _scattered(drawing: Drawing, heights: FloatArray, widest: int) -> FloatArray:
    """Middles of boxes by their distances in the graph, pushed apart until none covers another.

    The picture is not much wider than ``widest`` boxes and as high as it must be, for a page scrolls downwards.
    """
    if not len(heights):
        return np.zeros((0, 2))
    across = min(max(widest, 0.85 * np.sqrt(len(heights))), len(heights)) - 0.5
    size = np.array([across * (WIDTH + GAP_X), LOOSE * len(heights) / across * (float(heights.max()) + GAP_Y)])
    width = np.full(len(heights), float(WIDTH + GAP_X))
    places = apart(drawing.places * size, width, float(heights.max()) + GAP_Y / 2)
    low = (places - np.stack([width / 2, heights / 2], axis=1)).min(axis=0)
    placed: FloatArray = places - low + np.array([MARGIN - GAP_X / 2, MARGIN])
    return placed
