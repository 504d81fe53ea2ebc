"""The loop that drives any method: when to stop, what to remember, how to be interrupted without losing the bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from powersum.bounds.protocol import Tightener, fault_of
from powersum.core.clock import deadline_at, working_time
from powersum.core.interrupt import Interrupt
from powersum.model.limits import Limits
from powersum.model.result import Snapshot
from powersum.model.rounding import certain

Callback = Callable[[Snapshot], None]

# A single sweep of block descent may gain little and the next much: progress is judged over a few.
PATIENCE = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run ended with. The last snapshot of the history carries ``log_upper``."""

    log_upper: float
    history: tuple[Snapshot, ...]
    reason: str
    interrupted: bool
    exact: bool = False


def run(
    tightener: Tightener,
    limits: Limits,
    *,
    log_constant: float = 0.0,
    log_error: float = 0.0,
    log_known: float = math.inf,
    started: float | None = None,
    interrupt: Interrupt | None = None,
    callback: Callback | None = None,
) -> Outcome:
    """Tighten until a limit is reached, then compute the bound once more from scratch, as a check.

    Every snapshot is a bound with its rounding, so none is revised. The last one is the answer.

    Parameters
    ----------
    tightener
        The bound to tighten.
    limits
        When to stop.
    log_constant
        What simplification took out of the problem; added to every value.
    log_error
        Its rounding; every value is rounded up by it.
    log_known
        A bound that is known already, with all that in it: no value is above it.
    started
        :func:`~powersum.core.clock.working_time` at the start of the whole call; now, if not given.
    interrupt
        The flag of :func:`interruptible`.
    callback
        Called with every snapshot, the first before any sweep.

    Raises
    ------
    RuntimeError
        Where the bound from scratch contradicts the last snapshot: no answer is better than a false one.
    """
    started = working_time() if started is None else started
    end = started + limits.seconds
    history: list[Snapshot] = []
    values: list[float] = []
    more = True
    longest = 0.0
    while True:
        value = certain(tightener.log_upper + log_constant, log_error)
        values.append(min(value, values[-1]) if values else value)
        value = min(value, history[-1].log_upper if history else log_known)
        history.append(Snapshot(working_time() - started, len(history), value))
        if callback is not None:
            callback(history[-1])
        if len(history) > 1:
            longest = max(longest, history[-1].seconds - history[-2].seconds)
        # A method may end before its time because not even one more sweep fits.
        stop = _stop(history, values, limits, more=more, late=working_time() + longest >= end, interrupt=interrupt)
        if stop is not None:
            break
        more = tightener.step(deadline_at(end))
    if (fault := fault_of(tightener.log_upper, tightener.bound())) is not None:
        raise RuntimeError(fault)
    return Outcome(history[-1].log_upper, tuple(history), stop.reason, stop.interrupted)


class _Stop(NamedTuple):
    reason: str
    interrupted: bool = False


def _stop(
    history: list[Snapshot], values: list[float], limits: Limits, *, more: bool, late: bool, interrupt: Interrupt | None
) -> _Stop | None:
    """Why the run is over; None if it goes on. ``values`` are the best of the method itself."""
    now = history[-1]
    if now.log_upper == -math.inf:
        return _Stop("Nothing has positive probability.")
    if limits.target is not None and now.log_upper <= limits.target:
        return _Stop(f"The bound reached the target {limits.target:g}.")
    if not more and not late:
        return _Stop(f"Nothing was left to gain after {_sweeps(now.sweep)}.")
    if interrupt is not None and interrupt.cause is not None:
        return _Stop(f"Interrupted by {interrupt.cause} after {_sweeps(now.sweep)}: the best bound until then.", True)
    if limits.sweeps is not None and now.sweep >= limits.sweeps:
        return _Stop(f"The limit of {_sweeps(limits.sweeps)} was reached.")
    if limits.seconds < math.inf and (now.seconds >= limits.seconds or not more):
        return _Stop(f"{limits.reached} after {_sweeps(now.sweep)}.")
    if limits.change is not None and len(history) > PATIENCE:
        gain = values[-1 - PATIENCE] - values[-1]
        if gain < limits.change * max(1.0, abs(now.log_upper)):
            return _Stop(f"The last {PATIENCE} of {_sweeps(now.sweep)} gained only {gain:.2g}.")
    return None


def _sweeps(number: int) -> str:
    return "1 sweep" if number == 1 else f"{number} sweeps"
