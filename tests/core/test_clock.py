"""The clock of compilation: limits do not count it, and it is announced once."""

from __future__ import annotations

import gc
import math
import threading
import time
from typing import Any

import numba
import pytest
from numba.core import event

from powersum.bounds.run import run
from powersum.core import clock as compiling
from powersum.core import jit, work_time
from powersum.core.clock import Clock, CompilationClock, deadline_at, working_time
from powersum.model.limits import Limits
from tests.bounds.test_run import Scripted


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> CompilationClock:
    """A clock of its own, which the compiler keeps."""
    fresh = CompilationClock()
    monkeypatch.setattr(compiling, "compilation", fresh)
    monkeypatch.setattr(jit, "compilation", fresh)
    return fresh


def new_function() -> Any:
    """A function of ours that was never compiled before; tests have no source that tells, so that it is not kept."""
    made: Any = jit.compiled(eval("lambda x: x + 1", {"__name__": "nowhere"}))
    return made


def test_only_compilation_counts(clock: CompilationClock) -> None:
    # The first function of a process asks for the compiler when it is made.
    before = time.monotonic()
    function = new_function()
    assert function(1) == 2
    assert 0.0 < clock.seconds <= time.monotonic() - before
    taken = clock.seconds
    assert function(2) == 3
    assert clock.seconds == taken


def test_waits_nest_and_begin_where_they_say(clock: CompilationClock) -> None:
    clock.enter()
    clock.enter()
    clock.leave()
    assert clock.seconds == 0.0
    clock.leave()
    assert clock.seconds > 0.0
    taken, own = clock.seconds, work_time.left_out()
    begun = time.monotonic()
    time.sleep(0.02)
    clock.enter(begun)
    clock.leave()
    assert clock.seconds - taken >= 0.02
    assert work_time.left_out() - own >= 0.02


def test_two_threads_that_wait_at_once_are_counted_once(clock: CompilationClock) -> None:
    """Each leaves its wait out of its own time, and no limit is put off by the sum of both."""
    meeting = threading.Barrier(2)
    own: list[float] = []

    def wait() -> None:
        meeting.wait()
        clock.enter()
        time.sleep(0.1)
        meeting.wait()
        clock.leave()
        own.append(work_time.left_out())
        own.append(clock.seconds - work_time.left_out())

    begun = time.monotonic()
    threads = [threading.Thread(target=wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = time.monotonic() - begun
    assert 0.1 <= clock.seconds <= passed
    assert min(own[::2]) >= 0.1
    assert min(own[1::2]) > -1e-9
    # Nothing is open: the next wait is measured from its own beginning.
    before = clock.seconds
    time.sleep(0.05)
    clock.enter()
    clock.leave()
    assert clock.seconds - before < 0.05


def test_two_threads_that_compile_leave_the_clock_as_it_was(clock: CompilationClock) -> None:
    functions = [new_function() for _ in range(4)]
    threads = [threading.Thread(target=function, args=(1,)) for function in functions]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.0 < clock.seconds <= time.monotonic() - begun
    before = clock.seconds
    clock.enter()
    clock.leave()
    assert clock._waiting == 0
    assert clock.seconds - before < 0.05


def test_functions_of_others_change_nothing(clock: CompilationClock) -> None:
    said: list[str] = []
    clock.announce = lambda: said.append("compiling")
    enabled: list[bool] = []

    class Looks(event.Listener):
        def on_start(self, event: Any) -> None:
            enabled.append(gc.isenabled())

        def on_end(self, event: Any) -> None:
            pass

    before = gc.isenabled()
    gc.enable()
    try:
        with event.install_listener("numba:compile", Looks()):
            assert numba.njit(lambda x: x + 1)(1) == 2
    finally:
        if not before:
            gc.disable()
    assert enabled
    assert all(enabled)
    assert clock.seconds == 0.0
    assert said == []


def test_announced_whenever_something_is_compiled(clock: CompilationClock) -> None:
    said: list[str] = []
    clock.announce = lambda: said.append("compiling")
    function = new_function()
    assert (function(1), function(2)) == (2, 3)
    assert said == ["compiling"]
    new_function()(1)
    assert said == ["compiling"] * 2


def test_where_the_limit_kills_compilation_counts(clock: CompilationClock) -> None:
    clock.counted = True
    new_function()(1)
    assert clock.seconds == 0.0


def test_a_time_limit_leaves_compilation_out(clock: CompilationClock) -> None:
    started = working_time()
    clock.seconds += 1000.0
    assert working_time() < started - 900.0
    assert deadline_at(started) > work_time.monotonic() + 900.0
    outcome = run(Scripted([3, 2, 1]), Limits(sweeps=2, time_limit=500.0), started=started)
    assert [snapshot.log_upper for snapshot in outcome.history] == [3, 2, 1]
    assert deadline_at(math.inf) == math.inf


class TestClock:
    """The clock of one question."""

    def test_it_stands_still_between_two_stretches_of_work(self) -> None:
        time_now = [5.0]
        clock = Clock(10.0, monotonic=lambda: time_now[0])
        assert (clock.spent, clock.left) == (0.0, 10.0)
        for _ in range(2):
            with clock.running():
                time_now[0] += 3.0
            time_now[0] += 100.0
        assert (clock.spent, clock.left) == (6.0, 4.0)

    def test_it_goes_while_work_is_done_and_after_an_exception_stands(self) -> None:
        time_now = [5.0]
        clock = Clock(monotonic=lambda: time_now[0])

        def broken_work() -> None:
            with clock.running():
                time_now[0] += 2.0
                assert clock.spent == 2.0
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            broken_work()
        time_now[0] += 9.0
        assert clock.spent == 2.0
        assert clock.left == math.inf

    def test_deadlines(self) -> None:
        time_now = [5.0]
        clock = Clock(monotonic=lambda: time_now[0])
        with clock.running():
            time_now[0] += 2.0
            assert clock.deadline(3.0) == 10.0
            assert clock.deadline_at(3.0) == 8.0
            assert clock.deadline_at(math.inf) == math.inf

    def test_compilation_does_not_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compiler = CompilationClock()
        monkeypatch.setattr("powersum.core.clock.compilation", compiler)
        time_now = [0.0]
        clock = Clock(monotonic=lambda: time_now[0])
        with clock.running():
            time_now[0] += 60.0
            compiler.seconds += 50.0
        assert clock.spent == 10.0


def test_no_deadline_passes_while_its_thread_compiles(clock: CompilationClock) -> None:
    began, own = time.monotonic(), work_time.monotonic()
    new_function()(1)
    taken = clock.seconds
    assert taken > 0.0
    passed, real = work_time.monotonic() - own, time.monotonic() - began
    assert 0.0 < passed <= real - taken + 1e-6
    # Of another thread nothing is left out: it worked meanwhile.
    looks: list[float] = []
    other = threading.Thread(target=lambda: looks.append(work_time.left_out()))
    other.start()
    other.join()
    assert looks == [0.0]


def test_no_limit_counts_the_loading_of_modules(clock: CompilationClock) -> None:
    began, own, counted = time.monotonic(), work_time.monotonic(), working_time()
    with compiling.loading():
        time.sleep(0.05)
    real = time.monotonic() - began
    assert 0.05 <= clock.seconds <= real
    passed = work_time.monotonic() - own
    assert passed < time.monotonic() - began
    assert working_time() - counted < time.monotonic() - began
    # What is compiled meanwhile is left out once.
    before, taken = time.monotonic(), clock.seconds
    with compiling.loading():
        new_function()(1)
    assert clock.seconds - taken <= time.monotonic() - before


def test_collection_of_garbage_belongs_to_compilation(clock: CompilationClock) -> None:
    enabled = gc.isenabled()
    gc.enable()
    try:
        new_function()(1)
        assert gc.isenabled()
        # Nothing is left for the next piece of work to look through.
        assert gc.get_count()[0] < gc.get_threshold()[0]
    finally:
        if not enabled:
            gc.disable()


def test_no_clock_goes_back_for_what_another_thread_compiled(clock: CompilationClock) -> None:
    own = Clock(10.0)
    with own.running():
        clock.seconds += 1000.0
        assert own.spent == 0.0
    assert own.spent == 0.0
    assert own.left == 10.0
