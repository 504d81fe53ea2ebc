"""Tree-reweighted message passing: exact on trees, a bound at convergence, and none before."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from powersum.bounds.rivals.spanning import heaviest_tree, tree_shares
from powersum.core.errors import InputError
from powersum.model.model import Model
from tests.bounds.rivals.helpers import ising, prepared, rival, swept
from tests.oracle import exact_value


def chain(seed: int) -> Model:
    rng = np.random.default_rng(seed)
    return Model.from_factors([3] * 6, [((v, v + 1), rng.normal(0, 1.5, (3, 3))) for v in range(5)], log=True)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_exact_on_chains(weight: float) -> None:
    weights = np.full(6, weight)
    problem, order = prepared(chain(0), weights)
    method = swept(rival("trw", problem, order), 40)
    assert method.last_value + problem.log_constant == pytest.approx(exact_value(chain(0), weights), abs=1e-6)


def test_exact_on_a_chain_whose_end_is_maximised() -> None:
    weights = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    problem, order = prepared(chain(1), weights)
    method = swept(rival("trw", problem, order), 40)
    assert method.last_value + problem.log_constant == pytest.approx(exact_value(chain(1), weights), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_above_the_truth_at_convergence_and_better_with_other_trees(seed: int) -> None:
    model = ising(3, 1.0, seed)
    weights = np.ones(9)
    exact = exact_value(model, weights)
    problem, order = prepared(model, weights)
    method = rival("trw", problem, order)
    converged = []
    for _ in range(300):
        if not method.step(math.inf):
            break
        if method.converged:
            converged.append(method.last_value + problem.log_constant)
    assert len(converged) >= 2
    assert min(converged) >= exact - 1e-5
    assert converged[-1] < converged[0] - 0.05


def test_below_the_truth_before_convergence() -> None:
    below = {"sum": 0, "mixed": 0}
    for seed in range(8):
        model = ising(4, 2.0, seed)
        for kind, weights in (("sum", np.ones(16)), ("mixed", np.tile([0.0, 1.0], 8))):
            exact = exact_value(model, weights)
            problem, order = prepared(model, weights)
            method = rival("trw", problem, order)
            values = [method.last_value]
            for _ in range(4):
                method.step(math.inf)
                values.append(method.last_value)
            below[kind] += min(values) + problem.log_constant < exact - 1e-6
            assert method.log_upper == method.bound() == math.inf
            assert not method.guaranteed
    assert below["sum"] > 0
    assert below["mixed"] > 0


def test_refuses_what_it_cannot_do() -> None:
    triple = Model.from_factors([2] * 3, [((0, 1, 2), np.ones((2, 2, 2)) + np.arange(8).reshape(2, 2, 2))])
    zeros = Model.from_factors([2] * 2, [((0, 1), [[1.0, 0.0], [2.0, 1.0]])])
    for model, weights, words in [
        (triple, np.ones(3), "pairwise"),
        (zeros, np.ones(2), "zeros"),
        (chain(0), np.full(6, 0.5), "weights 0 and 1"),
    ]:
        problem, order = prepared(model, weights)
        with pytest.raises(InputError, match=words):
            rival("trw", problem, order)


def test_tree_shares_count_spanning_trees() -> None:
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    trees = []
    for chosen in itertools.combinations(range(5), 3):
        leader = list(range(4))
        for e in chosen:
            old, new = leader[edges[e, 0]], leader[edges[e, 1]]
            leader = [new if v == old else v for v in leader]
        if len(set(leader)) == 1:
            trees.append(chosen)
    expected = [sum(e in tree for tree in trees) / len(trees) for e in range(5)]
    assert tree_shares(edges) == pytest.approx(np.array(expected))
    heaviest = heaviest_tree(edges, np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert heaviest.tolist() == [0.0, 1.0, 0.0, 1.0, 1.0]
