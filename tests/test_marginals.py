"""Marginals against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.tighten.run import interruptible
from tests.oracle import joint_log_table
from tests.strategies import random_model


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 0.5]), st.booleans())
def test_exact_on_small_models(seed: int, zeros: float, observe: bool) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=6, n_factors=7, zeros=zeros)
    evidence = {2: int(rng.integers(0, model.cardinalities[2]))} if observe else {}
    joint = joint_log_table(model, evidence)
    top = joint.max()
    if top == -math.inf:
        with pytest.raises(ps.InputError, match="probability 0"):
            ps.marginals(model, evidence)
        return
    joint = np.exp(joint - top)
    found = ps.marginals(model, evidence)
    assert found.exact
    for v in range(6):
        others = tuple(a for a in range(6) if a != v)
        np.testing.assert_allclose(found.beliefs[v], joint.sum(axis=others) / joint.sum(), atol=1e-9)


def test_barren_variables_have_marginals() -> None:
    tables = [((0,), [0.3, 0.7]), ((0, 1), [[0.9, 0.1], [0.5, 0.5]])]
    model = ps.Model.from_factors([2, 2], tables, directed=True)
    np.testing.assert_allclose(ps.marginals(model).beliefs[1], [0.62, 0.38])


def test_approximate_ones_are_said_to_be() -> None:
    model = ps.generate.grid(40, 40, seed=3).model
    found = ps.marginals(model, time_limit=0.5, memory=60e6)
    assert not found.exact
    assert all(belief.sum() == pytest.approx(1.0) for belief in found.beliefs)


def test_a_signal_ends_the_tightening() -> None:
    model, _ = ps.generate.grid(30, 30, seed=1)
    with interruptible() as flag:
        flag.cause = "Ctrl-C"
        # Without the flag this would take ten minutes.
        found = ps.marginals(model, time_limit=600.0, memory=2e8)
    assert not found.exact
    assert all(belief.sum() == pytest.approx(1.0) for belief in found.beliefs)
