"""Quasi-Newton descent: it goes down, and curvature that is handed over is worth the passes that it took to find."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.bounds.tree.descent import Curvature, Descent
from powersum.core.arrays import FloatArray

SIZE = 40


class Bowl:
    """A function like a long bowl with its lowest point somewhere, in the descent's own arrays."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        turned = np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0]
        self._shape: FloatArray = turned @ np.diag(np.geomspace(1.0, 1e3, SIZE)) @ turned.T
        self._lowest = rng.standard_normal(SIZE)
        self.point, self.gradient = np.zeros(SIZE), np.zeros(SIZE)

    def value(self) -> float:
        """Value at the point, and its gradient."""
        away = self.point - self._lowest
        self.gradient[:] = self._shape @ away
        return float(0.5 * away @ self.gradient)

    def descent(self) -> Descent:
        """From where the point is."""
        return Descent(self.point, self.gradient, self.value)


def after(descent: Descent, evaluations: int) -> float:
    """The value once so many evaluations were made."""
    while descent.evaluations < evaluations and descent.iterate(np.inf):
        pass
    return descent.value


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_handed_over_curvature_saves_passes(seed: int, kind: type) -> None:
    """On a bowl of the same shape elsewhere, as the box around a box is."""
    bowl = Bowl(seed)
    first = bowl.descent()
    first.restart(forget=True)
    after(first, 60)
    rows = first.curvature(8)
    ends = []
    for known in (None, Curvature(*(array.astype(kind) for array in rows))):
        bowl.point[:] = np.random.default_rng(seed + 100).standard_normal(SIZE)
        again = bowl.descent()
        if known is not None:
            again.begin_with(known)
        again.restart(forget=False)
        ends.append(after(again, 12))
    assert ends[1] < ends[0]


def test_curvature_is_the_newest_of_all_and_a_copy() -> None:
    """Of steps that were overwritten since, none is left."""
    bowl = Bowl(0)
    descent = bowl.descent()
    descent.restart(forget=True)
    points = [bowl.point.copy()]
    for _ in range(21):
        assert descent.iterate(np.inf)
        points.append(bowl.point.copy())
    newest = descent.curvature(3)
    assert len(descent.curvature()[0]) == 16
    np.testing.assert_allclose(newest.steps, np.diff(points[-4:], axis=0))
    kept = newest.steps.copy()
    after(descent, descent.evaluations + 30)
    np.testing.assert_array_equal(newest.steps, kept)


def test_pairs_that_show_no_upward_curvature_are_left_out() -> None:
    """What is handed over is looked at as what the descent itself finds is."""
    descent = Bowl(1).descent()
    steps = np.eye(3, SIZE)
    changes = np.array([steps[0], -steps[1], 0.0 * steps[2]])
    descent.begin_with(Curvature(steps, changes))
    np.testing.assert_array_equal(descent.curvature().steps, steps[:1])
    descent.restart(forget=False)
    assert after(descent, 200) == pytest.approx(0.0, abs=1e-6)
