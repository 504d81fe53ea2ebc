"""The k best on many workers: the list of one process, bounds that hold whatever is lost, certificates that hold."""

from __future__ import annotations

import concurrent.futures as cf
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import powersum as ps
import powersum_check as pc
from powersum.cluster import executor
from powersum.cluster.errors import ClusterError
from powersum.cluster.executor import Workers
from powersum.exact import small
from powersum.run import best
from powersum.run.box_run import BoxJob, BoxQuestion, BoxReport, bound_box
from powersum.run.tuning import Schedule
from tests.cases import Case, case, hard_case
from tests.check.helpers import to_check
from tests.cluster.machines import kill_one_of_ours
from tests.run.test_best import distance, ranked, states_of
from tests.run.test_best_proofs import World, packed, question_of, with_likelihoods

SEARCHED = Schedule(quick=0.0, ibound=1, late_elimination=0.0)
"""Small trees and search, so that nothing is settled before parts are handed out."""


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[cf.Executor]:
    monkeypatch.setattr(small, "MOST_ENTRIES", -1)
    with cf.ThreadPoolExecutor(2) as pool:
        yield pool


def holds(result: ps.Result, truth: list[tuple[float, tuple[int, ...]]], distinct: int) -> None:
    """All that is said of the list and of what comes after it, by brute force."""
    value_of = {states: value for value, states in truth}
    before: list[tuple[int, ...]] = []

    def left() -> float:
        far = (v for v, states in truth if all(distance(states, past) >= distinct for past in before))
        return max(far, default=-math.inf)

    for one in result.best:
        own = states_of(one)
        assert one.log_lower <= value_of[own] + 1e-9
        assert one.log_upper >= left() - 1e-9
        assert all(distance(own, past) >= distinct for past in before)
        before.append(own)
    assert result.log_upper_next is None or result.log_upper_next >= left() - 1e-9


@pytest.mark.parametrize("kind", [case, hard_case])
@pytest.mark.parametrize("distinct", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_the_list_of_one_process(
    kind: Callable[[int], Case], distinct: int, seed: int, pool: cf.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, query, evidence = kind(seed)
    if query.task == "PR":
        return
    handed_out = []

    def counted(asked: BoxQuestion, job: BoxJob) -> BoxReport:
        handed_out.append(job)
        return bound_box(asked, job)

    monkeypatch.setattr(best, "bound_box", counted)
    truth = ranked(model, query, evidence)
    asked: dict[str, Any] = {"weights": query, "evidence": evidence, "k": 4, "distinct": distinct, "schedule": SEARCHED}
    result = ps.solve(model, **asked, workers=pool)
    holds(result, truth, distinct)
    alone = ps.solve(model, **asked)
    assert [one.log_lower for one in result.best] == pytest.approx([one.log_lower for one in alone.best], abs=2e-6)
    assert [one.status for one in result.best] == [one.status for one in alone.best]
    # The caller of a pool only waits; with fewer than two possible assignments nothing is left to ask.
    assert handed_out or len(truth) <= 1


@pytest.mark.parametrize("kind", [case, hard_case])
@pytest.mark.parametrize("seed", range(4))
def test_the_checker_accepts_the_proofs_of_all(kind: Callable[[int], Case], seed: int, pool: cf.Executor) -> None:
    asked = kind(seed)
    if asked.query.task == "PR":
        return
    likelihoods = with_likelihoods(asked, seed) if seed % 2 else {}
    result = ps.solve(
        asked.model,
        weights=asked.query,
        evidence={**asked.evidence, **likelihoods},
        k=3,
        distinct=1 + seed % 2,
        certificate=True,
        schedule=SEARCHED,
        workers=pool,
    )
    assert result.certificate is not None
    world = World(asked, likelihoods)
    verified = pc.check(to_check(asked.model), question_of(asked, likelihoods), packed(result.certificate))
    top = max(world.values.values())
    assert verified.log_lower - 1e-8 <= top <= verified.log_upper + 1e-8
    if result.best:
        assert verified.best is not None
        assert not world.wrong(verified.best)


@pytest.mark.parametrize("time_limit", [1e-3, 0.3, 2.0])
def test_bounds_hold_whenever_it_ends(time_limit: float, pool: cf.Executor) -> None:
    model, query, _ = hard_case(1)
    truth = ranked(model, query, {})
    result = ps.solve(model, weights=query, k=4, time_limit=time_limit, schedule=SEARCHED, workers=pool)
    holds(result, truth, 1)
    assert result.log_upper >= truth[0][0] - 1e-9


@pytest.mark.parametrize("here", [False, True])
def test_workers_that_are_gone_leave_what_is_known(
    here: bool, pool: cf.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, query, _ = hard_case(2)
    truth = ranked(model, query, {})
    submit = Workers.submit

    def lost(workers: Workers, tag: Any, function: Any, *rest: Any) -> None:
        if function is bound_box and rest[-1].keeps_result:
            raise ClusterError("the workers are gone")
        submit(workers, tag, function, *rest)

    monkeypatch.setattr(Workers, "submit", lost)
    monkeypatch.setattr(executor, "others_of", lambda given: (given, here))
    result = ps.solve(model, weights=query, k=4, schedule=SEARCHED, workers=pool)
    holds(result, truth, 1)
    # Where this process works, too, it goes on alone.
    assert (len(result.best) == 4 and all(one.status is ps.Status.OPTIMAL for one in result.best)) == here


def test_a_killed_process_costs_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    model, query = ps.generate.grid(10, 10, strength=2.0, seed=4)
    alone = ps.solve(model, query, k=3, schedule=SEARCHED, work=20.0)
    killed: list[int] = []

    def next_task(search: best.BestFirst, free: int) -> Any:
        task = found(search, free)
        if task is None and search._workers.pending and not killed:
            killed.append(kill_one_of_ours())
        return task

    found = best.BestFirst._next_task
    monkeypatch.setattr(best.BestFirst, "_next_task", next_task)
    result = ps.solve(model, query, k=3, schedule=SEARCHED, workers=2, time_limit=120.0)
    assert killed
    for one, other in zip(result.best, alone.best, strict=True):
        assert one.log_lower <= other.log_upper + 1e-9
        assert one.log_upper >= other.log_lower - 1e-9
