"""Joint distributions, entropies, information and expected values, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.exact import small
from powersum.model.simplex import entropy, expected
from powersum.run.tuning import Schedule
from tests.cases import hard_case
from tests.oracle import joint_log_table
from tests.strategies import random_model


def _entropy(p: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_joint_tables_and_information(seed: int, observe: bool) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=6, n_factors=7, zeros=float(rng.choice([0.0, 0.4])))
    evidence = {int(rng.integers(6)): 0} if observe else {}
    joint = joint_log_table(model, evidence)
    if joint.max() == -math.inf:
        return
    joint = np.exp(joint - joint.max())
    joint /= joint.sum()
    group = tuple(rng.permutation(6)[: int(rng.integers(2, 4))].tolist())
    found = ps.marginals(model, evidence=evidence, of=[group, 0])
    truth = joint.sum(axis=tuple(v for v in range(6) if v not in group))
    truth = truth.transpose(np.argsort(np.argsort(group)))
    # Observed variables have all their states, with probability 0 but for one.
    own = found[group]
    assert len(found) == 6
    assert own.exact
    np.testing.assert_allclose(np.exp(own.log_lower), truth, rtol=1e-9, atol=1e-280)
    np.testing.assert_allclose(np.exp(own.log_upper), truth, rtol=1e-9, atol=1e-280)
    sides = own.entropy()
    assert sides.lower <= _entropy(truth) + 1e-12 <= sides.upper + 2e-12
    assert sides.upper - sides.lower < 1e-6
    first, others = truth.reshape(truth.shape[0], -1).sum(axis=1), truth.reshape(truth.shape[0], -1).sum(axis=0)
    information = _entropy(first) + _entropy(others) - _entropy(truth)
    sides = own.mutual_information()
    assert sides.lower <= information + 1e-12
    assert sides.upper >= information - 1e-12
    assert sides.upper - sides.lower < 1e-6
    values = rng.normal(0.0, 3.0, truth.shape)
    sides = own.expected(values)
    assert sides.lower <= (values * truth).sum() + 1e-12
    assert sides.upper >= (values * truth).sum() - 1e-12
    assert sides.upper - sides.lower < 1e-6


def test_joint_intervals_where_nothing_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "MOST_ENTRIES", -1)
    monkeypatch.setattr("powersum.sums.passes.FIRST_SHARE", 0.3)
    for seed in range(3):
        model = hard_case(seed).model
        joint = joint_log_table(model)
        joint = np.exp(joint - joint.max())
        truth = joint.sum(axis=tuple(v for v in range(11) if v not in (2, 5))) / joint.sum()
        solver = ps.MarginalSolver(
            model, of=[(2, 5)], time_limit=0.3, schedule=Schedule(elimination_cost=1e3, ibound=1, slice=0.01)
        )
        for found in solver:
            own = found[2, 5]
            assert (np.exp(own.log_lower) <= truth * (1.0 + 1e-12)).all()
            assert (np.exp(own.log_upper) >= truth * (1.0 - 1e-12)).all()
            sides = own.entropy()
            assert sides.lower <= _entropy(truth.ravel()) <= sides.upper


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_every_distribution_within_intervals_is_between_the_sides(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n, rng.choice([0.05, 1.0, 10.0])))
    width = rng.choice([0.0, 1e-6, 0.1, 1.0])
    lower = np.maximum(p - width * rng.random(n), 0.0)
    upper = np.minimum(p + width * rng.random(n), 1.0)
    values = rng.normal(0.0, 10.0, n)
    sides = entropy(lower, upper)
    assert sides.lower <= _entropy(p) + 1e-15
    assert sides.upper >= _entropy(p) - 1e-15
    sides = expected(lower, upper, values)
    assert sides.lower <= (values * p).sum() <= sides.upper
    if width == 0.0:
        assert sides.upper - sides.lower < 1e-9


def test_what_is_refused_and_how_it_is_read() -> None:
    rain = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    found = ps.marginals(rain, of=[("rain", "wet")])
    assert float(found["rain", "wet"]["yes", 1]) == pytest.approx(0.14)
    assert list(found) == ["rain", "wet"]
    assert sum(map(float, found["rain", "wet"].values())) == pytest.approx(1.0)
    lower, upper = found["rain"].expected([0.0, 10.0])
    assert lower <= 2.0 <= upper
    for wrong, message in (
        ([("rain", "rain")], "has a variable twice"),
        ([("rain",)], "is a single variable"),
        ([("rain", "snow")], "snow"),
    ):
        with pytest.raises(ps.InputError, match=message):
            ps.marginals(rain, of=wrong)
    with pytest.raises(ps.InputError, match="was not asked for"):
        found["wet", "rain"]
    with pytest.raises(ps.InputError, match="no combination of 2 states"):
        found["rain", "wet"]["yes"]
    with pytest.raises(ps.InputError, match="values has the shape"):
        found["rain"].expected([1.0])
    wide = ps.Model.from_factors([50, 50], [((0, 1), np.ones((50, 50)))])
    with pytest.raises(ps.InputError, match="2500 entries, and at most 2000"):
        ps.marginals(wide, of=[(0, 1)])
