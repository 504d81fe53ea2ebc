"""Conditioning by graphs that know nothing of powersum's: the value of brute force, and nothing false."""

from __future__ import annotations

import math

import numpy as np
import pytest

import powersum_check as pc
from powersum.model.model import Model
from tests.check.graphs import FORGET, Graph
from tests.check.helpers import CLOSE, checked, holds, truth
from tests.check.writer import Draft, Setting
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
