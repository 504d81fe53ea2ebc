"""A solver's answers as a result file of the UAI competitions, while it runs."""

from __future__ import annotations

import math
from pathlib import Path
from types import TracebackType

from powersum.formats.results import ResultWriter
from powersum.model.query import Query
from powersum.run.solver import Run

LEAST_CHANGE = 1e-3
"""A partition function that moved less than this, in natural logs, is not written again."""


class AnswerWriter:
    """Writes every improvement of a solver at once, so that a killed run has left its best.

    The competitions ask for one number as log Z: it is the middle between the two bounds, or the upper bound as long
    as there is no lower one.

    Parameters
    ----------
    path
        The file; it is created at once.
    query
        What is asked.
    task
        ``PR``, ``MAP`` or ``MMAP`` where it differs from what the query looks like: a query that happens to name all
        variables or none.
    """

    def __init__(self, path: Path, query: Query, task: str | None = None) -> None:
        self._task = query.task if task is None else task
        self._variables = query.max_variables.tolist()
        self._writer = ResultWriter(path, self._task)
        self._written = math.nan

    def __enter__(self) -> AnswerWriter:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def improved(self, solver: Run) -> None:
        """Write the solver's answer if it is better than the last one written."""
        lower, upper = solver.log_lower, solver.log_upper
        if upper == math.inf:
            return
        if self._task == "PR":
            value = upper if lower == -math.inf else 0.5 * (lower + upper)
            if value == self._written or (abs(value - self._written) < LEAST_CHANGE and upper - lower > LEAST_CHANGE):
                return
            self._writer.partition(value)
        elif lower == -math.inf or lower <= self._written:
            return
        else:
            value = lower
            states = solver.states()
            if self._task == "MAP":
                self._writer.states(states.tolist())
            else:
                self._writer.assignment({v: int(states[v]) for v in self._variables})
        self._written = value
