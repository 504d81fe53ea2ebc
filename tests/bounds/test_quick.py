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
        found = quick_bound(model, evidence, tau)
        assert found is not None
        truth = exact_value(model, tau, evidence=evidence)
        assert truth <= found.log_upper + 2 * found.log_error
        assert found.log_error < 1e-7
        free = np.array([tau[v] == 0.0 and v not in evidence for v in range(model.n_variables)], dtype=np.bool_)
        assert np.all((found.states >= 0) == free)
        assert np.all(found.states < model.cardinalities)
        met += math.isclose(truth, found.log_upper, abs_tol=1e-9) or truth == found.log_upper
    # With room enough nothing is split, and the bound is the value; with none it seldom is.
    assert (met == 150) == (entries == 1000)


def test_large_models_are_left_alone() -> None:
    n = quick.MOST_VARIABLES + 1
    model = Model.from_factors([2] * n, [((v,), [0.5, 0.5]) for v in range(n)])
    assert quick_bound(model, {}, np.ones(n)) is None
