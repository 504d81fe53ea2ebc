"""Many workers whose work is counted: the same digits whichever of them is quicker, in solve and for the k best."""

from __future__ import annotations

import concurrent.futures as cf
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.cluster.executor import Workers, workers_of
from powersum.cluster.rounds import Rounds
from powersum.core.interrupt import Interrupt
from powersum.core.work_time import Meter, counted_by, spend
from powersum.exact import small
from powersum.run.tuning import Schedule
from tests.cases import Case, case, hard_case
from tests.check.helpers import to_check
from tests.run.test_best_proofs import packed, question_of
from tests.run.test_cubes import question_of as drawn
from tests.run.test_cubes import truth

SEARCHED = Schedule(quick=0.0, ibound=1, late_elimination=0.0)


class Uneven(cf.ThreadPoolExecutor):
    """Two threads that are slow by turns of chance."""

    def __init__(self, seed: int) -> None:
        super().__init__(2)
        self._rng = np.random.default_rng(seed)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> cf.Future[Any]:
        wait = float(self._rng.choice([0.0, 0.05]))

        def late() -> Any:
            time.sleep(wait)
            return function(*arguments, **options)

        return super().submit(late)


@pytest.fixture(autouse=True)
def long_road(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "MOST_ENTRIES", -1)


def work(shared: float, own: float) -> float:
    spend(shared * own)
    time.sleep(0.02 * (own == 2.0))
    return own


def test_results_come_in_order_and_cost_what_they_would_on_so_many_workers() -> None:
    meter = Meter()
    with workers_of(2) as pool:
        workers = Rounds(pool, meter, Interrupt())
        shared = workers.share(1.0)
        for own in (2.0, 1.0, 3.0, 0.5):
            workers.submit(own, work, shared, own)
        assert workers.pending == 4
        assert meter.seconds == 0.0
        assert workers.finished(0.0) == [(own, own) for own in (2.0, 1.0, 3.0, 0.5)]
        # The second worker does 1 and 3, the first 2 and 0.5.
        assert meter.seconds == pytest.approx(4.0, abs=1e-3)
        assert workers.pending == 0
        assert workers.finished(0.5) == []
        assert meter.seconds == pytest.approx(4.5, abs=1e-3)


def test_an_interruption_ends_a_round() -> None:
    interrupt = Interrupt()
    with cf.ThreadPoolExecutor(1) as pool:
        workers = Rounds(Workers(pool, own=False), Meter(), interrupt)
        shared = workers.share(0.0)
        workers.submit(None, lambda shared: time.sleep(0.5), shared)
        interrupt.cause = "a test"
        begun = time.monotonic()
        assert workers.finished() == []
        assert time.monotonic() - begun < 0.4


@pytest.mark.parametrize("seed", range(6))
def test_the_same_digits_whoever_is_quicker(seed: int) -> None:
    model, maximize, evidence = drawn(seed)
    found = []
    for trial in range(2):
        with Uneven(10 * seed + trial) as pool:
            seen: list[ps.Snapshot] = []
            result = ps.solve(
                model,
                maximize or None,
                evidence=evidence,
                work=1.0,
                schedule=SEARCHED,
                workers=pool,
                callback=seen.append,
            )
        found.append((result.to_dict(), seen))
    assert found[0] == found[1]
    value = truth(model, maximize, evidence)
    assert result.log_lower - 1e-9 <= value <= result.log_upper + 1e-9
    assert result.options["work"] == 1.0


@pytest.mark.parametrize("kind", [case, hard_case])
@pytest.mark.parametrize("certificate", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_k_best_have_the_same_digits(kind: Callable[[int], Case], certificate: bool, seed: int) -> None:
    asked = kind(seed)
    if asked.query.task == "PR":
        return
    found = []
    for trial in range(2):
        with Uneven(10 * seed + trial) as pool:
            result = ps.solve(
                asked.model,
                weights=asked.query,
                evidence=asked.evidence,
                k=3,
                work=0.5,
                certificate=certificate,
                schedule=SEARCHED,
                workers=pool,
            )
        found.append(result.to_dict())
    assert found[0] == found[1]
    if result.certificate is not None:
        verified = pc.check(to_check(asked.model), question_of(asked, {}), packed(result.certificate))
        assert verified.log_upper >= result.log_lower - 1e-8


def test_a_larger_question_is_the_same_on_processes() -> None:
    model, query = ps.generate.grid(12, 12, strength=2.0, seed=3)
    road = Schedule(elimination_cost=1e3)
    found = [ps.solve(model, query, work=1.0, schedule=road, workers=2).to_dict() for _ in range(2)]
    assert found[0] == found[1]
    assert found[0]["options"]["workers"] == 2


def test_work_is_that_of_the_run_alone() -> None:
    """An outer meter, as that of a batch of runs, is not that of the run."""
    model, maximize, evidence = drawn(1)
    outer = Meter()
    with counted_by(outer), Uneven(0) as pool:
        result = ps.solve(model, maximize or None, evidence=evidence, work=0.5, schedule=SEARCHED, workers=pool)
    assert result.history[-1].seconds <= 1.0
