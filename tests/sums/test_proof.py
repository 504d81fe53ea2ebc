"""Passes of partial sums, of everything or of what an assignment leaves, are proven by their contexts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.look_up import heuristic_of
from powersum.core.progress import Progress
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.run.proofs import by_sums, by_sums_given
from powersum.sums import partial_sum
from powersum.sums.partial_sum import PartialSum
from tests.cases import Case, bushy_case, hard_case
from tests.oracle import assignment_value
from tests.run.proofs import CLOSE, draft_of, of_max, truth, verified

SHARES = [0.1, 1e-3, 0.0]


def one_pass(sums: PartialSum, share: float) -> None:
    sums.begin(share)
    assert sums.run(math.inf) is Progress.DONE


def a_case(seed: int, zeros: float) -> Case:
    return (hard_case if seed % 2 else bushy_case)(seed, zeros=zeros)


@pytest.mark.parametrize("zeros", [0.0, 0.2])
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("seed", range(8))
def test_both_bounds_of_a_sum(seed: int, share: float, zeros: float, tmp_path: Path) -> None:
    asked = a_case(seed, zeros)
    asked = asked._replace(query=Query.of(asked.model))
    problem = asked.problem()
    if not problem.model.n_variables:
        return
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1)
    tree.step(math.inf)
    heuristic, root = heuristic_of(tree.best_tree, problem, sums=True)
    sums = PartialSum(problem.model, heuristic, root, record=1e6)
    one_pass(sums, share)
    assert sums.recorded is not None
    assert sums.recorded.settled == (not sums.n_dropped)
    draft = draft_of(asked, problem)
    draft.add(by_sums(draft.ground, tree.best_tree, problem, sums.recorded))
    lower, upper = (x + problem.log_constant for x in (sums.recorded.log_lower, sums.recorded.log_upper))
    found = verified(asked, draft.done(lower, upper), tmp_path)
    value = truth(asked)
    assert found.log_lower <= value + CLOSE
    assert value - CLOSE <= found.log_upper
    # Where the tree splits nothing below a context it has its value, which the sums may have dropped.
    assert found.log_lower >= lower - CLOSE
    assert found.log_upper <= upper + CLOSE
    if share == 0.0 and value > -math.inf:
        assert found.log_upper - found.log_lower < CLOSE


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("seed", range(8))
def test_what_an_assignment_leaves(seed: int, share: float, tmp_path: Path) -> None:
    asked = a_case(seed, 0.0)
    problem = asked.problem()
    rng = np.random.default_rng(seed)
    given = np.where(problem.tau == 0.0, rng.integers(0, problem.model.cardinalities), -1)
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1)
    heuristic, root = heuristic_of(tree.best_tree, problem, sums=True)
    sums = PartialSum(problem.model, heuristic, root, given=given, record=1e6)
    one_pass(sums, share)
    assert sums.recorded is not None
    states = problem.restore(given)
    chosen = of_max(asked, states)
    draft = draft_of(asked, problem)
    draft.add(by_sums_given(draft.ground, tree.best_tree, problem, sums.recorded, states))
    lower = sums.recorded.log_lower + problem.log_constant
    found = verified(asked, draft.done(lower, math.inf, chosen), tmp_path)
    value = assignment_value(asked.model, chosen)
    assert found.log_lower <= value + CLOSE
    assert found.log_lower >= lower - CLOSE
    if share == 0.0:
        assert found.log_lower == pytest.approx(value, abs=CLOSE)


def test_a_pass_that_is_too_large_is_not_recorded() -> None:
    asked = hard_case(1)
    problem = asked._replace(query=Query.of(asked.model)).problem()
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1)
    heuristic, root = heuristic_of(tree.best_tree, problem, sums=True)
    sums = PartialSum(problem.model, heuristic, root, record=10.0)
    one_pass(sums, 1e-3)
    assert sums.n_dropped
    assert sums.recorded is None


@pytest.mark.parametrize("most", [1e9, 100.0])
def test_a_pass_that_drops_nothing_needs_no_room(most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker finds its contexts by itself: as many as it has memory for."""
    monkeypatch.setattr(partial_sum, "MOST_SETTLED", most)
    asked = hard_case(1)
    problem = asked._replace(query=Query.of(asked.model)).problem()
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1)
    heuristic, root = heuristic_of(tree.best_tree, problem, sums=True)
    sums = PartialSum(problem.model, heuristic, root, record=10.0)
    one_pass(sums, 0.0)
    assert not sums.n_dropped
    assert (sums.recorded is not None) == (most == 1e9)
    unasked = PartialSum(problem.model, heuristic, root)
    one_pass(unasked, 0.0)
    assert unasked.recorded is None


def test_a_pass_that_drops_nothing_lists_next_to_nothing(tmp_path: Path) -> None:
    asked = hard_case(1)
    asked = asked._replace(query=Query.of(asked.model))
    problem = asked.problem()
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1)
    heuristic, root = heuristic_of(tree.best_tree, problem, sums=True)
    sums = PartialSum(problem.model, heuristic, root, record=1e6)
    one_pass(sums, 0.0)
    assert sums.recorded is not None
    step = by_sums(draft_of(asked, problem).ground, tree.best_tree, problem, sums.recorded)
    assert len(step.arrays["context_states"]) == 0
    assert step.arrays["context_settled"].all()
    draft = draft_of(asked, problem)
    draft.add(step)
    value = truth(asked)
    found = verified(asked, draft.done(value, value), tmp_path)
    assert found.log_lower - CLOSE <= value <= found.log_upper + CLOSE
    assert found.log_upper - found.log_lower < CLOSE
