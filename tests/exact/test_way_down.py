"""Elimination and the way back, some table entries at a time, against brute force."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.core.arrays import IntArray
from powersum.exact import way_down
from powersum.exact.way_down import WayDown, post_order
from powersum.model.rounding import elimination_error
from powersum.prepare.ordering import elimination_order
from tests.oracle import exact_value, joint_log_table
from tests.strategies import random_model


def held_against_truth(model: ps.Model, entries: float, memory: float = math.inf) -> None:
    """The sum and each probability are the true ones, up to the rounding that is told, however long the slices are."""
    tau = np.ones(model.n_variables)
    way = WayDown(model, elimination_order(model, tau, restarts=1), memory)
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
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.2, 0.5]),
    st.sampled_from([1.0, 40.0, math.inf]),
    st.sampled_from([0.0, 300.0, 1000.0, math.inf]),
)
def test_against_brute_force(seed: int, zeros: float, entries: float, memory: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    spread = float(rng.choice([0.5, 3.0, 40.0]))
    held_against_truth(random_model(rng, n_variables=n, n_factors=9, zeros=zeros, spread=spread), entries, memory)


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
    # Two numbers for each entry of every message are always enough; the way up alone needs less.
    assert 8.0 * way.up.needed < way.bytes <= 16.0 * way.up.entries.sum()
    wide = ps.generate.grid(60, 60, seed=1).model
    assert WayDown(wide, np.arange(3600)).bytes == math.inf


def test_less_memory_gives_the_same_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are computed twice where they do not fit: the numbers are the same, digit for digit."""
    # Otherwise the least memory is always the quickest here.
    monkeypatch.setattr(way_down, "FRESH_MEMORY", 0.0)
    model, _ = ps.generate.grid(8, 40, seed=3)
    order = elimination_order(model, np.ones(320), restarts=1)
    least = WayDown(model, order, 0.0)
    exact, beliefs = least.run()
    seen = {least.bytes}
    for share in (1.5, 2.0, 3.0, math.inf):
        way = WayDown(model, order, share * least.bytes)
        assert least.bytes <= way.bytes <= share * least.bytes
        assert way.again < way.work
        seen.add(way.bytes)
        found, again = way.run()
        assert found.log_value == exact.log_value
        np.testing.assert_array_equal(again, beliefs)
    assert len(seen) > 2
    assert way.again == 0.0
    # Less than a third of what all messages and what lies above them take.
    assert least.bytes < 16.0 * least.up.entries.sum() / 3.0


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_a_post_order_needs_no_more_memory_on_the_way_up(seed: int) -> None:
    """Children come before their parents, subtrees stand together, and none of the kind needs less."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    parents = np.array([int(rng.integers(b + 1, n)) if b + 1 < n and rng.random() < 0.9 else -1 for b in range(n)])
    entries = rng.integers(1, 50, n)
    order = post_order(parents, entries).tolist()
    assert sorted(order) == list(range(n))
    assert peak(parents, entries, order) == min(
        peak(parents, entries, list(other)) for other in permutations(range(n)) if whole_subtrees(parents, list(other))
    )


def peak(parents: IntArray, entries: IntArray, order: list[int]) -> int:
    """The most numbers that are held at once on the way up."""
    held, most = 0, 0
    for b in order:
        held += int(entries[b])
        most = max(most, held)
        held -= int(entries[parents == b].sum())
    return most


def whole_subtrees(parents: IntArray, order: list[int]) -> bool:
    """Whether each subtree stands together and ends with its root."""
    place = {b: i for i, b in enumerate(order)}
    sizes = np.ones(len(order), dtype=np.int64)
    below = [{b} for b in range(len(order))]
    for b, parent in enumerate(parents.tolist()):
        if parent >= 0:
            below[parent] |= below[b]
            sizes[parent] += sizes[b]
    return all(
        {order[place[b] - i] for i in range(sizes[b])} == below[b] for b in order if place[b] + 1 >= sizes[b]
    ) and all(place[b] + 1 >= sizes[b] for b in order)
