"""Learning: losses against brute force, gradients against differences, and what is learned against what is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum.core.arrays import FloatArray
from powersum.learn import Example, Loss, fit
from tests.oracle import exact_value

STEP = 1e-5


def example(seed: int, *, chain: bool = True) -> Example:
    """Four labels in a ring, hidden variables beside them, evidence on one of these; some features by chance."""
    random = np.random.default_rng(seed)
    factors: list[tuple[tuple[int, ...], Any]] = [((v, (v + 1) % 4), np.zeros((2, 2))) for v in range(4)]
    factors += [((v, 4 + v), random.normal(size=(2, 3))) for v in range(4)]
    if chain:
        factors.append(((4, 5), random.normal(size=(3, 3))))
    model = ps.Model.from_factors([2] * 4 + [3] * 4, factors, log=True)
    features = random.normal(size=(model.log_values.size, 5)) * (random.random((model.log_values.size, 5)) < 0.5)
    labels = {v: int(random.integers(2)) for v in range(4)}
    return Example(model, features, labels, {7: int(random.integers(3))})


def states_of(one: Example) -> list[dict[int, int]]:
    """All labellings."""
    return [dict(enumerate(states)) for states in np.ndindex(2, 2, 2, 2)]


def brute_force(one: Example, objective: str, theta: FloatArray) -> float:
    """The loss by adding up everything."""
    model = one.with_parameters(theta)
    hidden = np.ones(model.n_variables)
    if objective == "joint margin":
        hidden[:] = 0.0
    value = {tuple(y.values()): exact_value(model, hidden, evidence={**one.evidence, **y}) for y in states_of(one)}
    right = tuple(one.labels.values())
    if objective == "likelihood":
        return float(np.logaddexp.reduce(list(value.values()))) - value[right]
    if objective == "pseudo-likelihood":
        total = 0.0
        for v in range(4):
            other = (*right[:v], 1 - right[v], *right[v + 1 :])
            total += float(np.logaddexp(value[right], value[other])) - value[right]
        return total
    wrong = {y: sum(a != b for a, b in zip(y, right, strict=True)) for y in value}
    return float(max(value[y] + 0.7 * wrong[y] for y in value) - value[right])


@pytest.mark.parametrize("objective", ps.learn.OBJECTIVES)
@pytest.mark.parametrize("seed", range(4))
def test_losses_are_those_of_brute_force(objective: str, seed: int) -> None:
    examples = [example(seed), example(seed + 100)]
    loss = Loss(examples, objective, l2=0.3, margin=0.7, temperature=0.0)
    assert loss.exact_given
    theta = np.random.default_rng(seed).normal(size=5)
    value, gradient = loss(theta)
    truth = 0.15 * float(theta @ theta) + float(np.mean([brute_force(one, objective, theta) for one in examples]))
    assert value == pytest.approx(truth, abs=1e-7)
    for number in range(5):
        step = STEP * np.eye(5)[number]
        assert gradient[number] == pytest.approx((loss(theta + step)[0] - loss(theta - step)[0]) / (2 * STEP), abs=1e-4)


def test_bounds_lie_above_the_true_loss() -> None:
    one = example(0)
    theta = np.random.default_rng(0).normal(size=5)
    loss = Loss([one], ibound=1, sweeps=0, steps=0)
    assert loss(theta)[0] > brute_force(one, "likelihood", theta)


def test_examples_of_one_structure_share_a_tree_and_nothing_else() -> None:
    """With other numbers, labels and evidence each has its own value, in whatever order."""
    examples = [example(seed) for seed in range(3)]
    theta = np.random.default_rng(0).normal(size=5)
    alone = [Loss([one])(theta)[0] for one in examples]
    assert Loss(examples)(theta)[0] == pytest.approx(np.mean(alone))
    assert Loss(examples[::-1])(theta)[0] == pytest.approx(np.mean(alone))


@pytest.mark.parametrize("objective", ps.learn.OBJECTIVES)
def test_fitting_lowers_the_loss(objective: str) -> None:
    examples = [example(seed) for seed in range(4)]
    start = 0.1 * np.random.default_rng(0).normal(size=5)
    learned = fit(examples, objective, start=start, iterations=20, l2=0.1)
    assert learned.loss < learned.history[0]
    assert list(learned.history) == sorted(learned.history, reverse=True)
    assert len(learned.history) <= 21
    assert learned.loss == pytest.approx(Loss(examples, objective, l2=0.1)(learned.parameters)[0], abs=1e-6)


def test_frequencies_are_learned_with_hidden_causes() -> None:
    """A mixture of two coins explains any frequency: the likelihood ends at the entropy of what was seen."""
    model = ps.Model.from_tables({"cause": [1.0, 1.0], ("cause", "side"): [[1.0, 1.0], [1.0, 1.0]]})
    seen = [Example(model, [0, -1, 1, -1, 2, -1], {"side": side}) for side in (0, 0, 0, 1, 1)]
    learned = fit(seen, start=[0.1, 0.2, -0.3])
    assert learned.loss == pytest.approx(-(0.6 * math.log(0.6) + 0.4 * math.log(0.4)), abs=1e-5)
    assert ps.marginals(seen[0].with_parameters(learned.parameters))["side"][0].lower == pytest.approx(0.6, abs=1e-3)


def test_tied_parameters_are_a_matrix_of_ones() -> None:
    model = ps.Model.from_tables({("a", "b"): [[1.0, 2.0], [3.0, 4.0]]})
    tied = Example(model, [1, 0, -1, 1], {"a": 0})
    dense = Example(model, np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]), {"a": 0})
    np.testing.assert_allclose(tied.log_values([0.5, 2.0]), dense.log_values([0.5, 2.0]))
    np.testing.assert_allclose(np.exp(tied.log_values([0.0, 1.0])), [math.e, 2.0, 3.0, 4.0 * math.e])


COIN = ps.Model.from_tables({"side": [1.0, 1.0], ("side", "call"): [[1.0, 1.0], [1.0, 1.0]]})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Example(COIN, [0, 1], {"side": 0}), "features have 2 rows: the model has 6 table entries"),
        (lambda: Example(COIN, [0, 1, 2, 3, 4, -2], {"side": 0}), "features name parameter -2"),
        (lambda: Example(COIN, "abc", {"side": 0}), "features must be a matrix"),
        (lambda: Example(COIN, np.full((6, 1), np.nan), {"side": 0}), "features must be finite"),
        (lambda: Example(COIN, [0] * 6, {}), "labels are empty"),
        (lambda: Example(COIN, [0] * 6, {"side": 0}, {"side": 0}), "variable side is among the labels and in the evid"),
        (lambda: Example(COIN, [0] * 6, {"side": [0.2, 0.8]}), "labels must be states, not likelihoods"),
        (lambda: Loss([]), "examples must be one powersum.learn.Example or more"),
        (lambda: Loss([Example(COIN, [0] * 6, {"side": 0})], "best"), "objective is 'best': give one of likelihood"),
        (lambda: Loss([Example(COIN, [0] * 6, {"side": 0})], l2=-1), "l2 is -1"),
        (lambda: Loss([Example(COIN, [0] * 6, {"side": 0})])([1.0, 2.0]), r"parameters have shape \(2,\): there are 1"),
        (
            lambda: Loss([Example(COIN, [0] * 6, {"side": 0}), Example(COIN, [1, 0, 0, 0, 0, 0], {"side": 0})]),
            "examples must all have the same number of parameters",
        ),
    ],
)
def test_wrong_arguments_are_one_line(make: Any, message: str) -> None:
    with pytest.raises(ps.InputError, match=message):
        make()


def test_labels_that_are_impossible_are_one_line() -> None:
    never = ps.Model.from_tables({"side": [1.0, 0.0]})
    with pytest.raises(ps.InputError, match="the labels are impossible there"):
        fit([Example(never, [0, 0], {"side": 1})])
