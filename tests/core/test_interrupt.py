"""Signals that end a run: a flag where somebody looks at it, KeyboardInterrupt elsewhere, also out of compiled code."""

from __future__ import annotations

import os
import signal

import pytest

from powersum.core.interrupt import ENDING, as_interrupts, interruptible, watched


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", ENDING)
def test_every_signal_that_ends_a_run_is_a_flag_first(number: int) -> None:
    before = [signal.getsignal(n) for n in ENDING]
    with interruptible() as flag:
        send(number)
        assert flag.cause == ("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)
        with pytest.raises(KeyboardInterrupt):
            flag.check()
        with pytest.raises(KeyboardInterrupt):
            send(number)
    assert [signal.getsignal(n) for n in ENDING] == before


def test_a_flag_is_raised_where_nobody_looks_at_it() -> None:
    with watched() as outer:
        with interruptible() as inner:
            assert inner is outer
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            send(signal.SIGTERM)
        assert outer.cause == "SIGTERM"


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    # As nohup and shells have it for jobs in the background.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible() as flag:
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            send(signal.SIGHUP)
            assert flag.cause is None
            with interruptible() as inner:
                assert inner is flag
    finally:
        signal.signal(signal.SIGHUP, before)


def test_compiled_code_does_not_turn_an_interrupt_into_another_error() -> None:
    def broken() -> None:
        """What Python says of a function in C that returns although a signal handler has raised."""
        try:
            raise KeyboardInterrupt("SIGTERM")
        except KeyboardInterrupt as error:
            raise SystemError("CPUDispatcher(<function min_fill>) returned a result with an exception set") from error

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"), as_interrupts():
        broken()
    with pytest.raises(KeyboardInterrupt), interruptible():
        broken()
    with pytest.raises(SystemError, match="another"), as_interrupts():
        raise SystemError("another one")
