"""A tree and its boxes: every bound on the way holds, time is shared as planned, and what boxes show is proven."""

from __future__ import annotations

import math
from functools import cache
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum.bounds.buckets.partition import Partition, limits_of, partition_by_ibound
from powersum.bounds.buckets.scopes import Scopes
from powersum.bounds.tree import building, covering_tree
from powersum.bounds.tree.budget import Cost, cost_of
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.core import work_time
from powersum.core.arrays import IntArray
from powersum.divide import split_tree, tree_boxes
from powersum.divide.split_tree import SplitTree, is_splittable
from powersum.divide.splitting import Splitting
from powersum.generate import grid
from powersum.model.rounding import elimination_error
from powersum.prepare.ordering import elimination_order
from tests.cases import Case, bushy_case, case, hard_case
from tests.clock import Ticks
from tests.oracle import exact_value
from tests.run.proofs import truth, verified

ROUNDING = 1e-10
"""The oracle has a rounding of its own."""


def smallest(scopes: Scopes, cardinalities: IntArray, **_: float) -> tuple[float, Partition, Cost]:
    """A partition into mini-buckets of two variables, whatever there is room for."""
    parts = partition_by_ibound(scopes, limits_of(1))
    return 0.0, parts, cost_of(parts, scopes, cardinalities)


@pytest.fixture
def small_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tree of a small model is exact, and boxes are worth while however short the time."""
    monkeypatch.setattr(covering_tree, "EXACT_ENTRIES", 0.0)
    monkeypatch.setattr(covering_tree, "EXACT_SLOWNESS", 1e15)
    monkeypatch.setattr(building, "largest_within", smallest)
    monkeypatch.setattr(split_tree, "USEFUL_ENTRIES", 30.0)
    monkeypatch.setattr(split_tree, "LEAST_BOXES", 1e-6)
    monkeypatch.setattr(split_tree, "MUCH", math.inf)
    monkeypatch.setattr(tree_boxes, "PASSES", 8)


@pytest.fixture
def fixed_trees(small_trees: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does any tree grow, so that boxes are all that is left."""
    monkeypatch.setattr(FixedTree, "grown", lambda *_: None)


def split_tree_of(asked: Case, ibound: int = 1, **options: Any) -> SplitTree:
    problem = asked.problem()
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=ibound)
    return SplitTree(problem, tree, **options)


def splittable(asked: Case) -> bool:
    problem = asked.problem()
    if not problem.feasible or problem.model.n_variables == 0 or not is_splittable(problem):
        return False
    return not CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1).exact


@cache
def cases() -> list[Case]:
    """Questions that there is something to split in."""
    hard = (hard_case(seed, zeros=0.15 * (seed % 3)) for seed in count())
    bushy = (bushy_case(seed) for seed in count())
    return [*islice(filter(splittable, hard), 8), *islice(filter(splittable, bushy), 4)]


@pytest.mark.parametrize("seconds", [3.0, 30.0, 1000.0])
@pytest.mark.parametrize("searching", [0.0, 1.0])
@pytest.mark.parametrize("number", range(12))
def test_every_bound_on_the_way_holds(
    number: int, searching: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on by looks: whatever the time is over amid of."""
    clock = Ticks(0.05)
    for module in (split_tree, covering_tree, tree_boxes):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr("powersum.divide.splitting.time", clock)
    monkeypatch.setattr(split_tree, "SEARCHING", searching)
    asked = cases()[number]
    tightener, problem = split_tree_of(asked), asked.problem()
    exact = exact_value(problem.model, problem.tau)
    before, more = math.inf, True
    while more and clock.now < seconds:
        assert exact - ROUNDING <= tightener.log_upper <= before
        before = tightener.log_upper
        more = tightener.step(seconds)
    assert exact - ROUNDING <= tightener.bound() <= tightener.log_upper + ROUNDING
    decoded = tightener.decode()
    assert ((decoded >= 0) == (problem.tau == 0.0)).all()
    if seconds == 1000.0:
        assert tightener.splitting is not None
        assert tightener.sizes()["boxes"] > 0


@pytest.mark.parametrize("number", range(12))
def test_boxes_end_at_the_optimum_where_they_are_searched(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search in a box finds values, though none is known to begin with."""
    monkeypatch.setattr(split_tree, "SEARCHING", 1.0)
    asked = cases()[number]
    tightener, problem = split_tree_of(asked), asked.problem()
    deadline = work_time.monotonic() + 60.0
    while tightener.step(deadline):
        pass
    assert tightener.log_upper == pytest.approx(exact_value(problem.model, problem.tau), abs=1e-8)
    # What a search settles by elimination has the rounding of that.
    assert tightener.splitting is not None
    assert tightener.splitting.log_error == elimination_error(problem.model) > 0.0
    assert work_time.monotonic() < deadline


def test_without_an_end_there_are_no_boxes() -> None:
    tightener = split_tree_of(cases()[0])
    for _ in range(100):
        tightener.step(math.inf)
    assert tightener.splitting is None


def test_the_tree_goes_on_where_boxes_are_used_up(small_trees: None) -> None:
    """One variable is maximised: both its boxes are soon done, and their sums are not exact; then the tree grows."""
    result = ps.bound(grid(6, 6, seed=1).model, maximize=[14], work=2.0)
    assert result.sizes["boxes"] == 1
    assert result.status is ps.Status.OPTIMAL


@pytest.mark.parametrize("proven", [False, True])
def test_what_boxes_have_found_counts_where_nothing_better_is_left(proven: bool) -> None:
    """Used-up boxes whose bounds are not met prove nothing of their assignment: it was called the optimum once."""
    asked = cases()[0]
    tightener, problem = split_tree_of(asked), asked.problem()
    found = np.where(problem.tau == 0.0, 0, -1)
    log_lower = tightener.log_upper if proven else tightener.log_upper - 1.0
    splitting = Splitting(problem, tightener._tree.best_tree, None, log_lower=log_lower, assignment=found)
    splitting.done, tightener.splitting = True, splitting
    liked = tightener._tree.decode()
    liked[problem.tau == 0.0] = 1
    tightener._tree.decode = lambda: liked  # type: ignore[method-assign]
    assert tightener.decode().tolist() == (found if proven else liked).tolist()
    tightener._tree.exact = True
    assert tightener.decode().tolist() == liked.tolist()


@pytest.mark.parametrize("seed", range(30))
def test_bounds_by_boxes_hold_and_are_proven(seed: int, fixed_trees: None, tmp_path: Path) -> None:
    """The whole way of ``bound``, of questions with evidence, zeros and all kinds of tables."""
    asked = (case, hard_case, bushy_case)[seed % 3](seed)
    model, query, evidence = asked.model, asked.query, asked.evidence
    for certificate in (False, True):
        result = ps.bound(model, weights=query, evidence=evidence, work=0.3, certificate=certificate)
        exact = truth(asked)
        assert result.log_upper >= exact - ROUNDING * max(1.0, abs(exact))
        assert all(a.log_upper >= b.log_upper for a, b in pairwise(result.history))
        if certificate:
            assert result.certificate is not None
            assert verified(asked, result.certificate, tmp_path).log_upper <= result.log_upper + 1e-9


def test_some_bounds_are_those_of_boxes(fixed_trees: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests above are about is there: bounds of boxes, far below those of the tree alone, in certificates."""
    # The corner bound is nearly exact for so few variables, and a floor under both.
    monkeypatch.setattr("powersum.bounds.corner.corner_of", lambda *_: None)
    asked = cases()[0]
    given: dict[str, Any] = {"weights": asked.query, "evidence": asked.evidence, "work": 0.5}
    result = ps.bound(asked.model, **given, certificate=True)
    alone = ps.bound(asked.model, **given, method="tree")
    assert result.sizes["boxes"] > 1
    assert "boxes" not in alone.sizes
    assert truth(asked) <= result.log_upper < alone.log_upper
    assert result.certificate is not None
    assert verified(asked, result.certificate, tmp_path).n_steps > 3


def test_the_same_work_gives_the_same_bound(small_trees: None) -> None:
    asked = cases()[0]
    given: dict[str, Any] = {"weights": asked.query, "evidence": asked.evidence, "work": 0.2}
    first, again, threads = (ps.bound(asked.model, **given, threads=n) for n in (1, 1, 2))
    assert first.log_upper == again.log_upper == threads.log_upper


def test_where_boxes_have_no_memory_the_tree_goes_on() -> None:
    asked = cases()[0]
    tightener, problem = split_tree_of(asked, memory=1e3), asked.problem()
    deadline = work_time.monotonic() + 60.0
    while tightener.step(deadline):
        assert tightener.log_upper >= exact_value(problem.model, problem.tau) - ROUNDING
    assert tightener.splitting is not None
    assert not tightener.splitting.done
    assert work_time.monotonic() < deadline


def test_what_is_splittable() -> None:
    model = grid(3, 3).model

    def problem(weights: list[float]) -> Any:
        return Case(model, ps.Query(np.array(weights)), {}).problem()

    assert is_splittable(problem([0.0] * 4 + [1.0] * 5))
    assert not is_splittable(problem([1.0] * 9))
    assert not is_splittable(problem([0.0] * 4 + [0.5] * 5))
