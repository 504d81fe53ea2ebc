"""Growing a covering tree: merges never loosen the bound, cost what was said, and end at the exact value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powersum.bounds.buckets.partition import Partition, limits_of, partition
from powersum.bounds.buckets.passes import Passes
from powersum.bounds.buckets.scopes import scopes_in_order
from powersum.bounds.buckets.wiring import lay_out
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.forest import GrowingForest
from powersum.bounds.tree.growth import Turns, Way, carry, grow, many_are_maximised
from powersum.bounds.tree.merging import pairs_of
from powersum.core.arrays import FloatArray, IntArray
from powersum.model.model import Model
from powersum.prepare.ordering import elimination_order
from tests.bounds.tree.test_tree import problem_of, wide_model
from tests.oracle import exact_value
from tests.strategies import weighted_models


class Case:
    """A partition with random shifts and weights, and what it takes to build another one beside it."""

    def __init__(self, model: Model, tau: FloatArray, ibound: int, seed: int) -> None:
        self.model, self.tau = model, tau
        self.order = np.argsort(-tau, kind="stable")
        self.scopes = scopes_in_order(model, self.order)
        self.cards: IntArray = model.cardinalities[self.order]
        self.parts = partition(self.scopes, limits_of(ibound))
        self.passes = self.build(self.parts)
        self.passes.parameters[:] = np.random.default_rng(seed).normal(0.0, 0.7, self.passes.parameters.size)

    def build(self, parts: Partition) -> Passes:
        return Passes(lay_out(parts, self.scopes, self.cards), self.model, self.order, self.tau)

    def carried(self, parts: Partition, number: IntArray) -> Passes:
        passes = self.build(parts)
        passes.parameters[:] = carry(
            self.passes.layout,
            self.parts.edges,
            self.passes.parameters,
            passes.layout,
            parts.edges,
            number,
            self.cards,
        )
        return passes

    def assert_no_higher(self, parts: Partition, number: IntArray) -> None:
        grown = self.carried(parts, number)
        exact = exact_value(self.model, self.tau, order=self.order.tolist())
        for temperature in (0.0, 0.2):
            before, after = self.passes.value(temperature), grown.value(temperature)
            rounding = 1e-7 * max(1.0, abs(before))
            assert after <= before + rounding or after == before
            assert after >= exact - rounding or after == exact


@settings(max_examples=60, deadline=None)
@given(weighted_models(), st.integers(0, 2), st.integers(0, 100))
def test_one_merge_never_loosens(weighted: tuple[Model, FloatArray], ibound: int, seed: int) -> None:
    case = Case(*weighted, ibound, seed)
    for one, two in pairs_of(case.parts.bucket):
        forest = GrowingForest(case.parts, case.cards)
        before = sum(forest.size)
        plan = forest.plan(one, two, math.inf)
        assert plan is not None
        # What arrives at the receiver is part of it already: it need not be extended.
        if plan.receiver >= 0:
            node, other = plan.members[-1]
            message = plan.scopes[-1] & ~(1 << forest.bucket[node])
            assert message & ~forest.scope[plan.receiver] == 0
            assert other != node
        forest.apply(plan)
        parts, number = forest.partition(case.parts)
        assert lay_out(parts, case.scopes, case.cards).n_entries == before + plan.added
        case.assert_no_higher(parts, number)


@pytest.mark.parametrize("way", Way)
@settings(max_examples=60, deadline=None)
@given(weighted_models(), st.integers(0, 2), st.integers(0, 100), st.sampled_from([1.3, 3.0, 1e9]))
def test_growth_never_loosens(
    way: Way, weighted: tuple[Model, FloatArray], ibound: int, seed: int, factor: float
) -> None:
    case = Case(*weighted, ibound, seed)
    if case.passes.value_and_gradient(0.1) == -math.inf:
        return
    entries = factor * case.passes.layout.n_entries
    parts, number = grow(way, case.parts, case.passes, case.cards, entries=entries, seed=0)
    assert lay_out(parts, case.scopes, case.cards).n_entries <= entries
    case.assert_no_higher(parts, number)


@settings(max_examples=30, deadline=None)
@given(weighted_models(), st.integers(0, 100))
def test_all_merges_make_it_exact(weighted: tuple[Model, FloatArray], seed: int) -> None:
    case = Case(*weighted, 0, seed)
    forest = GrowingForest(case.parts, case.cards)
    for one, two in pairs_of(case.parts.bucket):
        plan = forest.plan(forest.find(one), forest.find(two), math.inf)
        assert plan is not None
        forest.apply(plan)
    parts, number = forest.partition(case.parts)
    assert not len(parts.edges)
    exact = exact_value(case.model, case.tau, order=case.order.tolist())
    assert case.carried(parts, number).value() == pytest.approx(exact, abs=1e-9, rel=1e-11)


def test_ways_take_turns_and_what_gains_little_waits() -> None:
    """Merges double their number before the next extension each time that one was hardly worth it."""
    turns, made = Turns(), []
    for gain in (2.0, 1.0, 1.0, 0.1, 1.0, 1.0, 0.1, 1.0, 1.0, 1.0, 1.0, 5.0, 1.0, 1.0):
        made.append(turns.next[0])
        turns = turns.grown(made[-1]).gained(gain)
    letters = "".join("m" if way is Way.MERGING else "e" for way in made)
    assert letters == "mememmemmmmeme"


def test_a_growth_out_of_turn_changes_no_turn() -> None:
    """Where nothing is left to merge, extensions go on, and are judged as always."""
    turns = Turns().grown(Way.EXTENDING).gained(1.0)
    assert turns.next[0] is Way.MERGING
    assert turns.grown(Way.EXTENDING).gained(1.0).next[0] is Way.MERGING
    assert turns.grown(Way.MERGING).next[0] is Way.EXTENDING


def test_without_extensions_there_are_merges_only() -> None:
    turns = Turns(extends=False)
    for gain in (2.0, 1.0, 0.0):
        assert turns.next == [Way.MERGING]
        turns = turns.grown(Way.MERGING).gained(gain)


@pytest.mark.parametrize(("n_max", "extends"), [(0, False), (2, False), (3, True), (10, True)])
def test_trees_are_extended_where_many_variables_are_maximised(n_max: int, extends: bool) -> None:
    tau = np.where(np.arange(10) < n_max, 0.0, 1.0)
    assert many_are_maximised(tau) is extends
    assert not many_are_maximised(tau[:0])


def test_grown_tree_goes_on_from_where_it_stood() -> None:
    tau = np.where(np.arange(120) % 2 == 0, 0.0, 1.0)
    problem = problem_of(wide_model(120), tau)
    order = elimination_order(problem.model, problem.tau)
    scopes = scopes_in_order(problem.model, order)
    tree = FixedTree(problem, order, scopes, partition(scopes, limits_of(3)), threads=1)
    for _ in range(60):
        tree.step(math.inf)
    for _ in range(3):
        larger = tree.grown(1.5, math.inf, seed=0)
        assert larger is not None
        assert tree.layout.n_entries < larger.layout.n_entries <= 1.5 * tree.layout.n_entries
        assert larger.log_upper <= tree.log_upper + 1e-7
        start = larger.log_upper
        for _ in range(20):
            larger.step(math.inf)
        assert larger.log_upper < start
        assert larger.bound() == pytest.approx(larger.log_upper, abs=1e-8)
        tree = larger
    assert tree.grown(1.5, 1000.0, seed=0) is None
