"""Min-fill among tables of bounded size: orders for bounds that split wide buckets anyway.

Where max variables come last, plain min-fill ends in a clique of hundreds of variables, in which every order is as good
as any other. Mini-buckets never form that clique: their messages stay small, and the graph of who meets whom stays
sparse. Here elimination is played through with a bucket's tables put together only as far as a table may be large, so
that what is counted is the fill that a covering tree of about that size will see.
"""

from __future__ import annotations

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.speed import BOUNDED_FILL_STEP
from powersum.model.model import Model
from powersum.model.query import weight_ranks


class _Scopes:
    """Scopes of tables as sets of bits, none inside another, and what each variable meets in them."""

    def __init__(self, model: Model) -> None:
        self._scopes: dict[int, int] = {}
        self._at: list[set[int]] = [set() for _ in range(model.n_variables)]
        self._log2: list[float] = np.log2(model.cardinalities).tolist()
        self._number = 0
        for factor in range(model.n_factors):
            self.add(sum(1 << v for v in model.scope(factor).tolist()))

    def size(self, scope: int) -> float:
        """Log to base 2 of the entries of a table."""
        return sum(self._log2[v] for v in members(scope))

    def add(self, scope: int) -> None:
        """Add a scope, unless it lies inside another; those inside it leave."""
        inside = members(scope)
        if not inside or any(self._scopes[k] & scope == scope for k in self._at[inside[0]]):
            return
        for k in {k for v in inside for k in self._at[v] if self._scopes[k] | scope == scope}:
            self._remove(k)
        self._scopes[self._number] = scope
        for v in inside:
            self._at[v].add(self._number)
        self._number += 1

    def meets(self, variable: int) -> int:
        """The variables that share a table with this one, itself among them."""
        met = 1 << variable
        for k in self._at[variable]:
            met |= self._scopes[k]
        return met

    def eliminate(self, variable: int, log2_limit: float) -> None:
        """Put the tables of a variable together, the largest first, each where it overlaps most and still fits."""
        numbers = sorted(self._at[variable])
        bucket = sorted((self._scopes[k] for k in numbers), key=lambda scope: (-self.size(scope), scope))
        for k in numbers:
            self._remove(k)
        parts: list[int] = []
        for scope in bucket:
            fitting = [p for p, part in enumerate(parts) if self.size(part | scope) <= log2_limit]
            if fitting:
                parts[max(fitting, key=lambda p: self.size(parts[p] & scope))] |= scope
            else:
                parts.append(scope)
        for part in parts:
            self.add(part & ~(1 << variable))

    def _remove(self, number: int) -> None:
        for v in members(self._scopes.pop(number)):
            self._at[v].discard(number)


def members(scope: int) -> list[int]:
    """The variables of a set of bits."""
    found = []
    while scope:
        bit = scope & -scope
        found.append(bit.bit_length() - 1)
        scope ^= bit
    return found


def bounded_fill(
    model: Model,
    tau: FloatArray,
    log2_limit: float,
    *,
    rank: IntArray | None = None,
    seed: int = 0,
    begin: IntArray | None = None,
) -> IntArray:
    """An elimination order by min-fill, larger weights first, with tables of at most ``2**log2_limit`` entries.

    Ties are broken at random. The fill of a variable is counted anew when one that it meets is eliminated.

    Parameters
    ----------
    model, tau
        The model and the weight of each variable.
    log2_limit
        Where tables are no longer put together.
    rank
        The number of each variable's block, 0 is eliminated first; without it larger weights come first.
    seed
        Chooses among equally good variables; the same seed gives the same order.
    begin
        Variables that are eliminated first, as in an order known before; the rest is drawn anew.
    """
    rng = np.random.default_rng(seed)
    scopes = _Scopes(model)
    met = [scopes.meets(v) for v in range(model.n_variables)]
    order: list[int] = [] if begin is None else begin.tolist()
    for v in order:
        _eliminate(scopes, met, v, log2_limit)
    steps = len(order)
    begun = set(order)
    blocks = weight_ranks(tau) if rank is None else rank
    for block in range(int(blocks.max(initial=-1)) + 1):
        group = [v for v in np.flatnonzero(blocks == block).tolist() if v not in begun]
        # Ties go to whoever comes first in a sequence drawn anew for each order.
        chance = dict(zip(group, rng.permutation(len(group)).tolist(), strict=True))
        waiting = {v: (_fill(met, v), chance[v]) for v in group}
        while waiting:
            chosen = min(waiting, key=waiting.__getitem__)
            del waiting[chosen]
            order.append(chosen)
            around = _eliminate(scopes, met, chosen, log2_limit)
            for v in around:
                if v in waiting:
                    waiting[v] = _fill(met, v), chance[v]
                    steps += met[v].bit_count()
            steps += len(waiting) // 16 + len(around)
    time.spend(BOUNDED_FILL_STEP * steps)
    return np.array(order, dtype=np.int64)


def _eliminate(scopes: _Scopes, met: list[int], variable: int, log2_limit: float) -> list[int]:
    """Eliminate a variable; those that it met, which now meet others."""
    around = members(met[variable] & ~(1 << variable))
    scopes.eliminate(variable, log2_limit)
    for v in around:
        met[v] = scopes.meets(v)
    return around


def _fill(met: list[int], variable: int) -> int:
    """Pairs of those that a variable meets which do not meet each other, counted twice."""
    around = met[variable]
    return sum((around & ~met[v]).bit_count() for v in members(around))
