"""``solve``: an assignment, its certified value, an upper bound, and the gap between them closed while time lasts."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from powersum.cluster.executor import WorkersLike, check_workers
from powersum.core.arrays import IntArray
from powersum.core.clock import Clock
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt, interruptible
from powersum.core.memory import memory_left, memory_usually_left
from powersum.core.work_time import counted_by, metered
from powersum.exact.small import small_elimination
from powersum.model.defaults import EVERY
from powersum.model.interval import SAME
from powersum.model.limits import NOT_GIVEN, Limits, NotGiven, flag, number, path_of, whole_number
from powersum.model.model import VariableKey
from powersum.model.question import EvidenceLike, ModelLike, Question, WeightsLike, function_of
from powersum.model.result import Result, Snapshot
from powersum.run.answer import answer_of, options_of
from powersum.run.board import Board
from powersum.run.checkpoint import Checkpoints, written
from powersum.run.probability import reserved, with_probability
from powersum.run.small import first_bounds, small_work
from powersum.run.tuning import Schedule, schedule_of

if TYPE_CHECKING:
    from powersum.bounds.tree.rebuilding import Saved
    from powersum.exact.small import SmallElimination
    from powersum.model.certificate import Certificate
    from powersum.run.distributions import Distributions
    from powersum.run.inheritance import Legacy
    from powersum.run.resume import Resumed
    from powersum.run.workers.task import Lender

_OVER = object()
"""What stands for the end of the work."""


def solve(
    model: ModelLike,
    maximize: Iterable[VariableKey] | str | None = None,
    *,
    evidence: EvidenceLike | None = None,
    weights: WeightsLike | None = None,
    k: int = 1,
    distinct: int = 1,
    time_limit: float | NotGiven | None = NOT_GIVEN,
    memory: float | str | None = None,
    gap: float = 0.0,
    threads: int = 1,
    seed: int = 0,
    work: float | None = None,
    certificate: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    every: float = EVERY,
    resume: str | PathLike[str] | None = None,
    workers: WorkersLike = None,
    callback: Callable[[Snapshot], None] | None = None,
    schedule: Schedule | None = None,
) -> Result:
    """Find the best states of the maximised variables, with a proof or both bounds.

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
    weights
        In place of ``maximize``: 1 for each variable to sum, 0 for each to maximise.
    k
        How many of the best assignments to find, in order: ``result.best``, and ``result.log_upper_next`` bounds what
        comes after them.
    distinct
        Each of them is the best that differs in at least so many variables from all before it.
    time_limit
        Seconds after which to return the best so far, 60 unless given; ``None`` for no limit. Compilation on first use
        does not count.
    memory
        Bytes that the process may hold, or a size such as ``"2G"``; what it holds already is taken off. By default half
        of what is free on the machine, at least 2 GB where there is so much, for all ``workers`` together.
    gap
        Stop once upper and lower bound are this close (natural logs).
    threads
        Threads of this process. With 2 or more, local search runs in its own thread; the others tighten the bound.
    seed
        Seed of all that is drawn at random.
    work
        In place of ``time_limit``: so much work, in seconds that it takes on a machine of usual speed. The same seed
        then gives the same digits however fast or busy the machine is, and for any number of threads.
    certificate
        Whether the result shall have a ``certificate``, which ``powersum-check`` verifies; with ``k`` of all of them.
        Takes a little more memory, and time after the end.
    checkpoint, every
        A file that gets what is known, whole each time, every ``every`` seconds. A run that is killed continues from
        it. It is a certificate, and the result then has one.
    resume
        A checkpoint to continue from: the assignment, the tree and the proof, all computed anew. It may be
        about another question on the same model, with other evidence or other variables to maximise.
    workers
        Processes that work on parts of the question: their number with this one, or the address of a Dask scheduler.
        A ``dask.distributed.Client`` or an ``Executor`` works, too. ``memory`` is for each.
    callback
        Called with a :class:`~powersum.model.result.Snapshot` whenever a bound has moved.
    schedule
        How time is shared out among the kinds of work, for experiments; no schedule can make a bound wrong.

    Returns
    -------
    Result
        ``log_lower`` is the value of ``assignment``, or where summing is too wide a lower bound on it; ``log_upper``
        holds for every assignment. Status ``optimal``, ``bounded``, ``infeasible`` or ``interrupted``. ``probability``
        is that of the assignment given the evidence, from both sides; up to a twenty-fifth of the time is kept for it.

    Examples
    --------
    >>> import powersum as ps
    >>> from powersum.run.solver import solve
    >>> rain = ps.Model.from_factors([2, 2], [((0,), [0.8, 0.2]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])],
    ...                              names=["rain", "wet"], states=[["no", "yes"], ["no", "yes"]])
    >>> result = solve(rain, maximize=["rain"], evidence={"wet": "yes"})
    >>> result.status.value, dict(result.assignment)
    ('optimal', {'rain': 'yes'})
    >>> print(result.probability)
    63.6 %
    """
    function_of(callback, "callback")
    k, distinct = whole_number(k, "k", 1), whole_number(distinct, "distinct", 1)
    check_workers(workers)
    solver = Solver(
        model,
        maximize,
        evidence=evidence,
        weights=weights,
        time_limit=time_limit,
        memory=memory,
        gap=gap,
        threads=threads,
        seed=seed,
        work=work,
        certificate=certificate,
        checkpoint=checkpoint,
        every=every,
        resume=resume,
        schedule=schedule,
    )
    with interruptible() as interrupt:
        solver.watch(interrupt)
        return solver.answer(
            k=k, distinct=distinct, workers=workers, callback=callback, memory_given=memory is not None
        )


class Run:
    """A run on one question within its limits, as an iterator of snapshots.

    Parameters
    ----------
    question
        What is asked, and what the answer may cost. The time counts inside the iteration only.
    certificate, checkpoint, every, resume, schedule
        As :func:`solve` has them.

    Attributes
    ----------
    checkpoints
        Where the certificate of what is known goes now and then; None where nobody wants it.
    earlier
        The file that is resumed, if there is one.
    tree_left
        The best tree, once the run is over and somebody has asked for it.
    """

    def __init__(
        self,
        question: Question,
        *,
        certificate: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        every: float = EVERY,
        resume: str | PathLike[str] | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        self.question, limits = question, question.limits
        alternates = question.query.blocks is not None and bool(np.isin(question.query.weights, (0.0, 1.0)).all())
        if not alternates:
            question.only_sums_and_maxima("solve")
        elif certificate or checkpoint is not None or resume is not None:
            question.no_blocks("certificate and checkpoint")
        schedule = schedule_of(schedule)
        every = number(every, "every")
        if not every >= 0.0:
            raise InputError(f"every is {every:g}: it must be 0 or more")
        self.checkpoints = None if checkpoint is None else Checkpoints(path_of(checkpoint, "checkpoint"), every)
        self._certified = flag(certificate, "certificate") or checkpoint is not None
        # Proofs are told by the compiled road.
        self._small = None
        if not self._certified and resume is None and not alternates:
            self._small = small_elimination(*self.question.observed, self.question.query.weights)
        if self._small is not None and self._small.entries * schedule.elimination_cost >= schedule.quick:
            self._small = None
        self.resumed: Legacy | None = None
        self.earlier: Resumed | None = None
        if resume is not None:
            from powersum.run.resume import Resumed

            self.resumed = self.earlier = Resumed(path_of(resume, "resume"), self.question)
        self.meter = limits.meter()
        self._options = options_of(limits)
        self.schedule = schedule
        self._clock = Clock(limits.seconds, meter=self.meter)
        self._board = Board(self.question.model.n_variables)
        self._board.resuming = self.resumed is not None
        # The quick bound has no proof, and would end runs that others could prove.
        self._looked = self._small is not None or self._certified or alternates or not schedule.look_first
        self._work: Generator[None] | None = None
        self._finished = False
        self._interrupted: str | None = None
        self.flag: Interrupt | None = None
        self._lender: Lender | None = None
        self.tree_left: Saved | None = None

    def __iter__(self) -> Iterator[Snapshot]:
        """Snapshots, one whenever a bound has moved and one at the end."""
        while not self._finished:
            snapshot = self._advance()
            if snapshot is not None:
                yield snapshot
            if self._ends_early():
                yield self._board.history[-1]

    def answer(
        self,
        *,
        k: int = 1,
        distinct: int = 1,
        workers: WorkersLike = None,
        callback: Callable[[Snapshot], None] | None = None,
        memory_given: bool = True,
    ) -> Result:
        """The answer of a run that has not begun, with its probability; parameters as for :func:`solve`.

        Without ``memory_given`` workers share the memory that is free.
        """
        if k > 1:
            from powersum.run.best import best_of

            return best_of(self, k=k, distinct=distinct, executor=workers, callback=callback, memory_given=memory_given)
        # A small question is answered here, and one process is this one.
        if workers is not None and workers != 1 and self._small is None:
            from powersum.run.cubes import solve_by_cubes

            return solve_by_cubes(self, workers, callback=callback, memory_given=memory_given)
        if self.question.query.task != "PR":
            # The sum that the probability is a share of has a little of the time.
            self._clock.limit -= reserved(self._clock.limit)
        for snapshot in self:
            if callback is not None:
                callback(snapshot)
        return with_probability(self)

    def turn(self) -> bool:
        """One turn of work, with other work in between; False once the work has ended."""
        if not self._finished:
            self._advance()
            self._ends_early()
        return not self._finished

    def _ends_early(self) -> bool:
        """End if the flag is up before the work has ended; True where it is."""
        if self._finished or self.flag is None or self.flag.cause is None:
            return False
        self.interrupt(f"Interrupted by {self.flag.cause}: the best answer until then.")
        return True

    def watch(self, flag: Interrupt) -> None:
        """End after the present slice of work once the flag is raised."""
        self.flag = flag

    @property
    def certified(self) -> bool:
        """True where a certificate is wanted."""
        return self._certified

    @property
    def n_above(self) -> int:
        """How many of the first steps of the certificate prove the upper bound; the last of them is about all of it."""
        return len(self._board.proof().steps)

    @property
    def small(self) -> SmallElimination | None:
        """What has the answer at once in plain NumPy; None where the question is too large for that."""
        return self._small

    def aim_above(self, log_floor: float) -> None:
        """Look only for what is better than a value that is known elsewhere; ``log_upper`` may stop there."""
        self._board.log_floor = log_floor

    def begin_with(self, legacy: Legacy, *, is_whole: bool = False) -> None:
        """Begin with what a run on this question, or on a larger one, has left; small questions have no use for it."""
        self.resumed = legacy
        self._board.resuming = is_whole

    def keep_tree(self) -> None:
        """Leave the best tree behind when the run is over: ``tree_left``, None where there was none."""
        self._board.keeps_tree = True

    def keep_distributions(self) -> None:
        """Find the distributions of all variables, too, where everything is summed; to be told before the work begins.

        The run goes on until all of them are exact.
        """
        self._small, self._looked = None, True
        self._board.wants_distributions = True

    @property
    def distributions(self) -> Distributions | None:
        """What is known of the distributions; None before there is anything."""
        return self._board.distributions

    def lend_by(self, lender: Lender) -> None:
        """Have others work on boxes that are split; to be told before the work begins."""
        self._lender = lender

    def hear(self, states: IntArray) -> None:
        """States of all original variables in an assignment found elsewhere: it is evaluated, and gone on from."""
        self._board.heard = states

    @property
    def stage(self) -> int:
        """How many stages of work have ended; what was tightened in them is not gone on with."""
        return self._board.stage

    def interrupt(self, reason: str) -> None:
        """End here; ``reason`` is the sentence that the result gives for it."""
        if self._finished:
            return
        self._interrupted = reason
        self._finish()
        # Bounds may not have moved for long; the last snapshot tells how long they were worked on.
        self._board.snapshot(self._clock.spent, always=True)

    def _finish(self) -> None:
        """End the work and let go of trees, tables and threads: the answer needs none of them."""
        self._finished = True
        with counted_by(self.meter):
            if self._work is not None:
                self._work.close()
                self._work = None
            if self._board.tree_left is not None:
                self.tree_left, self._board.tree_left = self._board.tree_left(), None
            # What is reported has been computed from scratch, at a point that is given up by that.
            self._board.confirm()

    def _advance(self) -> Snapshot | None:
        """One turn of work; the snapshot if a bound moved."""
        board, clock, schedule = self._board, self._clock, self.schedule
        try:
            if self._looked and self._work is None:
                self._work = self._begun()
            with clock.running():
                over = False
                if self._work is None:
                    self._looked = True
                    first_bounds(self.question, board)
                else:
                    over = next(self._work, _OVER) is _OVER
                if not over and self.checkpoints is not None:
                    self.checkpoints.keep(lambda: clock.spent, self.draft)
        except BaseException as error:
            # Whatever it was, what is on the board holds. An exception without words is told by its name.
            words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            self._interrupted = f"Broken off by {words.rstrip('.')}."
            self._finish()
            if not board.contradicted:
                board.snapshot(clock.spent, always=True)
            raise
        if over:
            self._finish()
            return None
        if board.log_upper == math.inf:
            # Preparation is not complete: a little later there will be an answer that is worth the wait.
            if clock.spent < clock.limit + schedule.grace + schedule.grace_share * clock.limit:
                return None
            self._finish()
        elif (
            board.proven
            # First bounds that meet have no proof yet, and no option has been looked at: that is up to the work.
            or (board.incumbent is not None and board.settled and board.gap <= max(self._options["gap"], SAME))
            or (clock.spent >= clock.limit and not board.resuming)
        ):
            self._finish()
        return board.snapshot(clock.spent, always=self._finished)

    def _begun(self) -> Generator[None]:
        """The work on the question. Not by the clock, for a process loads compiled modules with its first hard one."""
        if self._small is not None:
            return small_work(self._small, self.question, self._board)
        # Imported here, so that ``import powersum`` and the first bound are quick; but before the memory is looked at,
        # for it takes a good part of what the process holds.
        from powersum.run.work import work

        limits, resumed = self.question.limits, self.resumed
        self.resumed = None
        measured = self.meter is None and not metered()
        left = memory_left(limits.bytes) if measured else memory_usually_left(limits.bytes)
        if self.question.query.blocks is not None:
            from powersum.run.alternating import alternating_work

            return alternating_work(
                self.question,
                board=self._board,
                clock=self._clock,
                schedule=self.schedule,
                memory=min(left, self.schedule.most_bytes),
                threads=self._options["threads"],
                seed=self._options["seed"],
            )
        return work(
            self.question,
            board=self._board,
            clock=self._clock,
            schedule=self.schedule,
            memory=min(left, self.schedule.most_bytes),
            threads=self._options["threads"],
            seed=self._options["seed"],
            certificate=self._certified,
            resumed=resumed,
            lender=self._lender,
        )

    def draft(self) -> tuple[Certificate, int] | None:
        """The certificate of what is known, and how many of its first steps prove the upper bound; None before that.

        Not before what an earlier run has left is taken up: that may be in the very file of a checkpoint, and prove
        more.
        """
        board = self._board
        if board.ground is None or board.resuming or board.log_upper == math.inf:
            return None
        proof = board.draft()
        return board.certificate(self.question, proof), len(proof.steps)

    @property
    def log_lower(self) -> float:
        """The certified value of the best assignment so far; ``-inf`` before there is one."""
        return self._board.log_lower

    @property
    def log_upper(self) -> float:
        """The upper bound on every assignment so far."""
        return self._board.log_upper

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the bounds must know."""
        return self._board.notes

    def states(self) -> IntArray:
        """States of all original variables in the best assignment so far; -1 where a variable has none."""
        return self._board.states

    def result(self) -> Result:
        """The answer as it stands; the exception again if bounds contradicted each other."""
        board = self._board
        board.refuse()
        certificate = None
        with counted_by(self.meter):
            board.confirm()
            if board.history:
                # An exception while the end was being proven leaves what had moved just before without a snapshot.
                board.snapshot(self._clock.spent)
            if board.ground is not None:
                certificate = board.certificate(self.question, board.proof())
        result = answer_of(
            self.question,
            board,
            options=self._options,
            sizes=board.sizes,
            interrupted=self._interrupted or (None if self._finished else "Stopped before the end."),
            certificate=certificate,
        )
        return written(result, self.checkpoints) if self._finished else result


class Solver(Run):
    """:func:`solve` as an iterator of snapshots; :meth:`result` answers at any time.

    Parameters are those of :func:`solve`. The time limit counts only the time spent inside the iteration.

    Examples
    --------
    >>> import powersum as ps
    >>> from powersum.run.solver import Solver
    >>> coin = ps.Model.from_factors([2], [((0,), [0.3, 0.7])])
    >>> [round(snapshot.log_lower, 4) for snapshot in Solver(coin, maximize="all")][-1]
    -0.3567
    """

    def __init__(
        self,
        model: ModelLike,
        maximize: Iterable[VariableKey] | str | None = None,
        *,
        evidence: EvidenceLike | None = None,
        weights: WeightsLike | None = None,
        time_limit: float | NotGiven | None = NOT_GIVEN,
        memory: float | str | None = None,
        gap: float = 0.0,
        threads: int = 1,
        seed: int = 0,
        work: float | None = None,
        certificate: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        every: float = EVERY,
        resume: str | PathLike[str] | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        limits = Limits.given(time_limit=time_limit, memory=memory, gap=gap, threads=threads, seed=seed, work=work)
        question = Question.of(model, maximize, evidence=evidence, weights=weights, limits=limits)
        super().__init__(
            question,
            certificate=certificate,
            checkpoint=checkpoint,
            every=every,
            resume=resume,
            schedule=schedule,
        )
