"""``marginals``: the distribution of every variable given evidence, exact where memory allows, else from both sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from powersum.api.certified import provable, with_certificates
from powersum.api.distribution import Distribution, Marginals, known_marginals, marginals_of_states
from powersum.api.joint import Group, Joint, asked_variables, with_joints
from powersum.cluster.executor import WorkersLike, check_workers
from powersum.core.clock import working_time
from powersum.core.errors import ImpossibleError
from powersum.core.interrupt import Interrupt, as_interrupts, interruptible
from powersum.exact.small import small_elimination
from powersum.model.defaults import TIME
from powersum.model.limits import Limits, flag
from powersum.model.model import VariableKey
from powersum.model.question import EvidenceLike, ModelLike, Question, function_of
from powersum.run.shares import UNLIMITED_SECONDS, sum_bounds
from powersum.run.solver import Solver
from powersum.run.tuning import Schedule, schedule_of

if TYPE_CHECKING:
    from powersum.run.distributions import Distributions

__all__ = ["Distribution", "Joint", "MarginalSolver", "Marginals", "marginals"]

WHOLE = 0.5
"""Share of the time for all variables together, where some are asked for: then their states are set one by one."""

LEAST_SECONDS = 0.2
"""The sum with a state set has at least so long."""


@as_interrupts()
def marginals(
    model: ModelLike,
    *,
    evidence: EvidenceLike | None = None,
    of: Iterable[VariableKey | Sequence[VariableKey]] | None = None,
    time_limit: float | None = TIME,
    memory: float | str | None = None,
    threads: int = 1,
    seed: int = 0,
    certificate: bool = False,
    workers: WorkersLike = None,
    callback: Callable[[Marginals], None] | None = None,
) -> Marginals:
    """Distribution of every variable, given the evidence and summed over all others.

    Every probability is an interval that holds. Elimination and conditioning give exact distributions, component by
    component. For a sum that is too wide, its explored part gives intervals.

    Parameters
    ----------
    model, evidence
        The model or the path of its file, and observed states or likelihoods, as in :func:`powersum.solve`.
    of
        Variables that get half of the time where an exact answer does not fit, the widest interval first. A tuple of
        variables asks for their joint distribution: ``[("a", "b"), "c"]``.
    time_limit
        Seconds for all that; Ctrl-C ends it early, with the intervals found until then.
    memory, threads, seed
        As in :func:`powersum.solve`.
    certificate
        Without ``of``: one certificate, if exact elimination is narrow; ``powersum-check --marginals`` computes all
        distributions from it. With ``of``: certificates of the sum with each state set, in half of the time;
        ``powersum-check --share`` verifies them.
    workers
        Processes that divide the question by setting variables, as in :func:`powersum.solve`. The sums of the parts add
        up. ``memory`` is for each.
    callback
        Called with all distributions known so far whenever some have changed.

    Raises
    ------
    ImpossibleError
        An ``InputError``: nothing has positive probability, so that there are no marginals. An exact answer proves that
        something has; beside an approximate one the search for it may have run out of time.

    Examples
    --------
    >>> import powersum as ps
    >>> rain = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    >>> m = ps.marginals(rain, evidence={"wet": 1})
    >>> print(m["rain"]["yes"])
    63.6 %
    >>> round(float(m["rain"]["yes"]), 4)
    0.6364
    """
    function_of(callback, "callback")
    certified = flag(certificate, "certificate")
    seconds = time_limit if not certified or time_limit is None else WHOLE * time_limit
    solver = MarginalSolver(
        model,
        evidence=evidence,
        of=of,
        time_limit=seconds,
        memory=memory,
        threads=threads,
        seed=seed,
        workers=workers,
    )
    wanted = provable(solver.question, of) if certified else []
    with interruptible() as interrupt:
        solver.watch(interrupt)
        for found in solver:
            if callback is not None:
                callback(found)
        if not certified:
            return solver.result()
        return with_certificates(solver.result(), solver.question, wanted, interrupt)


class MarginalSolver:
    """:func:`marginals` as an iterator over all distributions known so far.

    Parameters are those of :func:`marginals`. The time limit counts only the time spent inside the iteration.

    Examples
    --------
    >>> import powersum as ps
    >>> coin = ps.Model.from_factors([2], [((0,), [0.3, 0.7])])
    >>> [print(found.at(0).at(1)) for found in ps.MarginalSolver(coin)]
    70 %
    [None]
    """

    def __init__(
        self,
        model: ModelLike,
        *,
        evidence: EvidenceLike | None = None,
        of: Iterable[VariableKey | Sequence[VariableKey]] | None = None,
        time_limit: float | None = TIME,
        memory: float | str | None = None,
        threads: int = 1,
        seed: int = 0,
        workers: WorkersLike = None,
        schedule: Schedule | None = None,
    ) -> None:
        check_workers(workers)
        self._workers, self._memory_given = workers, memory is not None
        limits = Limits.given(time_limit=time_limit, memory=memory, threads=threads, seed=seed)
        question = Question.of(model, evidence=evidence, limits=limits)
        self.model = question.model
        groups: list[Group] = []
        single: list[int] = []
        if of is not None:
            single, groups = asked_variables(self.model, of)
        self._groups = groups
        self._asked = None
        if of is not None:
            self._asked = [*single, *range(self.model.n_variables, self.model.n_variables + len(self._groups))]
        if self._groups:
            question = Question.of(with_joints(self.model, self._groups), evidence=question.all_evidence, limits=limits)
        self.question = question
        self._schedule = schedule_of(schedule)
        self._flag: Interrupt | None = None
        self._found: Marginals | None = None
        self._distributions: Distributions | None = None

    def watch(self, flag: Interrupt) -> None:
        """End after the present slice of work once the flag is raised."""
        self._flag = flag

    def result(self) -> Marginals:
        """The distributions known so far."""
        if self._distributions is not None:
            self._found = self._shown(self._distributions)
        if self._found is None:
            sizes = self.question.model.cardinalities
            possible = np.ones(int(sizes.sum()), dtype=np.bool_)
            starts = np.cumsum(sizes) - sizes
            for v, state in self.question.evidence.states.items():
                possible[starts[v] : starts[v] + sizes[v]] = np.arange(sizes[v]) == state
            number = np.add.reduceat(possible, starts, dtype=np.int64) if len(sizes) else sizes
            beliefs = possible / np.repeat(number, sizes)
            upper = np.where(possible, 0.0, -math.inf)
            lower = np.where(beliefs == 1.0, 0.0, -math.inf)
            self._found = marginals_of_states(self.question.model, lower, upper, beliefs, exact=False)
        return self._found.without_joints(self.model, self._groups) if self._groups else self._found

    def __iter__(self) -> Iterator[Marginals]:
        question, model = self.question, self.question.model
        small = small_elimination(*question.observed, question.query.weights, barren=False)
        if small is not None and small.entries * self._schedule.elimination_cost < self._schedule.quick:
            known = small.marginals()
            if known is None:
                raise impossible(question)
            self._found = known_marginals(model, *known, small.tables.log_error)
            yield self.result()
            return
        # What compiled modules take is held when the work begins.
        import powersum.run.work  # noqa: F401

        if self._workers is not None:
            yield from self._by_boxes(question)
            return
        limits = question.limits
        started = working_time()
        solver = Solver(
            model,
            evidence=question.all_evidence,
            time_limit=limits.time_limit if not self._asked else WHOLE * limits.seconds,
            memory=limits.bytes,
            threads=limits.threads,
            seed=limits.seed,
            schedule=self._schedule,
        )
        solver.keep_distributions()
        if self._flag is not None:
            solver.watch(self._flag)
        if self._asked:
            solver.keep_tree()
        shown = -1
        for _ in solver:
            self._distributions = solver.distributions
            if self._distributions is not None and self._distributions.changes > shown:
                shown = self._distributions.changes
                yield self.result()
        self._distributions = solver.distributions
        if solver.log_upper == -math.inf:
            raise impossible(question)
        if self._distributions is not None and self._asked:
            yield from self._by_states(solver, self._distributions, started + limits.seconds)
        yield self.result()

    def _by_boxes(self, question: Question) -> Iterator[Marginals]:
        """Have workers bound parts of the question."""
        from powersum.run.box_distributions import distributions_by_boxes

        found = distributions_by_boxes(
            question,
            self._workers,
            self._schedule,
            memory=question.limits.bytes if self._memory_given else None,
            interrupt=self._flag or Interrupt(),
        )
        for self._distributions, log_upper in found:
            if log_upper == -math.inf:
                raise impossible(question)
            yield self.result()

    def _by_states(self, solver: Solver, known: Distributions, end: float) -> Iterator[Marginals]:
        """Bound the sums with a state of the variables asked for set, the widest interval first."""
        from powersum.run.inheritance import Inherited

        legacy = None if solver.tree_left is None else Inherited(solver.tree_left, [])
        whole = solver.log_lower, solver.log_upper
        waiting = {(v, s) for v in self._asked or () for s in range(int(self.question.model.cardinalities[v]))}
        while True:
            widths = {
                (v, s): width
                for v, s in waiting
                if not known.settled_variables[v] and (width := known.width(v, s)) > 0.0
            }
            left = end - working_time()
            if not widths or left <= 0.0 or (self._flag is not None and self._flag.cause is not None):
                return
            v, s = max(widths, key=lambda place: (widths[place], place))
            waiting.discard((v, s))
            seconds = max(left / len(widths), LEAST_SECONDS) if left < math.inf else UNLIMITED_SECONDS
            places = known.states(v)
            lower, upper = known.sums(places, whole)
            found = sum_bounds(
                self.question.within({v: frozenset((s,))}),
                seconds=seconds,
                memory=self.question.limits.bytes,
                interrupt=self._flag,
                schedule=self._schedule,
                legacy=legacy,
            )
            lower[s], upper[s] = max(lower[s], found[0]), min(upper[s], found[1])
            if (upper == -math.inf).all():
                raise impossible(self.question)
            known.parts(places, lower, upper, whole)
            yield self.result()

    def _shown(self, known: Distributions) -> Marginals:
        return marginals_of_states(
            self.question.model, known.log_lower.copy(), known.log_upper.copy(), known.beliefs, exact=known.settled
        )


def impossible(question: Question) -> ImpossibleError:
    """The error of a question about distributions where nothing has positive probability."""
    known = question.all_evidence
    what = "the evidence has probability 0" if known else "every state of the model has probability 0"
    return ImpossibleError(f"{what}: there are no marginals")
