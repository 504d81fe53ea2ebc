"""Boxes that the road lends to others: whoever works on them, bounds hold, and the joined proof is accepted."""

from __future__ import annotations

import concurrent.futures as cf
import gc
import math
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum.cluster.executor import Workers
from powersum.divide.splitting import Splitting
from powersum.divide.tree_boxes import TreeBox
from powersum.run import cubes, lending
from powersum.run.box_run import BoxJob, BoxQuestion, BoxReport, bound_box
from powersum.run.cubes import Conquest
from powersum.run.lending import Lending
from powersum.run.solver import Solver
from powersum.run.workers import splits
from tests.cases import Case, hard_case
from tests.cluster.machines import kill_one_of_ours, own_workers
from tests.divide.test_splitting import FORCED, cases, of
from tests.oracle import exact_value
from tests.run.test_certified_answers import checked

ROUNDING = 1e-10


class Counting:
    """A task, and how often it was done."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.times, self._function = 0, function

    def __call__(self, *arguments: Any) -> Any:
        self.times += 1
        return self._function(*arguments)


def handed_out(lending: Lending, workers: Workers) -> bool:
    """Have a worker work on a box; False where there is none to spare."""
    task = lending.task()
    if task is None:
        return False
    workers.submit(task.hear, task.function, task.shared, *task.arguments)
    return True


def all_holds(asked: Case, seen: list[ps.Snapshot], result: ps.Result, folder: Path) -> None:
    """Every bound on the way and at the end, by brute force, and the certificate where there is one."""
    value = exact_value(asked.model, asked.query.weights)
    for snapshot in (*seen, *result.history):
        assert snapshot.log_lower - ROUNDING <= value <= snapshot.log_upper + ROUNDING
    assert result.log_lower - ROUNDING <= value <= result.log_upper + ROUNDING
    if result.certificate is not None:
        checked(result, asked, folder)


SLOWLY = replace(FORCED, slice=1e-4)
"""Little work in each turn: the road has not split everything before others have begun."""


def nobody_knows(asked: BoxQuestion, *more: Any) -> BoxReport:
    """A cube that nothing is found out about: all there is to do is to split boxes."""
    return BoxReport(seconds=0.0)


@pytest.mark.parametrize("certificate", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
def test_what_road_and_workers_split_together(
    workers: int, certificate: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The corner bound is exact for so few variables: nothing would be left to split.
    monkeypatch.setattr("powersum.run.work.corner_of", lambda *_: None)
    monkeypatch.setattr(splits, "LEAST_BOXES", 0)
    monkeypatch.setattr(splits, "SEARCH_SECONDS", 1e-4)
    split, search = Counting(lending.split_lent), Counting(lending.search_lent)
    monkeypatch.setattr(lending, "split_lent", split)
    monkeypatch.setattr(lending, "search_lent", search)
    monkeypatch.setattr(cubes, "bound_box", nobody_knows)
    # Who splits a box, and who searches it, is a matter of moments on a busy machine: questions until both were lent.
    for seed in range(60):
        if seed >= 12 and split.times and (certificate or search.times):
            break
        monkeypatch.setattr(splits, "SEARCHING", float(seed % 2))
        asked = hard_case(seed, zeros=0.1 * (seed % 3))
        seen: list[ps.Snapshot] = []
        with cf.ThreadPoolExecutor(workers) as pool:
            solver = Solver(asked.model, weights=asked.query, time_limit=2.0, schedule=SLOWLY, certificate=certificate)
            result = Conquest(solver, Workers(pool, own=False), seen.append, seconds=2.0, road=True).run()
        all_holds(asked, seen, result, tmp_path)
        assert (result.certificate is not None) is certificate
    assert split.times > 0
    assert certificate or search.times > 0


def test_processes_of_our_own_split_boxes_and_one_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was at is begun again by another one."""
    monkeypatch.setattr(splits, "LEAST_BOXES", 0)
    model, query = ps.generate.grid(12, 12, strength=2.0, seed=3)
    killed: list[int] = []
    others, take = own_workers(), Lending._take
    taken: list[Any] = []

    def noted(self: Lending, splitting: Splitting, box: TreeBox, found: Any) -> None:
        taken.append(box)
        if not killed:
            killed.append(kill_one_of_ours(others))
        take(self, splitting, box, found)

    monkeypatch.setattr(Lending, "_take", noted)
    seen: list[ps.Snapshot] = []
    schedule = replace(SLOWLY, first_full=0.0)
    result = ps.solve(model, query, workers=2, schedule=schedule, time_limit=20.0, callback=seen.append)
    alone = ps.solve(model, query)
    assert killed
    assert len(taken) > 1
    for snapshot in seen:
        assert snapshot.log_lower <= alone.log_upper
        assert alone.log_lower <= snapshot.log_upper
    assert result.log_upper >= alone.log_lower


def test_what_comes_too_late_is_let_go() -> None:
    with cf.ThreadPoolExecutor(1) as pool:
        workers = Workers(pool, own=False)
        lent = Lending(workers)
        assert lent.task() is None
        splitting = of(cases()[0])
        lent.begin(splitting, math.inf)
        assert lent.open
        while not handed_out(lent, workers):
            splitting.run(-math.inf, math.inf)
        (hear, found), *_ = workers.finished(600.0)
        before = splitting.log_upper
        lent.end()
        hear(found)
        assert lent.task() is None
        assert splitting.log_upper == before
        assert not hear.args[1].parts


def test_what_comes_while_another_tree_has_its_turn_is_taken() -> None:
    with cf.ThreadPoolExecutor(1) as pool:
        workers = Workers(pool, own=False)
        lent = Lending(workers)
        splitting, another = of(cases()[0]), of(cases()[1])
        lent.begin(splitting, math.inf)
        while not handed_out(lent, workers):
            splitting.run(-math.inf, math.inf)
        (hear, found), *_ = workers.finished(600.0)
        before, others = splitting.log_upper, another.log_upper
        lent.begin(another, math.inf)
        hear(found)
        assert hear.args[1].parts
        assert splitting.log_upper <= before
        assert another.log_upper == others


def test_trees_that_nobody_goes_on_with_are_let_go_of() -> None:
    with cf.ThreadPoolExecutor(1) as pool:
        workers = Workers(pool, own=False)
        lent = Lending(workers)
        splitting = of(cases()[0])
        lent.begin(splitting, math.inf)
        while not handed_out(lent, workers):
            splitting.run(-math.inf, math.inf)
        for hear, found in workers.finished(600.0):
            hear(found)
        del hear, found
        lent.begin(of(cases()[1]), math.inf)
        alive = weakref.ref(splitting)
        del splitting
        gc.collect()
        assert alive() is None


def test_a_box_that_there_was_no_time_for_is_open_again() -> None:
    splitting = of(cases()[0])
    box: TreeBox | None = None
    while box is None:
        splitting.run(-math.inf, math.inf)
        box = splitting.lend(searches=False)
    assert lending.split_lent(splitting.trees, box, 0.0) is None
    before = splitting.log_upper
    splitting.take_parts(box, None)
    assert splitting.log_upper == before
    assert box.variable == -1
    splitting.run(math.inf, math.inf)
    assert splitting.done
    truth = exact_value(splitting.problem.model, splitting.problem.tau)
    assert splitting.log_upper == pytest.approx(truth, abs=1e-8)
    assert np.isfinite(splitting.log_lower)


def only_the_whole(asked: BoxQuestion, job: BoxJob) -> BoxReport:
    """A run on the whole question that keeps its bound to itself, and cubes that nothing is found out about."""
    if job.allowed:
        return BoxReport(seconds=0.0)
    found = bound_box(asked, job)
    # Its assignment stays, with what proves its value.
    return replace(found, log_upper=math.inf, branch=None, proof=replace(found.proof, log_upper=math.inf, above=None))


A_TREE_AT_LEAST = replace(FORCED, search_trial=1.0, last_tightening=0.5)
"""The first worker finds an assignment and a tree, and has no time to split boxes itself."""


@pytest.mark.parametrize("certificate", [False, True])
def test_boxes_of_a_tree_that_a_worker_has_left(
    certificate: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller does not work itself: it has the boxes of the tree split by others."""
    split = Counting(lending.split_lent)
    monkeypatch.setattr(lending, "split_lent", split)
    monkeypatch.setattr(splits, "LEAST_BOXES", 0)
    monkeypatch.setattr(cubes, "OPENING_SECONDS", 1.0)
    monkeypatch.setattr(cubes, "FIRST_SECONDS", 0.4)
    monkeypatch.setattr(cubes, "bound_box", only_the_whole)
    monkeypatch.setattr("powersum.run.work.corner_of", lambda *_: None)
    for seed in range(6):
        asked = hard_case(seed, zeros=0.1 * (seed % 3))
        seen: list[ps.Snapshot] = []
        with cf.ThreadPoolExecutor(2) as pool:
            solver = Solver(
                asked.model, weights=asked.query, time_limit=3.0, schedule=A_TREE_AT_LEAST, certificate=certificate
            )
            result = Conquest(solver, Workers(pool, own=False), seen.append, seconds=3.0).run()
        all_holds(asked, seen, result, tmp_path)
        assert (result.certificate is not None) is certificate
    assert split.times > 0
