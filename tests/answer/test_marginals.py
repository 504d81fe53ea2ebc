"""Marginals against brute force."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.bounds.tree import CoveringTree
from powersum.core.interrupt import interruptible
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


SAME, OTHER = np.eye(3), 1.0 - np.eye(3)


@pytest.mark.parametrize("exact", [True, False])
def test_impossible_without_being_inconsistent(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """x0 = x1 = x2 ≠ x0: every state of every variable and of every pair seems possible."""
    if not exact:
        # A tree that splits a variable, as where memory is short.
        monkeypatch.setattr("powersum.bounds.tree.CoveringTree", partial(CoveringTree, ibound=1))
    triangle = [((0, 1), SAME), ((1, 2), SAME), ((0, 2), OTHER)]
    model = ps.Model.from_factors([3, 3, 3, 2], [*triangle, ((3,), [0.4, 0.6])])
    for evidence in ({}, {3: 1}):
        with pytest.raises(ps.InputError, match="probability 0"):
            ps.marginals(model, evidence)
    # With the last table the other way there are configurations.
    possible = ps.Model.from_factors([3, 3, 3, 2], [*triangle[:2], ((0, 2), SAME), ((3,), [0.4, 0.6])])
    found = ps.marginals(possible)
    assert found.exact is exact
    assert found.beliefs[0].tolist() == pytest.approx([1 / 3] * 3)


def test_one_simplification_for_all_that_it_removes(monkeypatch: pytest.MonkeyPatch) -> None:
    from powersum.prepare import simplify as package

    calls = []

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return simplified(*arguments, **options)

    simplified = package.simplified
    monkeypatch.setattr(package, "simplified", counted)
    # Observed, isolated, or with one state left, in turns; nothing remains.
    n = 60
    model = ps.Model.from_factors([3] * n, [((v,), [1.0, 1.0, 0.0]) for v in range(n)])
    found = ps.marginals(model, {v: v % 2 for v in range(0, n, 3)} | {v: [1.0, 0.0, 1.0] for v in range(1, n, 3)})
    assert found.exact
    assert len(calls) == 1
    for v in range(n):
        wanted = ([1 - v % 2, v % 2, 0], [1, 0, 0], [0.5, 0.5, 0])[v % 3]
        assert found.beliefs[v].tolist() == wanted


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
