"""Covers of single assignments: what they prove of each place is true by brute force, however rows are changed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import powersum_check as pc
from powersum.model.model import Model
from tests.check.forgeries import with_best
from tests.check.helpers import CLOSE, checked, random_draft, truth
from tests.check.writer import Draft, Setting, no_tree

COIN = Model.from_factors([2, 2], [((0,), [0.4, 0.6]), ((0, 1), [[0.5, 0.5], [0.3, 0.7]])])


def values(draft: Draft) -> dict[tuple[int, ...], float]:
    """The value of each assignment of the max variables that are not observed."""
    domains = Setting.of(draft).domains
    free = [v for v, w in enumerate(draft.weights) if w == 0.0 and v not in draft.evidence]
    found = {}
    for states in itertools.product(*(domains[v] for v in free)):
        given = dict(zip(free, states, strict=True))
        found[states] = truth(draft, [[given[v]] if v in given else d for v, d in enumerate(domains)])
    return found


def is_true(draft: Draft, best: pc.Best) -> bool:
    """Whether no bound on a place is below what is left there."""
    world = values(draft)
    free = [v for v, w in enumerate(draft.weights) if w == 0.0 and v not in draft.evidence]
    before: list[tuple[int, ...]] = []
    for upper in [*(place.log_upper for place in best.places), best.log_upper_next]:
        left = [
            value
            for states, value in world.items()
            if all(sum(map(int.__ne__, states, other)) >= best.distinct for other in before)
        ]
        if upper < max(left, default=-math.inf) - CLOSE:
            return False
        if len(before) < len(best.places):
            before.append(tuple(best.places[len(before)].assignment[v] for v in free))
    return True


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_rows_that_are_changed_prove_nothing_false(first: int) -> None:
    accepted = 0
    for seed in range(first, first + 50):
        rng = np.random.default_rng(seed)
        draft = random_draft(rng, n_variables=3, plain=True)
        with_best(rng, draft)
        rows = draft.arrays["best_parts"]
        for _ in range(12):
            changed = rows.copy()
            for _ in range(int(rng.integers(0, 3))):
                at, column = int(rng.integers(0, len(rows))), int(rng.integers(0, 3))
                changed[at, column] = int(rng.integers(-1, 4))
            draft.arrays["best_parts"] = changed
            try:
                verified = checked(draft)
            except pc.CheckError:
                continue
            assert verified.best is not None
            assert is_true(draft, verified.best)
            accepted += 1
    assert accepted > 100


def best_of(rows: list[tuple[int, int, int]], distinct: int = 1) -> Draft:
    """The first coin maximised, the second summed; steps about all, and about each state of the second."""
    draft = Draft(COIN, [0.0, 1.0])
    for box in ([], [(1, 0)], [(1, 1)]):
        draft.step("tree", no_tree(draft) | {"order": np.array([1, 0]), "box": np.array(box, np.int64).reshape(-1, 2)})
    draft.arrays |= {
        "best_variables": np.array([0]),
        "best_states": np.array([[1]]),
        "best_parts": np.array(rows, np.int64),
    }
    draft.best = {"distinct": distinct, "claims": [{}, {}]}
    return draft


def test_assignments_are_not_divided_by_a_sum() -> None:
    """The largest of the parts of a sum is no bound on the sum."""
    assert checked(best_of([(0, 0, -1), (-1, -1, 0), (-1, 0, 0)])).best is not None
    with pytest.raises(pc.Rejected, match="which is summed"):
        checked(best_of([(1, 0, -1), (-1, -1, 1), (-1, -1, 2)]))


def test_only_what_is_near_is_left_out() -> None:
    for rows in ([(-1, 0, 0)], [(0, 1, -1), (-1, -1, 0), (-1, 0, 0)]):
        with pytest.raises(pc.Rejected, match="is not near assignment 0"):
            checked(best_of(rows))
    # All of a part is near if assignments may differ in one variable.
    best = checked(best_of([(-1, 0, 0)], distinct=2)).best
    assert best is not None
    assert best.log_upper_next == -math.inf


def test_listed_assignments_differ_in_enough_variables() -> None:
    draft = best_of([(-1, -1, 0)], distinct=2)
    draft.arrays["best_states"] = np.array([[1], [0]])
    draft.best = {"distinct": 2, "claims": [{}] * 3}
    with pytest.raises(pc.Rejected, match="differs in fewer than 2 variables"):
        checked(draft)


def test_a_cover_that_is_no_tree_is_refused() -> None:
    for rows, match in (
        ([(0, 0, -1), (-1, -1, 0)], "parts missing"),
        ([(-1, -1, 0), (-1, -1, 0)], "rows too many"),
        ([(2, 0, 0), (-1, -1, 0), (-1, -1, 0)], "does not exist"),
        ([(-1, -1, 3)], "does not exist"),
        ([(-1, 1, 0)], "does not exist"),
    ):
        with pytest.raises(pc.BadFile, match=match):
            checked(best_of(rows))
    draft = Draft(COIN, [1.0, 1.0])
    draft.step("cover", {"parts": np.array([(-1, 0, -1)])})
    with pytest.raises(pc.BadFile, match="does not exist"):
        checked(draft)
