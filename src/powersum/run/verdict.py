"""What the bounds of an answer amount to: its status, and the sentence that gives the reason. Decided here alone."""

from __future__ import annotations

import math

from powersum.model.interval import SAME
from powersum.model.limits import Limits
from powersum.model.result import Status

IMPOSSIBLE_REASON = "Nothing has positive probability: zeros and evidence exclude every state."

ROUNDED, RELATIVE = 1e-4, 1e-8
"""How far apart rounding may keep the bounds of an exact answer: in nats, or as a share of the log value."""


def verdict(
    log_lower: float,
    log_upper: float,
    *,
    limits: Limits,
    reason: str,
    proven: bool = False,
    interrupted: str | None = None,
    exhausted: str | None = None,
) -> tuple[Status, str]:
    """The status of an answer, and why it has it.

    Parameters
    ----------
    log_lower, log_upper
        Its bounds, with every rounding.
    limits
        What it was allowed.
    reason
        What proves it, if it is proven.
    proven
        Whether the bounds are those of one exact value, which rounding alone keeps apart.
    interrupted
        What ended the work early.
    exhausted
        Why nothing more could be done within the limits.
    """
    gap, known = log_upper - log_lower, log_lower > -math.inf
    if log_upper == -math.inf:
        return Status.INFEASIBLE, IMPOSSIBLE_REASON
    if known and (gap <= SAME or (proven and same_value(log_lower, log_upper))):
        return Status.OPTIMAL, proven_text(reason, log_lower, log_upper)
    if interrupted is not None:
        return Status.INTERRUPTED, interrupted
    if gap <= limits.gap:
        return Status.BOUNDED, f"The gap asked for, {limits.gap:g}, was reached."
    if proven:
        return Status.BOUNDED, too_inexact(reason, log_lower, log_upper)
    return Status.BOUNDED, f"{limits.reached}." if exhausted is None else exhausted


def same_value(log_lower: float, log_upper: float) -> bool:
    """Whether the bounds of an exact answer are close enough for ``optimal``."""
    gap = log_upper - log_lower
    return math.isfinite(gap) and gap <= max(ROUNDED, RELATIVE * abs(log_lower))


def proven_text(reason: str, log_lower: float, log_upper: float) -> str:
    """The reason of a proven answer: how far apart its bounds are, as a share too where that is more than 1e-6."""
    gap = log_upper - log_lower
    share = f", {gap / max(abs(log_lower), 1.0):.1g} of the log value: rounding keeps the bounds apart"
    return f"{reason} Proven to {max(gap, 1e-16):.1g}{share if gap > SAME else ''}."


def too_inexact(reason: str, log_lower: float, log_upper: float) -> str:
    """The reason of an exact answer whose bounds rounding keeps too far apart for a proof."""
    return f"{reason} Rounding keeps the bounds {log_upper - log_lower:.1g} apart: nothing is proven."
