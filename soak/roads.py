"""Roads: ways to force powersum past its shortcuts. The one file that knows what is inside; it follows refactoring.

A road is a context; inside it, every entry goes that way. The clock is here too, for it is put in the same way.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import patch

from soak.cases import Trouble


class Road(NamedTuple):
    """A schedule for ``solve``, by the fields that differ from the usual, and what is put in place of something else.

    Patches are ``module:name``; functions are called for the value to set, so that each run has its own.
    """

    schedule: Mapping[str, Any] = MappingProxyType({})
    patches: Mapping[str, Any] = MappingProxyType({})


NO_ELIMINATION: Mapping[str, Any] = MappingProxyType({"elimination_cost": 1e3, "circuits_share": 0.0})
"""No elimination is quick enough to be tried first, and there is no search by circuits."""

SHORT_TURNS: Mapping[str, Any] = MappingProxyType({"slice": 0.01, "first_stage": 0.03})
"""For the true clock: stages that fit the short limits of small models."""

SPLIT: Mapping[str, Any] = MappingProxyType({**NO_ELIMINATION, "ibound": 1})
"""Trees of small mini-buckets: on models as small as here, all others would be exact at once."""

FEW_STEPS: Mapping[str, Any] = MappingProxyType({"powersum.search.and_or:STEPS": 200})

BOXES: Mapping[str, Any] = MappingProxyType(
    {**SPLIT, "look_first": False, "search_trial": 0.0, "nearly": 0.0, "first_stage": 0.01, "last_tightening": 0.02}
)
SHORT_BOXES: Mapping[str, Any] = MappingProxyType(
    {
        "powersum.run.workers.splits:LEAST_BOXES": 0,
        "powersum.divide.tree_boxes:PASSES": 8,
        "powersum.divide.tree_boxes:FEW_PASSES": 2,
        **FEW_STEPS,
    }
)


def _nothing(*_: object, **__: object) -> None:
    """No question is small, no tree grows."""


def _countable(model: Any) -> bool:
    """Whether conditioning applies at all."""
    return bool(model.n_variables and len(model.log_values) and model.cardinalities.max() < 60)


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


ALWAYS_WIDE: Mapping[str, Any] = MappingProxyType({"powersum.assign.evaluator:Evaluator.value": lambda: _too_wide})
SOMETIMES_WIDE: Mapping[str, Any] = MappingProxyType({"powersum.assign.evaluator:Evaluator.value": _thirds_too_wide})


def _smallest(scopes: Any, cardinalities: Any, **_: float) -> tuple[float, Any, Any]:
    """Mini-buckets as small as factors allow, whatever there is room for."""
    partition = import_module("powersum.bounds.buckets.partition")
    parts = partition.partition_by_ibound(scopes, partition.limits_of(0))
    return 0.0, parts, import_module("powersum.bounds.tree.budget").cost_of(parts, scopes, cardinalities)


BOUND_BOXES: Mapping[str, Any] = MappingProxyType(
    {
        "powersum.bounds.tree.covering_tree:EXACT_ENTRIES": 0.0,
        "powersum.bounds.tree.covering_tree:EXACT_SLOWNESS": 1e15,
        "powersum.bounds.tree.building:largest_within": lambda: _smallest,
        "powersum.divide.split_tree:LEAST_BOXES": 1e-6,
        "powersum.divide.split_tree:TREE_SHARE": 0.1,
        "powersum.divide.tree_boxes:PASSES": 8,
        "powersum.divide.tree_boxes:FEW_PASSES": 2,
        **FEW_STEPS,
    }
)
"""Trees of ``bound`` that are not exact, and boxes of them however little time there is."""

ROADS: Mapping[str, Road] = MappingProxyType(
    {
        "plain": Road(),
        # The short road of small questions is closed, so that compiled elimination has to answer them.
        "compiled": Road(
            patches={
                "powersum.run.solver:small_elimination": lambda: _nothing,
                "powersum.api.marginals:small_elimination": lambda: _nothing,
                "powersum.api.engine:small_elimination": lambda: _nothing,
                "powersum.api.engine:PATIENCE": 0,
            }
        ),
        # The same with as little memory as there can be: most messages are computed twice.
        "twice": Road(
            patches={
                "powersum.api.marginals:small_elimination": lambda: _nothing,
                "powersum.exact.way_down:FRESH_MEMORY": 1.0,
            }
        ),
        "anytime": Road(NO_ELIMINATION),
        "split": Road(SPLIT, FEW_STEPS),
        # Every leaf is reached by branching, and almost all that was found out is forgotten again.
        "search": Road(
            SPLIT,
            {
                "powersum.search.and_or:SETTLE_WORK": 1.0,
                "powersum.search.and_or:STEPS": 3,
                "powersum.search.and_or:FIRST_BYTES": 1024,
            },
        ),
        "short-boxes": Road(patches=SHORT_BOXES),
        # Boxes are split at once, however little time there is; then they are searched before, too.
        "boxes": Road(BOXES, SHORT_BOXES),
        "searched-boxes": Road(BOXES, {**SHORT_BOXES, "powersum.run.workers.splits:SEARCHING": 1.0}),
        "wide-boxes": Road({**BOXES, "held_table": 8.0}, {**SHORT_BOXES, **SOMETIMES_WIDE}),
        "bound-boxes": Road(
            patches={**BOUND_BOXES, "powersum.bounds.tree.fixed_tree:FixedTree.grown": lambda: _nothing}
        ),
        "bound-searched": Road(
            patches={
                **BOUND_BOXES,
                "powersum.divide.split_tree:SEARCHING": 1.0,
                "powersum.divide.split_tree:USEFUL_ENTRIES": 20.0,
                "powersum.divide.split_tree:WORTH": math.inf,
            }
        ),
        # Sums by conditioning, whether or not there are zeros.
        "counting": Road(SPLIT, {"powersum.run.workers.conditioning:worth_counting": lambda: _countable}),
        # Search by circuits, whether or not there are zeros; larger circuits follow at once.
        "circuits": Road(
            {**SPLIT, "circuits_share": 1.0},
            {
                "powersum.run.workers.circuits:worth_counting": lambda: _countable,
                "powersum.run.workers.circuits:FURTHER": 1.0,
            },
        ),
        "partial": Road({**NO_ELIMINATION, "held_table": 8.0}, ALWAYS_WIDE),
        "partial-split": Road({**SPLIT, "held_table": 8.0}, {**FEW_STEPS, **ALWAYS_WIDE}),
        "wide": Road({**SPLIT, "held_table": 8.0, "evaluation_cost": math.inf}, FEW_STEPS),
        "sometimes-wide": Road({**SPLIT, "held_table": 8.0}, {**FEW_STEPS, **SOMETIMES_WIDE}),
        "held": Road({**SPLIT, "held_table": 8.0, "most_variables": 1}, {**FEW_STEPS, **SOMETIMES_WIDE}),
        "variational": Road(
            {**SPLIT, "held_table": 2.0, "most_variables": 1, "evaluation_cost": math.inf, "variational_share": 1.0}
        ),
        "untightened": Road({**SPLIT, "tighten": False}, FEW_STEPS),
        "tiny-memory": Road({**NO_ELIMINATION, "most_bytes": 2e3}),
        "small-memory": Road({**NO_ELIMINATION, "most_bytes": 1e5}),
    }
)
"""The roads by name. Entries without a schedule meet the patches only."""


def schedule(name: str, trouble: Trouble) -> Any:
    """The schedule of a road, for the clock that goes with it."""
    fields = dict(ROADS[name].schedule)
    if not trouble.step:
        fields.update(SHORT_TURNS)
    return import_module("powersum.run.tuning").Schedule(**fields)


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
    with ExitStack() as stack:
        # Models are small: so is the memory that is too little for them.
        stack.enter_context(patch.object(import_module("powersum.core.memory"), "LEAST_MEMORY", 1.0))
        for place, value in ROADS[name].patches.items():
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
