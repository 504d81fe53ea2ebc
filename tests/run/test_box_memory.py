"""Memory of several workers on one question: what all of them may take together is never more than there is."""

from __future__ import annotations

import concurrent.futures as cf
import math
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import powersum as ps
from powersum.cluster.executor import Workers, workers_of
from powersum.core import machine
from powersum.model.question import Question
from powersum.run import box_memory
from powersum.run.box_memory import Room
from powersum.run.box_run import BoxJob, BoxQuestion, BoxRun
from powersum.run.tuning import Schedule
from tests.cluster.machines import SECONDS, machines

FREE, HELD = 40e9, 7e8


@pytest.fixture(autouse=True)
def free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: FREE)
    for module in (machine, box_memory):
        monkeypatch.setattr(module, "bytes_held", lambda: HELD)


@contextmanager
def threads(n: int) -> Iterator[Workers]:
    with cf.ThreadPoolExecutor(n) as pool, workers_of(pool) as workers:
        yield workers


@pytest.mark.parametrize("n", [1, 3, 8])
@pytest.mark.parametrize("given", [None, 4e9])
def test_tasks_in_one_process_share_it(n: int, given: float | None) -> None:
    with threads(n) as workers:
        for road in (False, True):
            room = Room.of(workers, given, road=road)
            assert room.for_process == (given or machine.default_memory())
            if n + road > 1:
                # Together with what is there before they begin, no more than the process may hold.
                assert HELD + (n + road) * room.for_task <= room.for_process
            else:
                assert room.for_task == math.inf


@pytest.mark.parametrize("n", [1, 2, 7])
def test_processes_share_what_is_free(n: int) -> None:
    with workers_of(n) as workers:
        for road in (False, True):
            room = Room.of(workers, None, road=road)
            assert room.for_task == math.inf
            taken = room.here - HELD if road else 0.0
            assert taken + n * (room.elsewhere - HELD) <= machine.SHARE * FREE
            assert Room.of(workers, 3e9, road=road).elsewhere == 3e9


def test_a_task_elsewhere_knows_that_it_is() -> None:
    with threads(4) as workers:
        room = pickle.loads(pickle.dumps(Room.of(workers, None, road=False)))
    away = replace(room, process=os.getpid() + 1)
    assert away.for_task == math.inf
    # A pool of unknown kind may be four threads of this process, or four processes.
    assert away.for_process - HELD <= (room.for_process - HELD) / 4 + machine.UNIT


def test_workers_of_dask_keep_below_its_own_limit(tmp_path: Path) -> None:
    from powersum.cluster.dask_workers import connected

    with machines(tmp_path, 1) as here:
        here.worker("--memory-limit", "1GB")
        with connected(here.address) as client:
            client.wait_for_workers(2, timeout=SECONDS)
            with workers_of(client) as workers:
                assert Room.of(workers, None, road=False).elsewhere == pytest.approx(0.6e9)
                assert Room.of(workers, 3e9, road=False).elsewhere == 3e9


def test_cubes_in_one_process_have_their_shares() -> None:
    """Two cubes that begin at the same time in two threads had all of the memory each."""
    model = ps.Model.from_factors([2, 2], [((0, 1), [[0.1, 0.2], [0.3, 0.4]])])
    with threads(2) as workers:
        room = Room.of(workers, 2e9, road=False)
    asked = BoxQuestion(Question.of(model, evidence={}, weights=ps.Query.of(model, [0])), room, Schedule())
    budgets = list[Any]()
    for state in (0, 1):
        run = BoxRun(asked, BoxJob(allowed={0: frozenset((state,))}, seconds=1.0)).run
        assert run is not None
        budgets.append(run.schedule.most_bytes)
    assert sum(budgets) <= 2e9 - 3e8
