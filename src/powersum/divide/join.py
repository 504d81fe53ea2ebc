"""Bounds and proofs of parts as those of their whole: the largest, or where nothing is maximised their sum."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.divide.box import StatesBox
from powersum.model.rounding import UNIT
from powersum.proof.boxes import NOTHING_PROVEN, BoxProof, Steps


def join(box: StatesBox, *, sums: bool) -> None:
    """Take what is known of a box up to the whole."""
    above: StatesBox | None = box
    while above is not None:
        parts = above.parts
        if parts:
            above.log_upper = min(above.log_upper, joined([part.log_upper for part in parts], 1, sums=sums))
            above.log_lower = max(above.log_lower, joined([part.log_lower for part in parts], -1, sums=sums))
            log_proven = joined([part.log_proven for part in parts], 1, sums=sums)
            if log_proven < above.log_proven:
                above.log_proven = log_proven
                if not sums:
                    # Its parts prove more, each by itself or by boxes within it.
                    above.proof = NOTHING_PROVEN
        above = above.around


def lifted(box: StatesBox, log_upper: float, log_lower: float, *, sums: bool) -> tuple[float, float]:
    """Bounds on the whole, upper and lower, if these were known of a box: nothing is kept of it."""
    bounds = min(box.log_upper, log_upper), max(box.log_lower, log_lower)
    while box.around is not None:
        siblings = [part for part in box.around.parts if part is not box]
        box = box.around
        upper = joined([bounds[0], *(part.log_upper for part in siblings)], 1, sums=sums)
        lower = joined([bounds[1], *(part.log_lower for part in siblings)], -1, sums=sums)
        bounds = min(box.log_upper, upper), max(box.log_lower, lower)
    return bounds


def joined(logs: list[float], sign: int, *, sums: bool) -> float:
    """Bounds on parts as one on their whole: the largest, or the log of their sum rounded outward."""
    return log_sum_outward(logs, sign) if sums else max(logs)


def log_sum_outward(logs: list[float], sign: int) -> float:
    """The log of a sum of exponentials, rounded up for a sign of 1 and down for -1."""
    values: FloatArray = np.array(logs)
    top = float(values.max(initial=-math.inf))
    if not math.isfinite(top):
        return top
    # Each exponential and each addition loses a few units; relative to the largest term that is absolute in the log.
    error = UNIT * (4.0 * abs(top) + 8.0 * len(logs) + 32.0)
    return top + math.log(float(np.exp(values - top).sum())) + sign * error


class JoinedProofs:
    """The proofs of all boxes as one of the whole: a bound on a box is its own, that of one around it, or of its parts.

    Parameters
    ----------
    root
        The whole question.
    sums
        Whether boxes add up.

    Attributes
    ----------
    log_upper
        The bound on the whole that the steps prove; infinity where they prove none.
    steps
        All that was put down.
    """

    def __init__(self, root: StatesBox, *, sums: bool) -> None:
        self.steps = Steps()
        self._sums = sums
        self._covers: dict[tuple[int, ...], int] = {}
        self._order = list(root.from_the_top())
        self._upper: dict[int, float] = {}
        inherited = self._inherited()
        for box in reversed(self._order):
            uppers = [self._upper[id(part)] for part in box.parts]
            own = inherited[id(box)].log_upper
            self._upper[id(box)] = min(own, joined(uppers, 1, sums=sums)) if uppers else own
        self._write(inherited)
        self.log_upper = self._upper[id(root)]

    def lower(self) -> float:
        """Write what proves the lower bound of a sum; returns the bound."""
        at: dict[int, int] = {}
        lower: dict[int, float] = {}
        for box in reversed(self._order):
            proof = box.proof
            parts = [id(part) for part in box.parts if id(part) in at]
            log_parts = joined([lower[part] for part in parts], -1, sums=self._sums) if parts else -math.inf
            if log_parts > proof.log_lower:
                at[id(box)] = self._cover(box, at)
                lower[id(box)] = log_parts
            elif proof.below is not None:
                at[id(box)] = self.steps.put(proof) + proof.below
                lower[id(box)] = proof.log_lower
        return lower.get(id(self._order[0]), -math.inf)

    def _inherited(self) -> dict[int, BoxProof]:
        """The best proof of each box or of one around it."""
        best: dict[int, BoxProof] = {}
        for box in self._order:
            around = best.get(id(box), NOTHING_PROVEN)
            own = box.proof if box.proof.log_upper <= around.log_upper else around
            best[id(box)] = own
            for part in box.parts:
                best[id(part)] = own
        return best

    def _write(self, inherited: dict[int, BoxProof]) -> None:
        """Put down the steps that the bound of the whole rests on."""
        needed = {id(self._order[0])}
        for box in self._order:
            # Parts are looked at only where they prove more than the whole of them does.
            if id(box) in needed and self._upper[id(box)] < inherited[id(box)].log_upper:
                needed |= {id(part) for part in box.parts}
        at: dict[int, int] = {}
        for box in reversed(self._order):
            if id(box) not in needed:
                continue
            own = inherited[id(box)]
            if self._upper[id(box)] < own.log_upper:
                at[id(box)] = self._cover(box, at)
            elif own.above is not None:
                at[id(box)] = self.steps.put(own) + own.above

    def _cover(self, box: StatesBox, at: Mapping[int, int]) -> int:
        """That these steps bound the parts of a box; both bounds of a sum may rest on the same ones."""
        steps = {s: at[id(part)] for part in box.parts if id(part) in at for s in part.allowed[box.variable]}
        key = tuple(steps.values())
        if key not in self._covers:
            rows = sorted((v, s) for v, states in box.allowed.items() for s in states)
            self._covers[key] = self.steps.cover(box.variable, steps, rows)
        return self._covers[key]
