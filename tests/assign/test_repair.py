"""Decoded assignments are feasible wherever a feasible one exists."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from tests.oracle import assignment_value, exact_value
from tests.strategies import random_model


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.2, 0.4, 0.6]))
def test_decoded_assignments_are_feasible(seed: int, zeros: float) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=7, n_factors=9, zeros=zeros, spread=3.0)
    maximize = np.flatnonzero(rng.random(7) < 0.6).tolist()
    result = ps.bound(model, maximize, method="gdd", sweeps=3)
    exact = exact_value(model, np.where(np.isin(np.arange(7), maximize), 0.0, 1.0))
    if exact == -math.inf:
        assert result.status == "infeasible"
        assert result.log_upper == -math.inf
        return
    assignment = {int(name): int(state) for name, state in result.assignment.items()}
    assert sorted(assignment) == maximize
    assert assignment_value(model, assignment) > -math.inf
    assert result.log_upper >= exact - 1e-9 * max(1.0, abs(exact))
