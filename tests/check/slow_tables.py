"""What the second reading of certificates works with (see :mod:`tests.check.slow`): tables, boxes, files."""

from __future__ import annotations

import io
import itertools
import json
import math
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import (
    Decimal,
)
from typing import Any

import numpy as np

ZERO, ONE = Decimal(0), Decimal(1)
States = tuple[int, ...]
Box = list[list[int]]


class Refused(Exception):
    """The certificate proves nothing."""


class Beyond(Exception):
    """Numbers are so large that fifty digits are too few, or a limit of the checker is met."""


def need(condition: bool, why: str) -> None:
    if not condition:
        raise Refused(why)


@dataclass
class Table:
    """Non-negative numbers over the states of some variables; ``low`` where only less is known from below."""

    scope: States
    values: dict[States, Decimal]
    low: dict[States, Decimal] = field(default_factory=dict)

    def at(self, states: dict[int, int], below: bool = False) -> Decimal:
        place = tuple(states[v] for v in self.scope)
        return self.low.get(place, self.values[place]) if below else self.values[place]


@dataclass
class Asked:
    """The model and the question."""

    cards: list[int]
    factors: list[Table]
    weights: list[float]
    evidence: dict[int, int]
    order: list[int] | None

    def ranks(self) -> list[int]:
        if self.order is None:
            return [sorted(set(self.weights), reverse=True).index(w) for w in self.weights]
        runs = [list(run) for _, run in itertools.groupby(self.order, key=lambda v: self.weights[v])]
        return [next(k for k, run in enumerate(runs) if v in run) for v in range(len(self.cards))]


@dataclass
class Found:
    """What is proven about a box."""

    box: Box
    lower: Decimal
    upper: Decimal | None
    """``None`` is infinity."""
    lossy: bool = False


def over(scope: Iterable[int], box: Box) -> Iterable[dict[int, int]]:
    """All states of some variables in a box."""
    scope = list(scope)
    return (dict(zip(scope, states, strict=True)) for states in itertools.product(*(box[v] for v in scope)))


def power_sum(numbers: Sequence[Decimal], weight: float) -> Decimal:
    """(Σ f^(1/w))^w; the largest for w = 0."""
    top = max(numbers)
    if weight == 0.0 or top == 0 or len(numbers) == 1:
        return top
    if weight == 1.0:
        return sum(numbers, ZERO)
    w = Decimal(weight)
    powers = [(f / top).ln() / w for f in numbers if f]
    # What is far below 1 counts nothing.
    return top * (w * sum((x.exp() for x in powers if x > -1000), ZERO).ln()).exp()


class Arrays:
    """The members of the zip."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}
        self.head = json.loads(self.members["head.json"])

    def __contains__(self, name: str) -> bool:
        return name + ".npy" in self.members

    def _array(self, name: str, kinds: str, dimensions: int) -> Any:
        need(name in self, f"{name} is missing")
        array = np.lib.format.read_array(io.BytesIO(self.members[name + ".npy"]), allow_pickle=False)
        right = array.dtype.kind in kinds and array.ndim == dimensions and not np.isfortran(array)
        need(right and array.dtype.str not in ("<u8", "<f2"), f"{name} has another type")
        return array.tolist()

    def wholes(self, name: str, high: int, low: int = 0) -> list[int]:
        numbers = [int(x) for x in self._array(name, "iub", 1)]
        need(all(low <= x < high for x in numbers), f"{name} is out of range")
        return numbers

    def rows(self, name: str, high: int, columns: int = 2, low: int = 0) -> list[list[int]]:
        rows = [[int(x) for x in row] for row in self._array(name, "iub", 2)]
        need(all(len(row) == columns and all(low <= x < high for x in row) for row in rows), f"{name} is out of range")
        return rows

    def reals(self, name: str) -> list[float]:
        numbers = [float(x) for x in self._array(name, "f", 1)]
        need(all(math.isfinite(x) for x in numbers), f"{name} is not finite")
        return numbers

    def pieces(self, starts: str, things: Sequence[Any]) -> list[list[Any]]:
        begin = self.wholes(starts, len(things) + 1)
        need(bool(begin) and begin[0] == 0 and begin[-1] == len(things) and begin == sorted(begin), starts)
        return [list(things[a:b]) for a, b in itertools.pairwise(begin)]


def least(a: Decimal | None, b: Decimal | None) -> Decimal | None:
    return b if a is None else a if b is None else min(a, b)


def inside(inner: Box, outer: Box, but: int = -1) -> bool:
    return all(set(a) <= set(b) or v == but for v, (a, b) in enumerate(zip(inner, outer, strict=True)))
