"""The loop that drives any method, with a made-up one: stop rules, history, interruption."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powersum.bounds.run import PATIENCE, run
from powersum.core.arrays import IntArray
from powersum.core.clock import working_time
from powersum.core.errors import InputError
from powersum.core.interrupt import interruptible
from powersum.model.limits import Limits
from powersum.model.result import Residuals, Snapshot
from tests.clock import Ticks


class Scripted:
    """A method whose bound follows a list; the last value of it repeats."""

    exact = False
    log_error = 0.0

    def __init__(self, values: Sequence[float], *, recomputed: float | None = None, more: bool = True) -> None:
        self._values = list(values)
        self._recomputed = recomputed
        self._more = more
        self.log_upper = self._values[0]

    def step(self, deadline: float) -> bool:
        if len(self._values) > 1:
            self._values.pop(0)
        self.log_upper = self._values[0]
        return self._more or len(self._values) > 1

    def bound(self) -> float:
        return self.log_upper if self._recomputed is None else self._recomputed

    def decode(self) -> IntArray:
        return np.zeros(0, dtype=np.int64)

    def residuals(self) -> Residuals | None:
        return None

    def sizes(self) -> dict[str, int | float]:
        return {}


def uppers(history: Sequence[Snapshot]) -> list[float]:
    return [snapshot.log_upper for snapshot in history]


def test_sweeps() -> None:
    outcome = run(Scripted([5, 4, 3, 2, 1]), Limits(sweeps=3), log_constant=10.0)
    assert uppers(outcome.history) == [15, 14, 13, 12]
    assert [s.sweep for s in outcome.history] == [0, 1, 2, 3]
    assert outcome.log_upper == 12
    assert outcome.reason == "The limit of 3 sweeps was reached."
    assert not outcome.interrupted


def test_no_sweeps_gives_the_first_bound() -> None:
    outcome = run(Scripted([5, 4]), Limits(sweeps=0))
    assert uppers(outcome.history) == [5]


def test_target() -> None:
    outcome = run(Scripted([5, 4, 3, 2, 1]), Limits(target=3.0))
    assert outcome.log_upper == 3
    assert "target 3" in outcome.reason


def test_change_is_judged_over_several_sweeps() -> None:
    values = [100.0] * 5 + [50.0] * 100
    outcome = run(Scripted(values), Limits(change=1e-3))
    assert outcome.log_upper == 50
    assert len(outcome.history) == 5 + PATIENCE + 1
    assert "gained only" in outcome.reason


def test_nothing_left_to_gain() -> None:
    outcome = run(Scripted([3, 2], more=False), Limits())
    assert outcome.log_upper == 2
    assert outcome.reason == "Nothing was left to gain after 1 sweep."


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    """Two looks for each sweep."""
    ticks = Ticks()
    monkeypatch.setattr("powersum.bounds.run.working_time", ticks)
    return ticks


@pytest.mark.usefixtures("clock")
def test_a_method_that_ends_because_nothing_more_fits_ran_out_of_time() -> None:
    # The second sweep would end after the limit: a method that knows says so by not going on.
    outcome = run(Scripted([3, 2], more=False), Limits(time_limit=5))
    assert outcome.reason == "The time limit of 5 s was reached after 1 sweep."
    outcome = run(Scripted([3, 2], more=False), Limits(time_limit=9))
    assert outcome.reason == "Nothing was left to gain after 1 sweep."


def test_time(clock: Ticks) -> None:
    outcome = run(Scripted([9, 8, 7, 6, 5, 4, 3, 2]), Limits(time_limit=7))
    assert outcome.reason == "The time limit of 7 s was reached after 3 sweeps."
    assert outcome.log_upper == 6
    assert clock.now <= 9


def test_time_counts_from_the_start_of_the_call() -> None:
    outcome = run(Scripted([3, 2]), Limits(time_limit=60), started=working_time() - 61)
    assert len(outcome.history) == 1
    assert outcome.history[0].seconds >= 61


def test_infeasible() -> None:
    outcome = run(Scripted([3, -math.inf]), Limits(sweeps=9))
    assert outcome.log_upper == -math.inf
    assert len(outcome.history) == 2


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.floats(-1e6, 1e6) | st.none(),
    st.integers(0, 40),
)
def test_history_is_what_was_shown_and_ends_in_the_answer(
    values: list[float], recomputed: float | None, sweeps: int
) -> None:
    seen: list[Snapshot] = []
    method = Scripted(values, recomputed=recomputed)
    try:
        outcome = run(method, Limits(sweeps=sweeps), callback=seen.append)
    except RuntimeError:
        assert method.bound() > method.log_upper
        return
    assert tuple(seen) == outcome.history
    history = uppers(outcome.history)
    assert all(a >= b for a, b in pairwise(history))
    assert history[-1] == outcome.log_upper == min(values[: sweeps + 1])
    assert method.bound() <= method.log_upper + 1e-6 * max(1.0, abs(method.bound()))


@pytest.mark.parametrize("recomputed", [2.5, 3 + 1e-13, math.inf])
def test_a_bound_computed_again_revises_nothing(recomputed: float) -> None:
    outcome = run(Scripted([5, 4, 3], recomputed=recomputed), Limits(sweeps=2))
    assert uppers(outcome.history) == [5, 4, 3]
    assert outcome.log_upper == 3


@pytest.mark.parametrize(("values", "recomputed"), [([5, 4, 3], 3.5), ([5, -math.inf], 3.0)])
def test_a_bound_that_is_not_found_again_is_no_answer(values: list[float], recomputed: float) -> None:
    with pytest.raises(RuntimeError, match=f"is {recomputed} when it is computed again"):
        run(Scripted(values, recomputed=recomputed), Limits(sweeps=2))


def test_callback_sees_every_snapshot() -> None:
    seen: list[Snapshot] = []
    outcome = run(Scripted([5, 4, 3]), Limits(sweeps=2), callback=seen.append)
    assert tuple(seen) == outcome.history


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_the_best_bound(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    def interrupt_at_two(snapshot: Snapshot) -> None:
        if snapshot.sweep == 2:
            os.kill(os.getpid(), number)

    with interruptible() as flag:
        outcome = run(Scripted([5, 4, 3, 2]), Limits(), interrupt=flag, callback=interrupt_at_two)
        with interruptible() as inner:
            assert inner is flag
    assert signal.getsignal(number) == before
    assert outcome.interrupted
    assert outcome.log_upper == 3
    assert outcome.reason.startswith("Interrupted by")


def test_a_second_signal_is_not_held_back() -> None:
    with interruptible() as flag:
        os.kill(os.getpid(), signal.SIGINT)
        assert flag.cause == "Ctrl-C"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_other_threads_install_nothing() -> None:
    before = signal.getsignal(signal.SIGINT)
    outcomes = []

    def work() -> None:
        with interruptible() as flag:
            assert signal.getsignal(signal.SIGINT) == before
            outcomes.append(run(Scripted([5, 4]), Limits(sweeps=1), interrupt=flag))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert outcomes[0].log_upper == 4


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"sweeps": -1}, "sweeps is -1: it must be 0 or more"),
        ({"time_limit": 0.0}, "time_limit is 0: it must be above 0"),
        ({"time_limit": math.nan}, "time_limit is nan: it must be a number"),
        ({"target": math.nan}, "target is nan: it must be a number"),
        ({"change": -1.0}, "change is -1.0: it must be 0 or more"),
        ({"change": math.inf}, "change is inf: it must be 0 or more, and finite"),
    ],
)
def test_limits_out_of_range(limits: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Limits(**limits)  # type: ignore[arg-type]
