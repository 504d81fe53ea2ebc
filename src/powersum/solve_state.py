"""Where the work on a question stands, from slice to slice."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from powersum.arrays import IntArray


@dataclass(slots=True)
class State:
    """Where the work stands; values include the problem's constant."""

    log_lower: float = -math.inf
    log_upper: float = math.inf
    states: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    settled: bool = False
    exhausted: bool = False
    reason: str = "Upper and lower bound met."
    sizes: dict[str, int | float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
