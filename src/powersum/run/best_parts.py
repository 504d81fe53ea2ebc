"""Parts of all assignments of a question, for the k best: what is known of each, its best, and how one is divided."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from powersum.divide.box import StatesBox
from powersum.model.result import Result
from powersum.proof.boxes import NOTHING_PROVEN, BoxProof

if TYPE_CHECKING:
    from powersum.run.ranking import Ranking

States = tuple[int, ...]


@dataclass(slots=True, eq=False, kw_only=True)
class Part(StatesBox):
    """Some of the assignments. ``log_upper`` holds for all of them, also before the part's own best is known.

    Attributes
    ----------
    result, states
        The best assignment known, and its states; None and nothing before there is one.
    found
        Proves what is said of that assignment.
    seconds
        What was given to find it.
    ranked
        Whether some first variables are set, the next one is restricted and all others are free: tables tell its bound.
    center
        The states that its parts differ from, each in another first variable, but for the last, which agrees with them
        wherever this part allows; None where it is whole.
    apart
        Of such a last one, in how many variables it differs from these states all the same; -1 for others.
    """

    result: Result | None = None
    states: States = ()
    found: BoxProof = NOTHING_PROVEN
    seconds: float = 0.0
    ranked: bool = False
    center: States | None = None
    apart: int = -1

    @property
    def gap(self) -> float:
        """How far its bound is above the best assignment known of it."""
        return math.inf if self.result is None else self.log_upper - self.result.log_lower

    @property
    def best(self) -> Found:
        """The best assignment known of it."""
        assert self.result is not None
        return Found(self.result, self.states, self.log_upper, self.found)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """An assignment, an upper bound on its value, and what was proven where it was found.

    Once it has been *taken*, no part has it any more.
    """

    result: Result
    states: States
    log_upper: float
    proof: BoxProof


def pieces_of(
    part: Part, states: tuple[int, ...], variables: Sequence[int], sizes: Sequence[int], ranking: Ranking | None
) -> Iterator[Part]:
    """The pieces by one variable after another, and the rest, which differs from the states as little as may be.

    Tables, where there are some, bound the pieces of a part that is ranked.
    """
    same: dict[int, frozenset[int]] = dict(part.allowed)
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
            yield Part(allowed={**same, variable: other}, log_upper=log_upper, around=part, ranked=losses is not None)
            same[variable] = frozenset((state,))
        if losses is not None:
            log_path = lowered(log_path, float(losses[depth][state]))
    yield Part(allowed=same, log_upper=part.log_upper, around=part)


def lowered(log_upper: float, loss: float) -> float:
    """A bound less a loss, rounded up.

    The error of tables is in the bound, but not that of a path of subtractions from a constant far above all tables.
    """
    less = log_upper - loss
    return math.nextafter(less, math.inf) if loss and math.isfinite(less) else less
