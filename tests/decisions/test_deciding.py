"""``decide``: both sides against brute force over histories and over policies."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

import powersum as ps
from powersum.decisions.accumulator import Accumulated
from powersum.model.diagram import Diagram
from tests.decisions.drawn import random_diagram
from tests.decisions.oracle import best_of_all_policies, best_with_recall, value_of_policy
from tests.oracle import exact_value

CLOSE = 1e-6


def policy_value(diagram: Diagram, observed: dict[int, int], decision: ps.Decision) -> float:
    """The value of the policy that an answer shows, by brute force from its rows alone."""
    model = diagram.model
    policy = {}
    for rule in decision.policy:
        view = tuple(model.variable(name) for name in rule.sees)
        chosen = np.zeros([int(model.cardinalities[v]) for v in view])
        for seen, state in rule.rows():
            chosen[tuple(int(s) for s in seen)] = int(state)
        policy[model.variable(rule.decision)] = view, chosen
    return value_of_policy(diagram, observed, policy)


def checked(diagram: Diagram, observed: dict[int, int], best: float) -> ps.Decision:
    decision = ps.decide(diagram, evidence=observed, time_limit=20.0)
    assert decision.utility_lower <= best + CLOSE * max(1.0, abs(best))
    assert decision.utility_upper >= best - 1e-12 * max(1.0, abs(best))
    shown = policy_value(diagram, observed, decision)
    assert decision.utility_lower <= shown + 1e-12 * max(1.0, abs(shown))
    assert decision.utility_lower == pytest.approx(shown, rel=1e-7, abs=1e-7)
    return decision


@pytest.mark.parametrize("seed", range(60))
def test_perfect_recall_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    diagram = random_diagram(rng, n=int(rng.integers(3, 8)), decisions=int(rng.integers(1, 4)))
    best = best_with_recall(diagram, {})
    decision = checked(diagram, {}, best)
    assert decision.status == "optimal"
    assert decision.utility_lower == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert decision.utility_upper == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_limited_memory(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    diagram = random_diagram(rng, recall=False, n=5, decisions=int(rng.integers(1, 3)))
    best = best_of_all_policies(diagram, {})
    decision = checked(diagram, {}, best)
    assert decision.status == "optimal"
    assert decision.utility_lower == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_evidence(seed: int) -> None:
    rng = np.random.default_rng(2000 + seed)
    diagram = random_diagram(rng, n=6, decisions=2)
    first = diagram.decisions[0]
    # The first decision is made, and some of what was seen before it; or a variable without a decision above.
    observed = {first: 0} if rng.random() < 0.5 else {}
    observed.update({v: int(rng.integers(2)) for v in range(first) if rng.random() < 0.5})
    try:
        best = best_with_recall(diagram, observed)
    except ZeroDivisionError:
        best = math.nan
    if math.isnan(best):
        with pytest.raises(ps.InputError, match="probability 0"):
            ps.decide(diagram, evidence=observed)
        return
    decision = checked(diagram, observed, best)
    assert decision.utility_upper == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_the_product_of_utilities_is_their_sum(seed: int) -> None:
    """With all decisions observed the sum over all variables is the expected utility."""
    rng = np.random.default_rng(3000 + seed)
    diagram = random_diagram(rng, n=7, decisions=3)
    observed = dict.fromkeys(diagram.decisions, 1)
    product = Accumulated.of(diagram, observed)
    log_sum = exact_value(product.model(), np.ones(len(product.cardinalities)), evidence=observed)
    value = best_with_recall(diagram, observed)
    assert product.utility(log_sum, 0.0, -1.0) == pytest.approx(value, rel=1e-9, abs=1e-7)
    assert product.utility(log_sum, 0.0, 1.0) >= value - 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_what_it_is_worth_to_see(seed: int) -> None:
    rng = np.random.default_rng(4000 + seed)
    diagram = random_diagram(rng, n=5, decisions=1)
    decision = ps.decide(diagram, value_of_information=True)
    best = best_with_recall(diagram, {})
    (choice,) = diagram.choices
    for (name, seen), (low, high) in decision.value_of_information.items():
        assert name == diagram.model.name(choice.variable)
        wider = Diagram.of(
            diagram.model,
            [(u.scope, u.table) for u in diagram.utilities],
            [(choice.variable, [*choice.sees, diagram.model.variable(seen)])],
        )
        worth = best_with_recall(wider, {}) - best
        assert low - CLOSE <= worth <= high + CLOSE
        assert low >= 0.0


def wildcatter() -> ps.Diagram:
    """Drill for oil? Test first?"""
    seismic = np.zeros((3, 2, 4))
    seismic[:, 0, 3] = 1.0
    seismic[:, 1, :3] = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.4, 0.5]]
    return Diagram.from_tables(
        {"oil": {"dry": 0.5, "wet": 0.3, "soaking": 0.2}, ("oil", "test", "seismic"): seismic},
        decisions={"test": (["no", "yes"], []), "drill": (["no", "yes"], ["seismic"])},
        utilities={"test": [0, -10], ("oil", "drill"): [[0, -70], [0, 50], [0, 200]]},
        states={"seismic": ["none", "open", "closed", "nothing"]},
    )


def test_oil_wildcatter() -> None:
    """Known from textbooks: testing is worth it, 22.5 thousand; drill unless there is no structure."""
    decision = ps.decide(wildcatter())
    assert decision.utility_lower == pytest.approx(22.5, abs=1e-6)
    assert decision.utility_upper == pytest.approx(22.5, abs=1e-6)
    assert decision.next_action["test"] == "yes"
    drill = decision.rule("drill")
    assert [drill({"seismic": s, "test": "yes"}) for s in ("none", "open", "closed")] == ["no", "yes", "yes"]
    assert "22.5" in str(decision)
    data = json.loads(decision.to_json())
    assert data["status"] == "optimal"
    assert {rule["decision"] for rule in data["policy"]} == {"test", "drill"}


def test_after_the_test_is_done() -> None:
    decision = ps.decide(wildcatter(), evidence={"test": "yes", "seismic": "none"})
    assert decision.next_action == {"drill": "no"}
    assert decision.utility_upper == pytest.approx(-10.0, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decisions": []}, "no decision"),
        ({"utilities": []}, "no utility"),
        ({"decisions": [("b", []), ("b", [])]}, "twice"),
        ({"decisions": [("a", [])]}, "table of the decision a"),
        ({"decisions": [("b", ["b"])]}, "sees itself"),
        ({"decisions": [("b", ["c"])]}, "cyclic"),
        ({"utilities": [(["a"], [1, math.inf])]}, "not finite"),
        ({"utilities": [(["a"], [1, 2, 3])]}, "shape"),
        ({"utilities": [(["a", "a"], [1, 2, 3, 4])]}, "twice"),
    ],
)
def test_bad_diagrams_are_refused_in_one_line(change: dict[str, list[object]], message: str) -> None:
    model = ps.Model.from_factors(
        [2, 2, 2], [((0,), [0.5, 0.5]), ((1, 2), [[0.9, 0.1], [0.2, 0.8]])], names=["a", "b", "c"]
    )
    parts = {"utilities": [(["c"], [0, 1])], "decisions": [("b", ["a"])], **change}
    with pytest.raises(ps.InputError, match=message) as error:
        Diagram.of(model, parts["utilities"], parts["decisions"])  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_tables_that_are_no_distributions_are_refused() -> None:
    for factors, message in (
        ([((0,), [0.5, 0.6])], "sums to 1.1"),
        ([((0,), [0.5, 0.5]), ((0,), [0.5, 0.5])], "two tables"),
        ([], "has no table"),
    ):
        model = ps.Model.from_factors([2, 2], factors)
        with pytest.raises(ps.InputError, match=message):
            Diagram.of(model, [([0], [0, 1])], [(1, [0])])


def test_evidence_that_cannot_be_known_is_refused() -> None:
    diagram = wildcatter()
    with pytest.raises(ps.InputError, match="open decision test influences"):
        ps.decide(diagram, evidence={"seismic": "none"})
    with pytest.raises(ps.InputError, match="the earlier test is not"):
        ps.decide(diagram, evidence={"drill": "yes"})


def test_rules_ask_for_what_they_go_by() -> None:
    decision = ps.decide(wildcatter())
    with pytest.raises(ps.InputError, match="goes by"):
        decision.rule("drill")({})
    with pytest.raises(ps.InputError, match="no open decision"):
        decision.rule("dig")


def test_a_diagram_can_be_pickled() -> None:
    diagram = pickle.loads(pickle.dumps(wildcatter()))
    assert ps.decide(diagram).utility_upper == pytest.approx(22.5, abs=1e-6)
