"""What bounds amount to is decided in one place, by rules that hold for every entry."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import powersum
from powersum.model.limits import Limits
from powersum.model.result import Status
from powersum.run.verdict import IMPOSSIBLE_REASON, verdict

PACKAGE = Path(powersum.__file__).parent


@pytest.mark.parametrize(
    ("bounds", "given", "status", "reason"),
    [
        ((-math.inf, -math.inf), {"interrupted": "Ended."}, Status.INFEASIBLE, IMPOSSIBLE_REASON),
        ((1.0, 1.0 + 1e-9), {"interrupted": "Ended."}, Status.OPTIMAL, "Why. Proven to 1e-09."),
        ((1.0, 1.0 + 1e-5), {}, Status.BOUNDED, "The time limit of 5 s was reached."),
        ((1.0, 1.0 + 5e-5), {"proven": True}, Status.OPTIMAL, "Why. Proven to 5e-05, 5e-05 of the log value: rounding"),
        ((1.0, 1.1), {"proven": True}, Status.BOUNDED, "Why. Rounding keeps the bounds 0.1 apart: nothing is proven."),
        ((-math.inf, math.inf), {"proven": True}, Status.BOUNDED, "Why. Rounding keeps the bounds inf apart"),
        ((1.0, 1.5), {"interrupted": "Ended."}, Status.INTERRUPTED, "Ended."),
        ((1.0, 1.2), {"exhausted": "No more."}, Status.BOUNDED, "The gap asked for, 0.3, was reached."),
        ((1.0, 1.5), {"exhausted": "No more."}, Status.BOUNDED, "No more."),
        ((-math.inf, 1.5), {}, Status.BOUNDED, "The time limit of 5 s was reached."),
        ((-math.inf, math.inf), {}, Status.BOUNDED, "The time limit of 5 s was reached."),
    ],
)
def test_status_and_reason(bounds: tuple[float, float], given: dict[str, Any], status: Status, reason: str) -> None:
    gap = 0.3 if "asked for" in reason else 0.0
    found = verdict(*bounds, limits=Limits(time_limit=5.0, gap=gap), reason="Why.", **given)
    assert found[0] is status
    assert found[1].startswith(reason)


def test_nobody_else_decides() -> None:
    others = [path for room in ("run", "api", "divide", "search") for path in (PACKAGE / room).rglob("*.py")]
    told = [
        path.name for path in others if "Status.BOUNDED" in path.read_text() or "Status.INFEASIBLE," in path.read_text()
    ]
    assert told == ["verdict.py"]
