"""What an answer rests on, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

import powersum as ps
from tests.cases import case
from tests.oracle import assignment_value, exact_value


@pytest.mark.parametrize("seed", range(40))
def test_against_brute_force(seed: int) -> None:
    model, query, evidence = case(seed)
    result = ps.solve(model, query=query, evidence=evidence)
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
    assert str(found).count("\n") >= len(found.evidence) + len(found.alternatives) - 1
    assert len(found.to_dict()["evidence"]) == len(found.evidence)


RAIN = ps.Model.from_tables(
    {
        "rain": {"no": 0.8, "yes": 0.2},
        ("rain", "wet"): {"no": {"dry": 0.9, "wet": 0.1}, "yes": {"dry": 0.3, "wet": 0.7}},
    }
)


def test_likelihoods_are_evidence_too() -> None:
    found = ps.solve(RAIN, ["rain"], {"wet": [0.0, 0.5]}).explain(RAIN)
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
