"""The bound and its gradient: by finite differences of brute force, and of the bound itself where it is not exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import powersum as ps
from powersum.bounds.buckets.factor_passes import FactorPasses
from powersum.bounds.buckets.passes import Passes
from powersum.bounds.tree import CoveringTree
from powersum.core.arrays import FloatArray
from powersum.model.model import Model
from powersum.model.question import Question
from powersum.prepare.conditioned import conditioned
from powersum.prepare.ordering import elimination_order
from tests.cases import case, hard_case
from tests.oracle import exact_value

STEP = 1e-5


def moved(model: Model, entry: int, by: float) -> Model:
    values = model.log_values.copy()
    values[entry] += by
    return replace(model, log_values=values)


def some_entries(model: Model, seed: int, count: int = 25) -> list[int]:
    entries = np.random.default_rng(seed).permutation(model.log_values.size)[:count]
    return [int(entry) for entry in entries]


@pytest.mark.parametrize("seed", range(40))
def test_exact_ones_by_differences_of_brute_force(seed: int) -> None:
    model, query, evidence = case(seed)
    value, gradient = ps.BoundFunction(model, weights=query, evidence=evidence)(steps=0)
    truth = exact_value(model, query.weights, evidence=evidence)
    assert gradient.shape == model.log_values.shape
    if truth == -math.inf:
        # The tree need not notice that states exclude each other; here it is exact and does.
        assert value == -math.inf
        assert not gradient.any()
        return
    assert value >= truth - 1e-12 * max(1.0, abs(truth))
    assert value == pytest.approx(truth, abs=1e-6)
    for entry in some_entries(model, seed):
        if model.log_values[entry] == -math.inf:
            assert gradient[entry] == 0.0
            continue
        sides = [exact_value(moved(model, entry, by), query.weights, evidence=evidence) for by in (STEP, -STEP)]
        assert gradient[entry] == pytest.approx((sides[0] - sides[1]) / (2.0 * STEP), abs=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_each_factor_has_one_unit_of_belief(seed: int) -> None:
    """Adding a constant to a whole table adds it to the value: whatever the question, and exact or not."""
    model, query, _ = hard_case(seed)
    for ibound in (None, 2):
        _, gradient = ps.BoundFunction(model, weights=query, ibound=ibound, sweeps=3)(steps=0)
        sums = np.add.reduceat(gradient, model.table_starts[:-1])
        np.testing.assert_allclose(sums, 1.0, atol=1e-9)
        assert (gradient >= 0.0).all()


def tree_value(tree: CoveringTree, model: Model, tau: FloatArray, temperature: float) -> float:
    """The bound of a tree for other numbers in the same tables, its shifts and weights held."""
    best = tree.best_tree
    passes = Passes(best.layout, model, best.order, tau)
    passes.parameters[:] = best.passes.parameters
    return passes.value(temperature)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("maximize", [None, "some", "all"])
@pytest.mark.parametrize("temperature", [0.0, 0.3])
def test_inexact_ones_by_differences_of_the_bound(seed: int, maximize: str | None, temperature: float) -> None:
    model, query, _ = hard_case(seed)
    asked = {None: None, "some": [int(v) for v in query.max_variables], "all": "all"}[maximize]
    question = Question.of(model, asked)
    problem = conditioned(question).problem
    order = elimination_order(problem.model, problem.tau)
    tree = CoveringTree(problem, order, ibound=2)
    for _ in range(3):
        tree.step(math.inf)
    tree.bound()
    best = tree.best_tree
    passes = FactorPasses(best.layout, problem.model, best.order, problem.tau)
    passes.parameters[:] = best.passes.parameters
    assert passes.value_and_gradient(temperature) == passes.value(temperature)
    # The value has left the gradient as it was.
    gradient = np.empty(problem.model.log_values.size)
    passes.factor_beliefs(gradient)
    for entry in some_entries(model, seed):
        sides = [tree_value(tree, moved(problem.model, entry, by), problem.tau, temperature) for by in (STEP, -STEP)]
        assert gradient[entry] == pytest.approx((sides[0] - sides[1]) / (2.0 * STEP), abs=1e-5)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("temperature", [0.0, 0.01, 1.0])
def test_it_is_a_bound(seed: int, temperature: float) -> None:
    model, query, _ = hard_case(seed, zeros=0.1)
    truth = exact_value(model, query.weights)
    value, _ = ps.BoundFunction(model, weights=query, ibound=2, sweeps=2, temperature=temperature)(steps=0)
    assert value >= truth - 1e-9


def test_softened_maxima_are_those_of_the_weight() -> None:
    """An exact tree at a temperature is the power sum with that weight."""
    model = ps.Model.from_tables({("a", "b"): [[1.0, 2.0], [3.0, 5.0]]})
    value, gradient = ps.BoundFunction(model, "all", temperature=0.5)(steps=0)
    assert value == pytest.approx(exact_value(model, [0.5, 0.5]))
    shares = np.array([1.0, 4.0, 9.0, 25.0])
    np.testing.assert_allclose(gradient, shares / shares.sum(), atol=1e-9)


@pytest.mark.parametrize("states", [2, 3])
def test_at_a_kink_it_is_the_mean_of_the_best_states(states: int) -> None:
    """Also beside states and columns that are impossible."""
    table = np.ones((states, 2))
    table[-1] = 0.0
    table[:, 1] = 0.0
    value, gradient = ps.BoundFunction(ps.Model.from_factors([states, 2], [((0, 1), table)]), "all")(steps=0)
    assert value == pytest.approx(0.0, abs=1e-12)
    best = np.zeros((states, 2))
    best[:-1, 0] = 1.0 / (states - 1)
    np.testing.assert_array_equal(gradient.reshape(states, 2), best)
    _, alike = ps.BoundFunction(ps.Model.from_factors([states], [((0,), np.ones(states))]), "all")(steps=0)
    np.testing.assert_allclose(alike, 1.0 / states)


def test_likelihoods_count_and_have_no_entries() -> None:
    coins = ps.Model.from_tables({"a": [0.4, 0.6], ("a", "b"): [[0.5, 0.5], [0.1, 0.9]]})
    value, gradient = ps.BoundFunction(coins, evidence={"a": [0.9, 0.1], "b": 0})(steps=0)
    total = 0.4 * 0.9 * 0.5 + 0.6 * 0.1 * 0.1
    assert value == pytest.approx(math.log(total))
    share = 0.18 / total
    np.testing.assert_allclose(gradient, [share, 1 - share, share, 0.0, 1 - share, 0.0], atol=1e-9)


def test_everything_observed() -> None:
    coin = ps.Model.from_tables({"a": [0.4, 0.6]})
    value, gradient = ps.BoundFunction(coin, evidence={"a": 1})(steps=0)
    assert value == pytest.approx(math.log(0.6))
    assert gradient.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": 1e-9}, "temperature is 1e-09"),
        ({"ibound": 1.5}, "ibound is 1.5"),
        ({"sweeps": -1}, "sweeps is -1"),
    ],
)
def test_wrong_numbers_are_one_line(options: dict[str, float], message: str) -> None:
    with pytest.raises(ps.InputError, match=message):
        ps.BoundFunction(ps.Model.from_tables({"a": [0.4, 0.6]}), **options)(steps=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("maximize", [None, "some", "all"])
@pytest.mark.parametrize("temperature", [0.0, 0.2])
def test_warm_ones_bound_other_numbers(seed: int, maximize: str | None, temperature: float) -> None:
    """Shifts stay from call to call, but every value bounds the truth for the numbers of its own call."""
    model, query, _ = hard_case(seed, zeros=0.1)
    asked = {None: None, "some": [int(v) for v in query.max_variables], "all": "all"}[maximize]
    gradient = ps.BoundFunction(model, asked, ibound=2, sweeps=2, temperature=temperature)
    random = np.random.default_rng(seed)
    for scale in (0.0, 0.1, 3.0):
        values = model.log_values + scale * random.normal(size=model.log_values.size)
        truth = exact_value(model.with_log_values(values), Question.of(model, asked).query.weights)
        for steps in (0, 3):
            value, slopes = gradient(values, steps=steps)
            assert value >= truth - 1e-12 * max(1.0, abs(truth))
            if truth > -math.inf:
                np.testing.assert_allclose(np.add.reduceat(slopes, model.table_starts[:-1]), 1.0, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("maximize", [None, "some", "all"])
def test_warm_ones_by_differences_of_themselves(seed: int, maximize: str | None) -> None:
    model, query, _ = hard_case(seed)
    asked = {None: None, "some": [int(v) for v in query.max_variables], "all": "all"}[maximize]
    tree = ps.BoundFunction(model, asked, ibound=2, temperature=0.0 if maximize is None else 0.3)
    tree(model.log_values + 0.1)
    values = model.log_values + 0.2 * np.random.default_rng(seed).normal(size=model.log_values.size)
    _, gradient = tree(values, steps=3)
    for entry in some_entries(model, seed):
        sides = [tree(moved(model.with_log_values(values), entry, by).log_values, steps=0)[0] for by in (STEP, -STEP)]
        assert gradient[entry] == pytest.approx((sides[0] - sides[1]) / (2.0 * STEP), abs=1e-5)


def test_warm_steps_tighten() -> None:
    model, query, _ = hard_case(3)
    tree = ps.BoundFunction(model, weights=query, ibound=1, sweeps=0, temperature=0.1)
    values = [tree(steps=steps)[0] for steps in (0, 5, 5, 20)]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1] + 0.1
    tree.forget()
    assert tree(steps=0)[0] == pytest.approx(values[0])


@pytest.mark.parametrize("seed", range(10))
def test_exact_ones_with_other_numbers_and_evidence(seed: int) -> None:
    model, query, evidence = case(seed)
    tree = ps.BoundFunction(model, weights=query, evidence=evidence)
    assert tree.exact
    values = model.log_values + np.random.default_rng(seed).normal(size=model.log_values.size)
    model = model.with_log_values(values)
    for number in range(2):
        evidence = {v: (state + number) % int(model.cardinalities[v]) for v, state in evidence.items()}
        value, gradient = tree.with_evidence(evidence)(values)
        truth = exact_value(model, query.weights, evidence=evidence)
        assert value == pytest.approx(truth, abs=1e-6)
        assert value >= truth - 1e-12 * max(1.0, abs(truth))
        _, again = ps.BoundFunction(model, weights=query, evidence=evidence)(steps=0)
        np.testing.assert_allclose(gradient, again, atol=1e-9)


def test_batches_are_their_rows() -> None:
    model, query, _ = hard_case(1)
    rows = model.log_values + 0.1 * np.random.default_rng(0).normal(size=(3, model.log_values.size))
    tree = ps.BoundFunction(model, weights=query, ibound=2, temperature=0.1, steps=0)
    values, gradients = tree.batch(rows)
    for row, value, gradient in zip(rows, values, gradients, strict=True):
        alone, slopes = tree(row)
        assert value == alone
        np.testing.assert_array_equal(gradient, slopes)
    # Each row goes on from its own shifts.
    later = [tree.batch(rows, steps=4)[0] for _ in range(5)]
    assert (later[-1] < values).all()
    assert tree.batch(np.empty((0, model.log_values.size)))[1].shape == (0, model.log_values.size)


def test_an_empty_question_has_a_gradient_too() -> None:
    free = ps.Model.from_factors([2, 3], [])
    value, gradient = ps.BoundFunction(free)()
    assert value == pytest.approx(math.log(6.0))
    assert value >= math.log(6.0)
    assert gradient.size == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tree: tree([0.0]), r"log_values has shape \(1,\): the model's has \(2,\)"),
        (lambda tree: tree([math.nan, 0.0]), "a table entry is NaN or infinite"),
        (lambda tree: tree([math.inf, 0.0]), "a table entry is NaN or infinite"),
        (lambda tree: tree("ab"), "log_values is 'ab': give an array of numbers"),
        (lambda tree: tree.batch([[0.0, 0.0], [0.0]]), r"log_values has shape \(1,\)"),
        (lambda tree: tree.batch(3.0), "log_values is 3.0: give an array with a row for each set of numbers"),
        (lambda tree: tree(steps=-1), "steps is -1"),
        (lambda tree: tree.with_evidence({"a": 1}), "evidence must give states, and to the same variables"),
    ],
)
def test_wrong_calls_are_one_line(call: Callable[[ps.BoundFunction], object], message: str) -> None:
    with pytest.raises(ps.InputError, match=message):
        call(ps.BoundFunction(ps.Model.from_tables({"a": [0.4, 0.6]})))


@pytest.mark.parametrize("temperature", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(6))
def test_a_tree_that_does_not_fit_is_no_reason_to_refuse(
    seed: int, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersum.api.gradient.TREE_BYTES", 1000.0)
    model, query, evidence = hard_case(seed)
    truth = exact_value(model, query.weights, evidence=evidence)
    gradient = ps.BoundFunction(model, weights=query, evidence=evidence, temperature=temperature)
    assert not gradient.exact
    value, slopes = gradient(model.log_values)
    assert value >= truth - 1e-12 * max(1.0, abs(truth))
    assert slopes.shape == model.log_values.shape
    monkeypatch.undo()
    roomy = ps.BoundFunction(model, weights=query, evidence=evidence, temperature=temperature)
    assert value >= roomy(model.log_values)[0] - 1e-9
