"""What bounds without iteration share: everything is done in the constructor, and no step gains anything."""

from __future__ import annotations

from powersum.bounds.rivals.mini_buckets import MiniBuckets
from powersum.core.arrays import FloatArray, IntArray
from powersum.model.result import Residuals
from powersum.model.rounding import certain
from powersum.prepare.problem import Problem


class OneShot:
    """A bound by one forward pass over mini-buckets; follows :class:`powersum.bounds.protocol.Tightener`."""

    def __init__(self, problem: Problem, order: IntArray, ibound: int) -> None:
        self._buckets = MiniBuckets(problem, order, ibound)
        self._weights: FloatArray = self._buckets.first_takes_all()
        self.log_upper = self.bound()

    def _pass(self) -> float:
        """The value of one pass, before rounding is counted."""
        return self._buckets.value(self._weights)

    @property
    def exact(self) -> bool:
        """True where no variable is split."""
        return self._buckets.layout.n_parameters == 0

    def step(self, deadline: float) -> bool:
        """Nothing is left to gain."""
        del deadline
        return False

    def bound(self) -> float:
        """The bound once more, from the problem's own tables."""
        self._buckets.passes.refill()
        value = self._pass()
        self.log_error = self._buckets.error()
        return certain(value, self.log_error)

    def decode(self) -> IntArray:
        """States of max variables, last eliminated first, each the best given those already set."""
        return self._buckets.decode()

    def residuals(self) -> Residuals | None:
        """Nothing is optimised here."""
        return None

    def sizes(self) -> dict[str, int | float]:
        """Numbers of mini-buckets and table entries; there are no parameters."""
        return {**self._buckets.sizes(), "shifts": 0, "weights": 0}
