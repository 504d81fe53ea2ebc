"""``solve``: an assignment, its certified value, an upper bound, and the gap between them closed while time lasts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from powersum.answer.small import small_stages
from powersum.core.arrays import IntArray
from powersum.core.clock import working_time
from powersum.core.interrupt import Interrupt, interruptible
from powersum.core.memory import memory_left
from powersum.exact.small import small_elimination
from powersum.model.limits import Limits
from powersum.model.model import VariableKey
from powersum.model.query import Query
from powersum.model.question import EvidenceLike, ModelLike, Question, function_of
from powersum.model.result import Result, Snapshot, Status

if TYPE_CHECKING:
    from powersum.answer.board import State

DEFAULT_TIME = 60.0
DEFAULT_MEMORY = 2e9

SAME = 1e-6
"""Bounds this close count as equal: the answer is then optimal. How close they are, the result says."""


GRACE, GRACE_SHARE = 1.0, 0.05
"""Seconds, and share of the time limit, by which a first bound may be late before a run ends without any."""


IMPOSSIBLE_REASON = "Nothing has positive probability: zeros and evidence exclude every state."


def proven(reason: str, gap: float) -> str:
    """What a result says of a proven answer."""
    return f"{reason} Proven to {max(gap, 1e-16):.1g}."


def solve(
    model: ModelLike,
    maximize: Iterable[VariableKey] | str | None = None,
    evidence: EvidenceLike | None = None,
    *,
    query: Query | None = None,
    time_limit: float | None = DEFAULT_TIME,
    memory: float | str = DEFAULT_MEMORY,
    gap: float = 0.0,
    threads: int = 1,
    seed: int = 0,
    callback: Callable[[Snapshot], None] | None = None,
) -> Result:
    """Find the best states of the maximised variables, with a proof or with bounds on both sides.

    Parameters
    ----------
    model
        The model, which is not changed, or the path of its file.
    maximize
        Names or numbers of the variables to maximise; ``"all"`` for MAP, ``None`` for the log partition function. The
        answer has them in this order.
    evidence
        Observed states, by names or numbers; likelihoods, as ``{"cough": {"no": 0.2, "yes": 0.8}}``, where not certain.
        A dictionary, a list of pairs, or a row of a table (pandas Series, named tuple) without its missing values.
    query
        Weights 0 and 1, in place of ``maximize``.
    time_limit
        Seconds after which to return the best so far; ``None`` for no limit. Compilation on first use does not count.
    memory
        Bytes that the process may hold, or a size such as ``"2G"``; what it holds already is taken off.
    gap
        Stop once upper and lower bound are this close (natural logs).
    threads
        With more than one, local search has a thread of its own, and the others tighten the bound.
    seed
        Seed of all that is drawn at random.
    callback
        Called with a :class:`~powersum.model.result.Snapshot` whenever a bound has moved.

    Returns
    -------
    Result
        ``log_lower`` is the value of ``assignment``, or where summing is too wide a lower bound on it; ``log_upper``
        holds for every assignment. Status ``optimal``, ``bounded``, ``infeasible`` or ``interrupted``.

    Examples
    --------
    >>> import powersum as ps
    >>> from powersum.answer.solver import solve
    >>> rain = ps.Model.from_factors([2, 2], [((0,), [0.8, 0.2]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])],
    ...                              names=["rain", "wet"], states=[["no", "yes"], ["no", "yes"]])
    >>> result = solve(rain, maximize=["rain"], evidence={"wet": "yes"})
    >>> result.status.value, dict(result.assignment)
    ('optimal', {'rain': 'yes'})
    """
    function_of(callback, "callback")
    solver = Solver(
        model,
        maximize,
        evidence,
        query=query,
        time_limit=time_limit,
        memory=memory,
        gap=gap,
        threads=threads,
        seed=seed,
    )
    with interruptible() as interrupt:
        solver.watch(interrupt)
        for snapshot in solver:
            if callback is not None:
                callback(snapshot)
    return solver.result()


class Solver:
    """The same as an iterator of snapshots: stop whenever you like, go on later, ask for the :meth:`result` any time.

    Parameters are those of :func:`solve`. The time limit counts only the time spent inside the iteration.

    Examples
    --------
    >>> import powersum as ps
    >>> from powersum.answer.solver import Solver
    >>> coin = ps.Model.from_factors([2], [((0,), [0.3, 0.7])])
    >>> [round(snapshot.log_lower, 4) for snapshot in Solver(coin, maximize="all")][-1]
    -0.3567
    """

    def __init__(
        self,
        model: ModelLike,
        maximize: Iterable[VariableKey] | str | None = None,
        evidence: EvidenceLike | None = None,
        *,
        query: Query | None = None,
        time_limit: float | None = DEFAULT_TIME,
        memory: float | str = DEFAULT_MEMORY,
        gap: float = 0.0,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        limits = Limits(time_limit=time_limit, memory=memory, gap=gap, threads=threads, seed=seed)
        self.question = Question.of(model, maximize, evidence, query=query, limits=limits)
        self.question.only_sums_and_maxima("solve")
        self._small = small_elimination(*self.question.observed, self.question.query.weights)
        if self._small is None:
            # Loaded now, for compiled modules take a good part of what the process holds.
            import powersum.answer.stages  # noqa: F401

        self._memory = memory_left(limits.bytes)
        self._options: dict[str, Any] = {
            name: getattr(limits, name) for name in ("time_limit", "memory", "gap", "threads", "seed")
        }
        self._history: list[Snapshot] = []
        self._stages: Iterator[State] | None = None
        self._state: State | None = None
        self._spent = 0.0
        self._finished = False
        self._interrupted: str | None = None
        self._flag: Interrupt | None = None

    def __iter__(self) -> Iterator[Snapshot]:
        """Snapshots, one whenever a bound has moved and one at the end."""
        while not self._finished:
            snapshot = self._advance()
            self._let_go()
            if snapshot is not None:
                yield snapshot
            if self._flag is not None and self._flag.cause is not None and not self._finished:
                self.interrupt(f"Interrupted by {self._flag.cause}: the best answer until then.")
                yield self._history[-1]

    def watch(self, flag: Interrupt) -> None:
        """End after the present slice of work once the flag of :func:`~powersum.core.interrupt.interruptible` is up."""
        self._flag = flag

    def interrupt(self, reason: str) -> None:
        """End here; ``reason`` is the sentence that the result gives for it."""
        if self._finished:
            return
        self._interrupted = reason
        self._finished = True
        self._let_go()
        # Bounds may not have moved for long; the last snapshot tells how long they were worked on.
        self._remember(self.log_lower, self.log_upper)

    def _let_go(self) -> None:
        """At the end, of trees, tables and evaluators: the answer needs none of them."""
        if self._finished:
            self._stages = None

    def _remember(self, lower: float, upper: float) -> Snapshot:
        self._history.append(Snapshot(self._spent, len(self._history), upper, lower))
        return self._history[-1]

    def _advance(self) -> Snapshot | None:
        """One slice of work; the snapshot if a bound moved."""
        begun = working_time()
        limit = self.question.limits.seconds
        if self._stages is None and self._small is not None:
            self._stages = small_stages(self._small, self.question)
        elif self._stages is None:
            # Compiled modules are imported where they are used, so that ``import powersum`` stays quick.
            from powersum.answer.stages import stages

            self._stages = stages(
                self.question,
                memory=self._memory,
                threads=self._options["threads"],
                seed=self._options["seed"],
                clock=lambda: self._spent,
                time_limit=limit,
            )
        state = next(self._stages, None)
        self._spent += working_time() - begun
        if state is None:
            self._finished = True
            return None
        self._state = state
        lower, upper = state.log_lower, state.log_upper
        if self._history:
            upper = min(upper, self._history[-1].log_upper)
            lower = max(lower, self._history[-1].log_lower)
        if not lower <= upper:
            # Both have their rounding counted, so one of the two is wrong, and nothing tells which: no answer is better
            # than a false proof.
            raise RuntimeError(
                f"the bounds contradict each other: lower {lower!r}, upper {upper!r}."
                " This is a fault of powersum; please report it with the model."
            )
        if upper == math.inf:
            # Preparation is not complete: a little later there will be an answer that is worth the wait.
            self._finished = self._spent >= limit + GRACE + GRACE_SHARE * limit
            return self._remember(lower, upper) if self._finished else None
        if state.settled or upper - lower <= max(self._options["gap"], SAME) or self._spent >= limit:
            self._finished = True
        moved = not self._history or (lower, upper) != (self._history[-1].log_lower, self._history[-1].log_upper)
        if not moved and not self._finished:
            return None
        return self._remember(lower, upper)

    @property
    def log_lower(self) -> float:
        """The certified value of the best assignment so far; ``-inf`` before there is one."""
        return self._history[-1].log_lower if self._history else -math.inf

    @property
    def log_upper(self) -> float:
        """The upper bound on every assignment so far."""
        return self._history[-1].log_upper if self._history else math.inf

    def states(self) -> IntArray:
        """States of all original variables in the best assignment so far; -1 where a variable has none."""
        if self._state is None:
            return np.full(self.question.model.n_variables, -1, dtype=np.int64)
        return self._state.states

    def result(self) -> Result:
        """The answer as it stands."""
        from powersum import __version__

        state = self._state
        if state is not None and self._history:
            # What is reported has been computed from scratch at a point that is still there; should that ever be more
            # than was claimed on the way, no snapshot may claim less.
            least = state.confirm()
            self._history = [replace(past, log_upper=max(past.log_upper, least)) for past in self._history]
        history = tuple(self._history)
        upper = history[-1].log_upper if history else math.inf
        lower = history[-1].log_lower if history else -math.inf
        status, reason = self._status(lower, upper)
        return Result(
            log_upper=upper,
            log_lower=lower,
            assignment={} if state is None or lower == -math.inf else self.question.answer(state.states),
            status=status,
            reason=reason,
            history=history,
            method="solve",
            options=self._options,
            sizes={} if state is None else state.sizes,
            version=__version__,
            notes=() if state is None else state.notes,
            question=self.question.asked(),
        )

    def _status(self, lower: float, upper: float) -> tuple[Status, str]:
        state = self._state
        if upper == -math.inf:
            return Status.INFEASIBLE, IMPOSSIBLE_REASON
        if state is not None and lower > -math.inf and (upper - lower <= SAME or state.settled):
            return Status.OPTIMAL, proven(state.reason, upper - lower)
        if self._interrupted is not None or not self._finished:
            return Status.INTERRUPTED, self._interrupted or "Stopped before the end."
        if upper - lower <= self._options["gap"]:
            return Status.BOUNDED, f"The gap asked for, {self._options['gap']:g}, was reached."
        if state is not None and state.exhausted:
            return Status.BOUNDED, state.reason
        return Status.BOUNDED, f"The time limit of {self._options['time_limit']:g} s was reached."
