"""Elimination orders: permutations within their groups, repeatable, and costed as plain Python would."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.model.model import Model
from powersum.prepare import ordering
from powersum.prepare.ordering import check_order, elimination_order, induced_width, order_cost
from tests.strategies import random_model

many = settings(deadline=None, max_examples=150)


def graph_of(model: Model) -> list[set[int]]:
    """The primal graph as sets."""
    sets: list[set[int]] = [set() for _ in range(model.n_variables)]
    for scope, _ in model.factors():
        for a, b in itertools.permutations(scope, 2):
            sets[a].add(b)
    return sets


def eliminate(sets: list[set[int]], variable: int) -> set[int]:
    """Join the neighbours of a variable, take it out, and return them."""
    joined = sets[variable]
    for u in joined:
        sets[u] |= joined
        sets[u] -= {u, variable}
    sets[variable] = set()
    return joined


def slow_cost(model: Model, order: IntArray) -> tuple[int, float, float]:
    """Width and table sizes with buckets written out as sets."""
    sets = graph_of(model)
    width, sizes = 0, []
    for v in order.tolist():
        bucket = eliminate(sets, v)
        width = max(width, len(bucket))
        sizes.append(math.prod(int(model.cardinalities[u]) for u in bucket | {v}))
    return width, math.log2(sum(sizes)), math.log2(max(sizes))


@st.composite
def weighted_graphs(draw: st.DrawFn) -> tuple[Model, FloatArray]:
    """Sparse models of up to 60 variables with weights of one to four kinds."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 60))
    model = random_model(rng, n_variables=n, n_factors=draw(st.integers(0, 80)), max_states=3, max_scope=3)
    choices = draw(st.sampled_from([[1.0], [0.0], [0.0, 1.0], [0.0, 0.3, 1.0, 1.7]]))
    return model, rng.choice(choices, n)


def grid(n: int) -> Model:
    """A binary n × n grid."""
    cells = np.arange(n * n).reshape(n, n)
    across = np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], axis=1)
    pairs = np.concatenate([across, np.stack([cells[:-1].ravel(), cells[1:].ravel()], axis=1)])
    return Model(
        cardinalities=np.full(n * n, 2),
        scope_starts=np.arange(0, 2 * len(pairs) + 1, 2),
        scope_variables=pairs.ravel(),
        table_starts=np.arange(0, 4 * len(pairs) + 1, 4),
        log_values=np.zeros(4 * len(pairs)),
    )


@many
@given(weighted_graphs(), st.randoms(use_true_random=False))
def test_cost_equals_slow_elimination(case: tuple[Model, FloatArray], random: object) -> None:
    model, _ = case
    order = np.arange(model.n_variables)
    random.shuffle(order)  # type: ignore[attr-defined]
    cost = order_cost(model, order)
    width, log2_total, log2_largest = slow_cost(model, order)
    assert cost.width == induced_width(model, order) == width
    assert cost.log2_total == pytest.approx(log2_total, abs=1e-9)
    assert cost.log2_largest == pytest.approx(log2_largest, abs=1e-9)


@many
@given(weighted_graphs())
def test_order_is_a_permutation_in_groups(case: tuple[Model, FloatArray]) -> None:
    model, tau = case
    order = elimination_order(model, tau, restarts=4)
    check_order(order, tau, model.n_variables)
    assert (np.diff(tau[order]) <= 0).all()


@many
@given(weighted_graphs())
def test_min_degree_is_a_permutation_in_groups(case: tuple[Model, FloatArray]) -> None:
    model, tau = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "MIN_FILL_VARIABLES", 0)
        order = elimination_order(model, tau, restarts=2)
    check_order(order, tau, model.n_variables)
    assert (np.diff(tau[order]) <= 0).all()


@many
@given(weighted_graphs(), st.integers(0, 100))
def test_first_try_takes_the_least_fill(case: tuple[Model, FloatArray], seed: int) -> None:
    model, tau = case
    sets = graph_of(model)
    waiting = set(range(model.n_variables))

    def fill(v: int) -> int:
        return sum(b not in sets[a] for a, b in itertools.combinations(sets[v], 2))

    for v in elimination_order(model, tau, seed=seed, restarts=1).tolist():
        top = max(tau[u] for u in waiting)
        assert fill(v) == min(fill(u) for u in waiting if tau[u] == top)
        eliminate(sets, v)
        waiting.remove(v)


def test_seeds_repeat_and_restarts_do_not_hurt() -> None:
    model = grid(15)
    tau = (np.random.default_rng(0).random(225) < 0.5).astype(np.float64)
    one = elimination_order(model, tau, seed=3, restarts=1)
    assert np.array_equal(one, elimination_order(model, tau, seed=3, restarts=1))
    assert not np.array_equal(one, elimination_order(model, tau, seed=4, restarts=1))
    assert not np.array_equal(one, elimination_order(model, tau, seed=-4, restarts=1))
    more = elimination_order(model, tau, seed=3, restarts=30)
    assert induced_width(model, more) <= induced_width(model, one)
    automatic = elimination_order(model, tau)
    assert np.array_equal(automatic, elimination_order(model, tau))
    assert len(elimination_order(model, tau, restarts=10**9, time_limit=0.05)) == 225


@pytest.mark.parametrize("constant", ["MIN_FILL_VARIABLES", "MIN_FILL_WORK"])
def test_min_degree_on_grids(monkeypatch: pytest.MonkeyPatch, constant: str) -> None:
    model, tau = grid(40), np.ones(1600)
    fill = induced_width(model, elimination_order(model, tau, restarts=3))
    monkeypatch.setattr(ordering, constant, 0)
    order = elimination_order(model, tau, seed=1)
    assert np.array_equal(order, elimination_order(model, tau, seed=1))
    check_order(order, tau, 1600)
    assert induced_width(model, order) <= 1.25 * fill


@pytest.mark.parametrize("leaves", [0, 600])
def test_trees_stay_narrow(monkeypatch: pytest.MonkeyPatch, leaves: int) -> None:
    n = 2000
    rng = np.random.default_rng(0)
    # A random tree; the root may have so many leaves that minimum degree puts it aside, at the cost of one.
    parents = np.where(np.arange(1, n) <= leaves, 0, (rng.random(n - 1) * np.arange(1, n)).astype(np.int64))
    model = Model.from_factors([2] * n, [((int(p), v), np.ones((2, 2))) for v, p in enumerate(parents, start=1)])
    assert induced_width(model, elimination_order(model, np.ones(n), restarts=1)) == 1
    monkeypatch.setattr(ordering, "MIN_FILL_VARIABLES", 0)
    assert induced_width(model, elimination_order(model, np.ones(n), restarts=1)) == (2 if leaves else 1)


def test_no_variables_and_no_factors() -> None:
    empty = Model.from_factors([], [])
    assert elimination_order(empty, np.zeros(0)).tolist() == []
    assert induced_width(empty, np.zeros(0, dtype=np.int64)) == 0
    loose = Model.from_factors([2, 3], [])
    assert elimination_order(loose, np.array([0.0, 1.0])).tolist() == [1, 0]
    assert order_cost(loose, np.array([1, 0])).log2_total == pytest.approx(np.log2(5.0))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1], "2 variables, the model 3"),
        ([0, 1, 3], "variable 3"),
        ([0, 1, -1], "variable -1"),
        ([0, 1, 1], "variable 1 twice"),
        ([1, 0, 2], "max variable 1 before variable 2"),
    ],
)
def test_bad_orders_are_named(order: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_order(np.asarray(order), np.array([1.0, 0.0, 0.5]), 3)


def test_good_orders_pass() -> None:
    check_order(np.array([2, 0, 1]), np.array([1.0, 0.0, 0.5]), 3)
    check_order(np.array([0, 2, 1]), np.zeros(3), 3)
    check_order(np.zeros(0, dtype=np.int64), np.zeros(0), 0)
