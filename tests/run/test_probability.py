"""How probable the answer is, against brute force: exact where it can be, and never a false side where it cannot."""

from __future__ import annotations

import math

import numpy as np
import pytest

import powersum as ps
from powersum.exact import small
from powersum.run.tuning import Schedule
from tests.batch import results_of
from tests.cases import case, hard_case
from tests.oracle import assignment_value, exact_value

WIDE = Schedule(elimination_cost=1e3, ibound=1, quick=0.0, tighten=False)
"""Nothing is eliminated, and trees are not exact."""


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("most_entries", [-1, 1_000_000], ids=["long road", "short road"])
def test_exact_on_small_models(seed: int, most_entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "MOST_ENTRIES", most_entries)
    model, query, evidence = case(seed)
    log_sum = exact_value(model, np.ones(model.n_variables), evidence=evidence)
    result = ps.solve(model, weights=query, evidence=evidence)
    if query.task == "PR" or log_sum == -math.inf:
        assert result.probability is None
        return
    assert result.probability is not None
    assignment = {int(name): int(state) for name, state in result.assignment.items()}
    truth = assignment_value(model, assignment, evidence=evidence) - log_sum
    assert result.probability.exact
    assert float(result.probability) == pytest.approx(math.exp(truth), rel=1e-9)
    assert result.probability.lower <= math.exp(truth) * (1.0 + 1e-12)
    assert result.probability.upper >= math.exp(truth) * (1.0 - 1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("likely", [False, True])
def test_both_sides_hold_where_nothing_is_exact(seed: int, likely: bool) -> None:
    model, query, _ = hard_case(seed)
    summed = int(np.flatnonzero(query.weights)[0])
    weights = np.linspace(0.2, 0.9, int(model.cardinalities[summed]))
    evidence = {summed: weights.tolist()} if likely else {}
    result = ps.solve(model, weights=query, evidence=evidence, work=2.0, schedule=WIDE)
    assert result.probability is not None
    whole = ps.Model.from_factors(
        model.cardinalities.tolist(),
        [*((scope, np.exp(table)) for scope, table in model.factors()), *([((summed,), weights)] if likely else [])],
    )
    log_sum = exact_value(whole, np.ones(model.n_variables))
    own = assignment_value(whole, {int(name): int(state) for name, state in result.assignment.items()}) - log_sum
    best = exact_value(whole, query.weights) - log_sum
    assert result.probability.lower <= math.exp(own) * (1.0 + 1e-12)
    assert result.probability.upper >= math.exp(best) * (1.0 - 1e-12)


def test_no_time_is_no_claim() -> None:
    """With next to no time the sum is not known, and what is said about it is still true."""
    model, query, _ = hard_case(1)
    result = ps.solve(model, weights=query, time_limit=1e-3, schedule=WIDE)
    if result.probability is not None:
        log_sum = exact_value(model, np.ones(model.n_variables))
        assert result.probability.upper >= math.exp(exact_value(model, query.weights) - log_sum) * (1.0 - 1e-12)


def test_many_answers_have_theirs() -> None:
    coin = ps.Model.from_tables({"coin": {"heads": 0.4, "tails": 0.6}})
    (answer,) = results_of(coin, [{"maximize": ["coin"]}])
    assert str(answer.probability) == "60 %"
    assert ps.Result.from_json(answer.to_json()) == answer
    assert "probability 60 %" in repr(answer)
    assert "probability 60 %" in answer._repr_html_()
