"""Branch and bound: the heuristic bounds every partial assignment, and the search ends at the optimum."""

from __future__ import annotations

import time

import numpy as np
import pytest

from powersum.evaluate import Evaluator
from powersum.improve import Portfolio
from powersum.model import Model
from powersum.ordering import elimination_order
from powersum.problem import Problem
from powersum.query import Query
from powersum.search import BestFirst, Heuristic, heuristic_of
from powersum.search.heuristic import branch
from powersum.simplify import simplify
from powersum.tighten.tree.covering_tree import CoveringTree
from tests.oracle import exact_value
from tests.solve.cases import hard_case


def searched(problem: Problem, *, ibound: int, memory: float = 1e6) -> tuple[Heuristic, BestFirst, float]:
    order = elimination_order(problem.model, problem.tau)
    tree = CoveringTree(problem, order, ibound=ibound)
    for _ in range(2):
        tree.step(np.inf)
    heuristic, root = heuristic_of(tree, problem)
    evaluator = Evaluator(problem, memory=2e7)
    start = np.where(evaluator.is_max, 0, -1)
    search = BestFirst(
        heuristic,
        evaluator,
        log_upper=root,
        log_lower=evaluator.value(start),
        assignment=start,
        memory=memory,
    )
    return heuristic, search, root


@pytest.mark.parametrize("seed", range(30))
def test_heuristic_bounds_every_partial_assignment(seed: int) -> None:
    problem = hard_case(seed, zeros=0.15 * (seed % 2)).problem()
    heuristic, _, bound = searched(problem, ibound=2)
    hold_along_a_path(problem, heuristic, bound, seed)


@pytest.mark.parametrize("seed", range(3))
def test_heuristic_of_a_tree_that_chose_its_own_order(seed: int) -> None:
    # Left to itself with time to spend, a tree tries other orders than the one it was given.
    problem = simplify(*grid(seed), {})
    given = elimination_order(problem.model, problem.tau, restarts=1, seed=seed)
    poor = np.concatenate([np.sort(given[problem.tau[given] == w]) for w in (1.0, 0.0)])
    tree = CoveringTree(problem, poor, memory=10**8)
    end = time.monotonic() + 4.0
    while time.monotonic() < end and tree.step(end):
        pass
    heuristic, root = heuristic_of(tree, problem)
    evaluator = Evaluator(problem, memory=2e7)
    portfolio = Portfolio(evaluator, seed=seed)
    portfolio.run(time.monotonic() + 1.0)
    # On the way to a good assignment a bound read from the wrong tables would soon be below its value.
    path = portfolio.assignment[heuristic.variables]
    children = np.empty(int(heuristic.cardinalities.max()))
    assert sorted(heuristic.variables.tolist()) == np.flatnonzero(evaluator.is_max).tolist()
    bound = root
    for depth in range(len(path)):
        branch(heuristic, depth, bound, path, children)
        bound = children[path[depth]]
        assert bound >= portfolio.log_value - 1e-9


def grid(seed: int) -> tuple[Model, Query]:
    """A grid with domains of different sizes: a table read for the wrong variable would not fit."""
    rng = np.random.default_rng(seed)
    n = 12
    cards = rng.integers(2, 5, n * n)
    factors = []
    for i in range(n):
        for j in range(n):
            for k in ((i, j + 1), (i + 1, j)):
                if max(k) < n:
                    a, b = i * n + j, k[0] * n + k[1]
                    factors.append(((a, b), np.exp(rng.normal(0.0, 1.0, (cards[a], cards[b])))))
    weights = (rng.random(n * n) < 0.5).astype(np.float64)
    return Model.from_factors(cards.tolist(), factors), Query(weights)


def hold_along_a_path(problem: Problem, heuristic: Heuristic, bound: float, seed: int) -> None:
    """Follow random states from the root: every child's bound is at or above the truth and at or below its parent's."""
    rng = np.random.default_rng(seed)
    path = np.zeros(len(heuristic.variables), dtype=np.int64)
    given: dict[int, int] = {}
    children = np.empty(int(heuristic.cardinalities.max()))
    for depth, v in enumerate(heuristic.variables.tolist()):
        branch(heuristic, depth, bound, path, children)
        for s in range(int(heuristic.cardinalities[depth])):
            truth = exact_value(problem.model, problem.tau, evidence={**given, v: s})
            assert children[s] >= truth - 1e-9
            assert children[s] <= bound + 1e-9
        path[depth] = int(rng.integers(heuristic.cardinalities[depth]))
        given[v] = int(path[depth])
        bound = children[path[depth]]


@pytest.mark.parametrize("settle_work", [0.0, 2e5])
@pytest.mark.parametrize("seed", range(20))
def test_search_ends_at_the_optimum(seed: int, settle_work: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without settling, every leaf is reached by branching.
    monkeypatch.setattr("powersum.search.best_first.SETTLE_WORK", settle_work + 1.0)
    problem = hard_case(seed, zeros=0.15 * (seed % 2)).problem()
    truth = exact_value(problem.model, problem.tau)
    _, search, _ = searched(problem, ibound=1)
    assert search.run(time.monotonic() + 60)
    assert search.log_lower == pytest.approx(truth, abs=1e-9)
    assert search.log_upper == pytest.approx(truth, abs=2e-9)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_hold_while_memory_is_full(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.search.best_first.SETTLE_WORK", 1.0)
    monkeypatch.setattr("powersum.search.best_first.EXPANSIONS", 3)
    problem = hard_case(seed).problem()
    truth = exact_value(problem.model, problem.tau)
    _, search, _ = searched(problem, ibound=1)
    # Room for a few nodes only: almost all of the search is depth-first.
    search._frontier = search._frontier._replace(
        **{name: getattr(search._frontier, name)[:12] for name in ("bounds", "parents", "depths", "states", "heap")}
    )
    uppers, lowers = [search.log_upper], [search.log_lower]
    while not search.run(time.monotonic() + 1e-4):
        uppers.append(search.log_upper)
        lowers.append(search.log_lower)
        assert lowers[-1] <= truth + 1e-9
        assert uppers[-1] >= truth - 1e-9
    assert (np.diff(uppers) <= 0).all()
    assert (np.diff(lowers) >= 0).all()
    assert search.log_lower == pytest.approx(truth, abs=1e-9)
