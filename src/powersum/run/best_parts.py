"""Parts of all assignments of a question, for the k best: what is known of each, its best, and how one is divided."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from powersum.core.arrays import IntArray
from powersum.core.interrupt import Interrupt
from powersum.divide.box import Allowed, StatesBox
from powersum.model.interval import SAME
from powersum.model.result import Result
from powersum.proof.boxes import NOTHING_PROVEN, BoxProof, proof_of
from powersum.proof.certificate import shortfall
from powersum.run.cube import CubeQuestion, run_in

if TYPE_CHECKING:
    from powersum.bounds.tree.rebuilding import Saved
    from powersum.run.ranking import Ranking

CLOSED = 0.5 * SAME
"""A part whose bound is no further above the value that it has to beat is done with."""

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


@dataclass(frozen=True, slots=True)
class Known:
    """What all parts of a question begin with: the question, and the tree of a run on all of it."""

    asked: CubeQuestion
    tree: Saved | None = None


@dataclass(frozen=True, slots=True)
class PartTask:
    """What a part's best is looked for with.

    Parameters
    ----------
    allowed
        States; where they are ``listed`` those of the one assignment that tables have named.
    log_floor
        Only what is better than this counts.
    seconds
        The time.
    states
        An assignment to begin with: variables and their states, some of which the part may forbid.
    """

    allowed: Allowed
    listed: bool
    log_floor: float
    seconds: float
    states: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PartReport:
    """The best of a part without its certificate, its states, and what is proven, in so many bytes."""

    result: Result
    states: IntArray
    proof: BoxProof
    n_bytes: int


class PartRun:
    """The search for the best of a part, in turns, in this process or in another one."""

    def __init__(self, known: Known, task: PartTask, interrupt: Interrupt | None = None) -> None:
        asked = known.asked
        run = run_in(asked, task.allowed, task.seconds, schedule=asked.schedule, seed=asked.question.limits.seed)
        assert run is not None
        if interrupt is not None:
            run.watch(interrupt)
        run.aim_above(task.log_floor)
        if run.small is None:
            from powersum.run.inheritance import Inherited

            run.begin_with(Inherited(known.tree, task.states))
        self._asked, self._task, self._run = asked, task, run

    def turn(self) -> bool:
        """One turn of work; False once it has ended."""
        more = self._run.turn()
        if self._run.log_upper <= self._task.log_floor + CLOSED:
            self._run.interrupt("Nothing better is left in this part.")
            return False
        return more

    def end(self) -> PartReport:
        """End the work; what it has found."""
        run = self._run
        run.interrupt("Others have found more.")
        result = run.result()
        certificate, proof, n_bytes = result.certificate, NOTHING_PROVEN, 0
        if certificate is not None:
            proof = proof_of(certificate, run.n_above, self._asked.question, run.question, self._task.allowed)
            result, n_bytes = without_certificate(result), certificate.n_bytes
        return PartReport(result, run.states(), proof, n_bytes)


def best_in(known: Known, task: PartTask) -> PartReport:
    """What a worker does: look for the best of a part to the end."""
    run = PartRun(known, task)
    while run.turn():
        pass
    return run.end()


def without_certificate(result: Result) -> Result:
    """A result of a part, in which its certificate, and what it says of that, has no place."""
    assert result.certificate is not None
    told = shortfall(result.certificate, result.log_lower, result.log_upper)
    return replace(result, certificate=None, notes=tuple(note for note in result.notes if note not in told))


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
