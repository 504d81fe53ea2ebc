"""What a certificate claims, as numbers: nothing else can be compared with what is proven."""

from __future__ import annotations

import math
from typing import Any

from powersum_check.errors import BadFile, Rejected


def bounds_of(claim: Any) -> tuple[float, float]:
    """The two numbers of a claim; null claims nothing, and infinity is written as text."""
    if not isinstance(claim, dict):
        raise BadFile("there is no claim")
    numbers = []
    for name, nothing in (("log_lower", -math.inf), ("log_upper", math.inf)):
        value = claim.get(name, nothing)
        if value is None:
            value = nothing
        elif isinstance(value, str):
            value = {"inf": math.inf, "-inf": -math.inf}.get(value)
        # Whole numbers of JSON may be too large for a double; NaN compares with nothing.
        if type(value) not in (int, float) or not -math.inf <= value <= math.inf:
            raise BadFile(f"the claim has no {name} that is a number")
        numbers.append(value)
    return numbers[0], numbers[1]


def refuse_if_more(claim: Any, log_lower: float, log_upper: float, what: str = "it") -> None:
    """Refuse bounds that contradict each other, and a claim that is better than they are."""
    if log_lower > log_upper:
        # Impossible, unless the machine or this program is at fault.
        raise Rejected(f"the bounds contradict each other: {log_lower!r} below, {log_upper!r} above")
    claim_lower, claim_upper = bounds_of(claim)
    # Written so that a number that is none could not pass.
    if not log_lower >= claim_lower:
        raise Rejected(f"{what} claims a lower bound of {claim_lower!r} and proves {log_lower!r}")
    if not log_upper <= claim_upper:
        raise Rejected(f"{what} claims an upper bound of {claim_upper!r} and proves {log_upper!r}")
