"""Cubes as a tree: each knows what its own slice has shown, and what it was split into."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from powersum.answer.cube_proofs import NOTHING_PROVEN, CubeProof
from powersum.core.arrays import FloatArray
from powersum.model.rounding import UNIT


@dataclass(slots=True, eq=False)
class Node:
    """A cube, what its own slice has shown, and the cubes it was split into.

    Attributes
    ----------
    log_upper, log_lower
        Bounds on its value, from its own slice and from what it was split into.
    asked, running, parted
        Whether somebody was given it, is at it still, and whether somebody else was told to split it meanwhile.
    since
        Second of the run at which it was given to somebody last.
    long
        Whether it is to be worked on for long.
    branch
        The variable that it was split by, or is to be.
    proof
        What its own slice has proven, where certificates are wanted.
    log_proven
        The upper bound that proofs of the cube, of its parts and of cubes around it show together.
    """

    cube: dict[int, int]
    parent: Node | None = None
    log_upper: float = math.inf
    log_lower: float = -math.inf
    asked: bool = False
    running: bool = False
    parted: bool = False
    since: float = 0.0
    long: bool = False
    branch: int | None = None
    children: list[Node] = field(default_factory=list)
    proof: CubeProof = NOTHING_PROVEN
    log_proven: float = math.inf

    def split(self, variable: int, n_states: int) -> None:
        """Cubes for the states of a variable; until they are bounded themselves, they have the bound of the whole."""
        self.branch = variable
        for state in range(n_states):
            cube = {**self.cube, variable: state}
            self.children.append(Node(cube, self, self.log_upper, log_proven=self.log_proven))

    def leaves(self) -> Iterator[Node]:
        """The cubes below it that are not split."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            waiting += node.children
            if not node.children:
                yield node

    def join(self, *, sums: bool) -> None:
        """Take what is known of a cube up to the whole."""
        above: Node | None = self
        while above is not None:
            parts = above.children
            if parts:
                above.log_upper = min(above.log_upper, joined([part.log_upper for part in parts], 1, sums=sums))
                above.log_lower = max(above.log_lower, joined([part.log_lower for part in parts], -1, sums=sums))
                log_proven = joined([part.log_proven for part in parts], 1, sums=sums)
                if log_proven < above.log_proven:
                    above.log_proven = log_proven
                    if not sums:
                        # Its parts prove more, each by itself or by cubes within it.
                        above.proof = NOTHING_PROVEN
            above = above.parent


def lifted(node: Node, log_upper: float, log_lower: float, *, sums: bool) -> tuple[float, float]:
    """Bounds on the whole, upper and lower, if these were known of a cube: nothing is kept of it."""
    bounds = min(node.log_upper, log_upper), max(node.log_lower, log_lower)
    while node.parent is not None:
        siblings = [part for part in node.parent.children if part is not node]
        node = node.parent
        upper = joined([bounds[0], *(part.log_upper for part in siblings)], 1, sums=sums)
        lower = joined([bounds[1], *(part.log_lower for part in siblings)], -1, sums=sums)
        bounds = min(node.log_upper, upper), max(node.log_lower, lower)
    return bounds


def joined(logs: list[float], sign: int, *, sums: bool) -> float:
    """Bounds on cubes as one on what they are parts of: the largest, or the log of their sum rounded outward."""
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
