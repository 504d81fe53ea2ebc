"""The way of each edge of a layered picture: down between the boxes of the rows on its way, never behind one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray

CLEARANCE = 6.0
"""Pixels that an edge keeps away from boxes that it passes."""


class Stretch(NamedTuple):
    """A straight part of a way, downwards; between two of them, where no row is, an edge goes aside."""

    x: float
    top: float
    bottom: float


def routes(middles: FloatArray, heights: FloatArray, width: float, edges: IntArray) -> list[list[Stretch]]:
    """The stretches of each edge, first that under the upper box, last that above the lower one.

    Parameters
    ----------
    middles, heights, width
        The boxes. Those of a row have their middles at one height and room between them.
    edges
        Pairs of boxes, the upper one first.
    """
    levels, row_of = np.unique(middles[:, 1], return_inverse=True)
    tall = np.zeros(len(levels))
    np.maximum.at(tall, row_of, heights)
    tops, bottoms = levels - tall / 2, levels + tall / 2
    rows = [np.sort(middles[row_of == row, 0]) for row in range(len(levels))]
    found = []
    for upper, lower in edges.tolist():
        (x, y), (end, end_y) = middles[upper].tolist(), middles[lower].tolist()
        first, last = int(row_of[upper]), int(row_of[lower])
        way = [Stretch(x, y + float(heights[upper]) / 2, float(bottoms[first]))]
        for row in range(first + 1, last):
            # Where a straight line from here would pass.
            share = (float(levels[row]) - y) / (end_y - y)
            x, y = _passage(rows[row], width, x + share * (end - x)), float(levels[row])
            way.append(Stretch(x, float(tops[row]), float(bottoms[row])))
        way.append(Stretch(end, float(tops[last]), end_y - float(heights[lower]) / 2))
        found.append(way)
    return found


def _passage(row: FloatArray, width: float, wanted: float) -> float:
    """The place nearest to the one wanted that no box of a row covers."""
    sides = np.concatenate([row - width / 2 - CLEARANCE, row + width / 2 + CLEARANCE])
    covered = (np.abs(row - wanted) < width / 2 + CLEARANCE).any()
    if not covered:
        return wanted
    free = sides[~(np.abs(row[None] - sides[:, None]) < width / 2 + CLEARANCE - 1e-9).any(axis=1)]
    return float(free[np.argmin(np.abs(free - wanted))])
