"""Certificates of cubes join into one: a cube is a box, and a question that was split is the power sum of its cubes.

A worker proves its cube like any other question, with the cube as evidence. Here that evidence becomes the box of every
step, and what one step says of each cube is put together by ``split`` steps (docs/certificates.md), up to the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from powersum.answer.certificate import renumbered
from powersum.core.arrays import BoolArray
from powersum.model.certificate import Certificate
from powersum.prepare.proof import Array, Step, small

if TYPE_CHECKING:
    from powersum.answer.cube_tree import Node


@dataclass(frozen=True, slots=True)
class CubeProof:
    """Steps about a cube; the number of the one that bounds it from above, and of the one from below, if there is one.

    The bounds are those that the steps prove, with room for the checker's rounding.
    """

    steps: tuple[Step, ...]
    log_upper: float
    log_lower: float
    above: int | None = None
    below: int | None = None

    @property
    def upper_part(self) -> CubeProof:
        """The same without what is only for the lower bound."""
        if self.above is None:
            return NOTHING_PROVEN
        return CubeProof(self.steps[: self.above + 1], self.log_upper, -math.inf, self.above)


NOTHING_PROVEN = CubeProof((), math.inf, -math.inf)


def proof_of_cube(certificate: Certificate, n_above: int, cube: Mapping[int, int]) -> CubeProof:
    """What a certificate about the question with a cube as evidence says of the cube as a box.

    Its first ``n_above`` steps prove the upper bound, the last of them for all of the cube.
    """
    return proof_in_box(certificate, n_above, {int(v): {int(s)} for v, s in cube.items()})


def proof_in_box(
    certificate: Certificate, n_above: int, allowed: Mapping[int, Collection[int]], kept: BoolArray | None = None
) -> CubeProof:
    """What a certificate about a question with fewer states says of these states as a box of the whole question.

    Parameters
    ----------
    certificate, n_above
        The certificate; its first so many steps prove the upper bound, the last of them for all of the box.
    allowed
        The states that are left of each variable that has not all of them.
    kept
        Which of its factors the whole question has as well; the others are 1 for all states that are allowed.
    """
    head, arrays = certificate.head, certificate.arrays
    steps: list[Step] = []
    place: dict[int, int] = {}
    for number, entry in enumerate(head["steps"]):
        prefix = f"{number}/"
        own = {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
        rows = _cut(own.get("box"), allowed)
        if rows is None:
            # One of several cases, of states that are not allowed: nothing is left of it.
            continue
        if kept is not None:
            left = _kept_factors(own, kept)
            if left is None:
                return NOTHING_PROVEN
            own |= left
        options = {name: value for name, value in entry.items() if name != "kind"}
        if "children" in options:
            options["children"] = [place[child] for child in options["children"] if child in place]
        place[number] = len(steps)
        steps.append(Step(entry["kind"], {**own, **_box(rows)}, options))
    claim = {side: float(head["claim"][f"log_{side}"]) for side in ("lower", "upper")}
    above = place[n_above - 1] if n_above and claim["upper"] < math.inf else None
    below = len(steps) - 1 if steps and claim["lower"] > -math.inf else None
    return CubeProof(
        tuple(steps),
        math.inf if above is None else claim["upper"],
        -math.inf if below is None else claim["lower"],
        above,
        below,
    )


def empty_box(allowed: Mapping[int, Collection[int]]) -> CubeProof:
    """That evidence or likelihoods leave nothing of a box."""
    rows = _cut(None, allowed)
    assert rows is not None
    arrays = _box(rows)
    return CubeProof((Step("tree", {**arrays, "removed": arrays["box"]}),), -math.inf, -math.inf, 0)


def empty_cube(cube: Mapping[int, int]) -> CubeProof:
    """That evidence or likelihoods leave nothing of a cube."""
    return empty_box({int(v): {int(s)} for v, s in cube.items()})


class Joint:
    """The steps of all cubes as one proof of the whole.

    Parameters
    ----------
    root
        The whole question as a cube.
    joined
        Bounds of parts to that of their whole, rounded outward for a sign of 1 (upper) or -1 (lower).

    Attributes
    ----------
    log_upper
        The bound on the whole that the steps prove; infinity where they prove none.
    """

    def __init__(self, root: Node, joined: Callable[[list[float], int], float]) -> None:
        self._joined = joined
        self._steps: list[Step] = []
        self._begun: dict[int, int] = {}
        self._splits: dict[tuple[int, ...], int] = {}
        order = _from_the_top(root)
        self._upper: dict[int, float] = {}
        self._lower: dict[int, float] = {}
        inherited = self._inherited(order)
        for node in reversed(order):
            self._weigh(node, inherited[id(node)])
        self._order = order
        self.log_upper = self._write(order, inherited)

    def lower(self) -> float:
        """Write what proves the lower bound of a sum; returns the bound."""
        at: dict[int, int] = {}
        for node in reversed(self._order):
            proof = node.proof
            parts = [part for part in node.children if id(part) in at]
            joined = self._joined([self._lower[id(part)] for part in parts], -1) if parts else -math.inf
            if joined > proof.log_lower:
                children = [at[id(part)] for part in parts]
                at[id(node)] = self._split(node, children)
                self._lower[id(node)] = joined
            elif proof.below is not None:
                at[id(node)] = self._begin(proof) + proof.below
                self._lower[id(node)] = proof.log_lower
        return self._lower.get(id(self._order[0]), -math.inf)

    def add(self, proof: CubeProof) -> None:
        """Put down the steps of one cube more, such as those about the best assignment."""
        self._begin(proof)

    @property
    def steps(self) -> Sequence[Step]:
        """All that was put down, in an order in which each step refers to earlier ones only."""
        return self._steps

    def _inherited(self, order: Sequence[Node]) -> dict[int, CubeProof]:
        """The best proof of each cube or of one around it."""
        best: dict[int, CubeProof] = {}
        for node in order:
            around = best.get(id(node), NOTHING_PROVEN)
            own = node.proof if node.proof.log_upper <= around.log_upper else around
            best[id(node)] = own
            for part in node.children:
                best[id(part)] = own
        return best

    def _weigh(self, node: Node, own: CubeProof) -> None:
        """The best bound on a cube: its own proof, or that of its parts together."""
        parts = [self._upper[id(part)] for part in node.children]
        joined = self._joined(parts, 1) if parts else math.inf
        self._upper[id(node)] = min(own.log_upper, joined)

    def _write(self, order: Sequence[Node], inherited: dict[int, CubeProof]) -> float:
        """Put down the steps that the bound of the whole rests on; returns the bound."""
        needed = {id(order[0])}
        for node in order:
            # Parts are looked at only where they prove more than the whole of them does.
            if id(node) in needed and self._upper[id(node)] < inherited[id(node)].log_upper:
                needed |= {id(part) for part in node.children}
        at: dict[int, int] = {}
        for node in reversed(order):
            if id(node) not in needed:
                continue
            own = inherited[id(node)]
            if self._upper[id(node)] < own.log_upper:
                at[id(node)] = self._split(node, [at[id(part)] for part in node.children])
            elif own.above is not None:
                at[id(node)] = self._begin(own) + own.above
        return self._upper[id(order[0])]

    def _begin(self, proof: CubeProof) -> int:
        """Put down the steps of a cube, once; the number of the first."""
        if id(proof) not in self._begun:
            self._begun[id(proof)] = len(self._steps)
            self._steps += renumbered(proof.steps, len(self._steps))
        return self._begun[id(proof)]

    def _split(self, node: Node, children: list[int]) -> int:
        """A split of the cube into what these steps are about; both bounds of a sum may rest on the same ones."""
        if tuple(children) not in self._splits:
            self._splits[tuple(children)] = len(self._steps)
            options = {"variable": node.branch, "children": children}
            self._steps.append(Step("split", _box({(v, s) for v, s in node.cube.items()}), options))
        return self._splits[tuple(children)]


def _from_the_top(root: Node) -> list[Node]:
    """All cubes, each after the one that it is part of."""
    order, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += node.children
    return order


def _box(rows: set[tuple[int, int]]) -> dict[str, Array]:
    return {"box": small(np.array(sorted(rows), dtype=np.int64).reshape(-1, 2))} if rows else {}


def _cut(box: Array | None, allowed: Mapping[int, Collection[int]]) -> set[tuple[int, int]] | None:
    """The rows of a box with only the states that are allowed; None where that leaves nothing of a variable."""
    rows = {(int(v), int(s)) for v, s in (() if box is None else box.tolist())}
    named = {v for v, _ in rows}
    rows = {(v, s) for v, s in rows if v not in allowed or s in allowed[v]}
    if named != {v for v, _ in rows}:
        return None
    return rows | {(v, s) for v, states in allowed.items() if v not in named for s in states}


def _kept_factors(arrays: Mapping[str, Array], kept: BoolArray) -> dict[str, Array] | None:
    """What a step says of each factor, of those alone that are kept; None where a table of it has none of them.

    The others are 1 throughout the box, so that tables, and all that a step says of them, stay what they are.
    """
    own = {}
    if "home" in arrays:
        own["home"] = arrays["home"][kept]
    if "groups" in arrays:
        # Groups may have any numbers, as long as there are as many factors.
        own["groups"] = small(np.unique(arrays["groups"][kept], return_inverse=True)[1].astype(np.int64))
    if "table_of" in arrays:
        own["table_of"] = arrays["table_of"][kept]
        if not np.array_equal(np.union1d(own["table_of"], [-1]), np.union1d(arrays["table_of"], [-1])):
            return None
    return own
