"""Elimination with probabilities and utilities apart, against brute force: bounds, policies, rounding, underflow."""

from __future__ import annotations

import numpy as np
import pytest

import powersum as ps
from powersum.core.arrays import FloatArray
from powersum.decisions.eliminator import Eliminator, Rule
from powersum.decisions.pairs import NotDone
from powersum.decisions.stages import Stages, requisite
from tests.decisions.drawn import random_diagram
from tests.decisions.oracle import best_of_all_policies, best_with_recall, value_of_policy


def eliminator_of(diagram: ps.Diagram, observed: dict[int, int] | None = None, most: int = 1 << 20) -> Eliminator:
    given = {} if observed is None else observed
    return Eliminator(diagram, given, requisite(diagram, given), lambda: False, most)


def shown_rules(rules: dict[int, Rule]) -> dict[int, tuple[tuple[int, ...], FloatArray]]:
    return {rule.variable: (rule.view, rule.chosen.astype(np.float64)) for rule in rules.values()}


@pytest.mark.parametrize("seed", range(80))
def test_what_is_revealed_bounds_all_policies_and_nothing_revealed_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    diagram = random_diagram(rng, n=int(rng.integers(3, 9)), decisions=int(rng.integers(1, 4)))
    best = best_with_recall(diagram, {})
    eliminator = eliminator_of(diagram)
    close = 1e-12 * (1.0 + abs(best))
    for delay in (*range(Stages.of(diagram, {}).n), None):
        value, rules = eliminator.best(eliminator.plan(delay))
        assert value >= best - close
        if eliminator.seen(rules):
            shown = value_of_policy(diagram, {}, shown_rules(rules))
            low = eliminator.value(rules)
            assert low <= shown + close
            assert low == pytest.approx(shown, rel=1e-9, abs=1e-9)
    assert eliminator.seen(rules)
    assert value == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert low == pytest.approx(best, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_bounds_hold_for_limited_memory(seed: int) -> None:
    rng = np.random.default_rng(5000 + seed)
    diagram = random_diagram(rng, recall=False, n=5, decisions=2)
    best = best_of_all_policies(diagram, {})
    eliminator = eliminator_of(diagram)
    for delay in (0, 1, None):
        value, _ = eliminator.best(eliminator.plan(delay))
        assert value >= best - 1e-12 * (1.0 + abs(best))


@pytest.mark.parametrize("seed", range(30))
def test_a_response_is_the_best_rule_of_its_view(seed: int) -> None:
    """Its value is that of the policy, and no other rule of the same view has more."""
    rng = np.random.default_rng(6000 + seed)
    diagram = random_diagram(rng, n=6, decisions=2)
    eliminator = eliminator_of(diagram)
    needed = requisite(diagram, {})
    cards = diagram.model.cardinalities
    rules = {k: Rule(c.variable, (), np.zeros((), dtype=np.int64)) for k, c in enumerate(diagram.choices)}
    k = int(rng.integers(2))
    view = needed[k][-1:]
    rule, value = eliminator.response(k, view, rules)
    policy = shown_rules({**rules, k: rule})
    assert value == pytest.approx(value_of_policy(diagram, {}, policy), rel=1e-9, abs=1e-9)
    for _ in range(5):
        other = rng.integers(0, cards[rule.variable], rule.chosen.shape)
        assert value_of_policy(diagram, {}, {**policy, rule.variable: (view, other.astype(np.float64))}) <= value + 1e-9


@pytest.mark.parametrize("tiny", [1e-170, 1e-300])
def test_probabilities_that_underflow_leave_bounds_valid(tiny: float) -> None:
    """Two signals that are nearly impossible together: their product underflows."""
    signal = [[tiny, 1.0 - tiny], [2.0 * tiny, 1.0 - 2.0 * tiny]]
    model = ps.Model.from_factors([2, 2, 2, 2], [((0,), [0.5, 0.5]), ((0, 1), signal), ((0, 2), signal)])
    diagram = ps.Diagram.of(model, [([0, 3], [[3.0, 0.0], [0.0, 5.0]])], [(3, [1, 2])])
    eliminator = eliminator_of(diagram)
    value, rules = eliminator.best(eliminator.plan(None))
    assert value >= 2.5
    assert value == pytest.approx(2.5)
    assert eliminator.value(rules) <= 2.5
    seen = ps.decide(diagram, evidence={1: 0, 2: 0})
    assert seen.utility_lower <= 4.0 <= seen.utility_upper
    assert seen.next_action == {"3": 1}


def test_what_is_too_wide_is_refused() -> None:
    diagram = random_diagram(np.random.default_rng(0), n=8)
    eliminator = eliminator_of(diagram, most=3)
    with pytest.raises(NotDone):
        eliminator.best(eliminator.plan(None))


@pytest.mark.parametrize("seed", range(20))
def test_decide_where_nothing_can_be_eliminated(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the product of utilities gives policies their values, and the largest utilities bound them."""
    rng = np.random.default_rng(7000 + seed)
    diagram = random_diagram(rng, n=6, decisions=2)
    monkeypatch.setattr("powersum.decisions.search.MOST_ENTRIES", 3)
    decision = ps.decide(diagram, time_limit=5.0)
    best = best_with_recall(diagram, {})
    assert decision.utility_lower <= best + 1e-9
    assert decision.utility_upper >= best - 1e-9
