"""What a search has found is proven by the contexts it lists, also where it had to forget, or was ended early."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from powersum.core import work_time as time
from powersum.core.progress import Progress
from powersum.exact.elimination import Elimination
from powersum.prepare.ordering import elimination_order
from powersum.search.and_or import AndOr
from powersum.search.proof import SearchProof
from powersum.search.values import new_values
from tests.cases import Case, bushy_case, hard_case
from tests.run.proofs import CLOSE, draft_of, of_max, truth, verified
from tests.search.test_search import searched

Kind = Callable[..., Case]


def proven(asked: Case, search: AndOr, folder: Path) -> float:
    """The upper bound that the checker finds."""
    problem = asked.problem()
    draft = draft_of(asked, problem)
    proof = SearchProof(search, problem, memory=1e8)
    assert proof.run()
    draft.add(draft.ground.tree([search.bound_tree.forest(problem)], proof.arrays()))
    log_upper = proof.log_upper + problem.log_constant
    chosen = of_max(asked, problem.restore(search.assignment))
    log_lower = search.log_lower + problem.log_constant
    draft.add_value(chosen)
    found = verified(asked, draft.done(log_lower, log_upper, chosen), folder)
    assert found.log_upper <= log_upper + CLOSE
    assert truth(asked) - CLOSE <= found.log_upper
    assert found.log_lower <= truth(asked) + CLOSE
    return found.log_upper


@pytest.mark.parametrize("settle_work", [1.0, 50.0, 3e4])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("kind", [hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(8))
def test_an_optimum_is_proven(
    kind: Kind, zeros: float, settle_work: float, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersum.search.and_or.SETTLE_WORK", settle_work)
    asked = kind(seed, zeros=zeros)
    value = truth(asked)
    problem = asked.problem()
    if value == -math.inf or not (problem.tau == 0.0).any():
        return
    _, search, _ = searched(problem, ibound=1)
    if search.log_lower == -math.inf:
        exact = Elimination(problem.model, elimination_order(problem.model, problem.tau), problem.tau).run()
        search.offer(exact.log_value, exact.states)
    assert search.run(math.inf) is Progress.DONE
    assert proven(asked, search, tmp_path) == pytest.approx(value, abs=CLOSE)


@pytest.mark.parametrize("kind", [hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(8))
def test_what_was_forgotten_is_searched_again(
    kind: Kind, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersum.search.and_or.SETTLE_WORK", 1.0)
    monkeypatch.setattr("powersum.search.proof.ROOM", 5)
    asked = kind(seed)
    _, search, _ = searched(asked.problem(), ibound=1, memory=1024.0)
    assert search.run(math.inf) is Progress.DONE
    search.values = new_values(1024.0)
    assert proven(asked, search, tmp_path) == pytest.approx(truth(asked), abs=CLOSE)


@pytest.mark.parametrize("kind", [hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(8))
def test_a_search_that_was_ended_early_proves_what_it_claims(
    kind: Kind, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersum.search.and_or.SETTLE_WORK", 1.0)
    monkeypatch.setattr("powersum.search.and_or.STEPS", 3)
    monkeypatch.setattr("powersum.search.and_or.READING", 0.0)
    asked = kind(seed)
    _, search, root = searched(asked.problem(), ibound=0)
    search.run(time.monotonic() + 2e-4)
    log_constant = asked.problem().log_constant
    found = proven(asked, search, tmp_path)
    assert found <= root + log_constant + CLOSE
    assert found == pytest.approx(search.log_upper + log_constant, abs=1e-6) or found <= search.log_upper + log_constant


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("kind", [hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(6))
def test_a_walk_that_is_cut_short_proves_a_part(
    kind: Kind, seed: int, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time ends in one of the rounds: what the rounds before have listed is claimed, and is enough for it."""
    monkeypatch.setattr("powersum.search.and_or.SETTLE_WORK", 1.0)
    asked = kind(seed)
    _, search, root = searched(asked.problem(), ibound=0)
    assert search.run(math.inf) is Progress.DONE
    listing, begun = SearchProof._list_for, []

    def cut(self: SearchProof, need: float, deadline: float) -> bool:
        begun.append(need)
        return listing(self, need, -math.inf if len(begun) > rounds else deadline)

    monkeypatch.setattr(SearchProof, "_list_for", cut)
    monkeypatch.setattr("powersum.search.proof.STEPS", 1)
    found = proven(asked, search, tmp_path)
    log_constant = asked.problem().log_constant
    share = (0.5, 0.75, 0.9)[rounds - 1]
    assert found <= (1.0 - share) * root + share * search.log_upper + log_constant + CLOSE
    assert found >= truth(asked) - CLOSE


def test_a_walk_without_time_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.search.and_or.SETTLE_WORK", 1.0)
    monkeypatch.setattr("powersum.search.proof.STEPS", 1)
    asked = hard_case(1)
    _, search, _ = searched(asked.problem(), ibound=1)
    assert search.run(math.inf) is Progress.DONE
    proof = SearchProof(search, asked.problem(), memory=1e8)
    assert not proof.run(time.monotonic() - 1.0)
    assert np.isfinite(proof.log_upper)


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("kind", [hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(8))
def test_settled_contexts_of_max_variables_have_their_values(
    kind: Kind, zeros: float, seed: int, tmp_path: Path
) -> None:
    """Whatever is marked as settled, the checker computes it: never below the truth, and no worse than without."""
    asked = kind(seed, zeros=zeros)
    problem = asked.problem()
    if truth(asked) == -math.inf or not (problem.tau == 0.0).any():
        return
    _, search, _ = searched(problem, ibound=1)
    search.run(time.monotonic() + 2e-4)
    proof = SearchProof(search, problem, memory=1e8)
    assert proof.run()
    arrays = proof.arrays()
    found = []
    rng = np.random.default_rng(seed)
    for share in (0.0, 0.5, 1.0):
        draft = draft_of(asked, problem)
        marked = dict(arrays)
        if marked:
            flags = marked["context_settled"]
            marked["context_settled"] = np.maximum(flags, rng.random(len(flags)) < share).astype("u1")
        draft.add(draft.ground.tree([search.bound_tree.forest(problem)], marked))
        found.append(verified(asked, draft.done(-math.inf, math.inf), tmp_path).log_upper)
    assert truth(asked) <= min(found) + CLOSE
    assert found[2] <= found[1] + CLOSE <= found[0] + 2.0 * CLOSE


def test_too_little_memory_for_the_lists_is_said(tmp_path: Path) -> None:
    asked = hard_case(1)
    _, search, _ = searched(asked.problem(), ibound=1)
    assert search.run(math.inf) is Progress.DONE
    assert not SearchProof(search, asked.problem(), memory=100.0).run()
