"""Limits counted in work: the same seed gives the same digits, whatever the clock says and however many threads."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

import powersum as ps
from powersum.core import memory
from powersum.run.tuning import Schedule
from tests.cases import Case, bushy_case, hard_case

SEARCH = Schedule(quick=0.0, ibound=1, late_elimination=0.0)
TOO_WIDE = replace(SEARCH, evaluation_cost=math.inf)
HELD = replace(TOO_WIDE, most_variables=0, quick=1e-9)


class Wild:
    """A clock that jumps, on a machine that now and then stands still."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._now = 1e3 * self._random.random()

    def __call__(self) -> float:
        self._now += self._random.choice([0.0, 1e-6, 0.01, 3.0])
        return self._now


def told(result: ps.Result) -> dict[str, Any]:
    """All that a result says, to the last digit; not how many threads there were, nor what memory they took."""
    record = result.to_dict()
    del record["options"]["threads"]
    record["sizes"].pop("bytes", None)
    return record


def large(seed: int) -> Case:
    """A grid that no exact method is tried on."""
    model, maximize = ps.generate.grid(26, 26, strength=3.0, seed=seed)
    return Case(model, ps.Query.of(model, maximize), {})


@contextmanager
def disturbed(monkeypatch: pytest.MonkeyPatch, seed: int) -> Iterator[None]:
    """Another clock, another amount of memory held, another thread that wants the processor."""
    ended = threading.Event()

    def load() -> None:
        while not ended.is_set():
            sum(range(1000))
            ended.wait(1e-4)

    with monkeypatch.context() as patched:
        patched.setattr(time, "monotonic", Wild(seed))
        patched.setattr(memory, "bytes_held", lambda: 1_500_000_000)
        other = threading.Thread(target=load)
        other.start()
        try:
            yield
        finally:
            ended.set()
            other.join()


@pytest.mark.parametrize("schedule", [Schedule(), SEARCH, TOO_WIDE, HELD], ids=["any", "search", "sums", "held"])
@pytest.mark.parametrize("kind", [hard_case, bushy_case, large])
def test_the_clock_does_not_matter(
    kind: Callable[[int], Case], schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = kind(3)

    def run(threads: int) -> dict[str, Any]:
        return told(ps.solve(asked.model, weights=asked.query, work=0.7, schedule=schedule, threads=threads, seed=5))

    first = run(1)
    with disturbed(monkeypatch, 1):
        assert run(1) == first
    with disturbed(monkeypatch, 2):
        assert run(2) == first


def test_a_slow_machine_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from powersum.assign.evaluator import Evaluator
    from powersum.bounds.buckets.passes import Passes

    asked = large(1)
    first = told(ps.solve(asked.model, weights=asked.query, work=0.4))
    for owner, name in ((Passes, "value_and_gradient"), (Evaluator, "maximise")):
        quick = getattr(owner, name)

        def slow(*given: Any, quick: Any = quick, **named: Any) -> Any:
            time.sleep(2e-4)
            return quick(*given, **named)

        monkeypatch.setattr(owner, name, slow)
    assert told(ps.solve(asked.model, weights=asked.query, work=0.4)) == first


def test_the_best_few_and_certificates_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = hard_case(4)

    def best() -> dict[str, Any]:
        return told(ps.solve(asked.model, weights=asked.query, k=3, work=2.0, schedule=SEARCH))

    def claim() -> Any:
        result = ps.solve(asked.model, weights=asked.query, work=0.5, schedule=SEARCH, certificate=True)
        assert result.certificate is not None
        return result.certificate.head, {name: array.tolist() for name, array in result.certificate.arrays.items()}

    first = best(), claim()
    with disturbed(monkeypatch, 3):
        assert (best(), claim()) == first


@pytest.mark.parametrize("method", ["tree", "gdd"])
def test_bounds(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = large(2)

    def run(threads: int) -> dict[str, Any]:
        return told(ps.bound(asked.model, weights=asked.query, method=method, work=0.3, threads=threads))

    first = run(1)
    assert "work allowed, 0.3 s" in first["reason"]
    assert first["options"]["work"] == 0.3
    with disturbed(monkeypatch, 4):
        assert run(2) == first


SCRIPT = """
import json, sys
import powersum as ps
model, maximize = ps.generate.grid(26, 26, strength=3.0, seed=8)
result = ps.solve(model, maximize, work=0.5, threads=int(sys.argv[1]))
record = result.to_dict()
del record["options"]["threads"]
print(json.dumps(record))
"""


def test_processes_agree() -> None:
    answers = []
    for threads in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": threads}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, threads], capture_output=True, text=True, env=environment, check=True
        )
        answers.append(json.loads(run.stdout))
    assert answers[0] == answers[1]
    assert answers[0]["options"]["work"] == 0.5


def test_more_work_is_more(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = large(5)
    runs = [ps.solve(asked.model, weights=asked.query, work=work) for work in (0.2, 1.0)]
    assert runs[0].gap > runs[1].gap
    assert all(0.9 * work <= run.seconds < work + 0.5 for work, run in zip((0.2, 1.0), runs, strict=True))
    assert "work allowed, 0.2 s" in runs[0].reason


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"work": 0.0}, "work is 0: it must be above 0, and finite"),
        ({"work": math.inf}, "work is inf: it must be above 0, and finite"),
        ({"work": "much"}, "work is 'much': it must be a number"),
        ({"work": 1.0, "time_limit": 3.0}, "work is given, and so is time_limit: give one of them"),
        ({"work": 1.0, "time_limit": 60.0}, "work is given, and so is time_limit: give one of them"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    asked = hard_case(0)
    with pytest.raises(ps.InputError) as refusal:
        ps.solve(asked.model, weights=asked.query, **options)
    assert str(refusal.value) == words


def test_methods_that_do_not_count_say_so() -> None:
    asked = hard_case(0)
    with pytest.raises(ps.InputError, match="method wmb does not count its work"):
        ps.bound(asked.model, weights=asked.query, method="wmb", work=1.0)
