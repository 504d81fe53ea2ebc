"""Extending mini-buckets: the bound stays what it was, messages are received, and what was disagreed about is found."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powersum.bounds.buckets.partition import Partition, limits_of, partition
from powersum.bounds.buckets.passes import Passes
from powersum.bounds.buckets.scopes import Scopes, scopes_in_order
from powersum.bounds.buckets.wiring import lay_out
from powersum.bounds.tree import extending
from powersum.bounds.tree.extending import Ways, extend
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.forest import GrowingForest
from powersum.core.arrays import FloatArray, IntArray
from powersum.model.model import Model
from powersum.prepare.problem import Problem
from tests.bounds.tree.test_growth import Case
from tests.bounds.tree.test_tree import problem_of
from tests.oracle import exact_value
from tests.strategies import random_model, weighted_models


def extended(case: Case, room: float, seed: int) -> tuple[Partition, IntArray]:
    forest = GrowingForest(case.parts, case.cards)
    extend(forest, case.parts, case.passes, case.cards, room=room, seed=seed)
    return forest.partition(case.parts)


def scope_of(parts: Partition, node: int) -> set[int]:
    return set(parts.positions[parts.starts[node] : parts.starts[node + 1]].tolist())


@settings(max_examples=80, deadline=None)
@given(weighted_models(), st.integers(0, 2), st.integers(0, 100), st.sampled_from([0.0, 5.0, 60.0, 1e9]))
def test_the_bound_stays_what_it_was(weighted: tuple[Model, FloatArray], ibound: int, seed: int, room: float) -> None:
    case = Case(*weighted, ibound, seed)
    if case.passes.value_and_gradient(0.1) == -math.inf:
        return
    parts, number = extended(case, room, seed)
    assert number.tolist() == list(range(len(case.parts.bucket)))
    assert parts.edges.tolist() == case.parts.edges.tolist()
    before, after = (lay_out(one, case.scopes, case.cards).n_entries for one in (case.parts, parts))
    assert before <= after <= before + room
    for node, above in enumerate(parts.parent.tolist()):
        assert scope_of(case.parts, node) <= scope_of(parts, node)
        assert above >= 0 or len(scope_of(parts, node)) == 1
        assert above < 0 or scope_of(parts, node) - {int(parts.bucket[node])} <= scope_of(parts, above)
    grown = case.carried(parts, number)
    for temperature in (0.0, 0.2):
        value = case.passes.value(temperature)
        assert grown.value(temperature) == pytest.approx(value, abs=1e-9, rel=1e-11)
    # Shifts may be anything now.
    grown.parameters[:] += np.random.default_rng(seed).normal(0.0, 0.5, grown.parameters.size)
    exact = exact_value(case.model, case.tau, order=case.order.tolist())
    assert grown.value() >= exact - 1e-9 * max(1.0, abs(exact))


def test_states_are_drawn_as_the_tree_believes() -> None:
    """Of a tree without splits: how often each pair of states is drawn, against brute force."""
    rng = np.random.default_rng(3)
    model = random_model(rng, n_variables=5, n_factors=9, max_states=3, max_scope=2)
    case = Case(model, np.ones(5), 5, 0)
    case.passes.value_and_gradient(0.1)
    parts = case.parts
    assert not len(parts.edges)
    ways = Ways(parts.bucket, parts.starts, parts.positions, parts.parent)
    states = extending._drawn(
        ways, extending._origins(ways), case.cards, case.passes.layout.wiring.table, case.passes.beliefs(), 40_000, 7
    )
    weight = {
        x: math.exp(sum(float(table[tuple(x[v] for v in scope)]) for scope, table in model.factors()))
        for x in product(*map(range, model.cardinalities.tolist()))
    }
    total = sum(weight.values())
    for one, two in product(range(5), repeat=2):
        a, b = (int(np.flatnonzero(case.order[parts.bucket] == v)[0]) for v in (one, two))
        for s, t in product(*map(range, model.cardinalities[[one, two]].tolist())):
            share = sum(w for x, w in weight.items() if x[one] == s and x[two] == t) / total
            assert np.mean((states[a] == s) & (states[b] == t)) == pytest.approx(share, abs=0.015)


def opposed(copies: int = 1) -> tuple[Problem, Scopes, Partition, IntArray]:
    """Of each three variables x0 is summed, likes to be as x2 and unlike x1, and x1 and x2 are mostly alike.

    Where both are 0 the two tables want other shifts than where both are 1, and both values are the same: as long as
    shifts depend on x0 alone the bound is loose. Extended by x2, it need not be.
    """
    like, alike = np.exp(2.0 * np.eye(2)), np.exp(6.0 * np.eye(2))
    factors = []
    for first in range(0, 3 * copies, 3):
        factors += [([first, first + 2], like), ([first, first + 1], like[::-1]), ([first + 1, first + 2], alike)]
    problem = problem_of(Model.from_factors([2] * 3 * copies, factors), np.tile([1.0, 0.0, 0.0], copies))
    order = np.concatenate([np.arange(first, 3 * copies, 3) for first in range(3)])
    scopes = scopes_in_order(problem.model, order)
    return problem, scopes, partition(scopes, limits_of(1)), order


def test_what_both_should_know_is_found_and_gains() -> None:
    """Two mini-buckets of the sum variable; x2 becomes known to the other one, and the bound falls to the value."""
    problem, scopes, parts, order = opposed()
    tree = FixedTree(problem, order, scopes, parts, threads=1)
    for _ in range(100):
        tree.step(math.inf)
    exact = exact_value(problem.model, problem.tau)
    assert tree.log_upper > exact + 1.0
    tree._guided().guide(0.03)
    cards = problem.model.cardinalities[order]
    forest = GrowingForest(tree.parts, cards)
    extend(forest, tree.parts, tree._guided(), cards, room=1e3, seed=0)
    of_sum = [scope for scope, bucket in zip(forest.scope, forest.bucket, strict=True) if bucket == 0]
    assert len(of_sum) == 2
    assert all(scope >> 2 & 1 for scope in of_sum)
    parts, _ = forest.partition(tree.parts)
    larger = FixedTree(problem, order, scopes, parts, threads=1)
    for _ in range(200):
        larger.step(math.inf)
    assert larger.log_upper == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize(("looks", "least", "most"), [(0.0, 0, 0), (7.0, 1, 19), (60.0, 20, 20)])
def test_of_too_many_edges_some_are_looked_at(
    looks: float, least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, scopes, parts, order = opposed(copies=20)
    cards = problem.model.cardinalities[order]
    passes = Passes(lay_out(parts, scopes, cards), problem.model, order, problem.tau)
    passes.value_and_gradient(0.3)
    monkeypatch.setattr(extending, "LOOKS", looks)
    forest = GrowingForest(parts, cards)
    before = list(forest.scope)
    extend(forest, parts, passes, cards, room=1e9, seed=0)
    extended = sum(now != then for now, then in zip(forest.scope, before, strict=True))
    assert least <= extended <= most
