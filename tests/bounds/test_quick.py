"""The first bound, in plain NumPy, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersum.bounds import quick
from powersum.bounds.quick import quick_bounds
from powersum.model.model import Model
from tests.cases import case
from tests.exact.test_small import question, random_network
from tests.oracle import exact_value


@pytest.mark.parametrize("entries", [1, 8, 1000])
def test_bounds_hold_on_both_sides(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "GROUP_ENTRIES", entries)
    monkeypatch.setattr(quick, "WIDEST", 2 if entries < 1000 else 24)
    met = near = 0
    for seed in range(150):
        if seed % 2:
            model = random_network(seed)
            evidence, tau = question(model, seed)
        else:
            model, query, evidence = case(seed)
            tau = query.weights
        log_lower, log_upper, log_error, states = quick_bounds(model, evidence, tau)
        truth = exact_value(model, tau, evidence=evidence)
        # The oracle has a rounding of its own, of the same size at most.
        assert truth <= log_upper + 2 * log_error
        assert log_error < 1e-7
        assert log_lower <= truth + 2 * log_error
        if log_lower > -math.inf:
            # What it claims of its assignment holds of that assignment, and all max variables have a state.
            chosen = {v: int(states[v]) for v in np.flatnonzero(tau == 0.0).tolist() if v not in evidence}
            assert min(chosen.values(), default=0) >= 0
            assert log_lower <= exact_value(model, tau, evidence=evidence | chosen) + 2 * log_error
            near += 1
        met += math.isclose(truth, log_upper, abs_tol=1e-9) or truth == log_upper
    # With room enough nothing is split, and the bound is the value; with none it seldom is.
    assert (met == 150) == (entries == 1000)
    # Dead ends are the exception.
    assert near > 100


def test_large_models_are_left_alone() -> None:
    n = quick.MOST_VARIABLES + 1
    model = Model.from_factors([2] * n, [((v,), [0.5, 0.5]) for v in range(n)])
    quick_ones = quick_bounds(model, {}, np.ones(n))
    assert (quick_ones.log_lower, quick_ones.log_upper) == (-math.inf, math.inf)


def test_with_everything_maximised_and_nothing_split_the_configuration_is_the_best_one() -> None:
    for seed in range(60):
        model, _, evidence = case(seed)
        tau = np.zeros(model.n_variables)
        log_lower, log_upper, log_error, _ = quick_bounds(model, evidence, tau)
        assert log_lower == log_upper == -math.inf or log_lower == pytest.approx(log_upper, abs=1e-9 + 2 * log_error)
