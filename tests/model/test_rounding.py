"""Rounding is part of every claim: no bound below the truth, at no point, whatever cut the work short."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

import powersum as ps
from powersum.bounds.tree import CoveringTree
from powersum.bounds.tree.descent import Descent
from powersum.model.query import Query
from powersum.model.rounding import certain, elimination_error
from powersum.prepare.ordering import elimination_order
from powersum.prepare.simplify import simplify
from tests.oracle import exact_value
from tests.strategies import random_model

INF = math.inf


def careful_value(model: ps.Model, is_max: list[bool]) -> float:
    """The value with logs added exactly, in fractions, and exponentials by ``fsum``: error below 1e-13."""
    scopes = [(scope, table) for scope, table in model.factors()]
    sums: dict[tuple[int, ...], list[Fraction]] = {}
    for states in itertools.product(*(range(int(c)) for c in model.cardinalities)):
        entries = [float(table[tuple(states[v] for v in scope)]) for scope, table in scopes]
        if -INF not in entries:
            key = tuple(s for s, m in zip(states, is_max, strict=True) if m)
            sums.setdefault(key, []).append(sum(map(Fraction, entries), Fraction(0)))
    best = -INF
    for terms in sums.values():
        top = max(terms)
        best = max(best, float(top) + math.log(math.fsum(math.exp(float(t - top)) for t in terms)))
    return best


def flat_model() -> ps.Model:
    """Four variables whose zeros leave directions flat: shifts once went to 1e21 and the bound 9.6 below the truth."""
    return ps.Model.from_factors(
        [2, 2, 2, 2],
        [
            ((3, 0), [[0.9756712014434834, -INF], [-1.9548874585228497, -0.6860025669316427]]),
            (
                (3, 2, 1),
                [
                    [[1.7916351942029176, 1.9566420131761566], [-0.8724973473616464, -INF]],
                    [[-INF, -INF], [-6.507361878933523, -INF]],
                ],
            ),
            ((0, 2), [[7.389761557128352, -INF], [-INF, -13.610526952402395]]),
        ],
        log=True,
    )


def dense_pairs(rng: np.random.Generator, *, zeros: float) -> ps.Model:
    """A factor on every pair of six variables: small mini-buckets must split."""
    cards = rng.integers(2, 4, 6)
    factors = []
    for i, j in itertools.combinations(range(6), 2):
        table = rng.normal(0.0, 2.0, (cards[i], cards[j]))
        # One entry of each row stays possible.
        table[:, 1:][rng.random((cards[i], cards[j] - 1)) < zeros] = -INF
        factors.append(((i, j), table))
    return ps.Model.from_factors(cards.tolist(), factors, log=True)


def test_flat_directions_do_not_carry_the_bound_below_the_truth() -> None:
    model = flat_model()
    result = ps.bound(model, [1], method="tree", ibound=1, sweeps=60)
    assert result.log_upper >= careful_value(model, [False, True, False, False])


@pytest.mark.parametrize("method", ["tree", "gdd", "wmb", "mbe", "lbfgs", "mas", "reorder"])
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_no_bound_lies_below_the_truth_by_any_amount(method: str, zeros: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(25):
        spread = float(rng.choice([0.5, 5.0, 100.0]))
        model = random_model(rng, n_variables=5, n_factors=7, max_states=3, zeros=zeros, spread=spread)
        is_max = (rng.random(model.n_variables) < 0.5).tolist()
        truth = careful_value(model, is_max)
        result = ps.bound(model, [v for v, m in enumerate(is_max) if m], method=method, sweeps=40)
        assert result.log_upper >= truth
        assert all(snapshot.log_upper >= truth for snapshot in result.history)
        assert result.log_lower <= truth


def test_both_sides_of_solve_hold_by_any_amount() -> None:
    rng = np.random.default_rng(8)
    for _ in range(100):
        spread = float(rng.choice([0.5, 5.0, 100.0]))
        model = random_model(rng, n_variables=6, n_factors=8, max_states=3, zeros=0.3, spread=spread)
        is_max = (rng.random(model.n_variables) < 0.5).tolist()
        truth = careful_value(model, is_max)
        result = ps.solve(model, [v for v, m in enumerate(is_max) if m])
        assert result.log_lower <= truth <= result.log_upper
        assert truth == -INF or result.gap < 1e-9


def test_a_value_that_rounding_may_have_made_is_none() -> None:
    assert certain(1.0, 1e-12) > 1.0
    assert certain(1.0, 1.0) == INF
    assert certain(1.0, math.nan) == INF
    assert certain(math.nan, 0.0) == INF
    assert certain(-INF, 1.0) == -INF
    assert certain(-INF, INF) == INF


def test_error_of_elimination_grows_with_the_tables() -> None:
    small = ps.Model.from_factors([2, 2], [((0, 1), np.ones((2, 2)))], log=True)
    large = ps.Model.from_factors([2, 2], [((0, 1), np.full((2, 2), 1e6))], log=True)
    assert 0.0 < elimination_error(small) < 1e-12 < elimination_error(large) < 1e-7


class _Clock:
    """A clock that stands still until its n-th look, and is far in the future from then on."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def __call__(self) -> float:
        self.looks -= 1
        return 0.0 if self.looks > 0 else 1e6


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], float]], None]]:
    def replace(clock: Callable[[], float]) -> None:
        monkeypatch.setattr(time, "monotonic", clock)

    yield replace
    monkeypatch.undo()


@pytest.mark.parametrize("seed", range(6))
def test_a_deadline_at_any_look_at_the_clock_leaves_a_bound(
    seed: int, set_clock: Callable[[Callable[[], float]], None]
) -> None:
    """The claim after a deadline is what its own point gives, wherever that fell, and no less than the truth."""
    rng = np.random.default_rng(seed)
    model = dense_pairs(rng, zeros=0.1 * (seed % 2))
    tau = np.where(np.arange(model.n_variables) % 2, 0.0, 1.0)
    problem = simplify(model, Query(tau), {})
    truth = exact_value(model, tau) - problem.log_constant
    order = elimination_order(problem.model, problem.tau)
    for looks in range(1, 120, 3):
        set_clock(lambda: 0.0)
        tree = CoveringTree(problem, order, ibound=1)
        set_clock(_Clock(looks))
        for _ in range(4):
            tree.step(1e3)
        assert tree.log_upper >= tree.bound()
        assert tree.log_upper >= truth - 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_failing_line_searches_leave_a_bound(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every n-th evaluation pretends to be worse: the point is put back, and the claim must be the point's."""
    rng = np.random.default_rng(seed)
    model = dense_pairs(rng, zeros=0.0)
    tau = np.where(np.arange(model.n_variables) % 2, 0.0, 1.0)
    problem = simplify(model, Query(tau), {})
    order = elimination_order(problem.model, problem.tau)
    timed = Descent._timed
    counts = [0, 0]
    for every in range(1, 9):

        def sometimes_worse(self: Descent, every: int = every) -> float:
            counts[0] += 1
            value = timed(self)
            if counts[0] % (every + 1) or not math.isfinite(self.value):
                return value
            counts[1] += 1
            return value + 100.0

        monkeypatch.setattr(Descent, "_timed", sometimes_worse)
        tree = CoveringTree(problem, order, ibound=1)
        for _ in range(12):
            tree.step(INF)
            claimed = tree.log_upper
            fresh = CoveringTree(problem, order, ibound=1)
            fresh._best.passes.parameters[:] = tree.best_tree._best
            assert claimed >= fresh._best.passes.value()
    assert counts[1] > 10


def test_what_is_no_number_proves_nothing() -> None:
    model = flat_model()
    problem = simplify(model, Query.of(model, [1]), {})
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1).best_tree
    assert math.isfinite(tree.bound())
    tree._best[:] = math.nan
    assert tree.bound() == INF


def test_sums_of_distributions_that_differ_in_the_last_digits_are_counted() -> None:
    """Barren nodes are taken for constants although their rows differ a little: both sides must know by how much."""
    n = 8
    leaves = [((0, v), [[0.5, 0.5 + 0.9e-9], [0.5, 0.5]]) for v in range(1, n)]
    model = ps.Model.from_factors([2] * n, [((0,), [1e-3, 0.999]), *leaves], directed=True)
    result = ps.solve(model)
    truth = math.log(0.999 + 1e-3 * (1 + 0.9e-9) ** (n - 1))
    assert result.log_lower <= truth <= result.log_upper
