"""Diagrams by elimination: bounds on all policies, the value of a policy, the best rule given all others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.decisions.pairs import MOST_ERROR, SLACK, TINY, NotDone, Pairs, U
from powersum.decisions.plan import PairPlan, planned
from powersum.decisions.stages import Stages
from powersum.model.diagram import Diagram

TRIES = 12
"""Elimination orders that are tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """What a decision does in each case that it sees.

    Parameters
    ----------
    variable
        The decision.
    view
        The variables that it goes by.
    chosen
        Its state for all states of these, one axis a variable.
    """

    variable: int
    view: tuple[int, ...]
    chosen: IntArray

    def table(self, states: int) -> FloatArray:
        """The distribution of the decision, its own axis last."""
        return np.asarray(np.arange(states) == self.chosen[..., None], dtype=np.float64)

    def short(self) -> Rule:
        """The same rule without variables that make no difference."""
        view, chosen = list(self.view), self.chosen
        for axis in reversed(range(len(view))):
            if (chosen == chosen.take([0], axis)).all():
                chosen = np.asarray(chosen.take(0, axis))
                del view[axis]
        return Rule(self.variable, tuple(view), np.asarray(chosen))


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A table of the diagram: of a chance variable, its child, or of a utility."""

    scope: tuple[int, ...]
    table: FloatArray
    error: float
    child: int | None = None

    def restricted(self, states: Mapping[int, int]) -> Given:
        """Without the variables that have these states."""
        if not any(v in states for v in self.scope):
            return self
        index = tuple(states.get(v, slice(None)) for v in self.scope)
        return replace(self, scope=tuple(v for v in self.scope if v not in states), table=self.table[index])


def settled(
    chance: Sequence[Given], observed: Mapping[int, int], keep: Sequence[int] = ()
) -> tuple[dict[int, int], list[Given]]:
    """States that are observed or certain, and the tables that are left."""
    fixed, left = dict(observed), [one.restricted(observed) for one in chance]
    while True:
        new = {}
        for one in left:
            if one.scope == (one.child,) and one.child not in keep and np.count_nonzero(one.table) == 1:
                new[one.scope[0]] = int(one.table.argmax())
        if not new:
            return fixed, left
        fixed |= new
        left = [one.restricted(new) for one in left if not (one.scope == (one.child,) and one.child in new)]


class Eliminator:
    """One diagram, with some states observed.

    Parameters
    ----------
    diagram, observed
        The diagram, and what is observed and decided already.
    needed
        What of its knowledge matters to each open choice.
    ended
        Tells when to stop.
    most
        Entries of the largest table.
    """

    def __init__(
        self,
        diagram: Diagram,
        observed: Mapping[int, int],
        needed: Mapping[int, tuple[int, ...]],
        ended: Callable[[], bool],
        most: int,
    ) -> None:
        self._diagram, self._needed, self._ended, self._most = diagram, needed, ended, most
        self._stages = Stages.of(diagram, observed)
        self._cards = diagram.model.cardinalities.tolist()
        self._open = {diagram.choices[k].variable for k in needed}
        lows = [float(u.table.min()) for u in diagram.utilities]
        self.shift = math.fsum(lows)
        self.scale = max(float(np.ptp(u.table)) for u in diagram.utilities) or 1.0
        # Tables are logs that are rounded, of rows that were made to sum to one: exp adds what the log may lack.
        chance = [
            Given(scope, np.exp(log), U * (6.0 + log.shape[-1] + 2.0 * _largest(log)), scope[-1])
            for scope, log in diagram.model.factors()
        ]
        utilities = [
            Given(u.scope, (u.table - low) / self.scale, 4.0 * U)
            for u, low in zip(diagram.utilities, lows, strict=True)
        ]
        self._fixed, self._chance = settled(chance, observed)
        self._utilities = [one.restricted(self._fixed) for one in utilities]
        self._plans: dict[object, PairPlan] = {}

    def utility(self, value: float, error: float, side: float) -> float:
        """A value in the user's units, rounded outward; infinity where rounding may have moved it far."""
        if not error <= MOST_ERROR:
            return side * math.inf
        largest = len(self._utilities) * self.scale
        off = (1.01 * error + 8.0 * U) * value * self.scale + SLACK * largest
        total = value * self.scale + self.shift
        return total + side * (off + 8.0 * U * (abs(value) * self.scale + abs(self.shift)))

    def plan(self, delay: int | None, seconds: float = 1.0, limit: float = math.inf) -> PairPlan:
        """An order in which everything is revealed after so many stages that nobody influences; None for none of it.

        With a limit on the tables of decisions, utilities that have more together are maximised apart.
        """
        stages = self._stages
        blocks: dict[int, list[int]] = {}
        first = {}
        for k in reversed(stages.open):
            first.update(dict.fromkeys(self._needed[k], stages.of_choice[k]))
        for v in range(len(self._cards)):
            if v in self._fixed or v in self._open:
                continue
            known = first.get(v, stages.n)
            if delay is not None:
                known = min(known, stages.influenced[v] + 1 + delay)
            blocks.setdefault(2 * (stages.n - known), []).append(v)
        for k in stages.open:
            place = 2 * (stages.n - stages.of_choice[k]) - 1
            blocks.setdefault(place, []).append(self._diagram.choices[k].variable)
        timeline = [(place % 2 == 1, blocks[place]) for place in sorted(blocks)]
        return self._planned((delay, limit), timeline, self._chance, self._utilities, TRIES, seconds, limit)

    def best(self, plan: PairPlan) -> tuple[float, dict[int, Rule]]:
        """A bound on all policies, and what the decisions do in it; what they go by may be hidden to them."""
        pairs = self._pairs(plan, 1.0, self._chance, self._utilities)
        for v in plan.order:
            (pairs.decide if v in self._open else pairs.sum_out)(v)
        value, error = pairs.total()
        number = {self._diagram.choices[k].variable: k for k in self._needed}
        rules: dict[int, Rule] = {}
        if pairs.split:
            return self.utility(float(value), error, 1.0), rules
        for v in reversed(plan.order):
            if v in number:
                rule = Rule(v, *pairs.chosen[v]).short()
                # Of decisions that know the same, a later one may have been found first: its rule is put in.
                known = self._diagram.known(number[v])
                with suppress(NotDone):
                    while later := [u for u in rule.view if u in number and u not in known]:
                        rule = self._with(rule, rules[number[later[0]]])
                rules[number[v]] = rule
        return self.utility(float(value), error, 1.0), rules

    def _with(self, rule: Rule, inner: Rule) -> Rule:
        """A rule that goes by what another decision goes by, in place of that decision."""
        view = tuple(dict.fromkeys([*(v for v in rule.view if v != inner.variable), *inner.view]))
        shape = [self._cards[v] for v in view]
        if math.prod(shape) > self._most:
            raise NotDone
        by_state = np.moveaxis(rule.chosen, rule.view.index(inner.variable), 0)
        rest = tuple(v for v in rule.view if v != inner.variable)
        state = np.broadcast_to(_spread(inner.chosen, inner.view, view), shape)
        chosen = np.zeros(shape, dtype=np.int64)
        for number, table in enumerate(by_state):
            np.copyto(chosen, _spread(table, rest, view), where=state == number)
        return Rule(rule.variable, view, chosen).short()

    def seen(self, rules: Mapping[int, Rule]) -> bool:
        """Whether these are rules of all decisions that go by what the decisions know: a policy."""
        return len(rules) == len(self._needed) and all(
            set(rule.view) <= set(self._diagram.known(k)) for k, rule in rules.items()
        )

    def value(self, rules: Mapping[int, Rule]) -> float:
        """The least expected utility that a policy can have."""
        pairs = self._summed(rules, ())
        value, error = pairs.total()
        return self.utility(float(value), error, -1.0)

    def given(self, rules: Mapping[int, Rule]) -> float:
        """A number in proportion to the probability of what is observed; 0 where that is 0."""
        weight, _ = self._summed(rules, ()).weight(())
        return float(weight)

    def response(self, k: int, view: tuple[int, ...], rules: Mapping[int, Rule]) -> tuple[Rule, float]:
        """The best rule of one decision that goes by a view, and its value where all others follow their rules.

        Decisions without a rule are drawn at random.
        """
        variable = self._diagram.choices[k].variable
        others = {j: rule for j, rule in rules.items() if j != k}
        pairs = self._summed(others, (*view, variable))
        utilities, _ = pairs.total((*view, variable))
        # What is seen before it does not depend on the decision, though tables may have its axis.
        weights = pairs.weight((*view, variable))[0][..., 0]
        if not weights.sum() > TINY:
            raise NotDone
        chosen = utilities.argmax(axis=-1)
        value = float((weights * utilities.max(axis=-1)).sum() / weights.sum())
        return Rule(variable, view, chosen), value * self.scale + self.shift

    def _summed(self, rules: Mapping[int, Rule], keep: tuple[int, ...]) -> Pairs:
        """Everything summed but what is kept."""
        policy = []
        for k in self._needed:
            v = self._diagram.choices[k].variable
            if k in rules:
                policy.append(
                    Given((*rules[k].view, v), rules[k].table(self._cards[v]), 0.0, v).restricted(self._fixed)
                )
            elif v not in keep:
                policy.append(Given((v,), np.full(self._cards[v], 1.0 / self._cards[v]), U, v))
        # What is certain under the policy needs no axis.
        more, chance = settled([*self._chance, *policy], {}, keep)
        utilities = [one.restricted(more) for one in self._utilities]
        gone = {*self._fixed, *more, *keep}
        rest = [v for v in range(len(self._cards)) if v not in gone]
        # One order serves all rules that go by the same.
        key = (keep, *(one.scope for one in chance))
        plan = self._planned(key, [(False, rest)], chance, utilities, 2, 1.0)
        pairs = self._pairs(plan, -1.0, chance, utilities)
        for v in plan.order:
            pairs.sum_out(v)
        return pairs

    def _planned(
        self,
        key: object,
        blocks: Sequence[tuple[bool, Sequence[int]]],
        chance: Sequence[Given],
        utilities: Sequence[Given],
        tries: int,
        seconds: float,
        limit: float = math.inf,
    ) -> PairPlan:
        if key not in self._plans:
            parts = [(one.scope, frozenset([one.child])) for one in chance if one.child is not None]
            scopes = [one.scope for one in utilities]
            self._plans[key] = planned(self._cards, parts, scopes, blocks, limit=limit, tries=tries, seconds=seconds)
        return self._plans[key]

    def _pairs(self, plan: PairPlan, side: float, chance: Sequence[Given], utilities: Sequence[Given]) -> Pairs:
        if plan.largest > self._most:
            raise NotDone
        place = list(range(len(self._cards), 2 * len(self._cards)))
        for number, v in enumerate(plan.order):
            place[v] = number
        pairs = Pairs(place, self._cards, side, self._ended, self._most, plan.limit)
        for one in (*chance, *utilities):
            pairs.add(one.scope, one.table, one.error, one.child)
        return pairs


def _spread(table: IntArray, scope: tuple[int, ...], view: tuple[int, ...]) -> IntArray:
    """A view with an axis for each variable of a larger scope in its order."""
    order = sorted(range(len(scope)), key=lambda axis: view.index(scope[axis]))
    sizes = dict(zip(scope, table.shape, strict=True))
    return np.transpose(table, order).reshape([sizes.get(v, 1) for v in view])


def _largest(log: FloatArray) -> float:
    return float(np.abs(log[np.isfinite(log)]).max(initial=0.0))
