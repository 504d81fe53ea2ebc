"""Limits: how long, how much memory, how close, how many threads; every number of a call is checked here."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np

from powersum.core.errors import InputError
from powersum.core.machine import budget_of
from powersum.core.memory import check_budget
from powersum.core.work_time import Meter, metered
from powersum.model.defaults import TIME
from powersum.model.keys import as_text, is_whole

_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE | re.ASCII)
_MOST_BYTES = 2.0**62


class NotGiven(Enum):
    """The default of an argument for which every value, ``None`` too, says something."""

    NOT_GIVEN = "not given"

    def __repr__(self) -> str:
        return self.name


NOT_GIVEN = NotGiven.NOT_GIVEN


def whole_number(value: Any, argument: str, least: int) -> int:
    """A whole number that is not below ``least``; neither ``True`` nor ``1.0`` is one."""
    if not is_whole(value):
        raise InputError(f"{argument} is {as_text(value)}: it must be a whole number")
    if value < least:
        raise InputError(f"{argument} is {value}: it must be {least} or more")
    return int(value)


def flag(value: Any, argument: str) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{argument} is {as_text(value)}: it must be True or False")
    return bool(value)


def number(value: Any, argument: str) -> float:
    """A real number, infinities included; what is no number (``nan``, ``True``, a string) is refused."""
    if not isinstance(value, (Real, np.number)) or isinstance(value, (bool, np.complexfloating)) or math.isnan(value):
        raise InputError(f"{argument} is {as_text(value)}: it must be a number")
    return float(value)


def path_of(value: Any, argument: str) -> str | PathLike[str]:
    """The path of a file."""
    if not isinstance(value, (str, PathLike)):
        raise InputError(f"{argument} is {as_text(value)}: it must be the path of a file")
    return value


def memory_bytes(value: Any, argument: str = "memory") -> float:
    """Bytes from a number, or from words such as ``"500M"``, ``"2G"``, ``"1.5GiB"``."""
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match is None:
            raise InputError(f"{argument} is {as_text(value)}: it must be bytes or a size such as 500M or 2G")
        digits, prefix, binary = match.groups()
        size = float(digits) * float(1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " ")
    else:
        size = number(value, argument)
    if not 0 < size < _MOST_BYTES:
        raise InputError(f"{argument} is {as_text(value)}: it must be above 0 and below {_MOST_BYTES:.2g} bytes")
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an answer may cost, and when to stop. ``None`` switches a rule off; the first that holds ends the run.

    Parameters
    ----------
    time_limit
        Seconds since the start of the whole call, preparation included, compilation on first use not.
    memory
        Bytes, as a number or in words such as ``"2G"``.
    gap
        Stop once upper and lower bound are this close.
    sweeps
        Number of sweeps.
    target
        Stop once the upper bound is at or below this value.
    change
        Stop once ten sweeps together gain less than ``change · max(1, |bound|)``.
    threads
        Number of threads.
    seed
        Seed of all that is drawn at random.
    work
        In place of ``time_limit``: work to be done, in seconds that it takes on a machine of usual speed. Nothing then
        depends on how long anything takes.
    """

    time_limit: float | None = None
    memory: float | str | None = None
    gap: float = 0.0
    sweeps: int | None = None
    target: float | None = None
    change: float | None = None
    threads: int = 1
    seed: int = 0
    work: float | None = None

    def __post_init__(self) -> None:
        checked: dict[str, float | int | None] = {
            "threads": whole_number(self.threads, "threads", 1),
            "seed": whole_number(self.seed, "seed", 0),
            "gap": number(self.gap, "gap"),
        }
        if self.sweeps is not None:
            checked["sweeps"] = whole_number(self.sweeps, "sweeps", 0)
        for name in ("time_limit", "target", "change", "work"):
            if getattr(self, name) is not None:
                checked[name] = number(getattr(self, name), name)
        if self.memory is not None:
            checked["memory"] = memory_bytes(self.memory)
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"time_limit is {self.time_limit:g}: it must be above 0")
        if self.work is not None and not 0 < self.work < math.inf:
            raise InputError(f"work is {self.work:g}: it must be above 0, and finite")
        if self.work is not None and self.time_limit is not None:
            raise InputError("work is given, and so is time_limit: give one of them")
        if not self.gap >= 0:
            raise InputError(f"gap is {self.gap}: it must be 0 or more")
        if self.change is not None and not 0 <= self.change < math.inf:
            raise InputError(f"change is {self.change}: it must be 0 or more, and finite")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def given(
        cls,
        *,
        time_limit: float | NotGiven | None = NOT_GIVEN,
        memory: float | str | None = None,
        work: float | None = None,
        **others: Any,
    ) -> Limits:
        """Limits of a public call: without a time or work the usual time, without memory that of the machine."""
        if time_limit is NOT_GIVEN:
            time_limit = TIME if work is None else None
        measured = work is None and not metered()
        budget = budget_of(memory, measured=measured)
        if memory is not None:
            budget = memory_bytes(memory)
            check_budget(budget, measured=measured)
        return cls(time_limit=time_limit, memory=budget, work=work, **others)

    @property
    def seconds(self) -> float:
        """The time limit as a number: infinity for none. Where work is limited, the work."""
        limit = self.time_limit if self.work is None else self.work
        return math.inf if limit is None else limit

    @property
    def reached(self) -> str:
        """What a result says once the time, or the work, is over."""
        if self.work is not None:
            return f"The work allowed, {self.work:g} s of a usual machine, was done"
        return f"The time limit of {self.seconds:g} s was reached"

    def meter(self) -> Meter | None:
        """What counts the work of one run; None where the clock tells."""
        return None if self.work is None else Meter()

    @property
    def bytes(self) -> float:
        """The memory as a number: infinity for no limit."""
        return math.inf if self.memory is None else float(self.memory)
