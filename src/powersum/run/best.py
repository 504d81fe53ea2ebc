"""The k best assignments in order, each certified, and a bound on the next one.

All assignments that are left are divided into parts, each of which allows only some states of some variables. The best
of a part comes from ``solve``; a part whose best is taken is split by the first variable in which another assignment
differs from it (Lawler 1972, Nilsson 1998). The part with the largest upper bound is always next, so that what has been
taken is proven to be the best once no part that is left can hold a better one.

Parts share what the first run has learned. Variables are taken in the order in which the tables of an elimination, or
of the best tree, tell what every state costs (:mod:`powersum.run.ranking`): that bounds all parts at once, and where
no bucket is split it tells the best of each. Other parts begin with the tree and the assignment of the whole, and look
only for what is better than the assignments that are known already.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from powersum.core.clock import working_time
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt, interruptible
from powersum.core.work_time import counted_by
from powersum.divide.proofs import empty_box, proof_of
from powersum.model.interval import SAME
from powersum.model.question import Question
from powersum.model.result import Result, Snapshot, Status
from powersum.run.best_parts import Allowed, Found, Part, pieces_of
from powersum.run.probability import log_sum_of, probability_of
from powersum.run.solver import Run
from powersum.run.tuning import DEFAULT_SCHEDULE, Schedule

if TYPE_CHECKING:
    from powersum.bounds.tree.rebuilding import Saved
    from powersum.model.certificate import Certificate
    from powersum.run.best_proofs import Division
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

CLOSED = 0.5 * SAME
"""A part whose bound is no further above the value that it has to beat is done with."""

PROOF_SHARE = 0.25
"""Share of the memory for proofs of parts; those that no longer fit are not kept, and less is proven."""


def best_of(
    question: Question,
    *,
    k: int,
    distinct: int,
    certificate: bool = False,
    schedule: Schedule = DEFAULT_SCHEDULE,
    callback: Callable[[Snapshot], None] | None = None,
) -> Result:
    """The k best assignments of a question: the best one, with all of them in its ``best``."""
    if question.query.task == "PR":
        raise InputError(f"k is {k}: log Z has one value; name the variables to maximise")
    with interruptible() as interrupt, counted_by(question.limits.meter()):
        return BestFirst(
            question,
            k=k,
            distinct=distinct,
            certificate=certificate,
            schedule=schedule,
            interrupt=interrupt,
            callback=callback,
        ).run()


class BestFirst:
    """The search for the best assignments of a question.

    Parameters
    ----------
    question
        What is asked, with the limits of the whole.
    k
        How many assignments.
    distinct
        In how many variables they differ at least, one from each that comes before it.
    certificate, schedule, interrupt, callback
        As :func:`powersum.solve` has them; the callback hears of the first part only.
    """

    def __init__(
        self,
        question: Question,
        *,
        k: int,
        distinct: int,
        certificate: bool = False,
        schedule: Schedule,
        interrupt: Interrupt,
        callback: Callable[[Snapshot], None] | None,
    ) -> None:
        self._question, self._k, self._distinct = question, k, distinct
        self._schedule, self._interrupt, self._callback = schedule, interrupt, callback
        self._end = working_time() + question.limits.seconds
        self._variables = [v for v in question.query.answered if v not in question.evidence.states]
        self._sizes = [int(question.model.cardinalities[v]) for v in self._variables]
        self._root: Division | None = None
        self._whole: Result | None = None
        self._proof_bytes = 0
        if certificate:
            from powersum.run.best_proofs import Division

            self._root = Division()
        self._parts: list[Part] = [Part({}, math.inf, division=self._root)]
        self._ranking: Ranking | None = None
        self._tree: Saved | None = None
        self._taken: list[Found] = []
        self._stuck = False
        self._log_sum: tuple[float, float] | None = None
        self._whole_solved: Result | None = None

    def run(self) -> Result:
        """Search until the k best are proven or time is over."""
        root = self._parts[0]
        self._solve(root, FIRST_SHARE)
        first = root.result
        assert first is not None
        if self._may_go_on and self._ranking is not None and self._ranking.exact and root.gap > SAME:
            # The run had no time for what tables tell.
            self._solve(root, 1.0)
        while self._parts and not self._stuck and self._may_go_on:
            top = self._top()
            if top.result is None:
                floor = self._floor
                waiting = sum(part.result is None and part.log_upper > floor for part in self._parts)
                self._solve(top, 1.0 / (waiting + 1))
            elif self._enough(self._left):
                break
            else:
                self._take(top)
        return self._answer(first)

    @property
    def _may_go_on(self) -> bool:
        return working_time() < self._end and self._interrupt.cause is None

    def _top(self) -> Part:
        """The part with the largest bound; one whose best is known to be as good, if there is one."""
        top = max(self._parts, key=lambda part: part.log_upper)
        if self._distinct > 1:
            return top
        least = top.log_upper - SAME
        known = [part for part in self._parts if part.result is not None and part.result.log_lower >= least]
        return max(known, key=lambda part: part.found.result.log_lower, default=top)

    @property
    def _floor(self) -> float:
        """What is worth looking for is better than this: the value of the one after the k best known."""
        values = [found.result.log_lower for found in self._taken]
        values += [part.result.log_lower for part in self._parts if part.result is not None]
        if self._distinct > 1 or len(values) <= self._k:
            return -math.inf
        return sorted(values, reverse=True)[self._k]

    @property
    def _left(self) -> float:
        """Upper bound on everything that no assignment taken stands for."""
        return max((part.log_upper for part in self._parts), default=-math.inf)

    def _enough(self, log_left: float) -> bool:
        """True once k assignments are proven to be the best, those left having at most this value."""
        return sum(taken.result.log_lower >= log_left - SAME for taken in self._taken) >= self._k

    def _solve(self, part: Part, share: float) -> None:
        """Ask for the best of a part in this share of the time left; a part without any is done with."""
        question, listed = self._question.within(part.allowed), False
        if question is not None and part.ranked and self._ranking is not None and self._ranking.exact:
            # Tables have told which one it is, and what it is worth; what is left is its own value.
            states = self._ranking.best(part.allowed)
            single = self._question.within({v: (s,) for v, s in zip(self._variables, states, strict=True)})
            question, listed = (question, False) if single is None else (single, True)
        if question is None:
            self._parts.remove(part)
            if part.division is not None:
                part.division.proof = empty_box(part.allowed)
            return
        left = max(self._end - working_time(), 0.0)
        part.seconds = min(max(share * left, LEAST_SECONDS, LONGER * part.seconds), max(left, LEAST_SECONDS))
        solver = self._solver(question, part.seconds, certificate=part.division is not None)
        solver.watch(self._interrupt)
        whole = not part.allowed and self._whole_solved is None
        floor = -math.inf if whole or listed else self._floor
        solver.aim_above(floor)
        if whole:
            solver.keep_tree()
        elif solver.small is None:
            from powersum.run.inheritance import Inherited

            best = self._taken[0].states if self._taken else ()
            solver.begin_with(Inherited(self._tree, list(zip(self._variables, best, strict=False))))
        for snapshot in solver:
            if whole and self._callback is not None:
                self._callback(snapshot)
            if snapshot.log_upper <= floor + CLOSED:
                solver.interrupt("Nothing better is left in this part.")
        result = solver.result()
        if listed and result.log_lower == -math.inf:
            # Nothing was found out about the rest of the part.
            part.ranked = False
            return
        if part.division is not None:
            result = self._keep_proof(part.division, part.allowed, solver, result)
        if not listed:
            part.log_upper = min(part.log_upper, result.log_upper)
        if whole:
            self._whole_solved = result
            self._log_sum = log_sum_of(solver, result, left=self._end - working_time())
            self._learn(part, solver, result)
        states_of_all = solver.states()
        part.states = tuple(int(states_of_all[v]) for v in self._variables)
        part.result = result
        if part.allowed and part.log_upper == -math.inf:
            self._parts.remove(part)

    def _solver(self, question: Question, seconds: float, *, certificate: bool = False) -> Run:
        """A run on a part for so many seconds."""
        limits = replace(
            self._question.limits,
            time_limit=seconds if seconds < math.inf else None,
            work=None,
            # Where they must be distinct, only what is proven may be taken.
            gap=self._question.limits.gap if self._distinct == 1 else 0.0,
        )
        return Run(replace(question, limits=limits), certificate=certificate, schedule=self._schedule)

    def _learn(self, part: Part, solver: Run, result: Result) -> None:
        """Keep of the run on everything what helps with its parts, and the order in which they are divided."""
        from powersum.run.ranking import ranking_of, small_ranking

        self._tree = solver.tree_left
        # What tables tell is not proven to others: where a certificate is wanted every part is asked about.
        if self._root is not None or result.log_upper == -math.inf:
            return
        if solver.small is not None:
            self._ranking = small_ranking(solver.small)
        elif 0 < len(self._variables) <= MOST_VARIABLES and self._schedule.tighten:
            left = max(self._end - working_time(), 0.0)
            self._ranking, self._tree = ranking_of(
                self._question,
                self._tree,
                log_lower=result.log_lower,
                memory=TREE_MEMORY * min(self._question.limits.bytes, self._schedule.most_bytes),
                seconds=min(TREE_SHARE * left, TREE_SECONDS),
                ibound=self._schedule.ibound,
                interrupt=self._interrupt,
            )
        if self._ranking is not None:
            part.ranked = True
            part.log_upper = min(part.log_upper, self._ranking.log_upper)
            self._variables = self._ranking.variables
            self._sizes = [int(self._question.model.cardinalities[v]) for v in self._variables]

    def _keep_proof(self, division: Division, part: Allowed, solver: Run, result: Result) -> Result:
        """Keep what the certificate of a part proves, and take it off the part's result, where it has no place."""
        from powersum.run.certificate import shortfall

        certificate = result.certificate
        if certificate is None:
            return result
        if not part:
            self._whole = result
        if self._proof_bytes + certificate.n_bytes <= PROOF_SHARE * self._question.limits.bytes:
            self._proof_bytes += certificate.n_bytes
            proof = proof_of(certificate, solver.n_above, self._question, solver.question, part)
            division.found = proof
            if proof.log_upper <= division.proof.log_upper:
                division.proof = proof
        told = shortfall(certificate, result.log_lower, result.log_upper)
        return replace(result, certificate=None, notes=tuple(note for note in result.notes if note not in told))

    def _take(self, part: Part) -> None:
        """Take the best of a part, or find that it may not be taken or is not proven; the part is split, or retried."""
        result = part.result
        assert result is not None
        near = next((taken.states for taken in self._taken if self._too_near(part.states, taken.states)), None)
        if near is not None and result.log_lower > -math.inf:
            self._split(part, near)
        elif result.log_lower == -math.inf and result.log_upper == -math.inf:
            self._parts.remove(part)
        elif result.log_lower == -math.inf or (
            # What is near to an assignment goes with it: so it has to be the right one.
            self._distinct > 1 and part.gap > SAME
        ):
            # A part that ended by itself would end like that again.
            self._stuck = result.seconds < 0.5 * part.seconds
            part.result = result if self._stuck else None
        else:
            self._taken.append(part.found if part.gap <= SAME else self._alone(part))
            self._split(part, part.states)

    def _alone(self, part: Part) -> Found:
        """The best known of a part that may hold better ones, with bounds on its own value."""
        found = part.found
        question = self._question.within({v: (s,) for v, s in zip(self._variables, part.states, strict=True)})
        assert question is not None
        solver = self._solver(question, max(min(part.seconds, self._end - working_time()), LEAST_SECONDS))
        solver.watch(self._interrupt)
        for _ in solver:
            pass
        own = solver.result()
        result = own if own.log_lower > found.result.log_lower else found.result
        return replace(found, result=result, log_upper=min(part.log_upper, own.log_upper))

    def _too_near(self, states: tuple[int, ...], others: tuple[int, ...]) -> bool:
        return sum(a != b for a, b in zip(states, others, strict=True)) < self._distinct

    def _split(self, part: Part, states: tuple[int, ...]) -> None:
        """Divide a part by the first variable that is not yet decided and differs from these states.

        What differs in too few variables is left out.
        """
        self._parts.remove(part)
        pieces = list(pieces_of(part, states, self._variables, self._sizes, self._ranking))
        *_, rest = pieces
        apart = sum(s not in rest.allowed.get(v, (s,)) for v, s in zip(self._variables, states, strict=True))
        if part.division is not None:
            from powersum.run.best_proofs import Division

            for piece in pieces:
                piece.division = Division(apart=apart if piece is rest else -1)
                part.division.pieces.append(piece.division)
            part.division.around = states
        kept = pieces if apart >= self._distinct else pieces[:-1]
        self._parts += [piece for piece in kept if piece.log_upper > -math.inf]

    def _answer(self, first: Result) -> Result:
        """The first result, with those that follow and the bound on the next."""
        log_left = self._left
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
            proven = log_upper - result.log_lower <= SAME
            place = "best" if number == 0 else f"number {number + 1}"
            own = replace(
                result,
                log_upper=log_upper,
                status=Status.OPTIMAL if proven else self._unproven,
                reason=f"Proven to be {place}." if proven else f"Not proven to be {place}: {self._why}.",
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
        return replace(
            best[0],
            notes=(*best[0].notes, *notes, *unproven),
            best=tuple(best),
            log_upper_next=sides[self._k],
            sizes=first.sizes,
            certificate=certificate,
        )

    def _certificate(self, chosen: list[Found], sides: list[float]) -> tuple[Certificate | None, tuple[str, ...]]:
        """A certificate of the answer, if one is wanted, and notes on what it does not prove."""
        if self._root is None:
            return None, ()
        from powersum.run.best_proofs import Listed, best_certificate

        # Parts were divided around all that have been taken, some of which may turn out not to be among the best.
        taken = {found.states for found in self._taken}
        listed = [
            Listed(found.states, found.division.found, found.result.log_lower, log_upper)
            for number, found in enumerate(chosen)
            if (number < self._k or found.states in taken) and found.division is not None
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
    def _unproven(self) -> Status:
        return Status.BOUNDED if self._interrupt.cause is None else Status.INTERRUPTED

    @property
    def _why(self) -> str:
        if self._interrupt.cause is not None:
            return f"interrupted by {self._interrupt.cause}"
        return "nothing more could be done" if self._stuck else "time was over"

    def _chosen(self, log_left: float) -> tuple[list[Found], list[float]]:
        """The best assignments known, and upper bounds on the best, the second best and so on to the one after k.

        Of all values, the n-th largest is at most the larger of two: of the n-th largest among those taken, and of the
        largest among those left.
        """
        waiting = [part.found for part in self._parts if part.result is not None and part.result.log_lower > -math.inf]
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
