"""The first bound, in plain NumPy, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersum.bounds import quick
from powersum.bounds.quick import quick_bound
from powersum.model.model import Model
from tests.cases import case
from tests.exact.test_small import question, random_network
from tests.oracle import exact_value


@pytest.mark.parametrize("entries", [1, 8, 1000])
def test_never_below_the_value(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "GROUP_ENTRIES", entries)
    monkeypatch.setattr(quick, "WIDEST", 2 if entries < 1000 else 24)
    met = 0
    for seed in range(150):
        if seed % 2:
            model = random_network(seed)
            evidence, tau = question(model, seed)
        else:
            model, query, evidence = case(seed)
            tau = query.weights
        log_upper, log_error = quick_bound(model, evidence, tau)
        truth = exact_value(model, tau, evidence=evidence)
        # The oracle has a rounding of its own, of the same size at most.
        assert truth <= log_upper + 2 * log_error
        assert log_error < 1e-7
        met += math.isclose(truth, log_upper, abs_tol=1e-9) or truth == log_upper
    # With room enough nothing is split, and the bound is the value; with none it seldom is.
    assert (met == 150) == (entries == 1000)


def test_large_models_are_left_alone() -> None:
    n = quick.MOST_VARIABLES + 1
    model = Model.from_factors([2] * n, [((v,), [0.5, 0.5]) for v in range(n)])
    assert quick_bound(model, {}, np.ones(n))[0] == math.inf
