"""Likelihoods beside certain evidence: the same value as an extra factor, whatever the query, and clear refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum import InputError, Model, Query
from powersum.model.evidence import observe
from powersum.prepare.simplify import simplify
from tests.oracle import exact_value
from tests.prepare.test_barren import random_network

RAIN = Model.from_tables(
    {
        "rain": {"no": 0.8, "yes": 0.2},
        ("rain", "wet"): {"no": {"dry": 0.9, "wet": 0.1}, "yes": {"dry": 0.3, "wet": 0.7}},
    },
    directed=True,
)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([[1.0], [0.0], [0.0, 1.0]]))
def test_value_of_networks(seed: int, choices: list[float]) -> None:
    rng = np.random.default_rng(seed)
    model = random_network(rng, int(rng.integers(1, 7)), 0.2)
    weights = rng.choice(choices, model.n_variables)
    evidence: dict[int, Any] = {}
    extra = []
    for v in range(model.n_variables):
        if rng.random() < 0.4:
            evidence[v] = rng.random(model.cardinalities[v]) * (rng.random(model.cardinalities[v]) > 0.2)
            extra.append(((v,), evidence[v]))
    factors = [(f.scope, np.exp(f.log_table)) for f in model.factors()]
    plain = Model.from_factors(model.cardinalities.tolist(), [*factors, *extra])
    observed = observe(model, evidence)
    problem = simplify(observed.model, Query(weights), observed.states)
    found = problem.log_constant + (exact_value(problem.model, problem.tau) if problem.feasible else 0.0)
    assert found == pytest.approx(exact_value(plain, weights), abs=1e-9, rel=1e-9)


def test_bound_and_solve_take_likelihoods() -> None:
    soft = {"wet": {"wet": 0.9, "dry": 0.1}}
    wanted = np.log(0.8 * (0.9 * 0.1 + 0.1 * 0.9))
    for call in (ps.bound, ps.solve):
        result = call(RAIN, maximize=["rain"], evidence=soft)
        assert result.log_upper == pytest.approx(wanted)
        assert dict(result.assignment) == {"rain": "no"}
    assert dict(ps.solve(RAIN, ["rain"], evidence={"wet": [0.0, 1.0]}).assignment) == {"rain": "yes"}
    assert dict(ps.solve(RAIN, ["rain"], evidence={"wet": "dry", "rain": [0.01, 0.99]}).assignment) == {"rain": "yes"}
    assert ps.solve(RAIN, evidence={"wet": [0.0, 0.0]}).status is ps.Status.INFEASIBLE


def test_the_model_is_not_touched() -> None:
    before = RAIN.log_values.copy()
    observed = observe(RAIN, {"wet": [0.5, 1.0]})
    assert observed.model.n_factors == RAIN.n_factors + 1
    np.testing.assert_array_equal(RAIN.log_values, before)
    assert observe(RAIN, {"wet": "dry"}).model is RAIN


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"wet": {"dry": 0.3}}, "the likelihoods of variable wet must name each of its states once: none for wet"),
        ({"wet": {"dry": 0.3, "soaked": 1}}, "variable wet has no state 'soaked'"),
        ({"wet": {"dry": 0.3, "wet": 0.1, 0: 1}}, "two for one state"),
        ({"wet": [0.1, 0.2, 0.3]}, r"have shape \(3,\): it has 2 states"),
        ({"wet": [0.1, -0.2]}, "must be finite and not negative"),
        ({"wett": [0.1, 0.2]}, "no variable is called 'wett', did you mean 'wet'"),
        ({"wet": [0.1, 0.2], 1: [1, 1]}, "evidence gives variable wet likelihoods twice"),
        ({"wet": None}, "evidence: None is no state of variable wet: give a string or a whole number"),
        ({"wet": ["0.1", "0.2"]}, "must be one number for each state"),
        ({"wet": [[0.1], [0.2, 0.3]]}, "must be one number for each state"),
        ({"wet": [0.1, None]}, "must be one number for each state"),
    ],
)
def test_refusals(evidence: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.solve(RAIN, evidence=evidence)
