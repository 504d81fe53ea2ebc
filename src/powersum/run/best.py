"""The k best assignments in order, each certified, and a bound on the next one.

All assignments that are left are divided into parts, each of which allows only some states of some variables. The best
of a part comes from a run in it; a part whose best is taken is split by the first variable in which another assignment
differs from it (Lawler 1972, Nilsson 1998). The part with the largest upper bound is always next, so that what has been
taken is proven to be the best once no part that is left can hold a better one.

Parts share what the first run has learned. Variables are taken in the order in which the tables of an elimination, or
of the best tree, tell what every state costs (:mod:`powersum.run.ranking`): that bounds all parts at once, and where
no bucket is split it tells the best of each. Other parts begin with the tree and the assignment of the whole, and look
only for what is better than the assignments that are known already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from powersum.cluster.errors import ClusterError
from powersum.cluster.executor import WorkersLike, crew_of
from powersum.core.arrays import IntArray
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt
from powersum.core.work_time import counted_by, metered
from powersum.divide.frontier import Frontier
from powersum.model.interval import SAME
from powersum.model.result import Result, Snapshot, Status
from powersum.proof.boxes import empty_box, proof_of
from powersum.run.best_parts import Found, Part, pieces_of
from powersum.run.box_run import BoxJob, BoxReport, BoxRun, bound_box, uncertified
from powersum.run.checkpoint import written
from powersum.run.division import BoxTask, Division, Nobody
from powersum.run.probability import log_sum_of, probability_of
from powersum.run.solver import Run
from powersum.run.verdict import verdict

if TYPE_CHECKING:
    from powersum.cluster.executor import Workers
    from powersum.divide.box import Allowed
    from powersum.model.certificate import Certificate
    from powersum.run.ranking import Ranking

FIRST_SHARE = 0.5
"""Share of the time for the best of all; the rest is for what comes after it."""

LEAST_SECONDS = 0.05
"""A part has at least so long."""

LONGER = 2.0
"""How many times as long a part has that is tried once more."""

TREE_SHARE, TREE_SECONDS = 0.1, 5.0
"""Share of the time left, and seconds at most, for a tree that tells what states cost, where the first run has left
none."""

TREE_MEMORY = 0.2
"""Share of the memory for such a tree; its tables are kept as long as there are parts."""

MOST_VARIABLES = 20_000
"""With more max variables than this tables are not asked, variable by variable."""

PROOF_SHARE = 0.25
"""Share of the memory for proofs of parts; those that no longer fit are not kept, and less is proven."""


def best_of(
    run: Run,
    *,
    k: int,
    distinct: int,
    executor: WorkersLike = None,
    callback: Callable[[Snapshot], None] | None = None,
    memory_given: bool = True,
) -> Result:
    """The k best assignments of the question of a run that has not begun: the best one, with all in its ``best``.

    Processes of an executor share the memory that is free, unless it was given.
    """
    question = run.question
    if question.query.task == "PR":
        raise InputError(f"k is {k}: log Z has one value; name the variables to maximise")
    question.no_blocks("k")
    with counted_by(run.meter), ExitStack() as open_things:
        workers, here = None, True
        if executor is not None and executor != 1 and run.small is None:
            workers, here = open_things.enter_context(crew_of(executor, run.flag or Interrupt()))
        memory = question.limits.bytes if memory_given or workers is None or metered() else None
        return BestFirst(run, workers or Nobody(), callback, k=k, distinct=distinct, here=here, memory=memory).run()


class BestFirst(Division):
    """The search for the best assignments of a question.

    Parameters
    ----------
    run, workers, here, memory
        As for :class:`Division`.
    callback
        Hears of the first part only.
    k
        How many assignments.
    distinct
        In how many variables they differ at least, one from each that comes before it.
    """

    def __init__(
        self,
        run: Run,
        workers: Workers,
        callback: Callable[[Snapshot], None] | None = None,
        *,
        k: int,
        distinct: int,
        here: bool = True,
        memory: float | None = None,
    ) -> None:
        question = run.question
        # Where they must be distinct, only what is proven may be taken.
        gap = question.limits.gap if distinct == 1 else 0.0
        super().__init__(run, workers, callback, here=here, seconds=question.limits.seconds, memory=memory, gap=gap)
        self._k, self._distinct = k, distinct
        self._variables = [v for v in question.query.answered if v not in question.evidence.states]
        self._sizes = [int(question.model.cardinalities[v]) for v in self._variables]
        self._whole: Result | None = None
        self._proof_bytes = 0
        self._root = self._ahead = Part()
        """All assignments; and the part that decides what is next."""
        self._frontier = Frontier[Part](lambda part: part.log_upper)
        self._frontier.open(self._root)
        self._answered: list[Part] = []
        """Open parts of which an assignment is known, or that there is none."""
        self._own: tuple[Part, BoxJob, BoxRun] | None = None
        self._ranking: Ranking | None = None
        self._taken: list[Found] = []
        self._stuck = False
        self._log_sum: tuple[float, float] | None = None

    def run(self) -> Result:
        """Search until the k best are proven or time is over."""
        root, first = self._root, self._first()
        if self._ranking is not None and self._ranking.exact and root.gap > SAME:
            # The run had no time for what tables tell.
            self._answered.remove(root)
        self._work()
        if self._own is not None:
            part, job, run = self._own
            self._hear(part, job, run.end())
        return self._answer(first)

    def _is_over(self) -> bool:
        """Take what is known to be the best, until another part must be looked at; True where none must."""
        # What is worked on here ends by itself in time.
        while not self._stuck and (self._own is not None or self._may_go_on) and (top := self._top()) is not None:
            if top in self._answered:
                if self._enough(self._left_over):
                    break
                self._take(top)
            elif top in self._frontier.lent or self._is_possible(top):
                self._ahead = top
                return False
        return True

    @property
    def _may_go_on(self) -> bool:
        return self._left > 0.0 and self._interrupt.cause is None

    def _top(self) -> Part | None:
        """The part with the largest bound; one whose best is known to be as good, if there is one."""
        top = max(self._frontier.lent, key=lambda part: part.log_upper, default=None)
        waiting = self._frontier.top()
        if waiting is not None and (top is None or waiting.log_upper > top.log_upper):
            top = waiting
        if self._distinct > 1 or top is None:
            return top
        least = top.log_upper - SAME
        known = [part for part in self._answered if part.best.result.log_lower >= least]
        return max(known, key=lambda part: part.best.result.log_lower, default=top)

    @property
    def _floor(self) -> float:
        """What is worth looking for is better than this: the value of the one after the k best known."""
        values = [found.result.log_lower for found in self._taken]
        values += [part.best.result.log_lower for part in self._answered]
        if self._distinct > 1 or len(values) <= self._k:
            return -math.inf
        return sorted(values, reverse=True)[self._k]

    @property
    def _left_over(self) -> float:
        """Upper bound on everything that no assignment taken stands for."""
        return self._frontier.weight

    def _enough(self, log_left: float) -> bool:
        """True once k assignments are proven to be the best, those left having at most this value."""
        return sum(taken.result.log_lower >= log_left - SAME for taken in self._taken) >= self._k

    def _is_possible(self, part: Part) -> bool:
        """Whether evidence leaves something of a part; otherwise it is closed."""
        if self._question.within(part.allowed) is not None:
            return True
        self._frontier.close(part)
        if self._asked.certificate:
            part.proof, part.log_upper = empty_box(part.allowed), -math.inf
        return False

    def _next_task(self, free: int) -> BoxTask | None:
        """A part for a worker, and one for this process if it has none: the largest bounds first."""
        free_here = self._here and self._own is None
        if free <= 0 and not free_here:
            return None
        top, floor = self._ahead, self._floor
        waiting = [part for part in self._frontier if part.result is None and part.log_upper > floor]
        share = min((int(self._here) + self._workers.size) / (len(waiting) + 1), 1.0)
        waiting = sorted((part for part in waiting if part is not top), key=lambda part: part.log_upper)
        if top not in self._frontier.lent:
            waiting.append(top)
        while waiting and (free > 0 or free_here):
            part = waiting.pop()
            if part is not top and not self._is_possible(part):
                continue
            job = self._job(part, share)
            self._frontier.lend(part)
            if not free_here:
                return self._task(partial(self._hear, part, job), bound_box, job)
            self._own, free_here = (part, job, BoxRun(self._asked, job, interrupt=self._interrupt)), False
        return None

    def _turn(self) -> float | None:
        if self._own is None:
            return None
        part, job, run = self._own
        if not run.turn():
            self._own = None
            self._hear(part, job, run.end())
        return 0.0

    def _lose(self, error: ClusterError) -> None:
        """What the workers were at is open again."""
        self._workers = Nobody()
        for part in self._frontier.lent:
            if self._own is None or part is not self._own[0]:
                self._frontier.give_back(part)
        # With nobody left to work the search ends.
        self._stuck = self._stuck or not self._here

    def _first(self) -> Result:
        """Ask for the best of all, and learn from it."""
        question, asked, root = self._question, self._asked, self._root
        root.seconds = max(FIRST_SHARE * max(self._left, 0.0), LEAST_SECONDS)
        alone = self._workers.size == 0
        job = BoxJob(seconds=root.seconds, keeps_tree=alone)
        run = BoxRun(asked, job, interrupt=self._interrupt).run
        assert run is not None
        run.checkpoints, run.earlier = self._run.checkpoints, self._run.earlier
        if alone:
            if run.earlier is not None:
                run.begin_with(run.earlier, is_whole=True)
            for snapshot in run:
                if self._callback is not None:
                    self._callback(snapshot)
            result, n_above, states = run.result(), run.n_above, run.states()
            self._log_sum = log_sum_of(run, result, left=self._left)
        else:
            from powersum.run.cubes import Conquest

            seconds = run.question.limits.seconds
            conquest = Conquest(
                run, self._workers, self._callback, seconds=seconds, road=self._here, memory=self._memory
            )
            result, n_above, states = conquest.run(), conquest.n_above, conquest.states
            self._log_sum = conquest.log_sum(result, left=self._left)
        self._whole = result
        report = BoxReport(states=states, result=result)
        if result.certificate is not None:
            proof = proof_of(result.certificate, n_above, question, run.question, {})
            report = replace(report, result=uncertified(result), proof=proof, n_bytes=result.certificate.n_bytes)
        root.log_upper = min(root.log_upper, result.log_upper)
        self._learn(root, run, result, states)
        self._frontier.lend(root)
        self._hear(root, job, report)
        assert root.result is not None
        return root.result

    def _job(self, part: Part, share: float) -> BoxJob:
        """What finds the best of a part, in this share of the time left: the tables may tell which one it is."""
        allowed, log_floor = part.allowed, self._floor
        if part.ranked and self._ranking is not None and self._ranking.exact:
            single = self._single(self._ranking.best(part.allowed))
            if self._question.within(single) is not None:
                # What is left is its own value.
                allowed, log_floor = single, -math.inf
        left = max(self._left, 0.0)
        part.seconds = min(max(share * left, LEAST_SECONDS, LONGER * part.seconds), max(left, LEAST_SECONDS))
        return BoxJob(allowed=allowed, seconds=part.seconds, log_floor=log_floor, keeps_result=True)

    def _single(self, states: Sequence[int]) -> Allowed:
        """The box of one assignment."""
        return {v: frozenset((s,)) for v, s in zip(self._variables, states, strict=True)}

    def _hear(self, part: Part, job: BoxJob, report: BoxReport) -> None:
        """What has been found of a part."""
        self._frontier.give_back(part)
        result = report.result
        assert result is not None
        listed = job.allowed != part.allowed
        if listed and result.log_lower == -math.inf:
            # Nothing was found out about the rest of the part.
            part.ranked = False
            if part.result is not None:
                self._answered.append(part)
            return
        self._keep_proof(part, report)
        if not listed:
            part.log_upper = min(part.log_upper, result.log_upper)
        if report.states is not None:
            part.states = tuple(int(report.states[v]) for v in self._variables)
        part.result = result
        if part.allowed and part.log_upper == -math.inf:
            self._frontier.close(part)
        else:
            self._answered.append(part)

    def _learn(self, part: Part, run: Run, result: Result, states: IntArray) -> None:
        """Keep of the run on everything what helps with its parts, and the order in which they are divided."""
        from powersum.run.ranking import ranking_of, small_ranking

        schedule, tree = self._run.schedule, run.tree_left
        # What tables tell is not proven to others: where a certificate is wanted every part is asked about.
        ranks = not self._asked.certificate and result.log_upper > -math.inf
        if ranks and run.small is not None:
            self._ranking = small_ranking(run.small)
        elif ranks and 0 < len(self._variables) <= MOST_VARIABLES and schedule.tighten:
            self._ranking, tree = ranking_of(
                self._question,
                tree,
                log_lower=result.log_lower,
                memory=TREE_MEMORY * min(self._question.limits.bytes, schedule.most_bytes),
                seconds=min(TREE_SHARE * max(self._left, 0.0), TREE_SECONDS),
                ibound=schedule.ibound,
                interrupt=self._interrupt,
            )
        if run.small is None:
            from powersum.run.inheritance import Inherited

            known = [(v, int(states[v])) for v in self._variables]
            self._asked = replace(self._asked, legacy=Inherited(tree, known))
        if self._ranking is not None:
            part.ranked = True
            part.log_upper = min(part.log_upper, self._ranking.log_upper)
            self._variables = self._ranking.variables
            self._sizes = [int(self._question.model.cardinalities[v]) for v in self._variables]

    def _keep_proof(self, part: Part, report: BoxReport) -> None:
        """Keep what is proven of a part, if there is room for it."""
        if report.n_bytes and self._proof_bytes + report.n_bytes <= PROOF_SHARE * self._question.limits.bytes:
            self._proof_bytes += report.n_bytes
            part.found = report.proof
            if part.found.log_upper <= part.proof.log_upper:
                part.proof = part.found

    def _take(self, part: Part) -> None:
        """Take the best of a part, or find that it may not be taken or is not proven; the part is split, or retried."""
        self._answered.remove(part)
        result = part.result
        assert result is not None
        near = None
        if result.log_lower > -math.inf:
            near = next((taken.states for taken in self._taken if self._too_near(part.states, taken.states)), None)
        if near is not None:
            self._split(part, near)
        elif result.log_lower == -math.inf and result.log_upper == -math.inf:
            self._frontier.close(part)
        elif result.log_lower == -math.inf or (
            # What is near to an assignment goes with it: so it has to be the right one.
            self._distinct > 1 and part.gap > SAME
        ):
            # A part that ended by itself would end like that again.
            self._stuck = result.seconds < 0.5 * part.seconds
            part.result = result if self._stuck else None
            if self._stuck:
                self._answered.append(part)
        else:
            self._taken.append(part.best if part.gap <= SAME else self._alone(part))
            self._split(part, part.states)

    def _alone(self, part: Part) -> Found:
        """The best known of a part that may hold better ones, with bounds on its own value."""
        found = part.best
        seconds = max(min(part.seconds, self._left), LEAST_SECONDS)
        job = BoxJob(allowed=self._single(part.states), seconds=seconds, keeps_result=True)
        own = bound_box(replace(self._asked, certificate=False), job, self._interrupt).result
        assert own is not None
        result = own if own.log_lower > found.result.log_lower else found.result
        return replace(found, result=result, log_upper=min(part.log_upper, own.log_upper))

    def _too_near(self, states: tuple[int, ...], others: tuple[int, ...]) -> bool:
        return sum(a != b for a, b in zip(states, others, strict=True)) < self._distinct

    def _split(self, part: Part, states: tuple[int, ...]) -> None:
        """Divide a part by the first variable that is not yet decided and differs from these states.

        What differs in too few variables is left out.
        """
        self._frontier.close(part)
        pieces = list(pieces_of(part, states, self._variables, self._sizes, self._ranking))
        *_, rest = part.parts = pieces
        part.center = states
        rest.apart = apart = sum(
            s not in rest.allowed.get(v, (s,)) for v, s in zip(self._variables, states, strict=True)
        )
        for piece in pieces if apart >= self._distinct else pieces[:-1]:
            if piece.log_upper > -math.inf:
                self._frontier.open(piece)

    def _answer(self, first: Result) -> Result:
        """The first result, with those that follow and the bound on the next."""
        log_left = self._left_over
        chosen, sides = self._chosen(log_left)
        notes = _ties([found.result.log_lower for found in chosen[: self._k]], sides[self._k])
        options = {
            **first.options,
            "time_limit": self._question.limits.time_limit,
            "work": self._question.limits.work,
            "k": self._k,
        }
        if self._distinct > 1:
            options["distinct"] = self._distinct
        asked = self._question.asked()
        best = []
        for number, (found, log_upper) in enumerate(zip(chosen[: self._k], sides, strict=False)):
            result = found.result
            place = "best" if number == 0 else f"number {number + 1}"
            why = f"Not proven to be {place}: {self._why}."
            status, reason = verdict(
                result.log_lower,
                log_upper,
                limits=replace(self._question.limits, gap=0.0),
                reason=f"Proven to be {place}.",
                interrupted=why if self._is_broken_off else None,
                exhausted=why,
            )
            own = replace(
                result,
                log_upper=log_upper,
                status=status,
                reason=f"Proven to be {place}." if status is Status.OPTIMAL else reason,
                options=options,
                question=asked,
            )
            if self._log_sum is not None:
                own = replace(own, probability=probability_of(own, self._log_sum))
            best.append(own)
        if not best:
            return replace(self._whole or first, options=options, question=asked)
        if len(best) < self._k and log_left == -math.inf:
            notes = (*notes, f"There are no more than {len(best)}.")
        certificate, unproven = self._certificate(chosen, sides)
        result = replace(
            best[0],
            notes=(*best[0].notes, *notes, *unproven),
            best=tuple(best),
            log_upper_next=sides[self._k],
            sizes=first.sizes,
            certificate=certificate,
        )
        return written(result, self._run.checkpoints)

    def _draft(self) -> tuple[Certificate, int] | None:
        """The certificate of what is known; None before there is an assignment."""
        chosen, sides = self._chosen(self._left_over)
        certificate, _ = self._certificate(chosen, sides) if chosen else (None, ())
        return None if certificate is None else (certificate, 0)

    def _certificate(self, chosen: list[Found], sides: list[float]) -> tuple[Certificate | None, tuple[str, ...]]:
        """A certificate of the answer, if one is wanted, and notes on what it does not prove."""
        if not self._asked.certificate:
            return None, ()
        from powersum.run.best_proofs import Listed, best_certificate

        # Parts were divided around all that have been taken, some of which may turn out not to be among the best.
        taken = {found.states for found in self._taken}
        listed = [
            Listed(found.states, found.proof, found.result.log_lower, log_upper)
            for number, found in enumerate(chosen)
            if (number < self._k or found.states in taken)
            for log_upper in (sides[number] if number < self._k else found.log_upper,)
        ]
        return best_certificate(
            self._question,
            self._root,
            variables=self._variables,
            distinct=self._distinct,
            listed=listed,
            log_upper_next=sides[self._k],
            k=min(self._k, len(chosen)),
        )

    @property
    def _is_broken_off(self) -> bool:
        return self._interrupt.cause is not None or self._gone is not None

    @property
    def _why(self) -> str:
        if self._interrupt.cause is not None:
            return f"interrupted by {self._interrupt.cause}"
        if self._gone is not None:
            return f"broken off, for {self._gone}"
        return "nothing more could be done" if self._stuck else "time was over"

    def _chosen(self, log_left: float) -> tuple[list[Found], list[float]]:
        """The best assignments known, and upper bounds on the best, the second best and so on to the one after k.

        Of all values, the n-th largest is at most the larger of two: of the n-th largest among those taken, and of the
        largest among those left.
        """
        waiting = [part.best for part in self._answered if part.best.result.log_lower > -math.inf]
        waiting.sort(key=lambda found: -found.result.log_lower)
        chosen = list(self._taken)
        uppers = [taken.log_upper for taken in self._taken]
        if self._distinct == 1:
            uppers.sort(reverse=True)
            chosen = sorted([*chosen, *waiting], key=lambda found: -found.result.log_lower)
        else:
            # In the order in which they were taken: what comes later may be near to those before it only so far.
            for found in waiting:
                if not any(self._too_near(found.states, before.states) for before in chosen):
                    chosen.append(found)
        uppers = [*uppers[: self._k + 1], *[-math.inf] * (self._k + 1 - len(uppers))]
        # Each taken one was proven where they must be distinct: those left have no more than it.
        left = [
            log_left if self._distinct == 1 or number >= len(self._taken) else -math.inf
            for number in range(len(uppers))
        ]
        return chosen, [max(pair) for pair in zip(uppers, left, strict=True)]


def _ties(values: list[float], log_next: float) -> tuple[str, ...]:
    """What to say about assignments that are equally good."""
    notes = []
    start = 0
    for end in range(1, len(values) + 1):
        if end < len(values) and values[end - 1] - values[end] <= SAME:
            continue
        if end - start > 1:
            notes.append(f"Numbers {start + 1} to {end} are equally good, to {SAME:g}.")
        start = end
    if values and log_next > -math.inf and log_next >= values[-1] - SAME:
        notes.append(f"The next one may be as good as number {len(values)}.")
    return tuple(notes)
