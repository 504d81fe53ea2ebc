"""The clock of compilation: limits do not count it, and it is announced once."""

from __future__ import annotations

import math
import time
from typing import Any

import numba
import pytest

from powersum.bounds.run import run
from powersum.core import clock as compiling
from powersum.core import jit as compiled
from powersum.core.clock import CompilationClock, deadline_at, working_time
from powersum.model.limits import Limits
from tests.bounds.test_run import Scripted


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> CompilationClock:
    """A clock of its own, which the compiler keeps."""
    fresh = CompilationClock()
    monkeypatch.setattr(compiling, "compilation", fresh)
    monkeypatch.setattr(compiled, "compilation", fresh)
    return fresh


def new_function() -> Any:
    """A function that was never compiled before."""
    return numba.njit(lambda x: x + 1)


def test_only_compilation_counts(clock: CompilationClock) -> None:
    function = new_function()
    before = time.monotonic()
    assert function(1) == 2
    assert 0.0 < clock.seconds <= time.monotonic() - before
    taken = clock.seconds
    assert function(2) == 3
    assert clock.seconds == taken


def test_requests_nest_and_loading_is_work(clock: CompilationClock) -> None:
    clock.enter()
    clock.enter()
    assert clock.compile()
    assert not clock.compile()
    assert not clock.leave()
    assert clock.seconds == 0.0
    assert clock.leave()
    assert clock.seconds > 0.0
    taken = clock.seconds
    clock.enter()
    assert not clock.leave()
    assert clock.seconds == taken


def test_announced_once(clock: CompilationClock) -> None:
    said: list[str] = []
    clock.announce = lambda: said.append("compiling")
    new_function()(1)
    new_function()(1)
    assert said == ["compiling"]


def test_where_the_limit_kills_compilation_counts(clock: CompilationClock) -> None:
    clock.counted = True
    new_function()(1)
    assert clock.seconds == 0.0


def test_a_time_limit_leaves_compilation_out(clock: CompilationClock) -> None:
    started = working_time()
    clock.seconds += 1000.0
    assert working_time() < started - 900.0
    assert deadline_at(started) > time.monotonic() + 900.0
    outcome = run(Scripted([3, 2, 1]), Limits(sweeps=2, time_limit=500.0), started=started)
    assert [snapshot.log_upper for snapshot in outcome.history] == [3, 2, 1]
    assert deadline_at(math.inf) == math.inf
