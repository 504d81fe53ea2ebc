"""Time that counts work."""

from __future__ import annotations

import threading
import time

import pytest

from powersum.core import work_time
from powersum.core.clock import Clock, compilation, deadline_at, working_time
from powersum.core.work_time import LOOK, Meter, counted_by, metered, spend


def test_without_a_meter_it_is_the_time_of_the_machine() -> None:
    before = time.monotonic()
    spend(1e6)
    assert not metered()
    assert before <= work_time.monotonic() + work_time.left_out() <= time.monotonic()


def test_a_meter_goes_on_by_work_and_by_looks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "seconds", 1000.0)
    # An earlier test of this process may have waited for code under a clock of its own.
    monkeypatch.setattr(work_time._present, "left_out", 0.0)
    meter = Meter()
    with counted_by(meter):
        assert metered()
        spend(2.0)
        assert work_time.monotonic() == 2.0 + LOOK
        assert working_time() == 2.0 + 2 * LOOK
        assert deadline_at(7.0) == 7.0
    assert not metered()
    assert work_time.monotonic() > 2.0 + 3 * LOOK


def test_no_meter_inside_leaves_the_one_outside() -> None:
    outer, inner = Meter(), Meter()
    with counted_by(outer):
        with counted_by(None):
            spend(1.0)
        with counted_by(inner):
            spend(5.0)
        spend(1.0)
    assert (outer.seconds, inner.seconds) == (2.0, 5.0)


def test_other_threads_have_their_own_time() -> None:
    seen: list[bool] = []
    with counted_by(Meter()):
        other = threading.Thread(target=lambda: seen.append(metered()))
        other.start()
        other.join()
    assert seen == [False]


def test_a_clock_with_a_meter_counts_work() -> None:
    clock = Clock(3.0, meter=Meter())
    with clock.running():
        spend(1.0)
        assert 1.0 <= clock.spent < 1.0 + 10 * LOOK
        assert clock.deadline(1.0) == pytest.approx(2.0, abs=20 * LOOK)
    spend(5.0)
    assert 1.0 <= clock.spent < 1.0 + 20 * LOOK
    assert clock.left == pytest.approx(2.0, abs=20 * LOOK)
