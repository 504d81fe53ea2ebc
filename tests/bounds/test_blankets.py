"""Bounds from the variables around against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersum.bounds import blankets
from powersum.bounds.blankets import blanket_bounds
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.simplify import simplify
from tests.cases import bushy_case, hard_case
from tests.oracle import joint_log_table


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("most", [9.0, 2.0**15])
def test_every_distribution_is_within_the_range(seed: int, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blankets, "MOST_ENTRIES", most)
    question = (hard_case if seed % 2 else bushy_case)(seed, zeros=[0.0, 0.3, 0.6][seed % 3])
    n = question.model.n_variables
    model = simplify(question.model, Query(np.ones(n)), {}, barren=False).model
    if not model.n_variables:
        return
    joint = joint_log_table(model)
    if joint.max() == -math.inf:
        return
    joint = np.exp(joint - joint.max())
    for v, lower, upper in blanket_bounds(model):
        truth = joint.sum(axis=tuple(a for a in range(model.n_variables) if a != v)) / joint.sum()
        assert (np.exp(lower) <= truth * (1.0 + 1e-12)).all()
        assert (np.exp(upper) >= truth * (1.0 - 1e-12)).all()


def test_together_is_no_worse_than_table_by_table(monkeypatch: pytest.MonkeyPatch) -> None:
    model = bushy_case(3).model
    whole = list(blanket_bounds(model))
    monkeypatch.setattr(blankets, "MOST_ENTRIES", 9.0)
    for (v, lower, upper), (_, less, more) in zip(whole, blanket_bounds(model), strict=True):
        assert (lower >= less - 1e-12).all(), v
        assert (upper <= more + 1e-12).all(), v


def test_weak_tables_give_narrow_ranges_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    tables = [((0, v), np.exp(rng.uniform(0.0, 0.02, (2, 2)))) for v in range(1, 80)]
    model = Model.from_factors([2] * 80, tables)
    found = list(blanket_bounds(model))
    assert all(np.exp(upper - lower).max() < 1.05 for v, lower, upper in found if v)
    _, lower, upper = found[0]
    assert (np.exp(upper) - np.exp(lower)).max() < 0.7


def test_very_many_states_take_no_memory() -> None:
    n = 30_000
    model = Model.from_factors([n, 2], [((0, 1), np.ones((n, 2))), ((0,), np.ones(n))])
    assert [v for v, _, _ in blanket_bounds(model)] == [1]
