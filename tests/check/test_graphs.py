"""Conditioning by graphs that know nothing of powersum's: the value of brute force, and nothing false."""

from __future__ import annotations

import math

import numpy as np
import pytest

import powersum_check as pc
from powersum.model.model import Model
from tests.check.graphs import FORGET, Graph
from tests.check.helpers import CLOSE, checked, holds, truth
from tests.check.writer import Draft, Setting, no_tree
from tests.strategies import random_model


def drafted(rng: np.random.Generator) -> Draft:
    """A question with one weight for all variables, many zeros, and many entries that are the same."""
    model = random_model(rng, n_variables=6, n_factors=int(rng.integers(2, 9)), max_states=4, zeros=0.3, spread=2.0)
    factors = [(factor.scope, np.round(factor.log_table)) for factor in model.factors()]
    cards = model.cardinalities.tolist()
    evidence = {v: int(rng.integers(0, cards[v])) for v in range(6) if rng.random() < 0.1}
    likelihoods = {v: (rng.random(cards[v]) + 0.1).tolist() for v in range(6) if rng.random() < 0.1}
    weight = float(rng.choice([1.0, 1.0, 0.3, 0.0]))
    return Draft(Model.from_factors(cards, factors, log=True), [weight] * 6, evidence, likelihoods)


@pytest.mark.parametrize("seed", range(200))
def test_the_value_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draft = drafted(rng)
    setting = Setting.of(draft)
    draft.step("conditioning", Graph(rng, setting).arrays(setting))
    verified, value = checked(draft), truth(draft)
    assert holds(verified, value)
    assert verified.log_upper - verified.log_lower < CLOSE or verified.log_upper == -math.inf == value


@pytest.mark.parametrize("forget", FORGET[1:])
def test_nodes_that_are_taken_for_one_another_prove_nothing_false(forget: str) -> None:
    """Graphs whose nodes are told apart by less than what they are: refused, or right all the same."""
    refused: dict[str, int] = {}
    for seed in range(800):
        rng = np.random.default_rng(seed)
        draft = drafted(rng)
        setting = Setting.of(draft)
        draft.step("conditioning", Graph(rng, setting, forget).arrays(setting))
        try:
            verified = checked(draft)
        except pc.Rejected as error:
            refused[str(error)] = refused.get(str(error), 0) + 1
        else:
            assert holds(verified, truth(draft))
    assert sum(refused.values()) > 5
    assert (
        forget == "other states" or "step 0: a node is led to with other states of its variables than before" in refused
    )


def test_two_nodes_of_a_lane_have_no_variable_in_common() -> None:
    """Σ f g is not Σ f Σ g: nodes that settle different tables of the same variable are refused."""
    model = Model.from_factors([2], [((0,), [0.1, 0.9]), ((0,), [0.2, 0.7])])
    draft = Draft(model, [1.0])
    lists = {
        "order": [0],
        "table_of": [0, 1],
        "table_starts": [0, 1, 2],
        "table_variables": [0, 0],
        "branching": [0, 0],
        "gone_counts": [0] * 5,
        "gone": [],
        "settled_counts": [0, 1, 1, 1, 1],
        "settled": [0, 0, 1, 1],
        "child_counts": [2, 0, 0, 0, 0],
        "child_nodes": [1, 2],
    }
    arrays = no_tree(draft) | {name: np.array(numbers, np.int64) for name, numbers in lists.items()}
    draft.step("conditioning", arrays)
    with pytest.raises(pc.Rejected, match="in two of its nodes"):
        checked(draft)
    # One node that settles both is right.
    more = {"branching": [0], "gone_counts": [0] * 3, "settled_counts": [0, 2, 2], "settled": [0, 1, 0, 1]}
    more |= {"child_counts": [1, 0, 0], "child_nodes": [1]}
    right = Draft(model, [1.0])
    right.step("conditioning", arrays | {name: np.array(numbers, np.int64) for name, numbers in more.items()})
    assert holds(checked(right), truth(right))
    assert truth(right) == pytest.approx(np.log(0.1 * 0.2 + 0.9 * 0.7))


def test_nodes_of_a_lane_have_no_variable_in_common_below_them() -> None:
    """Two nodes of a lane set b and c; nodes below each of them sum x: that would sum x twice."""
    rng = np.random.default_rng(0)
    model = Model.from_factors([2, 2, 2], [((0, 2), rng.random((2, 2)) + 0.1), ((1, 2), rng.random((2, 2)) + 0.1)])
    draft = Draft(model, [1.0] * 3)
    lists = {
        "order": [0, 1, 2],
        "table_of": [0, 1],
        "table_starts": [0, 2, 4],
        "table_variables": [0, 2, 1, 2],
        "branching": [0, 1, 2, 2, 2, 2],
        "gone_counts": [0] * 13,
        "gone": [],
        "settled_counts": [0] * 5 + [1] * 8,
        "settled": [0] * 4 + [1] * 4,
        "child_counts": [2, 1, 1, 1, 1] + [0] * 8,
        "child_nodes": [1, 2, 3, 4, 5, 6],
    }
    draft.step("conditioning", no_tree(draft) | {name: np.array(row, np.int64) for name, row in lists.items()})
    with pytest.raises(pc.Rejected, match="in two of its nodes"):
        checked(draft)


def test_the_best_are_of_all_max_variables() -> None:
    """The value of some states of a part of them is not that of an assignment."""
    model = Model.from_factors([2, 2], [((0, 1), [[0.1, 0.9], [0.3, 0.7]])])
    for variables, states in (([0, 1], [[0, 1]]), ([0], [[0]])):
        draft = Draft(model, [0.0, 0.0])
        draft.best = {"distinct": 1, "claims": [{}, {}]}
        draft.arrays["best_variables"] = np.array(variables, np.int64)
        draft.arrays["best_states"] = np.array(states, np.int64)
        draft.arrays["best_parts"] = np.array([[-1, -1, -1]], np.int64)
        if len(variables) == 2:
            assert checked(draft).best is not None
        else:
            with pytest.raises(pc.BadFile, match="best_variables"):
                checked(draft)
