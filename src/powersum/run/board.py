"""The board: the best bounds on one question, where they come from, and how they came about.

Numbers become bounds here and nowhere else. Whoever computed one hands it over with the problem it is about, with how
far rounding can have moved it, and with the point it was computed at; the board adds the problem's constant and the
rounding of its preparation, rounds outward, and refuses what is no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from powersum.bounds.protocol import FAULT, fault_of
from powersum.core.arrays import IntArray
from powersum.model.result import Snapshot
from powersum.model.rounding import certain
from powersum.prepare.problem import Problem
from powersum.proof.format import Ground, Proof, Prover, Step
from powersum.run.verdict import same_value, too_inexact

if TYPE_CHECKING:
    from powersum.bounds.tree.rebuilding import Saved
    from powersum.model.certificate import Certificate
    from powersum.model.question import Question
    from powersum.run.distributions import Distributions


@dataclass(frozen=True, slots=True)
class Incumbent:
    """The best assignment known, as it was reported: in the variables of the problem, its value without the constant.

    ``states`` may hold sum variables, too, where the value is a lower bound by holding them.
    """

    log_value: float
    states: IntArray


class Below(NamedTuple):
    """Steps of a certificate, and the lower bound that they prove for the present assignment."""

    steps: tuple[Step, ...]
    log_lower: float


NOTHING_BELOW = Below((), -math.inf)

ONE_TERM = "There was no time for sums: log_lower is the largest known term of the sum over the other variables."
"""Of an answer that is not more than what was known at first."""

FROM_FILE = "log_lower is what the file that was resumed proves of the value of the assignment."
"""Of an answer that is not more than what an earlier run has left: that may be a bound on the value."""

EQUAL = 1e-9
"""Bounds that are nearer than this share of them say one number."""

FLEETING = ((ONE_TERM,), (FROM_FILE,))
"""What is no longer true when an assignment has been evaluated, and is better."""


def one_number(log_lower: float, log_upper: float) -> bool:
    """Whether bounds are so near that nothing need be said about which of them is the value."""
    return log_upper == log_lower or log_upper - log_lower <= EQUAL * max(1.0, abs(log_lower))


class Board:
    """What is known about one question.

    Parameters
    ----------
    n_variables
        Variables of the original model.

    Attributes
    ----------
    log_lower, log_upper
        The best bounds, with the constant and every rounding since the model was read.
    states
        States of all original variables in the best assignment; -1 where a variable has none.
    incumbent
        The same assignment in the variables of the problem; None before there is one.
    proven
        True once the answer is proven, or that there is none: nothing is left to do.
    exhausted
        True where nothing more can be done, although nothing is proven.
    reason
        A sentence about what proved the answer, or why nothing more can be done.
    notes
        What a reader of the bounds must know.
    lacking
        Where more memory would have given a better answer in the time allowed: a note that says so, else empty.
    sizes
        Facts about the problem.
    history
        A snapshot for each time that bounds had moved.
    ground
        What proofs stand on; None where no certificate is wanted, and nothing is kept for one.
    prover
        How the upper bound is proven, until that is done.
    given
        Original states under which the lower bound was found, -1 where a variable has none; None before there is one.
    below
        Steps that prove a lower bound, for where elimination of what the given states leave would be too wide.
    resuming
        True until what an earlier run has left is taken up: no run ends for want of time before, so none ends worse.
    log_floor
        The value of an assignment that is known elsewhere: upper bounds are not wanted below it, and what cannot be
        better need not be searched. It is no lower bound of this question.
    keeps_tree, tree_left
        Whether the best tree is wanted when the run is over, and what tells it then; None where there is none.
    heard
        Original states of an assignment that was found elsewhere, until somebody has evaluated it here.
    stage
        How many stages of work have ended.
    wants_distributions, distributions
        Whether the distributions of all variables are wanted beside the sum; what is known of them, once there is
        something.
    """

    def __init__(self, n_variables: int) -> None:
        self.log_lower, self.log_upper = -math.inf, math.inf
        self.states: IntArray = np.full(n_variables, -1, dtype=np.int64)
        self.incumbent: Incumbent | None = None
        self.proven = self.exhausted = self.resuming = False
        self.reason = "Upper and lower bound met."
        self.notes: tuple[str, ...] = ()
        self.lacking = ""
        self.sizes: dict[str, int | float] = {}
        self.history: list[Snapshot] = []
        self._check: Callable[[], str | None] | None = None
        self._contradiction: str | None = None
        self.ground: Ground | None = None
        self.prover: Prover | None = None
        self.given: IntArray | None = None
        self.below = NOTHING_BELOW
        self.log_floor = -math.inf
        self.keeps_tree = False
        self.tree_left: Callable[[], Saved] | None = None
        self.heard: IntArray | None = None
        self.stage = 0
        self.wants_distributions = False
        self.distributions: Distributions | None = None
        self._proof, self._provable = Proof((), math.inf), math.inf
        self._draft: Prover | None = None
        self._draftable = math.inf

    @property
    def gap(self) -> float:
        """Upper less lower bound; infinity as long as one of them is not known."""
        return self.log_upper - self.log_lower

    def is_hopeless(self, share: float) -> bool:
        """Whether the gap is larger than this share of the value: it will not be closed."""
        return share * abs(self.log_lower) < self.gap < math.inf

    def best_known(self, problem: Problem) -> float:
        """The best value known here or elsewhere, without the problem's constant."""
        log_floor = self.log_floor - problem.log_constant
        return log_floor if self.incumbent is None else max(self.incumbent.log_value, log_floor)

    @property
    def settled(self) -> bool:
        """False where distributions are wanted and not all of them are exact."""
        return not self.wants_distributions or (self.distributions is not None and self.distributions.settled)

    @property
    def contradicted(self) -> bool:
        """True once two bounds contradicted each other: there is then no answer."""
        return self._contradiction is not None

    def offer_upper(
        self,
        problem: Problem,
        log_value: float,
        log_error: float,
        compute_again: Callable[[], float] | None = None,
        prover: Prover | None = None,
        draft: Prover | None = None,
    ) -> bool:
        """A bound on the problem's value from above; True if it is the best so far.

        Parameters
        ----------
        problem
            What it is a bound on.
        log_value
            The bound, without the problem's constant; what is no number never counts.
        log_error
            How far rounding can have moved it.
        compute_again
            Computes it from scratch at the point it comes from, rounding counted; None where it needs no point.
        prover
            Proves it, if a certificate is wanted; the best that has one counts.
        draft
            Proves it, too, and can be asked at any time, while work goes on undisturbed: for checkpoints.
        """
        log_upper = certain(log_value + problem.log_constant, log_error + problem.log_error)
        better = self._take_upper(log_upper, prover, draft)
        if better and compute_again is not None:
            self._check = lambda: fault_of(log_value + log_error, compute_again())
        return better

    def _take_upper(self, log_upper: float, prover: Prover | None, draft: Prover | None) -> bool:
        """A bound with the constant and all rounding in it; True if it is the best so far."""
        if self.ground is not None and prover is not None and log_upper < self._provable:
            # Better bounds may have come from where there is no proof.
            self.prover, self._provable = prover, log_upper
        if self.ground is not None and draft is not None and log_upper < self._draftable:
            self._draft, self._draftable = draft, log_upper
        if not log_upper < self.log_upper:
            return False
        self._refuse_contradiction(self.log_lower, log_upper)
        self.log_upper, self._check = log_upper, None
        return True

    def offer_lower(
        self,
        problem: Problem,
        log_value: float,
        log_error: float,
        states: IntArray,
    ) -> bool:
        """The value of an assignment of the problem's max variables, or less; True if it is the best so far.

        Infinity stands for "too wide to evaluate", which is no value; neither is what is no number.
        """
        better = self._take_lower(problem, log_value, log_error, states)
        # Before there is an incumbent, one that is worse than what was known at first is better than none.
        if better or (self.incumbent is None and math.isfinite(log_value)):
            self.incumbent = Incumbent(log_value, states.copy())
        if better and self.notes in FLEETING:
            self.notes = ()
        return better

    def forget_variables(self) -> None:
        """Assignments are told in other variables from now on: the best so far is one that was found elsewhere."""
        if self.incumbent is not None:
            self.incumbent, self.heard = None, self.given

    def offer_first(self, problem: Problem, log_value: float, log_error: float, states: IntArray) -> bool:
        """The value of a configuration of all variables that is known before the work begins; True if it is the best.

        It is no incumbent, for these are told in the variables of the work's own problem.
        """
        better = self._take_lower(problem, log_value, log_error, states)
        if better and (problem.tau > 0.0).any():
            self.notes = (ONE_TERM,)
        return better

    def _take_lower(self, problem: Problem, log_value: float, log_error: float, states: IntArray) -> bool:
        log_lower = log_value + problem.log_constant - log_error - problem.log_error
        if log_value == math.inf or not log_lower > self.log_lower:
            return False
        self._refuse_contradiction(log_lower, self.log_upper)
        self.log_lower = log_lower
        restored = problem.restore(np.where(problem.tau == 0.0, states, -1))
        if not np.array_equal(restored, self.states):
            self.below = NOTHING_BELOW
        self.states = restored
        self.given = problem.restore(states)
        return True

    def offer_below(self, problem: Problem, log_value: float, log_error: float, steps: Sequence[Step]) -> None:
        """Steps that prove a lower bound for the present assignment, where elimination might be too wide."""
        log_lower = log_value + problem.log_constant - log_error - problem.log_error
        if log_lower > self.below.log_lower:
            self.below = Below(tuple(steps), log_lower)

    def offer_exact(
        self,
        problem: Problem,
        log_value: float,
        log_error: float,
        states: IntArray,
        reason: str,
        prover: Prover | None = None,
    ) -> None:
        """The value itself and a best assignment: that is the answer, or ``-inf`` the proof that there is none.

        What is no number, or infinity, proves nothing; neither does a value that rounding may have moved far.
        """
        if log_value == -math.inf:
            self.impossible(prover)
            return
        # Elimination has no point that could be a bad one: its error counts as it is, however large the model made it.
        error = log_error + problem.log_error
        log_upper = log_value + problem.log_constant + error
        if not math.isfinite(log_upper):
            return
        self._take_upper(log_upper, prover, None)
        self.offer_lower(problem, log_value, log_error, states)
        if same_value(log_upper - 2.0 * error, log_upper):
            self.prove(reason)
        else:
            self.give_up(too_inexact(reason, log_upper - 2.0 * error, log_upper))

    def impossible(self, prover: Prover | None = None) -> None:
        """Nothing has positive probability, as was proven."""
        if self.ground is not None and prover is not None:
            self.prover = prover
        self._refuse_contradiction(self.log_lower, -math.inf)
        self.log_upper, self._check, self.proven = -math.inf, None, True

    def prove(self, reason: str) -> None:
        """What is known is the answer; notes about bounds no longer apply. Distributions may still be wanted."""
        self.proven, self.reason, self.notes = self.settled, reason, ()

    def give_up(self, reason: str) -> None:
        """Nothing more can be done."""
        self.exhausted, self.reason = True, reason

    def proof(self) -> Proof:
        """The proof of the upper bound, made once; of a weaker one if the last had no prover."""
        prover, self.prover = self.prover, None
        if prover is not None and self.ground is not None:
            self.offer_proof(prover(self.ground))
        return self._proof

    def draft(self) -> Proof:
        """The best proof that is there or can be had at once; whoever works is not disturbed by it."""
        if self._draft is not None and self.ground is not None and self._draftable < self._proof.log_upper:
            return self._draft(self.ground)
        return self._proof

    def offer_proof(self, proof: Proof) -> None:
        """A proof that is there already; it counts if it proves more than those before."""
        if proof.steps and proof.log_upper <= self._proof.log_upper:
            self._proof = proof

    def certificate(self, question: Question, proof: Proof) -> Certificate:
        """A certificate of what is known, with a proof of the upper bound; only where there is ground for proofs."""
        from powersum.proof.certificate import certificate_of

        assert self.ground is not None
        found = self.log_lower > -math.inf
        return certificate_of(
            question,
            self.ground,
            proof,
            log_lower=self.log_lower,
            log_upper=self.log_upper,
            states=self.given,
            assignment={v: int(self.states[v]) for v in question.query.max_variables.tolist()} if found else None,
            below=self.below.steps,
            log_below=self.below.log_lower,
        )

    def confirm(self) -> None:
        """Check the upper bound at the point it comes from, which takes memory and is given up by that.

        If a certificate is wanted, the point is proven before. No bound changes, for rounding was counted when it was
        taken. Where the bound is not confirmed there is no answer.
        """
        self.proof()
        self._draft = None
        check, self._check = self._check, None
        if check is not None:
            self._contradiction = self._contradiction or check()
            self.refuse()

    @property
    def last_notes(self) -> tuple[str, ...]:
        """Notes of an answer with the bounds of now: which of two that say one number is the value need not be said."""
        met = one_number(self.log_lower, self.log_upper)
        notes = () if self.notes in FLEETING and met else self.notes
        return notes if self.proven or met or not self.lacking else (*notes, self.lacking)

    def snapshot(self, seconds: float, *, always: bool = False) -> Snapshot | None:
        """Note down where the bounds stand; None if they have not moved, unless it is to be done always."""
        self.refuse()
        last = self.history[-1] if self.history else None
        if not always and last is not None and (last.log_lower, last.log_upper) == (self.log_lower, self.log_upper):
            return None
        self.history.append(Snapshot(seconds, len(self.history), self.log_upper, self.log_lower))
        return self.history[-1]

    def refuse(self) -> None:
        """Raise the contradiction that was met, if one was: there is then no answer."""
        if self._contradiction is not None:
            raise RuntimeError(self._contradiction)

    def _refuse_contradiction(self, log_lower: float, log_upper: float) -> None:
        """Both have their rounding counted, so if they contradict each other one of the two is wrong.

        Nothing tells which: no answer is better than a false proof.
        """
        if not log_lower <= log_upper:
            self._contradiction = f"the bounds contradict each other: lower {log_lower!r}, upper {log_upper!r}. {FAULT}"
        self.refuse()
