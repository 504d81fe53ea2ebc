"""A box: some states of some variables, with bounds from both sides, what proves them, and the parts of a split one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from powersum.proof.boxes import NOTHING_PROVEN, BoxProof

Allowed = Mapping[int, frozenset[int]]
"""States that a box has, for each variable of which it does not have all."""


@dataclass(slots=True, eq=False, kw_only=True)
class Box:
    """Bounds on some states of some variables; an open box, or one that was split.

    Attributes
    ----------
    log_upper, log_lower
        Bounds on its value: minus infinity above where nothing is in it.
    variable
        What it was split by, or is to be; -1 where nobody knows.
    parts
        What it was split into; none where it was not.
    """

    log_upper: float = math.inf
    log_lower: float = -math.inf
    variable: int = -1
    parts: list[Self] = field(default_factory=list)

    def from_the_top(self) -> Iterator[Self]:
        """It and all boxes in it, each after the one that it is part of."""
        waiting = [self]
        while waiting:
            box = waiting.pop()
            yield box
            waiting += box.parts

    @property
    def n_leaves(self) -> int:
        """How many boxes in it are not split."""
        return sum(not box.parts for box in self.from_the_top())


@dataclass(slots=True, eq=False, kw_only=True)
class StatesBox(Box):
    """A box of the question as it was asked, by the states that are allowed in it.

    Attributes
    ----------
    allowed
        These states.
    around
        The box that it is part of.
    proof
        Proves the bounds of it alone, without its parts; nothing where no certificate is wanted.
    log_proven
        The upper bound that proofs of the box, of its parts and of boxes around it show together.
    """

    allowed: Allowed = field(default_factory=dict)
    around: Self | None = None
    proof: BoxProof = NOTHING_PROVEN
    log_proven: float = math.inf
