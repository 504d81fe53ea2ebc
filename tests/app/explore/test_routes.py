"""Ways of edges: whatever the network, no edge passes behind a box."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import powersum as ps
from powersum.app.explore.picture import Pictures


def network(seed: int) -> ps.Model:
    """Up to 30 variables of two to six states, each with up to three parents among all before it."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, size=int(rng.integers(3, 30))).tolist()
    factors = []
    for v in range(len(sizes)):
        scope = [*rng.permutation(v)[: int(rng.integers(0, 4))].tolist(), v]
        shape = [sizes[u] for u in scope]
        factors.append((scope, np.full(shape, 1.0 / shape[-1])))
    return ps.Model.from_factors(sizes, factors, directed=True)


def points(route: list[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """Points along a way as the page draws it."""
    found = [(x, y) for x, top, bottom in route for y in np.linspace(top, bottom, 9)]
    for (x, _, y), (to, low, _) in pairwise(route):
        for t in np.linspace(0.0, 1.0, 41):
            weights = np.array([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
            middle = (y + low) / 2
            found.append((float(weights @ [x, x, to, to]), float(weights @ [y, middle, middle, low])))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_no_edge_runs_behind_a_box(seed: int) -> None:
    picture = Pictures(network(seed)).around([], widest=2 + seed % 5)
    assert len(picture["routes"]) == len(picture["edges"])
    boxes = {box["id"]: box for box in picture["boxes"]}
    for (upper, lower), route in zip(picture["edges"], picture["routes"], strict=True):
        for number, end in ((0, upper), (-1, lower)):
            middle = boxes[end]["x"] + boxes[end]["width"] / 2
            assert route[number][0] == pytest.approx(middle)
        assert route[0][1] == pytest.approx(boxes[upper]["y"] + boxes[upper]["height"])
        assert route[-1][2] == pytest.approx(boxes[lower]["y"])
        for x, y in points(route):
            assert 0 <= x <= picture["width"]
            for box in boxes.values():
                inside = (
                    box["x"] + 1e-6 < x < box["x"] + box["width"] - 1e-6
                    and box["y"] + 1e-6 < y < box["y"] + box["height"] - 1e-6
                )
                assert not inside, (upper, lower, box["name"])


def test_some_of_them_go_around() -> None:
    """A grandparent that is a parent as well, with the child's other parent in between."""
    ways = ps.Model.from_factors(
        [2, 2, 2],
        [((0,), [0.5, 0.5]), ((0, 1), np.full((2, 2), 0.5)), ((0, 1, 2), np.full((2, 2, 2), 0.5))],
        directed=True,
    )
    picture = Pictures(ways).around([])
    route = picture["routes"][picture["edges"].index([0, 2])]
    assert len(route) == 3
    box = next(box for box in picture["boxes"] if box["id"] == 1)
    assert not box["x"] <= route[1][0] <= box["x"] + box["width"]
