"""What an earlier search has listed is found out anew: the bound is there at once, and never below the truth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.prepare.problem import Problem
from powersum.search.and_or import AndOr
from powersum.search.proof import SearchProof
from powersum.search.recall import ListedContexts, Recall
from tests.cases import Case, bushy_case, hard_case
from tests.oracle import exact_value
from tests.search.test_search import searched

Kind = Callable[..., Case]
CLOSE = 1e-9


def listed_by(search: AndOr, problem: Problem) -> tuple[ListedContexts, float]:
    """What a search lists, and the bound that it proves by that."""
    proof = SearchProof(search, problem, memory=1e8)
    assert proof.run()
    arrays = proof.arrays()
    names = ("context_variables", "context_counts", "context_states")
    return ListedContexts(*(np.asarray(arrays.get(name, ()), dtype=np.int64) for name in names)), proof.log_upper


def searches(problem: Problem) -> tuple[AndOr, AndOr]:
    """Two searches with the same tree: one that has found the optimum, and one that has not begun."""
    (_, old, _), (_, new, _) = searched(problem, ibound=1), searched(problem, ibound=1)
    assert old.run(math.inf) is Progress.DONE
    return old, new


@pytest.mark.parametrize("settle_work", [1.0, 3e4])
@pytest.mark.parametrize("kind", [hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(10))
def test_a_search_that_is_told_where_to_look_has_the_bound_after_a_few_steps(
    kind: Kind, settle_work: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersum.search.and_or.SETTLE_WORK", settle_work)
    problem = kind(seed).problem()
    old, new = searches(problem)
    listed, log_upper = listed_by(old, problem)
    recall = Recall(new, problem, listed)
    assert recall.run(np.inf)
    # What is needed of the root is known of its children, or of theirs.
    root = new.shape.root
    new.work_below(root, new.log_root - log_upper - CLOSE, np.inf)
    cost = float(new.walk.known[new.shape.tree.value_starts[root]])
    assert new.log_root - cost <= log_upper + CLOSE
    assert new.expanded <= 3 * new.shape.root
    assert new.run(math.inf) is Progress.DONE
    assert new.log_upper == pytest.approx(old.log_upper, abs=CLOSE)


def nonsense(rng: np.random.Generator, listed: ListedContexts) -> ListedContexts:
    """Lists that are cut, mixed, or about something else."""
    choice = int(rng.integers(0, 5))
    states: IntArray = listed.states.copy()
    if choice == 0:
        return listed._replace(states=rng.integers(0, 4, len(states)))
    if choice == 1:
        return listed._replace(states=states[: len(states) // 2])
    if choice == 2:
        return listed._replace(variables=rng.permutation(listed.variables))
    if choice == 3:
        return listed._replace(counts=rng.permutation(listed.counts))
    return listed._replace(variables=listed.variables + 1, counts=listed.counts[::-1])


@pytest.mark.parametrize("kind", [hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_told_the_bound_holds(kind: Kind, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.search.and_or.SETTLE_WORK", float([1.0, 3e4][seed % 2]))
    asked = kind(seed)
    problem = asked.problem()
    old, new = searches(problem)
    listed, _ = listed_by(old, problem)
    Recall(new, problem, nonsense(np.random.default_rng(seed), listed)).run(np.inf)
    # Every cost that was found is looked at by the steps that follow.
    monkeypatch.setattr("powersum.search.and_or.STEPS", 1)
    value = exact_value(asked.model, asked.query.weights, evidence=asked.evidence) - problem.log_constant
    new.work_below(new.shape.root, math.inf, math.inf)
    at = new.shape.tree.value_starts[new.shape.root]
    assert new.log_root - float(new.walk.known[at]) == pytest.approx(value, abs=CLOSE)
    assert new.walk.exact[at]


def test_time_is_looked_at() -> None:
    problem = hard_case(1).problem()
    old, new = searches(problem)
    recall = Recall(new, problem, listed_by(old, problem)[0])
    assert not recall.run(time.monotonic() - 1.0)
    assert recall.run(np.inf)
