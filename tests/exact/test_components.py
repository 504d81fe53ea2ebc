"""Easy components are settled first; what is left has the same value."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.core.arrays import IntArray
from powersum.exact.components import settle_components
from powersum.exact.elimination import Elimination
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from tests.cases import case
from tests.oracle import assignment_value, exact_value

MANY = [seed for seed in range(150) if case(seed).problem().n_components > 1]


def optimum(problem: Problem, order: IntArray) -> tuple[float, IntArray]:
    exact = Elimination(problem.model, order, problem.tau).run()
    return exact.log_value + problem.log_constant, problem.restore(exact.states)


@pytest.mark.parametrize("work", [1e9, 8.0])
@pytest.mark.parametrize("seed", MANY)
def test_value_and_states_stay_the_same(seed: int, work: float) -> None:
    question = case(seed)
    problem = question.problem()
    order = elimination_order(problem.model, problem.tau)
    rest, rest_order = settle_components(problem, order, work=work, size=1e9)
    assert sorted(rest_order.tolist()) == list(range(rest.model.n_variables))
    if work == 1e9:
        assert rest.n_components == 1
    truth = exact_value(question.model, question.query.weights, evidence=question.evidence)
    value, states = optimum(rest, rest_order)
    assert value == pytest.approx(truth, abs=1e-9)
    chosen = {int(v): int(states[v]) for v in question.query.max_variables}
    if np.isfinite(truth):
        assert assignment_value(question.model, chosen, evidence=question.evidence) == pytest.approx(truth, abs=1e-9)
