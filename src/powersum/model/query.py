"""Query: which variables are summed, which are maximised, and in which order: one weight for each, in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, owned
from powersum.core.errors import InputError
from powersum.model.keys import as_text, listed
from powersum.model.model import Model, VariableKey


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """The weights τ of eq. 3 of the paper: 1 sums a variable out, 0 maximises it.

    Variables of larger weight are eliminated before those of smaller weight unless blocks or an order say otherwise.
    Without blocks max variables come last.

    Parameters
    ----------
    weights
        One for each variable.
    asked
        The maximised variables in the order in which they were asked for, which is that of the answer; without it they
        come by their numbers.
    blocks
        The number of each variable's block, 0 is eliminated first. All variables of a block have one weight; their
        order does not matter. None for the order of the weights. See :meth:`along`.
    """

    weights: FloatArray
    asked: tuple[int, ...] | None = None
    blocks: IntArray | None = None

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights)
        # True could mean summed as well as maximised.
        if weights.ndim != 1 or (weights.size and weights.dtype.kind not in "iuf"):
            raise InputError(f"weights is {as_text(self.weights)}: give a list of numbers, one for each variable")
        object.__setattr__(self, "weights", owned(weights, np.float64))
        bad = ~(np.isfinite(self.weights) & (self.weights >= 0))
        if bad.any():
            raise InputError(f"weight {self.weights[bad][0]} of variable {int(np.argmax(bad))} is not a number ≥ 0")
        if self.blocks is not None:
            object.__setattr__(self, "blocks", _merged_blocks(self.weights, self.blocks))
        if self.asked is not None and sorted(self.asked) != self.max_variables.tolist():
            raise InputError(f"asked is {as_text(self.asked)}: it must name each variable of weight 0 once")

    def __reduce__(self) -> tuple[Any, ...]:
        # As for models: read-only on the other side, too.
        return Query, (self.weights, self.asked, self.blocks)

    @classmethod
    def of(cls, model: Model, maximize: Iterable[VariableKey] | str | None = None) -> Query:
        """Sum over everything but ``maximize``; ``"all"`` maximises every variable (MAP), ``None`` none (log Z)."""
        weights = np.ones(model.n_variables)
        asked = None
        if isinstance(maximize, str):
            if maximize != "all":
                raise InputError(f"maximize is {maximize!r}: give a list of variables, or 'all'")
            weights[:] = 0.0
        elif maximize is not None:
            keys = listed(maximize, "maximize", "a list of variables, or 'all'")
            asked = tuple(model.variable(key, argument="maximize") for key in keys)
            for index in asked:
                if weights[index] == 0.0:
                    raise InputError(f"the query names variable {model.name(index)} twice")
                weights[index] = 0.0
        return cls(weights, asked)

    @classmethod
    def along(cls, model: Model, blocks: Sequence[tuple[str | float, Iterable[VariableKey]]]) -> Query:
        """Blocks of sums and maxima that alternate, the outermost first.

        Parameters
        ----------
        model
            The model whose variables are meant.
        blocks
            Pairs of ``"max"``, ``"sum"`` or a weight, and the variables of the block. Each variable of the model is in
            one block.

        Examples
        --------
        >>> import powersum as ps
        >>> chain = ps.Model.from_factors([2, 2, 2], [((0, 1), [[1, 2], [3, 1]]), ((1, 2), [[1, 4], [2, 2]])])
        >>> query = ps.Query.along(chain, [("max", [0]), ("sum", [1]), ("max", [2])])
        >>> round(ps.bound(chain, weights=query).log_upper, 4)  # max over 0, sum over 1, max over 2: 3 · 4 + 1 · 2
        2.6391
        """
        weights = np.full(model.n_variables, np.nan)
        number = np.zeros(model.n_variables, dtype=np.int64)
        for place, (kind, keys) in enumerate(reversed(list(blocks))):
            if isinstance(kind, str) and kind not in ("sum", "max"):
                raise InputError(f"a block is {kind!r}: give 'sum', 'max' or a weight")
            weight = {"sum": 1.0, "max": 0.0}[kind] if isinstance(kind, str) else float(kind)
            for key in listed(keys, "blocks", "pairs of 'sum' or 'max' and a list of variables"):
                v = model.variable(key, argument="blocks")
                if not np.isnan(weights[v]):
                    raise InputError(f"the blocks name variable {model.name(v)} twice")
                weights[v], number[v] = weight, place
        missing = np.flatnonzero(np.isnan(weights))
        if missing.size:
            more = f" and {missing.size - 1} more" if missing.size > 1 else ""
            raise InputError(f"the blocks do not name variable {model.name(int(missing[0]))}{more}")
        return cls(weights, None, number)

    @property
    def rank(self) -> IntArray:
        """The number of each variable's block: the blocks given, or those of equal weights, larger weights first."""
        return weight_ranks(self.weights) if self.blocks is None else self.blocks

    @property
    def max_variables(self) -> IntArray:
        """Indices of the variables of the answer: those that are maximised, with blocks in the outermost one."""
        return np.flatnonzero(outermost_max(self.weights, self.rank))

    @property
    def answered(self) -> tuple[int, ...]:
        """The same in the order of the answer: as they were asked for, or by their numbers."""
        return tuple(self.max_variables.tolist()) if self.asked is None else self.asked

    @property
    def task(self) -> str:
        """``PR`` (log Z), ``MAP``, ``MMAP``, or ``power-sum`` for other weights and for blocks that alternate."""
        n_max, n_sum = np.count_nonzero(self.weights == 0.0), np.count_nonzero(self.weights == 1.0)
        if n_max + n_sum < len(self.weights) or self.blocks is not None:
            return "power-sum"
        if n_max == 0:
            return "PR"
        return "MMAP" if n_sum else "MAP"


def weight_ranks(weights: FloatArray) -> IntArray:
    """For each variable the number of its weight, 0 for the largest, which is eliminated first."""
    return np.asarray(np.unique(-np.asarray(weights), return_inverse=True)[1], dtype=np.int64)


def outermost_max(weights: FloatArray, rank: IntArray) -> BoolArray:
    """Which variables are maximised and eliminated last: only these have a state that depends on no other's."""
    return np.asarray((weights == 0.0) & (rank == rank.max(initial=0)))


def _merged_blocks(weights: FloatArray, blocks: IntArray) -> IntArray | None:
    """Blocks numbered from 0, neighbours of equal weight as one; None where that is the order of the weights."""
    given = np.asarray(blocks)
    if given.shape != weights.shape or (given.size and given.dtype.kind not in "iu"):
        raise InputError(f"blocks is {as_text(blocks)}: give a whole number for each variable")
    numbers, block = np.unique(given, return_inverse=True)
    weight = np.zeros(len(numbers))
    weight[block] = weights
    differs = np.flatnonzero(weight[block] != weights)
    if differs.size:
        raise InputError(f"block {given[differs[0]]} has variables of different weights")
    merged = np.concatenate([[0], np.cumsum(np.diff(weight) != 0.0)])[block] if len(numbers) else block
    return None if np.array_equal(merged, weight_ranks(weights)) else owned(merged, np.int64)
