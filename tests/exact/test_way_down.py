"""Elimination and the way back, some table entries at a time, against brute force."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.exact.way_down import WayDown
from powersum.model.rounding import elimination_error
from powersum.prepare.ordering import elimination_order
from tests.oracle import exact_value, joint_log_table
from tests.strategies import random_model


def held_against_truth(model: ps.Model, entries: float) -> None:
    """The sum and each probability are the true ones, up to the rounding that is told, however long the slices are."""
    tau = np.ones(model.n_variables)
    way = WayDown(model, elimination_order(model, tau, restarts=1))
    found = [both for both in way.slices(entries) if both is not None]
    assert len(found) == 1
    exact, beliefs = found[0]
    log_value = exact.log_value
    truth = exact_value(model, tau)
    if truth == -math.inf:
        assert log_value == -math.inf
        assert not beliefs.any()
        return
    error = elimination_error(model)
    assert abs(log_value - truth) <= error + 1e-11 * max(1.0, abs(truth))
    joint = joint_log_table(model)
    joint = np.exp(joint - joint.max())
    axes = range(model.n_variables)
    shares = [joint.sum(axis=tuple(a for a in axes if a != v)) / joint.sum() for v in axes]
    error = 4.0 * error + way.log_error + 1e-12
    assert (np.abs(beliefs - np.concatenate(shares)) <= error * np.concatenate(shares) + 1e-290).all()


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2, 0.5]), st.sampled_from([1.0, 40.0, math.inf]))
def test_against_brute_force(seed: int, zeros: float, entries: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    spread = float(rng.choice([0.5, 3.0, 40.0]))
    held_against_truth(random_model(rng, n_variables=n, n_factors=9, zeros=zeros, spread=spread), entries)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 3000.0]))
def test_buckets_of_several_blocks(seed: int, entries: float) -> None:
    """Every pair of variables has a factor: one bucket has all of them, and more entries than a block."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, 6)
    pairs = [(a, b) for a in range(6) for b in range(a)]
    factors = [(pair, np.exp(rng.normal(0.0, 2.0, tuple(sizes[list(pair)])))) for pair in pairs]
    factors = [(pair, np.where(rng.random(table.shape) < 0.1, 0.0, table)) for pair, table in factors]
    held_against_truth(ps.Model.from_factors(sizes.tolist(), factors), entries)


def test_memory_is_told() -> None:
    model, _ = ps.generate.grid(10, 10, seed=1)
    way = WayDown(model, elimination_order(model, np.ones(100), restarts=1))
    # Two numbers for each entry of every message would be enough; one is not.
    assert 8.0 * way.up.entries.sum() < way.bytes <= 16.0 * way.up.entries.sum()
    wide = ps.generate.grid(60, 60, seed=1).model
    assert WayDown(wide, np.arange(3600)).bytes == math.inf
