"""Mini-bucket elimination (Dechter & Rish 2003) for sums, maxima and both."""

from __future__ import annotations

from powersum.bounds.rivals.one_shot import OneShot
from powersum.core.arrays import IntArray
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest


class MBE(OneShot):
    """Partition each bucket: its first mini-bucket is summed, or takes the variable's whole weight, the rest maximised.

    Parameters
    ----------
    problem, order
        The simplified problem and an elimination order of its variables, max variables last.
    threads, seed
        Accepted because every method accepts them.
    ibound
        At most ``ibound + 1`` variables in a mini-bucket, unless a factor alone has more.
    """

    def __init__(self, problem: Problem, order: IntArray, *, threads: int = 1, seed: int = 0, ibound: int = 1) -> None:
        del threads, seed
        super().__init__(problem, order, ibound)

    def certified(self) -> tuple[Forest, float]:
        """See :class:`powersum.bounds.protocol.Provable`."""
        return self._buckets.forest(self._weights), self.bound()
