"""What every method that tightens a bound offers, so that a new method is a new file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from powersum.core.arrays import IntArray
from powersum.core.errors import InputError
from powersum.model.result import Residuals
from powersum.model.rounding import WORST_SHARE
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest

FAULT = "This is a fault of powersum; please report it with the model."


class Tightener(Protocol):
    """A bound on one simplified problem while it is being tightened.

    All values are natural logs and leave out ``problem.log_constant``, which :mod:`powersum.bounds.run` adds.
    """

    log_upper: float
    """The best valid upper bound so far, rounding counted. It never rises."""

    log_error: float
    """By how much it was rounded up, so that rounding cannot make it false: the value is known to twice this where the
    method is exact."""

    @property
    def exact(self) -> bool:
        """True when ``log_upper`` is known to be the value itself."""
        ...

    def step(self, deadline: float) -> bool:
        """Do one sweep, or part of one if ``time.monotonic()`` passes ``deadline``.

        Returns False when nothing is left to gain.
        """
        ...

    def bound(self) -> float:
        """The upper bound at the best point so far, computed from scratch: the check of what ``log_upper`` claims."""
        ...

    def decode(self) -> IntArray:
        """A state for each max variable of the reduced model, -1 for every other variable."""
        ...

    def residuals(self) -> Residuals | None:
        """Distance from the optimality conditions; None where a method has no such measure."""
        ...

    def sizes(self) -> dict[str, int | float]:
        """Facts about the structure: numbers of tables, entries, parameters, bytes."""
        ...


class Method(Protocol):
    """The class of a method: called with a problem it gives the first bound. Options of its own have defaults.

    ``order`` is an elimination order of the reduced variables, first eliminated first, max variables last.
    """

    def __call__(self, problem: Problem, order: IntArray, *, threads: int, seed: int) -> Tightener:
        """Start a bound."""
        ...


@runtime_checkable
class Provable(Protocol):
    """A method whose bound a certificate can express."""

    def certified(self) -> tuple[Forest, float]:
        """The best point as a certificate has it, and the bound that it proves, without the problem's constant.

        That may be more than ``log_upper`` where a method knows of zeros that the certificate does not.
        """
        ...


def check_choices(method: object, options: Mapping[str, object]) -> None:
    """Refuse an option whose value is none of the words that the method knows for it, as its ``CHOICES`` list them."""
    for name, words in getattr(method, "CHOICES", {}).items():
        if name in options and options[name] not in words:
            raise InputError(f"{name} is {options[name]!r}: choose one of {', '.join(words)}")


def fault_of(log_upper: float, log_again: float) -> str | None:
    """What to report where a bound, computed again at its point, is above the claim by more than rounding explains.

    Both have at most the share :data:`~powersum.model.rounding.WORST_SHARE` of rounding in them. Infinity stands for
    more, and says nothing.
    """
    if log_again == math.inf or not log_again - log_upper > 4.0 * WORST_SHARE * max(1.0, abs(log_again)):
        return None
    return f"the upper bound {log_upper!r} is {log_again!r} when it is computed again. {FAULT}"
