"""What an answer rests on, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

import powersum as ps
from powersum.api import sensitivity
from powersum.model.explanation import Explanation
from powersum.model.limits import Limits
from powersum.model.question import asked_again
from tests.cases import case
from tests.oracle import assignment_value, exact_value


def check_entries(
    found: Explanation, model: ps.Model, query: ps.Query, evidence: dict[int, int], states: dict[int, int]
) -> None:
    """Slopes against differences, and the answer with each entry moved as far as it is said that it may."""
    for entry in found.entries:
        scope = [int(name) for name in entry.states]
        assert scope == model.scope(entry.factor).tolist()
        place = int(model.table_starts[entry.factor]) + int(
            np.ravel_multi_index([int(s) for s in entry.states.values()], model.cardinalities[scope])
        )
        assert entry.log_value == model.log_values[place]

        def moved(by: float, place: int = place) -> ps.Model:
            values = model.log_values.copy()
            values[place] += by
            return model.with_log_values(values)

        sides = [assignment_value(moved(by), states, evidence=evidence) for by in (1e-5, -1e-5)]
        assert entry.slope == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-5)
        for by in (entry.log_factor_lower, entry.log_factor_upper):
            there = moved(min(max(by, -30.0), 30.0))
            best = exact_value(there, query.weights, evidence=evidence)
            assert assignment_value(there, states, evidence=evidence) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_against_brute_force(seed: int) -> None:
    model, query, evidence = case(seed)
    result = ps.solve(model, weights=query, evidence=evidence)
    if not result.assignment:
        with pytest.raises(ps.InputError, match="nothing to explain"):
            result.explain(model)
        return
    states = {int(name): int(state) for name, state in result.assignment.items()}
    found = result.explain(model)
    assert [one.name for one in found.evidence] == [str(v) for v in evidence]
    for one in found.evidence:
        less = {v: state for v, state in evidence.items() if v != int(one.name)}
        log_sum = exact_value(model, np.ones(model.n_variables), evidence=less)
        share = math.exp(assignment_value(model, states, evidence=less) - log_sum)
        best = math.exp(exact_value(model, query.weights, evidence=less) - log_sum)
        assert one.proven
        assert float(one.probability) == pytest.approx(share, rel=1e-6, abs=1e-290)
        assert float(one.best_probability) == pytest.approx(best, rel=1e-5)
        then = {**states, **{int(name): int(state) for name, state in one.changes.items()}}
        assert math.exp(assignment_value(model, then, evidence=less) - log_sum) == pytest.approx(best, rel=1e-5)
    assert {int(one.name) for one in found.alternatives} == set(states) - set(evidence)
    value = exact_value(model, query.weights, evidence=evidence)
    for alternative in found.alternatives:
        v = int(alternative.name)
        others = [state for state in range(int(model.cardinalities[v])) if state != states[v]]
        values = {state: exact_value(model, query.weights, evidence={**evidence, v: state}) for state in others}
        loss = value - max(values.values(), default=-math.inf)
        assert alternative.log_loss_lower <= loss + 1e-9
        assert alternative.log_loss_upper >= loss - 1e-9
        if loss < math.inf:
            assert alternative.log_loss_upper - alternative.log_loss_lower < 1e-5
            assert value - values[int(alternative.other or 0)] == pytest.approx(loss, abs=1e-5)
        else:
            assert alternative.other is None
    losses = [one.log_loss_upper for one in found.alternatives]
    assert losses == sorted(losses)
    check_entries(found, model, query, evidence, states)
    assert str(found).count("\n") >= len(found.evidence) + len(found.alternatives) - 1
    assert len(found.to_dict()["evidence"]) == len(found.evidence)


RAIN = ps.Model.from_tables(
    {
        "rain": {"no": 0.8, "yes": 0.2},
        ("rain", "wet"): {"no": {"dry": 0.9, "wet": 0.1}, "yes": {"dry": 0.3, "wet": 0.7}},
    }
)


def test_likelihoods_are_evidence_too() -> None:
    found = ps.solve(RAIN, ["rain"], evidence={"wet": [0.0, 0.5]}).explain(RAIN)
    (one,) = found.evidence
    assert (one.name, one.state, one.changes) == ("wet", (0.0, 0.5), {"rain": "no"})
    assert float(one.probability) == pytest.approx(0.2)
    assert "wet=0,0.5" in str(found)


def test_an_alternative_that_is_impossible() -> None:
    sure = ps.Model.from_tables({"a": [0.0, 1.0]})
    found = ps.solve(sure, ["a"]).explain(sure)
    assert found.alternatives[0].other is None
    assert "none is possible" in str(found)


def test_another_model_is_refused() -> None:
    with pytest.raises(ps.InputError, match="another model"):
        ps.solve(RAIN, ["rain"]).explain(ps.Model.from_tables({"a": [0.5, 0.5]}))
    with pytest.raises(ps.InputError, match="nothing to explain"):
        ps.solve(RAIN).explain(RAIN)


def test_an_entry_has_room_up_to_where_the_answer_changes() -> None:
    """With nothing summed out and two states the range is the whole of it: 0.3 against 0.7 at the middle."""
    coin = ps.Model.from_tables({"a": [0.3, 0.7]})
    found = ps.solve(coin, ["a"]).explain(coin)
    room = {entry.states["a"]: entry for entry in found.entries}
    assert math.exp(room[0].log_factor_upper) * 0.3 == pytest.approx(0.7, abs=1e-6)
    assert math.exp(room[1].log_factor_lower) * 0.7 == pytest.approx(0.3, abs=1e-6)
    assert [room[0].slope, room[1].slope] == pytest.approx([0.0, 1.0])
    assert "0.3  0      0                 0.7" in str(found)


def test_large_questions_have_slopes_too() -> None:
    """Beyond what plain NumPy does, by the compiled tree: the same numbers."""
    model, _ = ps.generate.grid(5, 5, seed=2)
    result = ps.solve(model, list(range(10)), evidence={24: 0})
    question = asked_again(result.question, model, Limits(memory=1e9))  # type: ignore[arg-type]
    states = {int(name): int(state) for name, state in result.assignment.items()}
    quick = sensitivity.sensitivity(question, states, 0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sensitivity, "small_elimination", lambda *_, **__: None)
        slow = sensitivity.sensitivity(question, states, 0.5)
    assert [entry.states for entry in quick] == [entry.states for entry in slow]
    for one, other in zip(quick, slow, strict=True):
        assert one.slope == pytest.approx(other.slope, abs=1e-9)
        assert one.log_factor_upper == pytest.approx(other.log_factor_upper, abs=1e-6)


def test_without_a_lead_nothing_is_proven() -> None:
    tie = ps.Model.from_tables({"a": [0.5, 0.5]})
    found = ps.solve(tie, ["a"]).explain(tie)
    assert all(entry.log_factor_lower == entry.log_factor_upper == 0.0 for entry in found.entries)
    assert "not proven" in str(found)


def test_the_picture_has_a_bar_for_each_variable() -> None:
    from matplotlib.figure import Figure

    found = ps.solve(RAIN, ["rain"], evidence={"wet": 1}).explain(RAIN)
    ax = found.plot(Figure().subplots())
    assert [word.get_text() for word in ax.get_yticklabels()] == ["rain=yes, else no"]
    assert ax.patches[0].get_width() == pytest.approx(found.alternatives[0].log_loss_lower)  # type: ignore[attr-defined]
    sure = ps.Model.from_tables({"a": [0.0, 1.0]})
    with pytest.raises(ps.InputError, match="nothing to draw"):
        ps.solve(sure, ["a"]).explain(sure).plot()
