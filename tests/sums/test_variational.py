"""Jensen's inequality: a lower bound at every round, never falling, exact where the core is everything."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from powersum.core.arrays import FloatArray
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from powersum.sums.variational import Variational
from tests.oracle import assignment_value, exact_value, joint_log_table
from tests.strategies import random_model


def pairs(rng: np.random.Generator, zeros: float, n: int = 6) -> Model:
    cards = rng.integers(2, 4, n)
    factors = []
    for i, j in itertools.combinations(range(n), 2):
        table = np.exp(rng.normal(0.0, 1.0, (cards[i], cards[j])))
        factors.append(((i, j), np.where(rng.random(table.shape) < zeros, 0.0, table)))
    return Model.from_factors(cards.tolist(), factors)


def start(problem: Problem) -> FloatArray | None:
    joint = joint_log_table(problem.model)
    return None if joint.max() == -math.inf else np.array(np.unravel_index(int(np.argmax(joint)), joint.shape))


@pytest.mark.parametrize("seed", range(60))
def test_below_the_truth_at_every_round_and_never_falling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    zeros = float(rng.choice([0.0, 0.3]))
    model = pairs(rng, zeros) if seed % 2 else random_model(rng, n_variables=6, n_factors=9, max_states=3, zeros=zeros)
    tau = np.where(rng.random(model.n_variables) < 0.3, 0.0, 1.0)
    problem = simplify(model, Query(tau), {}, barren=False)
    if not problem.feasible or problem.model.n_variables == 0:
        return
    states = start(problem)
    if states is None:
        return
    core = rng.random(problem.model.n_variables) < 0.5
    bound = Variational(problem, core, states.astype(np.int64))
    truth = exact_value(problem.model, problem.tau)
    previous = bound.log_lower
    for _ in range(8):
        more = bound.run(math.inf) if rng.random() < 0.3 else bound.run(0.0)
        assert previous <= bound.log_lower <= truth
        maxima = {int(v): int(bound.states[v]) for v in np.flatnonzero(problem.tau == 0.0)}
        assert bound.log_lower <= assignment_value(problem.model, maxima)
        previous = bound.log_lower
        if not more:
            break
    # It starts where everything outside the core is held at one state.
    held = {int(v): int(states[v]) for v in np.flatnonzero(~bound.core)}
    assert bound.log_lower >= assignment_value(problem.model, held) - 1e-9


def test_exact_where_everything_is_core() -> None:
    problem = simplify(pairs(np.random.default_rng(3), 0.0), Query(np.ones(6)), {})
    bound = Variational(problem, np.ones(6, np.bool_), np.zeros(6, np.int64))
    truth = exact_value(problem.model, problem.tau)
    assert truth - 1e-9 <= bound.log_lower <= truth


def test_product_form_beats_the_best_single_term() -> None:
    problem = simplify(pairs(np.random.default_rng(4), 0.0), Query(np.ones(6)), {})
    states = start(problem)
    assert states is not None
    bound = Variational(problem, np.zeros(6, np.bool_), states.astype(np.int64))
    first = bound.log_lower
    assert first == pytest.approx(float(joint_log_table(problem.model).max()), abs=1e-9)
    while bound.run(math.inf):
        pass
    assert first + 0.5 < bound.log_lower <= exact_value(problem.model, problem.tau)


def test_a_core_that_does_not_fit_claims_nothing() -> None:
    problem = simplify(pairs(np.random.default_rng(5), 0.0), Query(np.ones(6)), {})
    bound = Variational(problem, np.ones(6, np.bool_), np.zeros(6, np.int64), memory=100.0)
    assert not bound.possible
    assert not bound.run(math.inf)
    assert bound.log_lower == -math.inf
