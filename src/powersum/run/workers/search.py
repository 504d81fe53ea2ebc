"""Search over the max variables: branch and bound along one tree and, where that will not close the gap, splitting."""

from __future__ import annotations

from powersum.core.progress import Progress
from powersum.run.workers.branch_and_bound import BranchAndBound
from powersum.run.workers.splits import Splits
from powersum.run.workers.task import WorkerTask

HOPELESS = 2.0
"""A gap (natural logs) beyond which it has no trial."""

PROMISING = 0.5
"""It goes on where it has brought the gap down to this share in its trial, and has another one then."""


class SearchWorker:
    """Branch and bound, then splitting, then what is left of the time for branch and bound again.

    Parameters
    ----------
    task
        What to work on.
    along, splits
        The two ways.
    """

    def __init__(self, task: WorkerTask, along: BranchAndBound, splits: Splits) -> None:
        self._task, self._along, self._splits = task, along, splits
        self._ends = 0.0
        self._way: BranchAndBound | Splits | None = None
        self._judged = 0.0
        """When branch and bound is judged next; at the end where there is nothing in its place."""
        self._gap = 0.0
        """The gap when it was judged last."""

    @property
    def useful_seconds(self) -> float | None:
        """Trees are told how large they may be instead, see :meth:`Splits.limit`."""
        return None

    def begin(self, ends: float) -> bool:
        """Begin with branch and bound by the tree of now; False where there is nothing to search."""
        self._ends = ends
        spent = self._task.clock.spent
        if not self._along.begin(ends):
            return False
        self._way, self._gap = self._along, self._task.board.gap
        trial = self._task.schedule.search_trial if self._gap < HOPELESS else 0.0
        self._judged = spent + trial * (ends - spent)
        return True

    def run(self, deadline: float) -> Progress:
        """Search until the deadline."""
        if self._way is self._along and self._task.clock.spent >= self._judged:
            self._judge()
        way = self._way
        if way is None:
            return Progress.OUT_OF_TIME
        progress = way.run(deadline)
        if way is self._splits and progress is not Progress.MORE and not self._task.board.proven:
            # No box fits the time or the memory that are left.
            way.end()
            self._judged = self._ends
            self._way = self._along if self._along.begin(self._ends) else None
            return Progress.MORE
        return progress

    def _judge(self) -> None:
        """Go over to splitting, unless branch and bound is getting through or splitting is not worth while."""
        clock, schedule, gap = self._task.clock, self._task.schedule, self._task.board.gap
        if gap <= PROMISING * self._gap or gap < schedule.nearly:
            self._gap, self._judged = gap, clock.spent + schedule.search_trial * (self._ends - clock.spent)
        elif not self._splits.worth_while(self._ends):
            self._judged = self._ends
        else:
            self._along.end()
            self._splits.begin(self._ends)
            self._way = self._splits

    def end(self) -> None:
        """Let go of everything."""
        if self._way is not None:
            self._way.end()
        self._way = None
