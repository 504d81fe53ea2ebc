"""Both sides of one diagram, from the quickest means to the slowest, until they meet or time is over."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from powersum.bounds.protocol import FAULT
from powersum.core import work_time as time
from powersum.core.errors import ImpossibleError
from powersum.core.interrupt import Interrupt
from powersum.decisions.accumulator import Accumulated, Table
from powersum.decisions.decision import Decision, PolicyRule
from powersum.decisions.eliminator import Eliminator, Rule
from powersum.decisions.pairs import PAIR_ENTRY, TINY, NotDone
from powersum.decisions.plan import PairPlan
from powersum.decisions.policies import in_view, updated, widened
from powersum.decisions.stages import Stages, requisite
from powersum.model.diagram import Diagram
from powersum.model.limits import Limits
from powersum.model.model import Model
from powersum.model.result import Status
from powersum.run.solver import solve

CASES = (1, 16, 256, 4096)
"""How many cases a rule may tell apart, one round of improving after another."""

MOST_RULE_CASES = 256
"""Cases of all rules together for which the best rules are sought as a marginal MAP question."""

QUICK = 1e8
"""Entries of all tables of an elimination that is done at once."""

MOST_ENTRIES = 1 << 27
"""Entries of the largest table, where memory allows."""

BYTES = 40.0
"""Bytes for each entry of the largest table while it is made."""

SAME = 1e-6
"""Both sides this close, relative to their size or to the largest utility, count as equal."""

POLICY_SHARE = 0.25
"""Share of the time for improving policies before tighter bounds."""


class DecisionSearch:
    """Both sides of one diagram.

    Parameters
    ----------
    diagram, observed
        The diagram, and what is observed and decided already.
    limits
        Memory, threads and seed.
    interrupt
        Ends the search early.
    end
        When to stop.
    """

    def __init__(
        self, diagram: Diagram, observed: Mapping[int, int], limits: Limits, interrupt: Interrupt, end: float
    ) -> None:
        self._diagram, self._observed = diagram, dict(observed)
        self._limits, self._interrupt, self._end = limits, interrupt, end
        self._product = Accumulated.of(diagram, observed)
        self._needed = requisite(diagram, observed)
        most = min(MOST_ENTRIES, int(limits.bytes / BYTES))
        self._eliminator = Eliminator(diagram, observed, self._needed, self._ended, most)
        self._most = most
        self._rules = {k: Rule(diagram.choices[k].variable, (), np.zeros((), dtype=np.int64)) for k in self._needed}
        self._spread = math.fsum(float(np.ptp(u.table)) for u in diagram.utilities)
        self.lower, self.upper = -math.inf, math.inf
        # These sums are rounded once each.
        room = 2.0**-50 * math.fsum(float(np.abs(u.table).max()) for u in diagram.utilities)
        self._offer_upper(math.fsum(float(u.table.max()) for u in diagram.utilities) + room)
        self._offer_lower(math.fsum(float(u.table.min()) for u in diagram.utilities) - room, self._rules)

    def run(self) -> None:
        """A quick bound, policies, then tighter bounds; where memory is limited, the best rules themselves."""
        self._check_given()
        plans = self._plans()
        quick = max((place for place, plan in enumerate(plans) if plan.entries <= QUICK), default=-1)
        if quick >= 0:
            self._eliminate(plans[quick])
        if not self._needed:
            self._certify({})
        elif not self._done:
            self._improve(POLICY_SHARE * self._left)
        for plan in sorted(plans[quick + 1 :], key=lambda found: found.entries):
            if not self._done and PAIR_ENTRY * plan.entries < 0.7 * self._left:
                self._eliminate(plan)
        if not self._done and not self._diagram.recall and self._cases <= MOST_RULE_CASES:
            self._best_rules(self._left)
        if not self._done and self._needed:
            # What is left is for the value of the policy.
            self._widen(self._until(0.9 * self._left))

    def _check_given(self) -> None:
        """Refuse evidence of probability zero."""
        if all(v in self._diagram.decisions for v in self._observed):
            return
        try:
            if self._eliminator.given(self._rules) > TINY:
                return
        except NotDone:
            pass
        if self._log_given[1] == -math.inf:
            raise ImpossibleError("the evidence has probability 0: there is no policy")

    def _plans(self) -> list[PairPlan]:
        """Ways to reveal what is hidden, the one that reveals most first."""
        delays = [*range(Stages.of(self._diagram, self._observed).n), None]
        plans = [self._eliminator.plan(delay, 0.02 * self._left) for delay in delays]
        limit = float(self._most)
        while plans[0].entries > QUICK and limit > 4.0:
            # Too wide even with all revealed: utilities are maximised apart, in parts as large as possible.
            limit /= 8.0
            plans.insert(0, self._eliminator.plan(0, 0.01 * self._left, limit))
        return plans

    def _eliminate(self, plan: PairPlan) -> None:
        """Bound all policies; where the decisions go by what they know, the bound is the value of their rules."""
        try:
            value, rules = self._eliminator.best(plan)
        except NotDone:
            return
        self._offer_upper(value)
        if self._eliminator.seen(rules):
            self._certify(rules)

    def _improve(self, seconds: float) -> None:
        """Improve a policy that tells few cases apart, then more; certify each that is better."""
        ended = self._until(seconds)
        cards = self._diagram.model.cardinalities.tolist()
        self._certify(self._rules)
        views: dict[int, tuple[int, ...]] = dict.fromkeys(self._needed, ())
        began = time.monotonic()
        try:
            # Always the same, at first: here each step is a whole policy, however long it takes.
            rules, _ = updated(self._eliminator, views, self._rules, ended)
        except NotDone:
            return
        for most in CASES:
            views = {k: in_view(needed, cards, most) for k, needed in self._needed.items()}
            try:
                # With all earlier decisions at random the last ones are as good as they can be in every case; rules
                # that are good in few cases begin elsewhere.
                found = updated(self._eliminator, views, rules, ended)
                if time.monotonic() - began < 0.2 * seconds:
                    found = max(found, updated(self._eliminator, views, {}, ended), key=lambda one: one[1])
                rules, _ = found
            except NotDone:
                break
            self._certify(rules)
            if self._done or views == self._needed or ended():
                return
        self._widen(ended)

    def _widen(self, ended: Callable[[], bool]) -> None:
        """Let rules go by more, one variable at a time."""
        cards = self._diagram.model.cardinalities.tolist()
        rules, _ = widened(
            self._eliminator, self._needed, cards, CASES[-1], self._rules, self.lower, self._limits.seed, ended
        )
        self._certify(rules)

    def _certify(self, rules: Mapping[int, Rule]) -> None:
        """The value of a policy, as an exact sum or a bound on it from below."""
        try:
            value = self._eliminator.value(rules)
        except NotDone:
            cards = self._product.cardinalities
            tables = tuple(
                ((*rule.view, rule.variable), np.where(rule.table(cards[rule.variable]) > 0.0, 0.0, -np.inf))
                for rule in rules.values()
            )
            low, _ = self._solve(self._product.model(tables), None, 0.5 * self._left)
            value = self._product.utility(low, self._log_given[1], -1.0)
        self._offer_lower(value, rules)

    def _offer_lower(self, value: float, rules: Mapping[int, Rule]) -> None:
        """The value of a policy or less, with its rounding: the one way to a lower bound."""
        if value > self.lower:
            self.lower, self._rules = value, {k: rule.short() for k, rule in rules.items()}
            self._refuse_contradiction()

    def _offer_upper(self, value: float) -> None:
        """A bound on all policies, with its rounding: the one way to an upper bound."""
        if value < self.upper:
            self.upper = value
            self._refuse_contradiction()

    def _refuse_contradiction(self) -> None:
        """Rounding is counted on both sides, so one of them is wrong: no answer is better than a false one."""
        if self.lower > self.upper:
            raise RuntimeError(f"the bounds contradict each other: {self.lower!r} to {self.upper!r}. {FAULT}")

    def decision(self, seconds: float) -> Decision:
        """What was found."""
        if self._met:
            status, reason = Status.OPTIMAL, "The policy is as good as the bound on all policies."
        elif self._interrupt.cause is not None:
            status, reason = Status.INTERRUPTED, f"Ended by {self._interrupt.cause}."
        elif time.monotonic() >= self._end:
            status, reason = Status.BOUNDED, f"{self._limits.reached}."
        else:
            status, reason = Status.BOUNDED, "Nothing more is known that would bring the two sides together."
        model = self._diagram.model
        policy, action = [], {}
        for k in sorted(self._needed):
            rule = self._rules[k]
            names = tuple(model.name(v) for v in rule.view)
            policy.append(PolicyRule(model.name(rule.variable), names, model, rule.view, rule.variable, rule.chosen))
            # What it goes by is open: nothing of it is observed.
            if not rule.view:
                action[policy[-1].decision] = model.label(rule.variable, int(rule.chosen))
        return Decision(
            utility_lower=self.lower,
            utility_upper=self.upper,
            status=status,
            policy=tuple(policy),
            reason=reason,
            seconds=seconds,
            next_action=action,
        )

    @cached_property
    def _log_given(self) -> tuple[float, float]:
        """Both bounds on the log of the probability of what is observed."""
        if all(v in self._diagram.decisions for v in self._observed):
            return 0.0, 0.0
        return self._solve(self._chance_model(), None, 0.2 * self._left)

    @property
    def _cases(self) -> int:
        """Cases of all rules together."""
        cards = self._diagram.model.cardinalities
        return sum(math.prod(int(cards[v]) for v in needed) for needed in self._needed.values())

    @property
    def _left(self) -> float:
        return max(0.1, self._end - time.monotonic())

    @property
    def _met(self) -> bool:
        return self.upper - self.lower <= SAME * max(1.0, abs(self.lower), abs(self.upper), self._spread)

    @property
    def _done(self) -> bool:
        return self._met or self._ended()

    def _until(self, seconds: float) -> Callable[[], bool]:
        end = time.monotonic() + seconds
        return lambda: time.monotonic() > end or self._ended()

    def _ended(self) -> bool:
        return self._interrupt.cause is not None or time.monotonic() >= self._end

    def _solve(self, model: Model, maximize: list[int] | None, seconds: float) -> tuple[float, float]:
        """Both bounds on a sum, with what is observed."""
        result = solve(model, maximize, evidence=self._observed, time_limit=seconds, **self._costs())
        return result.log_lower, result.log_upper

    def _costs(self) -> dict[str, Any]:
        return {"memory": self._limits.memory, "threads": self._limits.threads, "seed": self._limits.seed}

    def _chance_model(self) -> Model:
        """The chance variables alone: what is observed has a probability that open decisions do not influence."""
        model = self._diagram.model
        open_decisions = {self._diagram.choices[k].variable for k in self._needed}
        tables: list[Table] = [(scope, table) for scope, table in model.factors()]
        for v in open_decisions:
            # Which state it has makes no difference: the first.
            states = np.arange(int(model.cardinalities[v]))
            tables.append(((v,), np.where(states == 0, 0.0, -np.inf)))
        return Model.from_factors(model.cardinalities.tolist(), tables, log=True)

    def _best_rules(self, seconds: float) -> None:
        """The best rules of limited memory: marginal MAP with a max variable for each case of each rule."""
        cards = list(self._product.cardinalities)
        tables: list[Table] = []
        cells: dict[int, list[int]] = {}
        for k, view in self._needed.items():
            decision = self._diagram.choices[k].variable
            states = cards[decision]
            cells[k] = []
            for case in itertools.product(*(range(cards[v]) for v in view)):
                cells[k].append(len(cards))
                table = np.zeros([*(cards[v] for v in view), states, states])
                table[case] = np.where(np.eye(states, dtype=np.bool_), 0.0, -np.inf)
                tables.append(((*view, decision, len(cards)), table))
                cards.append(states)
        whole = replace(self._product, cardinalities=tuple(cards))
        maximize = [cell for of_rule in cells.values() for cell in of_rule]
        result = solve(
            whole.model(tuple(tables)), maximize, evidence=self._observed, time_limit=seconds, **self._costs()
        )
        self._offer_upper(self._product.utility(result.log_upper, self._log_given[0], 1.0))
        if len(result.assignment) == len(maximize):
            chosen = [int(state) for state in result.assignment.values()]
            state_of = dict(zip(maximize, chosen, strict=True))
            rules = {}
            for k, view in self._needed.items():
                done = np.array([state_of[cell] for cell in cells[k]], dtype=np.int64)
                shape = tuple(cards[v] for v in view)
                rules[k] = Rule(self._diagram.choices[k].variable, view, done.reshape(shape))
            self._certify(rules)
