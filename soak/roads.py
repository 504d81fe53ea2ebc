"""Roads: ways to force powersum past its shortcuts. The one file that knows what is inside; it follows refactoring.

A road is a context; inside it, every entry goes that way. The clock is here too, for it is put in the same way.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from soak.cases import Trouble

NO_ELIMINATION: Mapping[str, Any] = MappingProxyType({"powersum.answer.stages:NANOSECONDS_PER_ENTRY": 1e12})
"""No elimination is quick enough to be tried first."""

SHORT_SLICES: Mapping[str, Any] = MappingProxyType(
    {"powersum.answer.anytime:SLICE": 0.01, "powersum.answer.anytime:FIRST_STAGE": 0.03}
)
"""For the true clock: stages that fit the short limits of small models."""


def _split() -> Callable[..., Any]:
    """Trees of small mini-buckets: on models as small as here, all others would be exact at once."""
    tree = import_module("powersum.bounds.tree.covering_tree").CoveringTree

    def split(*arguments: Any, memory: int, **options: Any) -> Any:
        del memory
        return tree(*arguments, ibound=1, **options)

    return split


SPLIT: Mapping[str, Any] = MappingProxyType(
    {"powersum.answer.anytime:CoveringTree": _split, "powersum.search.and_or:STEPS": 200}
)


def _too_wide(*_: object, **__: object) -> float:
    """An evaluation to which every sum is too wide."""
    return float(import_module("powersum.assign.regions").TOO_WIDE)


def _thirds_too_wide() -> Callable[..., float]:
    """The true evaluation, except that every third call finds the sum too wide."""
    original = import_module("powersum.assign.evaluator").Evaluator.value
    calls = iter(range(1 << 62))

    def value(*arguments: Any, **options: Any) -> float:
        return _too_wide() if next(calls) % 3 == 0 else float(original(*arguments, **options))

    return value


ROADS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "plain": {},
        "anytime": NO_ELIMINATION,
        "split": {**NO_ELIMINATION, **SPLIT},
        # Every leaf is reached by branching, and almost all that was found out is forgotten again.
        "search": {
            **NO_ELIMINATION,
            **SPLIT,
            "powersum.search.and_or:SETTLE_WORK": 1.0,
            "powersum.search.and_or:STEPS": 3,
            "powersum.search.and_or:FIRST_BYTES": 1024,
        },
        "partial": {
            **NO_ELIMINATION,
            "powersum.assign.evaluator:Evaluator.value": lambda: _too_wide,
            "powersum.answer.anytime:HELD_TABLE": 8.0,
        },
        "partial-split": {
            **NO_ELIMINATION,
            **SPLIT,
            "powersum.assign.evaluator:Evaluator.value": lambda: _too_wide,
            "powersum.answer.anytime:HELD_TABLE": 8.0,
        },
        "sometimes-wide": {
            **NO_ELIMINATION,
            **SPLIT,
            "powersum.assign.evaluator:Evaluator.value": _thirds_too_wide,
            "powersum.answer.anytime:HELD_TABLE": 8.0,
        },
        "held": {
            **NO_ELIMINATION,
            **SPLIT,
            "powersum.assign.evaluator:Evaluator.value": _thirds_too_wide,
            "powersum.answer.anytime:MOST_VARIABLES": 1,
            "powersum.answer.anytime:HELD_TABLE": 8.0,
        },
        # The budget is that of the process, which holds much more than any small model needs.
        "tiny-memory": {**NO_ELIMINATION, "powersum.answer.solver:memory_left": lambda: _tiny},
        "small-memory": {**NO_ELIMINATION, "powersum.answer.solver:memory_left": lambda: _small},
    }
)
"""What each road sets, as ``module:name``. Functions are called for the value to set, so that each run has its own."""


def _tiny(memory: float) -> float:
    del memory
    return 2e3


def _small(memory: float) -> float:
    del memory
    return 1e5


class Injected(Exception):
    """What the soak raises inside powersum; nothing there may swallow it."""


class Clock:
    """``time.monotonic`` that moves by looks, jumps and raises as a :class:`~soak.cases.Trouble` says."""

    def __init__(self, trouble: Trouble) -> None:
        self.trouble, self.looks = trouble, 0
        self._true = time.monotonic
        self._now = self._true()

    def __call__(self) -> float:
        self.looks += 1
        trouble = self.trouble
        if self.looks == trouble.jump_at:
            self._now += 1e6
        # An exception inside the compiler would break it for all that follows.
        if self.looks == trouble.raise_at and sys._getframe(1).f_code.co_name not in ("enter", "leave"):
            raise Injected("at the clock")
        if trouble.step:
            self._now += trouble.step
            return self._now
        return self._true() + (1e6 if 0 < trouble.jump_at <= self.looks else 0.0)


@contextmanager
def road(name: str, trouble: Trouble) -> Iterator[None]:
    """Everything inside goes this road, by this clock."""
    settings = dict(ROADS[name])
    if not trouble.step:
        settings.update(SHORT_SLICES)
    with ExitStack() as stack:
        for place, value in settings.items():
            module, _, path = place.partition(":")
            owner: Any = import_module(module)
            # Not by attributes of the package, where a function may have the module's name.
            owner = sys.modules[module]
            *parts, last = path.split(".")
            for part in parts:
                owner = getattr(owner, part)
            stack.enter_context(patch.object(owner, last, value() if callable(value) else value))
        if trouble.step or trouble.jump_at or trouble.raise_at:
            stack.enter_context(patch.object(time, "monotonic", Clock(trouble)))
        yield
