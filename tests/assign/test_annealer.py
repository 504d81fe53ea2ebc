"""Annealing all variables at once: temperatures and penalties suit the tables."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.assign.annealer import Annealer
from powersum.generate import detection
from powersum.model.factors import configuration_value
from powersum.model.model import Model
from powersum.model.question import Question
from powersum.prepare.simplify import simplified
from tests.cases import hard_case
from tests.oracle import exact_value


def test_entries_of_hundreds_are_not_all_alike() -> None:
    """Below the penalty of a zero every entry counted the same: the best of a run was the best of another model."""
    rng = np.random.default_rng(0)
    n, k = 9, 3
    factors = [((a, b), rng.uniform(-900.0, -100.0, (k, k))) for a in range(n) for b in range(a)]
    model = Model.from_factors([k] * n, [(scope, np.exp(table / 10.0)) for scope, table in factors])
    model = Model(
        cardinalities=model.cardinalities,
        scope_starts=model.scope_starts,
        scope_variables=model.scope_variables,
        table_starts=model.table_starts,
        log_values=10.0 * model.log_values,
    )
    problem = simplified(Question.of(model, "all"))
    annealer = Annealer(problem)
    assert annealer.strong
    best = exact_value(problem.model, problem.tau)
    rng = np.random.default_rng(1)
    values = [configuration_value(problem.model, annealer.draw(rng)) for _ in range(5)]
    assert max(values) == pytest.approx(best, rel=1e-12)


def test_the_run_for_other_tables_is_judged_by_the_model() -> None:
    """Its own tables have no entry below the penalty, so its value there is larger than any of the model."""
    model, _ = detection(12, states=6, seed=1)
    problem = simplified(Question.of(model, "all"))
    annealer = Annealer(problem)
    best = exact_value_of_detection(model)
    drawn = [configuration_value(problem.model, annealer.draw(np.random.default_rng(seed))) for seed in range(10)]
    assert np.mean(drawn) > 0.97 * best


def exact_value_of_detection(model: Model) -> float:
    """The best of many starts, each improved a variable at a time: plain code that shares nothing with the annealer."""
    rng = np.random.default_rng(0)
    n, k = model.n_variables, int(model.cardinalities[0])
    alone = model.log_values[: n * k].reshape(n, k)
    pairs = np.zeros((n, n, k, k))
    at = n * k
    for a in range(n):
        for b in range(a + 1, n):
            pairs[a, b] = model.log_values[at : at + k * k].reshape(k, k)
            pairs[b, a] = pairs[a, b].T
            at += k * k
    best = -np.inf
    for _ in range(300):
        states = rng.integers(0, k, n)
        before = None
        while before is None or (before != states).any():
            before = states.copy()
            for v in range(n):
                others = sum(pairs[v, u, :, states[u]] for u in range(n) if u != v)
                states[v] = int(np.argmax(alone[v] + others))
        both = sum(pairs[a, b, states[a], states[b]] for a in range(n) for b in range(a + 1, n))
        best = max(best, float(alone[np.arange(n), states].sum() + both))
    return best


def test_usual_tables_keep_their_temperatures() -> None:
    problem = hard_case(3).problem()
    annealer = Annealer(problem)
    assert not annealer.strong
    assert annealer._strong_values is annealer._log_values
