"""Queries whose sums and maxima alternate: bounds, values, answers and certificates against brute force."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.api.comparison import compare
from powersum.core.arrays import IntArray
from powersum.model.question import asked_again
from powersum.prepare.ordering import elimination_order, induced_width
from powersum.prepare.simplify import simplify
from tests.check.helpers import to_check
from tests.oracle import assignment_value, exact_value, joint_log_table, power_sum
from tests.strategies import random_model

CLOSE = 1e-9


def blocks_of(model: ps.Model, rng: np.random.Generator, weights: tuple[float, ...] = (0.0, 1.0)) -> ps.Query:
    """Two to four blocks of weights drawn at random."""
    block = rng.integers(0, int(rng.integers(2, 5)), model.n_variables)
    weight = rng.choice(weights, int(block.max(initial=0)) + 1)
    return ps.Query(weight[block], None, block)


def order_of(query: ps.Query) -> IntArray:
    return np.argsort(query.rank, kind="stable")


def drawn(seed: int, *, zeros: float = 0.2) -> tuple[ps.Model, ps.Query, dict[int, int], float]:
    """A model, a query, evidence and the value."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    model = random_model(rng, n_variables=n, n_factors=int(rng.integers(1, 10)), max_states=3, zeros=zeros)
    if seed % 3 == 0:
        model = network(rng, n)
    query = blocks_of(model, rng, (0.0, 1.0) if seed % 4 else (0.0, 0.5, 1.0, 1.7))
    evidence = {int(v): 0 for v in np.flatnonzero(rng.random(n) < 0.15)}
    value = exact_value(model, query.weights, evidence=evidence, order=order_of(query).tolist())
    return model, query, evidence, value


def network(rng: np.random.Generator, n: int) -> ps.Model:
    """A Bayesian network, in which parts are barren."""
    cards = rng.integers(1, 4, n).tolist()
    factors = []
    for v in range(n):
        parents = rng.permutation(v)[: int(rng.integers(0, 3))].tolist()
        table = rng.dirichlet(np.ones(cards[v]), [cards[p] for p in parents])
        factors.append(([*parents, v], table))
    return ps.Model.from_factors(cards, factors)


@pytest.mark.parametrize("seed", range(120))
def test_simplification_keeps_the_value(seed: int) -> None:
    model, query, evidence, value = drawn(seed)
    problem = simplify(model, query, evidence)
    rest = 0.0
    if problem.feasible and problem.model.n_variables:
        order = np.argsort(problem.rank, kind="stable").tolist()
        rest = exact_value(problem.model, problem.tau, order=order)
    assert problem.log_constant + rest == pytest.approx(value, abs=CLOSE)


@pytest.mark.parametrize("ibound", [1, 2, None])
@pytest.mark.parametrize("seed", range(60))
def test_bounds_are_valid_and_only_fall(seed: int, ibound: int | None) -> None:
    model, query, evidence, value = drawn(seed)
    result = ps.bound(model, weights=query, evidence=evidence, sweeps=15, method="tree", ibound=ibound)
    history = [snapshot.log_upper for snapshot in result.history]
    assert all(later <= earlier for earlier, later in pairwise(history))
    if math.isinf(value):
        assert result.log_upper == -math.inf or ibound is not None
        return
    assert result.log_upper >= value
    if ibound is None:
        assert result.log_upper == pytest.approx(value, abs=1e-6)
        assert result.status == "optimal" or query.blocks is None


@pytest.mark.parametrize("ibound", [1, None])
@pytest.mark.parametrize("seed", range(40))
def test_certificates_are_accepted(seed: int, ibound: int | None, tmp_path: Path) -> None:
    model, query, evidence, value = drawn(seed)
    result = ps.bound(model, weights=query, evidence=evidence, sweeps=5, method="tree", ibound=ibound, certificate=True)
    assert result.certificate is not None
    path = tmp_path / "proof.zip"
    result.certificate.save(path)
    order = tuple(order_of(query).tolist()) if query.task == "power-sum" else None
    found = pc.check(to_check(model), pc.Question(tuple(query.weights.tolist()), dict(evidence), order=order), path)
    room = 1e-8 * max(1.0, abs(result.log_upper)) if math.isfinite(result.log_upper) else 0.0
    assert value - CLOSE <= found.log_upper <= result.log_upper + room
    assert found.log_lower <= value + CLOSE


def test_a_certificate_is_of_its_order_only(tmp_path: Path) -> None:
    """Max over 0 of the sum over 1, and the sum over 1 of the max over 0, differ."""
    model = ps.Model.from_factors([2, 2], [((0, 1), [[1.0, 3.0], [3.0, 1.0]])])
    outside = ps.Query.along(model, [("sum", [1]), ("max", [0])])
    result = ps.bound(model, weights=outside, certificate=True)
    assert result.log_upper == pytest.approx(math.log(6.0))
    assert result.certificate is not None
    result.certificate.save(tmp_path / "proof.zip")
    good = pc.Question((0.0, 1.0), {}, order=(0, 1))
    assert pc.check(to_check(model), good, tmp_path / "proof.zip").log_upper == pytest.approx(math.log(6.0))
    with pytest.raises(pc.CheckError):
        pc.check(to_check(model), pc.Question((0.0, 1.0), {}), tmp_path / "proof.zip")


@pytest.mark.parametrize("seed", range(60))
def test_the_answer_is_the_best_of_the_outermost_block(seed: int) -> None:
    model, query, evidence, value = drawn(seed, zeros=0.0)
    outermost = [v for v in query.max_variables.tolist() if v not in evidence]
    result = ps.bound(model, weights=query, evidence=evidence, sweeps=60, method="tree")
    assert len(result.assignment) == len(query.max_variables)
    states = {model.variable(name): model.state(model.variable(name), s) for name, s in result.assignment.items()}
    if result.status == "optimal" and outermost:
        known = exact_value(model, query.weights, evidence={**evidence, **states}, order=order_of(query).tolist())
        assert known == pytest.approx(value, abs=1e-6)


def test_values_of_alternating_blocks_by_hand() -> None:
    """Max over a, sum over b, max over c, written out."""
    rng = np.random.default_rng(5)
    table = rng.random((2, 3, 2))
    model = ps.Model.from_factors([2, 3, 2], [((0, 1, 2), table)], names=["a", "b", "c"])
    query = ps.Query.along(model, [("max", ["a"]), ("sum", ["b"]), ("max", ["c"])])
    result = ps.bound(model, weights=query)
    assert result.log_upper == pytest.approx(math.log(table.max(axis=2).sum(axis=1).max()), abs=1e-9)
    assert list(result.assignment) == ["a"]
    assert result.assignment["a"] == int(table.max(axis=2).sum(axis=1).argmax())


@pytest.mark.parametrize("seed", range(20))
def test_orders_keep_to_the_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=9, n_factors=12)
    query = blocks_of(model, rng)
    order = elimination_order(model, query.weights, rank=query.rank, seed=seed)
    assert (np.diff(query.rank[order]) >= 0).all()
    assert sorted(order.tolist()) == list(range(model.n_variables))
    assert induced_width(model, order) <= model.n_variables


def test_neighbours_of_equal_weight_are_one_block() -> None:
    query = ps.Query(np.array([1.0, 0.0, 0.0, 1.0]), None, np.array([0, 1, 2, 3]))
    assert query.rank.tolist() == [0, 1, 1, 2]
    assert query.max_variables.tolist() == []
    plain = ps.Query(np.array([1.0, 0.0, 0.0]), None, np.array([3, 5, 9]))
    assert plain.blocks is None
    assert plain.task == "MMAP"
    assert pickle.loads(pickle.dumps(query)).rank.tolist() == query.rank.tolist()


def test_what_cannot_answer_blocks_refuses_them() -> None:
    model, _ = ps.generate.grid(2, 2, seed=1)
    query = ps.Query(np.array([0.0, 1.0, 1.0, 1.0]), None, np.array([0, 1, 1, 1]))
    with pytest.raises(ps.InputError, match="maxima outside all sums"):
        compare(model, weights=query)
    with pytest.raises(ps.InputError, match="maxima outside all sums"):
        ps.BoundFunction(model, weights=query)(steps=0)
    with pytest.raises(ps.InputError, match="alternate"):
        ps.bound(model, weights=query, method="gdd")
    with pytest.raises(ps.InputError, match="earlier block"):
        ps.bound(model, weights=query, order=[1, 0, 2, 3])


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([("max", [0]), ("sum", [1, 0])], "twice"),
        ([("max", [0])], "do not name variable 1 and 2 more"),
        ([("least", [0, 1, 2, 3])], "a block is 'least'"),
    ],
)
def test_blocks_are_checked(blocks: list[tuple[str, list[int]]], message: str) -> None:
    model, _ = ps.generate.grid(2, 2, seed=1)
    with pytest.raises(ps.InputError, match=message):
        ps.Query.along(model, blocks)


def test_weights_of_one_block_are_equal() -> None:
    with pytest.raises(ps.InputError, match="different weights"):
        ps.Query(np.array([1.0, 0.0]), None, np.array([0, 0]))


def test_a_result_remembers_its_blocks() -> None:
    model, _ = ps.generate.grid(2, 2, seed=1)
    query = ps.Query(np.array([0.0, 1.0, 1.0, 0.0]), None, np.array([0, 1, 1, 2]))
    result = ps.Result.from_json(ps.bound(model, weights=query).to_json())
    assert result.question is not None
    again = asked_again(result.question, model)
    assert again.query.rank.tolist() == query.rank.tolist()
    assert again.key == ps.model.question.Question.of(model, weights=query).key


def test_the_order_of_blocks_makes_the_value() -> None:
    """The oracle itself: sum outside max is larger than max outside sum."""
    rng = np.random.default_rng(0)
    model = random_model(rng, n_variables=2, n_factors=3, max_states=3)
    joint = joint_log_table(model)
    inside = float(power_sum(power_sum(joint, 0, 0.0), 0, 1.0))
    assert inside == pytest.approx(exact_value(model, [0.0, 1.0], order=[0, 1]))
    assert assignment_value(model, {0: 0}) <= inside + CLOSE
