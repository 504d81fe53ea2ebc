"""One node against NumPy: messages, conditionals, entropies and marginals, whatever the shapes of table and inputs."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powersum.bounds.buckets.kernels import backward, beliefs_into, fill_tables, forward, send, workspace_size
from powersum.bounds.buckets.patterns import CONSTANT, GATHER, HALVED, RUNS, SPREAD, STEPS, WHOLE, wire
from powersum.bounds.buckets.tree_wiring import (
    TreeWiring,
)
from powersum.core.lanes import roomy

UNTOUCHED = 1234.5


class Node:
    """A node with random inputs, each of which has the first axis and some of the others."""

    def __init__(self, shape: list[int], subsets: list[tuple[int, ...]], rng: np.random.Generator, kind: Any) -> None:
        self.shape, self.subsets, self.kind = shape, subsets, kind
        sizes = [int(np.prod([shape[a] for a in axes])) for axes in subsets]
        total = int(np.prod(shape))
        self.columns = total // shape[0]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        self.signs = rng.choice([-1, 1], len(subsets))
        ends = np.cumsum([len(axes) for axes in subsets])
        # A number that must stay as it is lies before and behind everything that is written.
        self.message = int(starts[-1]) + 1
        self.wiring: TreeWiring = wire(
            np.array([0, len(shape)]),
            np.arange(len(shape)),
            np.array(shape),
            np.concatenate(([0], ends[:-1])),
            ends,
            np.concatenate([np.array(axes) for axes in subsets]),
            states=np.array([shape[0]]),
            columns=np.array([self.columns]),
            table=np.array([0, total]),
            packed=np.array([0, self.columns if shape[0] == 2 else total]),
            message=np.array([self.message]),
            entropy=np.array([1]),
            input_starts=np.array([0, len(subsets)]),
            source=starts[:-1],
            slope=self.columns + 1 + starts[:-1] + np.arange(len(subsets)),
            sign=self.signs,
        )
        self.pool = roomy(self.message + self.columns + 1, kind)
        self.pool[:] = UNTOUCHED
        self.pool[: starts[-1]] = rng.normal(0, 2, starts[-1])
        self.tables = roomy(int(self.wiring.table[-1] if kind == np.float64 else self.wiring.packed[-1]) + 1, kind)
        self.tables[:] = UNTOUCHED
        self.entropies = np.full(self.columns + 2, UNTOUCHED, kind)
        self.workspace = roomy(workspace_size(self.wiring), kind)
        self.workspace[:] = np.nan

    def input(self, k: int, pool: Any, start: int) -> Any:
        """An input as an array that has an axis of length 1 for each that it lacks."""
        axes = self.subsets[k]
        shape = [self.shape[a] if a in axes else 1 for a in range(len(self.shape))]
        return pool[start : start + int(np.prod(shape))].reshape(shape)

    def table(self) -> Any:
        total = np.zeros(self.shape)
        for k in range(len(self.subsets)):
            total = total + self.signs[k] * self.input(k, self.pool, int(self.wiring.source[k])).astype(np.float64)
        return total

    def forward(self, weight: float, *, keep: bool = True) -> Any:
        nodes, weights = np.array([0]), np.array([weight])
        if keep:
            forward(
                self.wiring, nodes, weights, self.pool, self.tables, self.entropies, np.empty(0), self.workspace
            )  # fmt: skip
        else:
            send(self.wiring, nodes, weights, self.pool, self.workspace)
        return self.pool[self.message : self.message + self.columns].astype(np.float64)


shapes = st.one_of(
    st.lists(st.integers(2, 5), min_size=1, max_size=5),
    st.lists(st.just(2), min_size=1, max_size=11),
    st.lists(st.sampled_from([1, 2, 3, 4, 8, 9]), min_size=1, max_size=5),
    st.sampled_from([[2, 600, 3], [3, 5, 601], [40, 2, 7, 2], [2, 3, 300, 2], [1, 9, 3, 9, 4]]),
)


def agrees(
    shape: list[int], subsets: list[tuple[int, ...]], rng: np.random.Generator, kind: Any, weight: float
) -> set[int]:
    """Check both passes over one node; returns the kinds of patterns that were met."""
    node = Node(shape, subsets, rng, kind)
    near: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12} if kind == np.float64 else {"rtol": 2e-5, "atol": 2e-5}
    table = node.table().reshape(shape[0], -1)
    filled = np.empty(table.size)
    pool = roomy(node.pool.size, np.float64)
    pool[:] = node.pool
    workspace = roomy(workspace_size(node.wiring), np.float64)
    first = np.zeros(1, dtype=np.int64)
    fill_tables(node.wiring, first, pool, filled, first, workspace)
    np.testing.assert_allclose(filled, table.ravel(), rtol=1e-12, atol=1e-12)
    top = table.max(axis=0)
    if weight == 0.0:
        np.testing.assert_allclose(node.forward(0.0, keep=False), top, **near)
        return set()
    shares = np.exp((table - top) / weight)
    message = top + weight * np.log(shares.sum(axis=0))
    shares /= shares.sum(axis=0)
    alone = node.forward(weight, keep=False)
    np.testing.assert_allclose(alone, message, **near)
    np.testing.assert_array_equal(node.forward(weight), alone)
    entropy = -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=0)
    np.testing.assert_allclose(node.entropies[1:-1], entropy, **near)
    # The belief that comes back, and where gradients go: nothing else may be written.
    slopes = roomy(int(node.wiring.slope[-1] + node.wiring.source[-1] + node.pool.size) + 1, kind)
    slopes[:] = UNTOUCHED
    slopes[: node.columns] = rng.random(node.columns)
    beliefs = shares * slopes[: node.columns].astype(np.float64)
    kept = np.empty(table.size, kind)
    beliefs_into(node.wiring, node.message, node.tables, slopes, kept)
    np.testing.assert_allclose(kept.reshape(table.shape), beliefs, **near)
    weight_slopes = np.zeros(1)
    node.workspace[:] = np.nan
    backward(
        node.wiring, np.array([0]), node.message, node.tables, node.entropies, slopes, weight_slopes, node.workspace
    )
    wanted = float((entropy * slopes[: node.columns]).sum())
    assert weight_slopes[0] == pytest.approx(wanted, rel=1e-4 if kind == np.float32 else 1e-11, abs=1e-5)
    written = np.zeros(slopes.size, dtype=bool)
    written[: node.columns] = True
    for k, axes in enumerate(subsets):
        lacking = tuple(a for a in range(len(shape)) if a not in axes)
        marginal = beliefs.reshape(shape).sum(axis=lacking)
        start = int(node.wiring.slope[k])
        got = slopes[start : start + marginal.size]
        scale = max(1.0, float(marginal.max()))
        np.testing.assert_allclose(got / scale, marginal.ravel() / scale, **near)
        written[start : start + marginal.size] = True
    assert (slopes[~written] == UNTOUCHED).all()
    assert node.pool[node.message - 1] == node.pool[-1] == UNTOUCHED
    assert node.entropies[0] == node.entropies[-1] == node.tables[-1] == UNTOUCHED
    return set(node.wiring.kind[node.wiring.pattern].tolist())


@settings(max_examples=120, deadline=None)
@given(shapes, st.integers(0, 2**32 - 1), st.sampled_from([np.float64, np.float32]), st.sampled_from([0.0, 0.3, 1.0]))
def test_a_node_of_any_shape(shape: list[int], seed: int, kind: Any, weight: float) -> None:
    rng = np.random.default_rng(seed)
    rest = range(1, len(shape))
    subsets = [(0, *(a for a in rest if rng.random() < rng.choice([0.2, 0.5, 0.8]))) for _ in range(4)]
    agrees(shape, [*subsets, tuple(range(len(shape)))], rng, kind, weight)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_every_kind_of_pattern(kind: Any) -> None:
    rng = np.random.default_rng(0)
    met: set[int] = set()
    for shape in ([2] * 6, [2] * 10, [2, 4, 2, 2, 4], [3, 5, 2, 3], [2, 4, 600, 2], [3, 600, 3], [5, 9, 8, 2]):
        rest = range(1, len(shape))
        subsets = [(0, *axes) for n in range(len(shape)) for axes in combinations(rest, n)]
        met |= agrees(shape, subsets, rng, kind, 0.7)
    assert met == {GATHER, WHOLE, CONSTANT, RUNS, STEPS, SPREAD, *range(HALVED + 1, HALVED + 7)}
