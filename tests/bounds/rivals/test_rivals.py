"""The rivals: valid where they promise it, and what is known about each."""

from __future__ import annotations

import gc
import itertools
import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powersum.api.bounding import bound
from powersum.bounds.registry import METHODS
from powersum.bounds.rivals import BASELINES
from powersum.bounds.rivals.mini_buckets import MiniBuckets
from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.model.result import Status
from tests.bounds.rivals.helpers import GUARANTEED, ising, prepared, rival, swept
from tests.oracle import exact_value
from tests.strategies import random_model, weighted_models


@pytest.mark.parametrize("name", GUARANTEED)
@settings(max_examples=40, deadline=None)
@given(case=weighted_models())
def test_valid_and_never_rising(name: str, case: tuple[Model, FloatArray]) -> None:
    model, weights = case
    exact = exact_value(model, weights)
    problem, order = prepared(model, weights)
    if not problem.feasible or problem.model.n_variables == 0:
        return
    # Strong steps are the ones that go wrong.
    method = rival(name, problem, order, **({"damping": 0.7} if name == "wmb" else {}))
    slack = 1e-9 * max(1.0, abs(exact))
    last = math.inf
    for _ in range(5):
        assert not math.isnan(method.log_upper)
        assert method.log_upper <= last
        assert method.log_upper + problem.log_constant >= exact - slack
        assert method.bound() == pytest.approx(method.log_upper, abs=1e-7, rel=1e-9)
        assert getattr(method, "last_value", method.log_upper) + problem.log_constant >= exact - slack
        last = method.log_upper
        method.step(math.inf)
    states = method.decode()
    is_max = problem.tau == 0
    assert (states[~is_max] == -1).all()
    assert ((states[is_max] >= 0) & (states[is_max] < problem.model.cardinalities[is_max])).all()


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=40, deadline=None)
@given(case=weighted_models(), seed=st.integers(0, 2**32 - 1))
def test_a_given_order_is_part_of_the_question(name: str, case: tuple[Model, FloatArray], seed: int) -> None:
    """With weights between 0 and 1 the value depends on it."""
    model, weights = case
    order = np.random.default_rng(seed).permutation(model.n_variables)
    order = order[np.argsort(weights[order] == 0.0, kind="stable")]
    exact = exact_value(model, weights, order=order.tolist())
    result = bound(model, weights=Query(weights), order=order, method=name, sweeps=2)
    assert result.log_upper >= exact - 1e-9 * max(1.0, abs(exact))
    if result.status is Status.OPTIMAL:
        assert result.log_upper == pytest.approx(exact, abs=1e-8)


def test_reordered_elimination_keeps_an_order_that_must_not_be_exchanged() -> None:
    # Smaller weights first: the value is above that of the order by weights, and so must the bound be.
    model = Model.from_factors([2, 2], [((0, 1), [[4.0, 1.0], [1.0, 3.0]])])
    weights = np.array([0.2, 0.9])
    values = [exact_value(model, weights, order=order) for order in ([0, 1], [1, 0])]
    assert values[0] > values[1] + 0.1
    result = bound(model, weights=Query(weights), order=[0, 1], method="reorder", ibound=2)
    assert result.log_upper == pytest.approx(values[0])
    assert result.status is Status.OPTIMAL


def mixed_case(seed: int, zeros: float = 0.0) -> tuple[Model, FloatArray]:
    model = random_model(np.random.default_rng(seed), n_variables=9, n_factors=16, max_scope=3, zeros=zeros)
    return model, (np.arange(9) % 2).astype(np.float64)


@pytest.mark.parametrize("name", ["mbe", "wmb", "mas", "reorder"])
def test_exact_with_one_mini_bucket(name: str) -> None:
    # Reordered elimination is exact only where nothing needed to be reordered.
    for seed, weight in [(1, None), (2, 1.0), (3, 0.0)]:
        model, weights = mixed_case(seed, zeros=0.1)
        if weight is not None:
            weights = np.full(9, weight)
        elif name == "reorder":
            continue
        problem, order = prepared(model, weights)
        method = rival(name, problem, order, ibound=9)
        assert method.log_upper + problem.log_constant == pytest.approx(exact_value(model, weights), abs=1e-8)
        assert method.exact
        assert not method.step(math.inf)


@pytest.mark.parametrize("seed", range(6))
def test_plain_above_weighted_above_exact(seed: int) -> None:
    model, weights = mixed_case(seed)
    exact = exact_value(model, weights)
    problem, order = prepared(model, weights)
    mbe = rival("mbe", problem, order).log_upper + problem.log_constant
    wmb = swept(rival("wmb", problem, order, damping=0.05), 150).log_upper + problem.log_constant
    assert mbe + 1e-9 >= wmb >= exact - 1e-9


@pytest.mark.parametrize("name", ["mbe", "wmb", "mas", "reorder"])
def test_larger_ibounds_are_allowed_and_wrong_ones_refused(name: str) -> None:
    model, weights = mixed_case(4)
    problem, order = prepared(model, weights)
    exact = exact_value(model, weights)
    for ibound in (0, 1, 2, 4):
        assert rival(name, problem, order, ibound=ibound).log_upper + problem.log_constant >= exact - 1e-9
    with pytest.raises(InputError, match="ibound is -1"):
        rival(name, problem, order, ibound=-1)


def test_ibound_one_means_the_factors() -> None:
    model, weights = mixed_case(5)
    problem, order = prepared(model, weights)
    parts = MiniBuckets(problem, order, 1).parts
    widest = int(np.diff(problem.model.scope_starts).max())
    assert int(np.diff(parts.starts).max()) <= widest


def test_weighted_mini_bucket_matches_the_optimum_of_a_sum() -> None:
    from powersum.bounds.tree.covering_tree import CoveringTree

    model = ising(3, 1.0, 0)
    problem, order = prepared(model, np.ones(9))
    best = swept(CoveringTree(problem, order, ibound=1), 200).log_upper
    found = swept(rival("wmb", problem, order, damping=0.5), 500)
    assert found.log_upper == pytest.approx(best, abs=0.02)
    assert found.log_upper >= best - 1e-6


def test_weighted_mini_bucket_may_rise_but_keeps_the_best() -> None:
    rises = 0
    for seed in range(8):
        model, weights = mixed_case(seed)
        problem, order = prepared(model, weights)
        method = rival("wmb", problem, order, damping=1.0)
        values = [method.last_value]
        for _ in range(20):
            method.step(math.inf)
            values.append(method.last_value)
        rises += any(b > a + 1e-9 for a, b in itertools.pairwise(values))
        # The best, rounded up by no more than what rounding can do.
        assert min(values) < method.log_upper < min(values) + 1e-11
    assert rises


@pytest.mark.parametrize("damping", [0.0, -0.1, 1.5, math.nan])
@pytest.mark.parametrize("name", ["wmb", "trw"])
def test_damping_is_checked(name: str, damping: float) -> None:
    problem, order = prepared(ising(2, 1.0, 0), np.ones(4))
    with pytest.raises(InputError, match="damping"):
        rival(name, problem, order, damping=damping)


def test_quasi_newton_gradient_and_minimum() -> None:
    model = ising(3, 1.0, 1)
    problem, order = prepared(model, np.ones(9))
    method = rival("lbfgs", problem, order)
    rng = np.random.default_rng(0)
    point = method._start() + rng.normal(0, 0.1, len(method._start()))
    _, gradient = method.value_and_gradient(point)
    for k in rng.permutation(len(point))[:25]:
        step = np.zeros_like(point)
        step[k] = 1e-5
        above, below = method.value_and_gradient(point + step)[0], method.value_and_gradient(point - step)[0]
        assert gradient[k] == pytest.approx((above - below) / 2e-5, abs=1e-6)


def test_quasi_newton_leaves_no_thread_behind() -> None:
    problem, order = prepared(ising(3, 1.0, 1), np.ones(9))
    before = set(threading.enumerate())
    method = swept(rival("lbfgs", problem, order), 3)
    (thread,) = set(threading.enumerate()) - before
    del method
    gc.collect()
    thread.join(timeout=1800.0)
    assert not thread.is_alive()


def test_multiplicative_error_encloses() -> None:
    for seed in range(6):
        model, weights = mixed_case(seed)
        problem, order = prepared(model, weights)
        method = rival("mas", problem, order)
        exact = exact_value(model, weights) - problem.log_constant
        assert method.log_lower - 1e-9 <= exact <= method.log_upper + 1e-9
        assert method.log_lower > -math.inf


def test_names_are_new_or_the_same() -> None:
    for name in set(BASELINES) & set(METHODS):
        assert BASELINES[name] == METHODS[name]
    assert "trw" not in METHODS
