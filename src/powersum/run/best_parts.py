"""Parts of all assignments of a question, for the k best: what is known of each, and how one is divided."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from powersum.model.result import Result

if TYPE_CHECKING:
    from powersum.run.best_proofs import Division
    from powersum.run.ranking import Ranking

Allowed = dict[int, frozenset[int]]
"""States that a part allows, for each variable of which it does not allow all."""


@dataclass(slots=True, eq=False)
class Part:
    """Some of the assignments. ``log_upper`` holds for all of them, also before the part's own best is known.

    ``division`` is what a certificate is made of, where one is wanted. Of a part that is ``ranked``, some first
    variables are set, the next one is restricted and all others are free: tables tell its bound.
    """

    allowed: Allowed
    log_upper: float
    result: Result | None = None
    states: tuple[int, ...] = ()
    seconds: float = 0.0
    division: Division | None = None
    ranked: bool = False

    @property
    def gap(self) -> float:
        """How far its bound is above the best assignment known of it."""
        return math.inf if self.result is None else self.log_upper - self.result.log_lower

    @property
    def found(self) -> Found:
        """The best assignment known of it."""
        assert self.result is not None
        return Found(self.result, self.states, self.log_upper, self.division)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """An assignment, an upper bound on its value, and where it was found.

    Once it has been *taken*, no part has it any more.
    """

    result: Result
    states: tuple[int, ...]
    log_upper: float
    division: Division | None = None


def pieces_of(
    part: Part, states: tuple[int, ...], variables: Sequence[int], sizes: Sequence[int], ranking: Ranking | None
) -> Iterator[Part]:
    """The pieces by one variable after another, and the rest, which differs from the states as little as may be.

    Tables, where there are some, bound the pieces of a part that is ranked.
    """
    same = dict(part.allowed)
    ranking = ranking if part.ranked else None
    losses = None if ranking is None else ranking.losses(states)
    log_path = math.inf if ranking is None else ranking.log_upper
    for depth, (variable, size, state) in enumerate(zip(variables, sizes, states, strict=True)):
        kept = part.allowed.get(variable, frozenset(range(size)))
        if state not in kept:
            # The path that tables tell about ends here.
            losses, log_path = None, math.inf
        elif len(kept) > 1:
            other = kept - {state}
            log_upper = part.log_upper
            if losses is not None:
                log_upper = min(log_upper, lowered(log_path, min(float(losses[depth][s]) for s in other)))
            yield Part({**same, variable: other}, log_upper, ranked=losses is not None)
            same[variable] = frozenset((state,))
        if losses is not None:
            log_path = lowered(log_path, float(losses[depth][state]))
    yield Part(same, part.log_upper)


def lowered(log_upper: float, loss: float) -> float:
    """A bound less a loss, rounded up.

    The error of tables is in the bound, but not that of a path of subtractions from a constant far above all tables.
    """
    less = log_upper - loss
    return math.nextafter(less, math.inf) if loss and math.isfinite(less) else less
