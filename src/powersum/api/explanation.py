"""``result.explain``: the questions that tell what an answer rests on, asked one after the other."""

from __future__ import annotations

import math
from dataclasses import replace

from powersum.api.sensitivity import sensitivity
from powersum.core.clock import working_time
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt, interruptible
from powersum.model.defaults import TIME
from powersum.model.explanation import Alternative, Explanation, Without
from powersum.model.interval import Interval
from powersum.model.limits import Limits
from powersum.model.question import ModelLike, Question, asked_again, model_of
from powersum.model.result import Result, Status
from powersum.run.shares import LEAST_SECONDS, UNLIMITED_SECONDS, sum_bounds
from powersum.run.solver import Run


def explain(
    result: Result,
    model: ModelLike,
    *,
    time_limit: float | None = TIME,
    memory: float | str | None = None,
    threads: int = 1,
    seed: int = 0,
) -> Explanation:
    """Explain an answer: see :meth:`powersum.Result.explain`."""
    limits = Limits.given(time_limit=time_limit, memory=memory, threads=threads, seed=seed)
    if result.question is None or not result.assignment:
        raise InputError("there is nothing to explain: the result has no assignment, or does not know its question")
    question = asked_again(result.question, model_of(model), limits)
    question.only_sums_and_maxima("explain")
    with interruptible() as interrupt:
        return _Explainer(question, result, interrupt).run()


class _Explainer:
    """The questions that an explanation takes, each with an equal share of the time left."""

    def __init__(self, question: Question, result: Result, interrupt: Interrupt) -> None:
        self._question, self._result, self._interrupt = question, result, interrupt
        model = question.model
        self._states = {
            v: model.state(v, state)
            for v, state in ((model.variable(name), state) for name, state in result.assignment.items())
        }
        self._free = [v for v in question.query.answered if v not in question.evidence.states]
        self._end = working_time() + question.limits.seconds
        self._left = 3 * len(question.all_evidence) + len(self._free)

    def run(self) -> Explanation:
        """Answer all of them."""
        evidence = tuple(self._without(v) for v in self._question.all_evidence)
        alternatives = sorted((self._alternative(v) for v in self._free), key=lambda one: one.log_loss_upper)
        # Every other assignment differs in some variable: the best of them lies below this one by this much at least.
        log_lead = min((one.log_loss_lower for one in alternatives), default=math.inf)
        return Explanation(evidence, tuple(alternatives), sensitivity(self._question, self._states, log_lead))

    def _seconds(self) -> float:
        """What the next question may take."""
        left = self._end - working_time()
        self._left -= 1
        if left == math.inf:
            return UNLIMITED_SECONDS
        return max(left / (self._left + 1), LEAST_SECONDS)

    def _solve(self, question: Question) -> Result:
        solver = Run(replace(question, limits=replace(question.limits, time_limit=self._seconds())))
        solver.watch(self._interrupt)
        for _ in solver:
            pass
        return solver.result()

    def _without(self, variable: int) -> Without:
        """The answer without what is known about a variable."""
        question, model = self._question, self._question.model
        states, likelihoods = dict(question.evidence.states), dict(question.evidence.likelihoods)
        known = states.pop(variable, None)
        row = likelihoods.pop(variable, ())
        other = replace(question, evidence=question.evidence._replace(states=states, likelihoods=likelihoods))
        answer = self._solve(other)
        whole = self._sums(other)
        own = self._sums(other.within({v: (state,) for v, state in self._states.items()}))
        # The sum has both values among its terms.
        whole = max(whole[0], own[0], answer.log_lower), whole[1]
        given = self._result.assignment
        return Without(
            name=model.name(variable),
            state=row if known is None else model.label(variable, known),
            changes={name: state for name, state in answer.assignment.items() if given[name] != state},
            proven=answer.status is Status.OPTIMAL,
            probability=Interval.ratio(own, whole),
            best_probability=Interval.ratio((max(answer.log_lower, own[0]), answer.log_upper), whole),
        )

    def _sums(self, question: Question | None) -> tuple[float, float]:
        return sum_bounds(question, seconds=self._seconds(), interrupt=self._interrupt)

    def _alternative(self, variable: int) -> Alternative:
        """The best answer in which a variable has another state."""
        question, model, own = self._question, self._question.model, self._states[variable]
        others = frozenset(range(int(model.cardinalities[variable]))) - {own}
        other = question.within({variable: others})
        name = model.name(variable)
        if other is None:
            return Alternative(name, model.label(variable, own), None, math.inf, math.inf)
        answer = self._solve(other)
        return Alternative(
            name=name,
            state=model.label(variable, own),
            other=answer.assignment.get(name),
            log_loss_lower=_difference(self._result.log_lower, answer.log_upper, -math.inf),
            log_loss_upper=_difference(self._result.log_upper, answer.log_lower, math.inf),
        )


def _difference(first: float, second: float, outward: float) -> float:
    """A difference, rounded outward; infinite where the second is minus infinity."""
    if second == -math.inf:
        return math.inf
    return math.nextafter(first - second, outward)
