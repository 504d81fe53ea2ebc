"""Distributions by many workers: each bounds the sums of boxes, with each state set, and these sums add up.

A box is a question with some states of some variables. The sum of a question with one state set is the sum over its
boxes of the same. So bounds on both sides add up, also where a box was lost or never begun. A box that is not exact
after its slice of time is split by one more variable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from powersum.cluster.executor import HEARTBEAT, WorkersLike, workers_of
from powersum.core.arrays import FloatArray
from powersum.core.clock import working_time
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt
from powersum.divide.box import Allowed
from powersum.model.interval import SAME
from powersum.model.question import Question
from powersum.model.rounding import UNIT
from powersum.prepare.simplify import simplified
from powersum.run.box_memory import Room
from powersum.run.box_run import BoxJob, BoxQuestion, BoxRun, branch_of
from powersum.run.distributions import Distributions
from powersum.run.tuning import Schedule

BOXES = 2
"""Boxes for each worker at the beginning."""

MOST_PARTS = 8
"""Parts of a box: a variable of more states has several states in each."""

SLICE, LEAST_SECONDS = 0.3, 0.5
"""Share of the time left that a box has, and seconds at least."""


@dataclass(frozen=True, slots=True)
class BoxSums:
    """Bounds on the sum of a box, and on its sums with each state of each original variable set (natural logs).

    ``beliefs`` has an estimate of each probability within the box, and ``branch`` the variable to split it by: None
    where it is exact, or nothing is left to split.
    """

    whole: tuple[float, float]
    log_lower: FloatArray
    log_upper: FloatArray
    beliefs: FloatArray
    branch: int | None


def bound_box(asked: BoxQuestion, allowed: Allowed, seconds: float) -> BoxSums:
    """Bound the distributions within a box: what a worker does."""
    run = BoxRun(asked, BoxJob(allowed=allowed, seconds=seconds)).run
    if run is None:
        return no_sums(asked.question)
    run.keep_distributions()
    # With too little memory for a part of the work, what was found before that holds.
    with suppress(InputError, MemoryError):
        for _ in run:
            pass
    known = run.distributions
    if run.log_upper == -math.inf:
        return no_sums(asked.question)
    if known is None:
        return replace(no_sums(asked.question, math.inf), branch=branch_of(asked.question, allowed))
    whole = run.log_lower, run.log_upper
    exact = known.settled and run.log_upper - run.log_lower <= SAME
    branch = None if exact else branch_of(asked.question, allowed)
    return BoxSums(whole, *known.sums(slice(None), whole), known.beliefs, branch)


def no_sums(question: Question, log_upper: float = -math.inf) -> BoxSums:
    """A box in which nothing is possible, or of which nothing is known where ``log_upper`` is infinite."""
    nothing = np.full(int(question.model.cardinalities.sum()), -math.inf)
    upper = np.full(len(nothing), log_upper)
    return BoxSums((-math.inf, log_upper), nothing, upper, np.zeros(len(nothing)), None)


@dataclass(slots=True)
class _Parted:
    """A box, what is known of it by itself, and its parts once it is split."""

    box: Allowed
    known: BoxSums
    parts: list[_Parted] = field(default_factory=list)

    def joined(self) -> BoxSums:
        """The best of what is known of the box and of its parts."""
        if not self.parts:
            return self.known
        below = [part.joined() for part in self.parts]
        lower, upper = ([getattr(one, side) for one in below] for side in ("log_lower", "log_upper"))
        whole = (
            _added([np.array([one.whole[0]]) for one in below], -1),
            _added([np.array([one.whole[1]]) for one in below], 1),
        )
        middles = np.array([one.whole[0] if one.whole[0] > -math.inf else one.whole[1] for one in below])
        weights = np.exp(middles - middles.max()) if -math.inf < middles.max() < math.inf else np.ones(len(below))
        beliefs = weights / weights.sum() @ np.stack([one.beliefs for one in below])
        joined = BoxSums((float(whole[0][0]), float(whole[1][0])), _added(lower, -1), _added(upper, 1), beliefs, None)
        return tighter(joined, self.known)


def tighter(one: BoxSums, other: BoxSums) -> BoxSums:
    """Both bounds on the same box together, with the estimates of the first."""
    return replace(
        one,
        whole=(max(one.whole[0], other.whole[0]), min(one.whole[1], other.whole[1])),
        log_lower=np.maximum(one.log_lower, other.log_lower),
        log_upper=np.minimum(one.log_upper, other.log_upper),
    )


def _added(logs: list[FloatArray], side: int) -> FloatArray:
    """Logs of sums, below (-1) or above (1) the true ones by what rounding may do.

    A sum of k exponentials has a relative error of k + 4 units, beside those of exponents, which are differences: a
    unit of the larger of both logs each. One more unit is that of the last addition.
    """
    stacked = np.stack(logs)
    top = stacked.max(axis=0)
    shift = np.where(np.isfinite(top), top, 0.0)
    largest = np.abs(np.where(np.isfinite(stacked), stacked, 0.0)).max(axis=0)
    with np.errstate(divide="ignore", over="ignore"):
        found = shift + np.log(np.exp(stacked - shift).sum(axis=0))
    return np.asarray(found + side * UNIT * (2.0 * len(logs) + 16.0 + 4.0 * largest))


def distributions_by_boxes(
    question: Question, workers: WorkersLike, schedule: Schedule, *, memory: float | None, interrupt: Interrupt
) -> Iterator[tuple[Distributions, float]]:
    """What is known of all distributions, and an upper bound on the log of the sum, whenever a box has ended.

    Parameters
    ----------
    question
        The question, with the time for all boxes.
    workers
        Who bounds boxes.
    schedule
        The policy of each box.
    memory
        Bytes for each process; they share what is free unless given.
    interrupt
        Ends it early.
    """
    seconds = question.limits.seconds
    begun = working_time()
    problem = simplified(question, barren=False)
    root = _Parted({}, no_sums(question, math.inf if problem.feasible else -math.inf))
    with workers_of(workers) as crew:
        asked = BoxQuestion(question, Room.of(crew, memory, road=False), schedule)
        shared = crew.share(asked)
        waiting = [root]
        while len(waiting) < BOXES * crew.size and interrupt.cause is None and _split(question, waiting[0], waiting):
            waiting.pop(0)
        known = Distributions(problem, question.model.cardinalities)
        yield _told(known, root)
        while (waiting or crew.pending) and not known.settled and interrupt.cause is None:
            left = seconds - (working_time() - begun)
            if left <= 0.0:
                break
            while waiting and crew.pending < crew.size:
                node = max(waiting, key=lambda one: one.known.whole[1])
                waiting.remove(node)
                crew.submit(node, bound_box, shared, node.box, min(left, max(SLICE * left, LEAST_SECONDS)))
            ended = crew.finished(min(HEARTBEAT, left))
            for node, found in ended:
                node.known = tighter(found, node.known)
                if found.branch is not None:
                    _split(question, node, waiting, found.branch)
            if ended:
                yield _told(known, root)


def _split(question: Question, node: _Parted, waiting: list[_Parted], branch: int | None = None) -> bool:
    """Split a box by a variable; its parts wait for a worker. False where there is none to split by."""
    if branch is None:
        branch = branch_of(question, node.box)
    if branch is None:
        return False
    # A part is no larger than the whole.
    unknown = replace(
        no_sums(question, math.inf), whole=(-math.inf, node.known.whole[1]), log_upper=node.known.log_upper
    )
    states = sorted(node.box.get(branch, range(int(question.model.cardinalities[branch]))))
    groups = [frozenset(group.tolist()) for group in np.array_split(states, min(len(states), MOST_PARTS))]
    node.parts = [_Parted({**node.box, branch: group}, unknown) for group in groups]
    waiting += node.parts
    return True


def _told(known: Distributions, root: _Parted) -> tuple[Distributions, float]:
    """The distributions with all that is known of boxes, and the upper bound on the log of the sum."""
    sums = root.joined()
    if sums.whole[1] < math.inf and -math.inf < sums.log_upper.max(initial=-math.inf):
        known.parts(slice(None), sums.log_lower, sums.log_upper, sums.whole)
        known.estimate(sums.beliefs)
    return known, sums.whole[1]
