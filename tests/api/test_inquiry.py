"""Which variable to observe next, against brute force."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.core.arrays import FloatArray
from powersum.exact import small
from powersum.model.simplex import Sides
from tests.oracle import joint_log_table
from tests.strategies import random_model


def _entropy(p: FloatArray) -> float:
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def truth_of(joint: FloatArray, v: int, targets: list[int]) -> tuple[float, float]:
    """The information that a variable gives about others, one by one, and the chance that one of them is answered
    otherwise.
    """
    n = joint.ndim
    own = joint.sum(axis=tuple(a for a in range(n) if a != v))
    information, changed = 0.0, np.zeros(len(own), dtype=bool)
    for y in targets:
        pair = joint.sum(axis=tuple(a for a in range(n) if a not in (v, y)))
        pair = pair if v < y else pair.T
        before = pair.sum(axis=0)
        information += _entropy(own) + _entropy(before) - _entropy(pair.ravel())
        changed |= pair.argmax(axis=1) != before.argmax()
    return information, float(own[changed].sum())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 2))
def test_information_and_change(seed: int, observe: bool, n_targets: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=6, n_factors=8, zeros=float(rng.choice([0.0, 0.3])))
    evidence = {5: 0} if observe else {}
    joint = joint_log_table(model, evidence)
    if joint.max() == -math.inf:
        return
    joint = np.exp(joint - joint.max())
    joint /= joint.sum()
    targets = list(range(n_targets))
    found = ps.ask_next(model, targets, evidence=evidence)
    assert {one.variable for one in found} == {model.name(v) for v in range(n_targets, 5 + (not observe))}
    information = [one.information.lower for one in found]
    assert all(a >= b - 1e-6 for a, b in pairwise(information))
    for one in found:
        own, changed = truth_of(joint, model.variable(one.variable), targets)
        assert one.information.lower <= own + 1e-9
        assert one.information.upper >= own - 1e-9
        assert one.information.upper - one.information.lower < 1e-5
        assert one.change.lower <= changed + 1e-9


def test_intervals_hold_on_a_wide_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is exact: both sides hold all the same."""
    monkeypatch.setattr(small, "MOST_ENTRIES", -1)
    rng = np.random.default_rng(3)
    model = random_model(rng, n_variables=7, n_factors=10)
    joint = np.exp(joint_log_table(model))
    joint /= joint.sum()
    for limit in (1e-9, 0.05):
        for one in ps.ask_next(model, [0, 1], time_limit=limit):
            own, changed = truth_of(joint, model.variable(one.variable), [0, 1])
            assert one.information.lower <= own + 1e-9
            assert one.information.upper >= own - 1e-9
            assert one.change.lower <= changed + 1e-9
            assert one.change.upper >= changed - 1e-9


def test_a_diagnosis() -> None:
    tables = {
        "ill": {"no": 0.9, "yes": 0.1},
        ("ill", "test"): [[0.95, 0.05], [0.1, 0.9]],
        ("ill", "fever"): [[0.7, 0.3], [0.5, 0.5]],
        "coin": {"heads": 0.5, "tails": 0.5},
    }
    found = ps.ask_next(ps.Model.from_tables(tables), ["ill"])
    assert [one.variable for one in found] == ["test", "fever", "coin"]
    assert found[0].change == pytest.approx(Sides(0.9 * 0.05 + 0.1 * 0.9, 0.9 * 0.05 + 0.1 * 0.9))
    assert found[1].change == pytest.approx(Sides(0.0, 0.0))
    assert found[2].information == pytest.approx(Sides(0.0, 0.0), abs=1e-6)
    assert found.table().splitlines()[1].split() == ["test", "0.1846", "56.8%", "13.5%"]
    assert found.to_dict()["about"] == ["ill"]


def test_what_is_refused() -> None:
    model = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    for about, among, evidence, message in (
        ([], None, {}, "about names no variable"),
        (["snow"], None, {}, "snow"),
        (["rain"], ["rain"], {}, "is what is asked about"),
        (["rain"], ["wet"], {"wet": 0}, "is observed already"),
    ):
        with pytest.raises(ps.InputError, match=message):
            ps.ask_next(model, about, among, evidence=evidence)
    zero = ps.Model.from_factors([2, 2, 2], [((0,), [1.0, 0.0]), ((0, 1), np.eye(2)), ((2,), [1.0, 1.0])])
    with pytest.raises(ps.InputError, match="probability 0"):
        ps.ask_next(zero, [2], evidence={1: 1})
