"""Simplified problems have the value of the question, keep nothing needless, and lead back to the original."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powersum.core.errors import InputError
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from tests.oracle import assignment_value, exact_value
from tests.strategies import random_model, weighted_models

many = settings(deadline=None, max_examples=300)


@st.composite
def questions(draw: st.DrawFn) -> tuple[Model, Any, dict[int, int]]:
    """A model, weights, and evidence on some of its variables, the maximised ones included."""
    model, weights = draw(weighted_models())
    observed = draw(st.sets(st.integers(0, model.n_variables - 1), max_size=3))
    return model, weights, {v: draw(st.integers(0, int(model.cardinalities[v]) - 1)) for v in sorted(observed)}


def value(problem: Problem) -> float:
    """Exact value of the question that a problem stands for."""
    return problem.log_constant + (exact_value(problem.model, problem.tau) if problem.feasible else 0.0)


@many
@given(questions())
def test_value_is_that_of_the_question(question: tuple[Model, Any, dict[int, int]]) -> None:
    model, weights, evidence = question
    before = model.log_values.copy()
    problem = simplify(model, Query(weights), evidence)
    expected = exact_value(model, weights, evidence=evidence)
    assert value(problem) == pytest.approx(expected, abs=1e-9, rel=1e-12)
    assert np.array_equal(model.log_values, before)


@many
@given(questions(), st.randoms(use_true_random=False))
def test_value_holds_for_any_order_with_max_variables_last(
    question: tuple[Model, Any, dict[int, int]], random: Any
) -> None:
    model, weights, evidence = question
    order = list(range(model.n_variables))
    random.shuffle(order)
    order.sort(key=lambda v: weights[v] == 0.0)
    problem = simplify(model, Query(weights), evidence)
    expected = exact_value(model, weights, evidence=evidence, order=order)
    if not problem.feasible:
        assert expected == -np.inf
        return
    reduced = problem.reduced_order(np.asarray(order))
    found = exact_value(problem.model, problem.tau, order=reduced.tolist()) + problem.log_constant
    assert found == pytest.approx(expected, abs=1e-9, rel=1e-12)


@many
@given(questions())
def test_nothing_needless_is_left(question: tuple[Model, Any, dict[int, int]]) -> None:
    model, weights, evidence = question
    problem = simplify(model, Query(weights), evidence)
    reduced = problem.model
    assert (reduced.cardinalities >= 2).all()
    scopes = [set(scope) for scope, _ in reduced.factors()]
    assert set().union(*scopes) == set(range(reduced.n_variables))
    assert not any(inner <= outer for inner, outer in itertools.permutations(scopes, 2))
    for scope, log_table in reduced.factors():
        assert not np.isnan(log_table).any()
        for axis in range(len(scope)):
            others = tuple(a for a in range(len(scope)) if a != axis)
            assert (log_table.max(axis=others) > -np.inf).all()
    again = simplify(reduced, Query(problem.tau), {})
    assert again.log_constant == 0.0
    assert np.array_equal(again.model.log_values, reduced.log_values)
    assert np.array_equal(again.model.scope_variables, reduced.scope_variables)


@many
@given(questions(), st.randoms(use_true_random=False))
def test_restored_assignments_score_the_same(question: tuple[Model, Any, dict[int, int]], random: Any) -> None:
    model, weights, evidence = question
    weights = np.where(weights == 0.0, 0.0, 1.0)
    problem = simplify(model, Query(weights), evidence)
    if not problem.feasible:
        assert exact_value(model, weights, evidence=evidence) == -np.inf
        return
    states = np.full(problem.model.n_variables, -1, dtype=np.int64)
    for i in np.flatnonzero(problem.tau == 0.0):
        states[i] = random.randrange(int(problem.model.cardinalities[i]))
    restored = problem.restore(states)
    assert all(restored[v] == state for v, state in evidence.items())
    assert (restored[weights == 0.0] >= 0).all()
    assert (restored < model.cardinalities).all()
    chosen = {int(v): int(restored[v]) for v in np.flatnonzero(weights == 0.0)}
    reduced_chosen = {int(i): int(states[i]) for i in np.flatnonzero(states >= 0)}
    found = assignment_value(problem.model, reduced_chosen) + problem.log_constant
    assert found == pytest.approx(assignment_value(model, chosen, evidence=evidence), abs=1e-9, rel=1e-12)


def test_components_are_labelled() -> None:
    pair = [[1.0, 2.0], [3.0, 5.0]]
    model = Model.from_factors([2] * 6, [((0, 3), pair), ((1, 2), pair), ((3, 5), pair), ((4,), [1.0, 2.0])])
    problem = simplify(model, Query.of(model, [4]), {}, barren=False)
    assert problem.component.tolist() == [0, 1, 1, 0, 2, 0]
    assert problem.n_components == 3
    cut = simplify(model, Query.of(model, [4]), {3: 1}, barren=False)
    assert cut.variables.tolist() == [0, 1, 2, 4, 5]
    assert cut.component.tolist() == [0, 1, 1, 2, 3]
    # A sum over one variable alone is a number.
    assert simplify(model, Query.of(model, [4]), {3: 1}).variables.tolist() == [1, 2, 4]


def test_zeros_of_merged_factors_propagate() -> None:
    # Each factor supports every state, their product only the pair (1, 1).
    one = [[1.0, 0.0], [0.0, 2.0]]
    other = [[0.0, 1.0], [1.0, 3.0]]
    model = Model.from_factors([2, 2], [((0, 1), one), ((1, 0), other)])
    problem = simplify(model, Query.of(model), {})
    assert problem.model.n_variables == 0
    assert problem.fixed_states.tolist() == [1, 1]
    assert problem.log_constant == pytest.approx(np.log(6.0))


def test_long_chains_propagate() -> None:
    # y = x along the chain: evidence at one end fixes everything.
    n = 20_000
    factors = [((v, v + 1), np.eye(3)) for v in range(n - 1)]
    problem = simplify(model := Model.from_factors([3] * n, factors), Query.of(model), {n - 1: 2})
    assert problem.model.n_variables == 0
    assert problem.log_constant == 0.0
    assert (problem.fixed_states == 2).all()


def test_isolated_variables_count_by_weight() -> None:
    model = Model.from_factors([3, 4, 5, 1], [])
    problem = simplify(model, Query(np.array([1.0, 0.5, 0.0, 1.0])), {})
    assert problem.log_constant == pytest.approx(np.log(3.0) + 0.5 * np.log(4.0))
    assert problem.fixed_states.tolist() == [-1, -1, 0, 0]


@pytest.mark.parametrize(
    ("factors", "evidence"),
    [
        ([((), 0.0)], {}),
        ([((0,), [0.0, 0.0])], {}),
        ([((0,), [0.0, 1.0])], {0: 0}),
        ([((0, 1), [[0.0, 1.0], [1.0, 0.0]])], {0: 1, 1: 1}),
    ],
)
def test_contradictions_are_an_answer(factors: list[tuple[tuple[int, ...], Any]], evidence: dict[int, int]) -> None:
    model = Model.from_factors([2, 2], factors)
    problem = simplify(model, Query.of(model, [1]), evidence)
    assert not problem.feasible
    assert problem.log_constant == -np.inf
    assert problem.model.n_variables == problem.model.n_factors == problem.n_components == 0
    restored = problem.restore(np.zeros(0, dtype=np.int64))
    assert restored.tolist() == [evidence.get(v, -1) for v in range(2)]


def test_wrong_arguments_are_named() -> None:
    model = Model.from_factors([2, 2], [])
    with pytest.raises(InputError, match="weights has 3 numbers, the model 2 variables"):
        simplify(model, Query(np.ones(3)), {})
    with pytest.raises(InputError, match="variable 2"):
        simplify(model, Query.of(model), {2: 0})
    with pytest.raises(InputError, match="state 2"):
        simplify(model, Query.of(model), {1: 2})


def test_empty_model() -> None:
    model = Model.from_factors([], [((), 2.0)])
    problem = simplify(model, Query.of(model), {})
    assert problem.log_constant == pytest.approx(np.log(2.0))
    assert problem.n_components == 0


def test_larger_models_keep_their_assignments() -> None:
    # Beyond brute force: a full assignment scores the same before and after.
    rng = np.random.default_rng(5)
    model = random_model(rng, n_variables=400, n_factors=700, max_scope=4)
    evidence = {int(v): int(rng.integers(model.cardinalities[v])) for v in rng.permutation(400)[:40]}
    problem = simplify(model, Query.of(model, "all"), evidence)
    states = rng.integers(0, problem.model.cardinalities)
    restored = problem.restore(states)
    score = sum(float(table[tuple(restored[list(scope)])]) for scope, table in model.factors())
    reduced = sum(float(table[tuple(states[list(scope)])]) for scope, table in problem.model.factors())
    assert reduced + problem.log_constant == pytest.approx(score, rel=1e-12)
