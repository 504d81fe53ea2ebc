"""Conditioning with caching where sums are too wide for tables and zeros are many: of everything, or given the best."""

from __future__ import annotations

import math

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.core.speed import COUNTING_NODE
from powersum.exact.circuit import distributions
from powersum.exact.counting import LEAST_BYTES, Counting, worth_counting
from powersum.proof.conditioning import conditioning_arrays
from powersum.run.proofs import by_conditioning, by_conditioning_given
from powersum.run.workers.partial_sums import PartialSums
from powersum.run.workers.task import WorkerTask

LEAST_SECONDS = 0.5
"""Before so long nobody can say how long it will take."""

PACE_SECONDS = 0.2
"""A pace is measured over no less than this."""

HOPELESS = 4.0
"""It is given up where it would take so many times the time that is left, at its pace."""

BESIDE = 0.5
"""Share of its memory where circuits are built beside."""

DOUBT = 0.5
"""Share of the time that tables would take after which a promise to be quicker than they is not believed any more."""


class Conditioning:
    """The value itself where everything is summed, else that of the best assignment, which may be too wide otherwise.

    Parameters
    ----------
    task
        What to work on.

    Attributes
    ----------
    sums
        Says whether sums are too wide for tables; None before anything else is tried.
    """

    def __init__(self, task: WorkerTask) -> None:
        self._task = task
        self.sums: PartialSums | None = None
        self._counting: Counting | None = None
        self._given: IntArray | None = None
        self._seconds = 0.0
        self._paces: list[tuple[float, float]] = []
        fits = task.shares.conditioning >= LEAST_BYTES
        self._open = fits and worth_counting(task.problem.model)
        self.sums_all = not bool(task.is_max.any())

    @property
    def useful_seconds(self) -> float | None:
        """It is done early or not at all."""
        return None

    def begin(self, ends: float) -> bool:
        """Go on, or begin with the assignment that is the best by now."""
        del ends
        task = self._task
        if not self._open or (self.sums is not None and self.sums.possible is None):
            return False
        if not self.sums_all:
            incumbent = task.board.incumbent
            if incumbent is None or (incumbent.states[task.is_max] < 0).any():
                return False
            given = np.where(task.is_max, incumbent.states, -1)
            if self._given is None or not np.array_equal(given, self._given):
                self._given, self._counting = given, None
            elif self._counting is None:
                return False
        if self._counting is None:
            self._seconds, self._paces = 0.0, []
            self._counting = Counting(
                task.problem.model,
                # An assignment has one state of each max variable: what is left is summed.
                np.ones(len(task.problem.tau)),
                task.order,
                memory=task.shares.conditioning * (1.0 if self.sums_all else BESIDE),
                given=self._given,
                log=task.board.ground is not None,
                circuit=task.board.wants_distributions,
            )
        return True

    def run(self, deadline: float) -> Progress:
        """Go on until the deadline; give up where the end is too far away."""
        counting = self._counting
        assert counting is not None
        begun = time.monotonic()
        progress = Progress.MORE
        while progress is Progress.MORE and time.monotonic() < deadline:
            nodes = counting.nodes
            progress = counting.step()
            time.spend(COUNTING_NODE * (counting.nodes - nodes))
        self._seconds += time.monotonic() - begun
        if not counting.on_trial:
            self._paces.append((self._seconds, counting.explored))
        if progress is Progress.DONE:
            self._report(counting)
        elif progress is Progress.MORE and not self._hopeless():
            return Progress.MORE
        elif self._given is None:
            self._open = False
        self._counting = None
        return Progress.DONE

    def end(self) -> None:
        """What is under way goes on in the next stage."""

    def _report(self, counting: Counting) -> None:
        task, board, problem = self._task, self._task.board, self._task.problem
        log_value, log_error = counting.log_value, counting.log_error
        arrays = conditioning_arrays(counting, problem, self._given) if board.ground is not None else {}
        if self._given is not None:
            board.offer_lower(problem, log_value, log_error, self._given)
            if board.ground is not None and np.array_equal(problem.restore(self._given), board.states):
                step = by_conditioning_given(board.ground, problem, arrays, board.states)
                board.offer_below(problem, log_value, log_error, [step])
            return
        if board.distributions is not None:
            down = distributions(counting.circuit, problem.model.cardinalities)
            if down is not None:
                beliefs, more = down
                board.distributions.exact(problem, beliefs, more + 4.0 * log_error)
        nothing = np.full(len(task.is_max), -1, dtype=np.int64)
        reason = f"Conditioning with caching, {counting.nodes} nodes."
        board.offer_exact(
            problem,
            log_value,
            log_error,
            nothing,
            reason,
            lambda ground: by_conditioning(ground, problem, arrays, log_value),
        )

    def nearly_done(self, share: float = 1.0, seconds: float = math.inf) -> bool:
        """Whether it is likely to be through in this share of the time left, and in so many seconds, if it goes on."""
        return self._given is None and self._seconds_to_go() < min(share * self._task.clock.left, seconds)

    def promising(self, share: float, seconds: float) -> bool:
        """The same at the beginning, with so many seconds by tables; both rules are tried in any case."""
        counting = self._counting
        if counting is not None and counting.on_trial:
            return self._seconds < min(share * self._task.clock.limit, seconds)
        return self._seconds < DOUBT * seconds and self.nearly_done(share, seconds)

    def _seconds_to_go(self) -> float:
        """What is not explored yet, at the pace of the second half of the time so far."""
        if not self._paces or self._seconds < LEAST_SECONDS:
            return math.inf
        seconds, share = self._paces[-1]
        before = next(pace for pace in reversed(self._paces) if pace[0] <= 0.5 * seconds or pace is self._paces[0])
        gained = share - before[1]
        return (1.0 - share) * (seconds - before[0]) / gained if gained > 0.0 else math.inf

    def _hopeless(self) -> bool:
        if not self._paces or self._seconds < LEAST_SECONDS or self._seconds - self._paces[0][0] < PACE_SECONDS:
            return False
        return self._seconds_to_go() > HOPELESS * self._task.clock.left
