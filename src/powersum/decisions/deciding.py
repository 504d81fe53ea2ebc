"""``decide``: from an influence diagram to a policy with a certified value and a bound on all policies."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from powersum.api.bounding import bound
from powersum.bounds.protocol import FAULT
from powersum.core.errors import InputError
from powersum.core.files import PathLike
from powersum.core.interrupt import Interrupt, interruptible
from powersum.decisions.accumulator import Accumulated, Table
from powersum.decisions.decision import Decision, PolicyRule
from powersum.decisions.policies import Improver, Rule, TooWide
from powersum.decisions.stages import Stages, influenced_by, requisite
from powersum.formats.diagrams import read_diagram
from powersum.model.diagram import Choice, Diagram
from powersum.model.limits import Limits, flag
from powersum.model.model import Model
from powersum.model.result import Status
from powersum.run.solver import solve

DEFAULT_TIME = 60.0

CASES = (1, 16, 256, 4096)
"""How many cases a rule may tell apart, one round of improving after another."""

MOST_RULE_CASES = 256
"""Cases of all rules together for which the best rules are sought as a marginal MAP question."""

EXACT_LOG2 = 26.0
"""Log to base 2 of the entries of all tables of an elimination that is thought to be quick."""

SAME = 1e-6
"""Both sides this close, relative to their size or to the largest utility, count as equal."""

POLICY_SHARE, RULES_SHARE = 0.25, 0.25
"""Shares of the time for improving policies, and for rules as a marginal MAP question."""


def decide(
    diagram: Diagram | PathLike,
    evidence: Mapping[Any, Any] | Iterable[Any] | None = None,
    *,
    time_limit: float = DEFAULT_TIME,
    memory: float | str | None = None,
    threads: int = 1,
    seed: int = 0,
    value_of_information: bool = False,
) -> Decision:
    """Find a policy, certify its expected utility, and bound that of all policies.

    Parameters
    ----------
    diagram
        The influence diagram, or the path of its ``.uai`` file.
    evidence
        What is observed and decided already. What an open decision may influence cannot be observed.
    time_limit
        Seconds; Ctrl-C ends earlier with what is known.
    memory, threads, seed
        As in :func:`powersum.solve`.
    value_of_information
        Whether to find what each unseen variable would be worth before each open decision; takes as long again for
        each.

    Returns
    -------
    Decision
        The utility from both sides, the policy, and the best next action.

    Examples
    --------
    >>> import powersum as ps
    >>> chance = ps.Model.from_factors(
    ...     [2, 2, 2], [((0,), [0.6, 0.4]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])],
    ...     names=["oil", "test", "drill"], states=[["dry", "wet"], ["bad", "good"], ["no", "yes"]])
    >>> diagram = ps.Diagram.of(chance, [(["oil", "drill"], [[0, -70], [0, 120]])], [("drill", ["test"])])
    >>> print(ps.decide(diagram))
    optimal: The policy is as good as the bound on all policies.
    expected utility 29.4
    <BLANKLINE>
    drill, by test:
      bad: no
      good: yes
    """
    started = time.monotonic()
    limits = Limits(time_limit=time_limit, memory=memory, threads=threads, seed=seed)
    wanted = flag(value_of_information, "value_of_information")
    if not isinstance(diagram, Diagram):
        diagram = read_diagram(diagram)
    observed = diagram.model.evidence({} if evidence is None else evidence)
    _check_evidence(diagram, observed)
    with interruptible() as interrupt:
        unseen = _unseen(diagram, observed) if wanted else []
        share = limits.seconds / (1 + len(unseen))
        search = _Search(diagram, observed, limits, interrupt, started + share)
        search.run()
        worth = {}
        for k, v in unseen:
            wider = _Search(_seeing(diagram, k, v), observed, limits, interrupt, time.monotonic() + share)
            wider.run()
            # Who sees more does at least as well.
            low = max(0.0, wider.lower - search.upper)
            names = (diagram.model.name(diagram.choices[k].variable), diagram.model.name(v))
            worth[names] = low, max(low, wider.upper - search.lower)
        return replace(search.decision(interrupt, time.monotonic() - started), value_of_information=worth)


class _Search:
    """Both sides of one diagram, from the quickest means to the slowest, until they meet or time is over.

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
        self._rules: dict[int, Rule] = {}
        self._spread = math.fsum(float(np.ptp(u.table)) for u in diagram.utilities)
        self.lower = math.fsum(float(u.table.min()) for u in diagram.utilities)
        self.upper = math.fsum(float(u.table.max()) for u in diagram.utilities)
        # The sums above are rounded once each.
        room = 2.0**-50 * math.fsum(float(np.abs(u.table).max()) for u in diagram.utilities)
        self.lower, self.upper = self.lower - room, self.upper + room
        self._log_given = (0.0, 0.0)

    def run(self) -> None:
        """Policies first, then bounds; where memory is limited, the best rules as a question of their own."""
        self._rules = {
            k: Rule(self._diagram.choices[k].variable, (), np.zeros((), dtype=np.int64)) for k in self._needed
        }
        if any(v not in self._diagram.decisions for v in self._observed):
            given = self._solve(self._chance_model(), None, 0.2 * self._left)
            if given[1] == -math.inf:
                raise InputError("the evidence has probability zero")
            self._log_given = given
        self._improve()
        if not self._done:
            self._tighten()

    def _tighten(self) -> None:
        """Bounds on all policies: an exact one with more revealed, the best rules, then wider ones."""
        delays = self._delays()
        exact = [k for k, log2 in delays if log2 <= EXACT_LOG2]
        if exact:
            self._bound(exact[-1], self._left)
        wider = [k for k, log2 in delays if log2 > EXACT_LOG2][:2]
        cards = self._diagram.model.cardinalities
        cases = sum(math.prod(int(cards[v]) for v in needed) for needed in self._needed.values())
        if not (self._done or self._diagram.recall) and cases <= MOST_RULE_CASES:
            self._best_rules(self._left * (RULES_SHARE if wider else 1.0))
        for place, delay in enumerate(wider):
            if not self._done:
                self._bound(delay, self._left / (len(wider) - place))

    def decision(self, interrupt: Interrupt, seconds: float) -> Decision:
        """What was found."""
        if self.lower > self.upper:
            # Rounding is counted on both sides, so one of them is wrong: no answer is better than a false one.
            raise RuntimeError(f"the bounds contradict each other: {self.lower!r} to {self.upper!r}. {FAULT}")
        if self._met:
            status, reason = Status.OPTIMAL, "The policy is as good as the bound on all policies."
        elif interrupt.cause is not None:
            status, reason = Status.INTERRUPTED, f"Ended by {interrupt.cause}."
        elif time.monotonic() >= self._end:
            status, reason = Status.BOUNDED, "The time limit is reached."
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

    @property
    def _left(self) -> float:
        return max(0.1, self._end - time.monotonic())

    @property
    def _met(self) -> bool:
        return self.upper - self.lower <= SAME * max(1.0, abs(self.lower), abs(self.upper), self._spread)

    @property
    def _done(self) -> bool:
        return self._met or self._interrupt.cause is not None or time.monotonic() >= self._end

    def _improve(self) -> None:
        """Improve a policy that tells few cases apart, then more; certify each that is better."""
        end = time.monotonic() + POLICY_SHARE * self._left
        improver = Improver(self._diagram, self._observed, self._product, self._needed)
        rules: dict[int, Rule] = {}
        for most in CASES:
            try:
                # With all earlier decisions at random the last ones are as good as they can be in every case; rules
                # that are good in few cases begin elsewhere.
                fresh = improver.improved(most, {}, end)
                rules, _ = max(fresh, improver.improved(most, rules, end), key=lambda found: found[1])
            except TooWide:
                break
            self._certify(rules, 0.5 * self._left)
            whole = all(rule.view == self._needed[k] for k, rule in rules.items())
            if self._done or whole or time.monotonic() > end:
                break
        if not rules:
            # Too wide to improve: what the rules do at the start has a value, too.
            self._certify(self._rules, 0.5 * self._left)

    def _certify(self, rules: Mapping[int, Rule], seconds: float) -> None:
        """The value of a policy, as an exact sum or a bound on it from below."""
        cards = self._product.cardinalities
        tables = tuple(rule.table(cards[rule.variable]) for rule in rules.values())
        low, _ = self._solve(self._product.model(tables), None, seconds)
        value = self._product.utility(low, self._log_given[1], -1.0)
        if value > self.lower:
            self.lower, self._rules = value, dict(rules)

    def _solve(self, model: Model, maximize: list[int] | None, seconds: float) -> tuple[float, float]:
        """Both bounds on a sum, with what is observed."""
        result = solve(model, maximize, self._observed, time_limit=seconds, **self._costs())
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

    def _delays(self) -> list[tuple[int, float]]:
        """Ways to reveal, the earliest first, and the log to base 2 of the entries of an elimination."""
        from powersum.prepare.ordering import elimination_order, order_cost
        from powersum.prepare.simplify import simplify

        found: list[tuple[int, float]] = []
        stages = Stages.of(self._diagram, self._observed)
        for delay in range(stages.n + 1):
            product = Accumulated.of(self._diagram, self._observed, delay=delay)
            problem = simplify(product.model(), product.query, self._observed)
            order = elimination_order(problem.model, problem.tau, rank=problem.rank, time_limit=0.02 * self._left)
            cost = order_cost(problem.model, order).log2_total if problem.model.n_variables else 0.0
            found.append((delay, cost))
            if time.monotonic() >= self._end or cost > 2.0 * EXACT_LOG2 + 20.0:
                break
        return found

    def _bound(self, delay: int, seconds: float) -> None:
        """Bound all policies, with what is revealed after so many stages."""
        product = Accumulated.of(self._diagram, self._observed, delay=delay)
        result = bound(
            product.model(),
            query=product.query,
            evidence=self._observed,
            method="tree",
            time_limit=seconds,
            memory=self._limits.memory,
            threads=self._limits.threads,
            seed=self._limits.seed,
        )
        self.upper = min(self.upper, product.utility(result.log_upper, self._log_given[0], 1.0))

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
        result = solve(whole.model(tuple(tables)), maximize, self._observed, time_limit=seconds, **self._costs())
        self.upper = min(self.upper, self._product.utility(result.log_upper, self._log_given[0], 1.0))
        if len(result.assignment) == len(maximize):
            chosen = [int(state) for state in result.assignment.values()]
            state_of = dict(zip(maximize, chosen, strict=True))
            rules = {}
            for k, view in self._needed.items():
                done = np.array([state_of[cell] for cell in cells[k]], dtype=np.int64)
                shape = tuple(cards[v] for v in view)
                rules[k] = Rule(self._diagram.choices[k].variable, view, done.reshape(shape))
            self._certify(rules, self._left)


def _check_evidence(diagram: Diagram, observed: Mapping[int, int]) -> None:
    """Refuse observations that an open decision may influence: they would be known before it is made."""
    decided = [choice.variable in observed for choice in diagram.choices]
    for k, choice in enumerate(diagram.choices):
        if decided[k]:
            continue
        below = influenced_by(diagram, choice.variable)
        for v in observed:
            if v in below:
                raise InputError(
                    f"evidence on {diagram.model.name(v)}, which the open decision "
                    f"{diagram.model.name(choice.variable)} influences: observe the decision, too"
                )
        later = next((j for j in range(k + 1, len(decided)) if decided[j]), None)
        if later is not None:
            raise InputError(
                f"decision {diagram.model.name(diagram.choices[later].variable)} is decided, but the earlier "
                f"{diagram.model.name(choice.variable)} is not"
            )


def _unseen(diagram: Diagram, observed: Mapping[int, int]) -> list[tuple[int, int]]:
    """Pairs of an open choice and a chance variable that it does not know and that it could know."""
    pairs = []
    open_choices = [k for k, choice in enumerate(diagram.choices) if choice.variable not in observed]
    for k in open_choices:
        below = set().union(*(influenced_by(diagram, diagram.choices[j].variable) for j in open_choices if j >= k))
        known = {*diagram.known(k), *observed, *diagram.decisions}
        pairs += [(k, v) for v in range(diagram.model.n_variables) if v not in known | below]
    return pairs


def _seeing(diagram: Diagram, k: int, v: int) -> Diagram:
    """The diagram with one more variable seen before a decision."""
    choice = diagram.choices[k]
    choices = list(diagram.choices)
    choices[k] = Choice(choice.variable, (*choice.sees, v))
    if diagram.recall:
        choices[k + 1 :] = [replace(c, sees=tuple(u for u in c.sees if u != v)) for c in choices[k + 1 :]]
    return replace(diagram, choices=tuple(choices))
