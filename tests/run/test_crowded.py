"""One variable with thousands of neighbours: nothing may grow with their square, and an answer is still found."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import powersum as ps
from powersum.assign.evaluator import Evaluator
from powersum.bounds.buckets.partition import MOST_COMPARED, limits_of, partition
from powersum.bounds.buckets.scopes import scopes_in_order
from powersum.bounds.tree.merging import MOST_PAIRS, pairs_of
from powersum.core.arrays import FloatArray
from powersum.model.graph import adjacency
from powersum.model.model import Model
from powersum.prepare.ordering.fill import min_fill
from powersum.prepare.problem import Problem


def star(n_leaves: int, seed: int = 0) -> tuple[Model, FloatArray]:
    """Variable 0 with so many binary neighbours; also all tables, by leaf, centre and state of the leaf."""
    tables = np.random.default_rng(seed).random((n_leaves, 2, 2))
    model = Model.from_factors([2] * (n_leaves + 1), [((0, i + 1), table) for i, table in enumerate(tables)])
    return model, tables


def log_sum(tables: FloatArray) -> float:
    """The star's partition function."""
    return float(np.logaddexp.reduce(np.log(tables.sum(axis=2)).sum(axis=0)))


@pytest.mark.parametrize("ibound", [1, 3])
def test_mini_buckets_of_a_crowded_variable_are_a_partition_with_a_spanning_tree(ibound: int) -> None:
    model, _ = star(6 * MOST_COMPARED)
    scopes = scopes_in_order(model, np.arange(model.n_variables))
    parts = partition(scopes, limits_of(ibound))
    first = np.flatnonzero(parts.bucket == 0)
    assert len(first) > MOST_COMPARED
    # Each factor is in a mini-bucket that holds its variables.
    for factor, home in enumerate(parts.factor_home.tolist()):
        scope = set(parts.positions[parts.starts[home] : parts.starts[home + 1]].tolist())
        assert set(model.factor(factor)[0]) <= scope
        assert len(scope) <= ibound + 1
    # n - 1 edges that leave nothing apart are a tree.
    edges = [edge for edge in parts.edges.tolist() if parts.bucket[edge[0]] == 0]
    reached, waiting = {int(first[0])}, [int(first[0])]
    neighbours: dict[int, list[int]] = {}
    for a, b in edges:
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    while waiting:
        for node in neighbours[waiting.pop()]:
            if node not in reached:
                reached.add(node)
                waiting.append(node)
    assert len(edges) == len(first) - 1
    assert reached == set(first.tolist())


@pytest.mark.parametrize("method", ["tree", "mbe", "wmb"])
def test_bounds_with_a_crowded_variable_first_are_valid(method: str) -> None:
    model, tables = star(3 * MOST_COMPARED, seed=1)
    result = ps.bound(model, order=range(model.n_variables), method=method, ibound=2, sweeps=3)
    assert result.log_upper >= log_sum(tables) - 1e-9


def test_pairs_of_a_crowded_variable_are_few_and_leave_nothing_apart() -> None:
    few = np.repeat(np.arange(3), [1, 2, 5])
    assert list(pairs_of(few)) == [(1, 2), *itertools.combinations(range(3, 8), 2)]
    pairs = set(pairs_of(np.zeros(5000, dtype=np.int64)))
    assert len(pairs) <= MOST_PAIRS
    assert {(i, i + 1) for i in range(4999)} <= pairs


def test_min_fill_gives_up_within_one_variable() -> None:
    model, _ = star(1000)
    graph = adjacency(model.n_variables, model.scope_starts, model.scope_variables)
    group = np.ones(model.n_variables, dtype=np.int64)
    group[0] = 0  # the centre is first, and joins all the others
    limit, n = 3_000_000, model.n_variables
    order, _, _, work = min_fill(
        graph.starts,
        graph.neighbours,
        group,
        np.argsort(group, kind="stable"),
        np.ones(n, dtype=np.int64),
        np.ones(n),
        0,
        0,
        n,
        math.inf,
        limit,
    )
    # At most the edges of one neighbour more.
    assert len(order) == 0
    assert limit < work <= limit + 2 * n * n


@pytest.mark.parametrize("observed", [0, 1500])
def test_a_star_of_thousands_is_narrow(observed: int) -> None:
    model, tables = star(4000, seed=2)
    tau = np.ones(model.n_variables)
    tau[1 : observed + 1] = 0.0
    states = np.zeros(model.n_variables, dtype=np.int64)
    given = np.log(tables[:observed, :, 0]).sum(axis=0) + np.log(tables[observed:].sum(axis=2)).sum(axis=0)
    evaluator = Evaluator(Problem.whole(model, tau, {}), memory=2e7)
    assert evaluator.value(states) == pytest.approx(float(np.logaddexp.reduce(given)), rel=1e-12)


def test_a_question_about_the_neighbours_of_a_crowded_variable_has_an_assignment() -> None:
    model, tables = star(3000, seed=3)
    result = ps.solve(model, range(1, 1501), work=3)
    states = np.array([result.assignment[str(v)] for v in range(1, 1501)], dtype=np.int64)
    chosen = np.log(tables[np.arange(1500), :, states]).sum(axis=0) + np.log(tables[1500:].sum(axis=2)).sum(axis=0)
    assert result.log_lower <= float(np.logaddexp.reduce(chosen)) + 1e-9
    assert -math.inf < result.log_lower <= result.log_upper
    # Whatever the state of the centre, no choice for the neighbours does better than its own best one.
    best = np.log(tables[:1500].max(axis=2)).sum(axis=0) + np.log(tables[1500:].sum(axis=2)).sum(axis=0)
    assert result.log_upper >= float(np.logaddexp.reduce(chosen)) - 1e-9
    assert result.log_lower <= float(np.logaddexp.reduce(best)) + 1e-9
