"""Zeros as clauses: exactly the configurations of positive probability satisfy them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersum.assign.complete import without_impossible
from powersum.assign.zeros import Zeros
from powersum.core.clauses import Ended
from powersum.model.factors import configuration_value, factors_of
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.model.question import Question
from powersum.prepare.simplify import simplified
from tests.oracle import exact_value, joint_log_table
from tests.strategies import random_model


@pytest.mark.parametrize("seed", range(120))
def test_every_configuration_is_found_where_it_is_preferred_and_possible(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A third of them let variables have several states.
    monkeypatch.setattr("powersum.assign.zeros.MOST_PAIRED", 0 if seed % 3 == 0 else 100)
    rng = np.random.default_rng(seed)
    model = random_model(
        rng, n_variables=int(rng.integers(1, 6)), n_factors=6, max_states=4, zeros=float(rng.choice([0.3, 0.6, 0.9]))
    )
    zeros = Zeros(model.cardinalities, factors_of(model), model.table_starts)
    joint = joint_log_table(model)
    n = model.n_variables
    for _ in range(12):
        wanted = np.array([rng.integers(size) for size in model.cardinalities])
        liked = np.zeros(int(model.cardinalities.sum()))
        liked[np.concatenate([[0], np.cumsum(model.cardinalities)[:-1]]) + wanted] = 1.0
        ended, states = zeros.search(liked, rng.random(n), deadline=math.inf)
        if not np.isfinite(joint).any():
            assert ended is Ended.IMPOSSIBLE
        else:
            assert ended is Ended.SATISFIED
            assert np.isfinite(joint[tuple(states)])
            # What is preferred and possible is taken as it is.
            assert np.isneginf(joint[tuple(wanted)]) or (states == wanted).all()


@pytest.mark.parametrize("seed", range(60))
def test_exactly_the_states_of_no_configuration_are_proven_impossible(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersum.assign.zeros.MOST_PAIRED", 0 if seed % 3 == 0 else 100)
    rng = np.random.default_rng(seed)
    zeros = float(rng.choice([0.3, 0.6, 0.8]))
    model = random_model(rng, n_variables=int(rng.integers(1, 6)), n_factors=6, max_states=4, zeros=zeros)
    n, joint = model.n_variables, joint_log_table(model)
    found = Zeros(model.cardinalities, factors_of(model), model.table_starts).impossible(
        rng.permutation(n), deadline=math.inf
    )
    truth = [np.isneginf(joint).all(axis=tuple(u for u in range(n) if u != v)) for v in range(n)]
    assert not (found & ~np.concatenate(truth)).any()
    if seed % 3:
        # Where a variable may be given several states, some are not told.
        assert np.array_equal(found, np.concatenate(truth))


@pytest.mark.parametrize("seed", range(40))
def test_without_impossible_states_the_value_is_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=int(rng.integers(2, 7)), n_factors=8, max_states=3, zeros=0.6)
    query = Query(rng.choice([0.0, 1.0], size=model.n_variables))
    question = Question.of(model, weights=query)
    problem = simplified(question)
    possible = without_impossible(problem, model.cardinalities, math.inf)
    if possible is None:
        return
    fewer, truth = simplified(question, possible=possible), exact_value(model, query.weights)
    assert fewer.model.cardinalities.sum() <= problem.model.cardinalities.sum()
    if truth == -math.inf:
        assert not fewer.feasible or exact_value(fewer.model, fewer.tau) == -math.inf
    else:
        value = fewer.log_constant + (exact_value(fewer.model, fewer.tau) if fewer.model.n_variables else 0.0)
        assert value == pytest.approx(truth, abs=1e-9)


def test_a_parity_over_many_variables_is_found() -> None:
    """Local choices tell nothing here: only the last table of the chain forbids half of all of them."""
    rng = np.random.default_rng(1)
    n = 300
    flip = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    # Each state of the chain is the parity so far; several chains over the same bits have to end in 1.
    factors: list[tuple[tuple[int, ...], np.ndarray]] = []
    free = n
    for _ in range(60):
        bits = rng.choice(n, 12, replace=False).tolist()
        before = bits[0]
        for bit in bits[1:]:
            factors.append(((before, bit, free), flip))
            before, free = free, free + 1
        factors.append(((before,), np.array([0.0, 1.0])))
    model = Model.from_factors([2] * free, factors)
    zeros = Zeros(model.cardinalities, factors_of(model), model.table_starts)
    ended, states = zeros.search(np.zeros(2 * free), rng.random(free), deadline=math.inf)
    assert ended is Ended.SATISFIED
    assert configuration_value(model, states) == 0.0


def test_a_variable_of_very_many_states_takes_little() -> None:
    """Found by the soak: a clause for each pair of 60,000 states asked for 14 GB."""
    table = np.zeros(60_000)
    table[41_234] = 1.0
    model = Model.from_factors([60_000, 2], [((0,), table), ((1,), np.array([0.0, 1.0]))])
    zeros = Zeros(model.cardinalities, factors_of(model), model.table_starts)
    ended, states = zeros.search(np.zeros(60_002), np.zeros(2), deadline=math.inf)
    assert ended is Ended.SATISFIED
    assert states.tolist() == [41_234, 1]
