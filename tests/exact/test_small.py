"""Elimination in plain NumPy against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersum.exact import small
from powersum.exact.small import small_elimination
from powersum.model.model import Model
from tests.cases import case
from tests.oracle import assignment_value, exact_value, joint_log_table


def random_network(seed: int, *, digits: int | None = None) -> Model:
    """A Bayesian network, some distributions deterministic, rounded to some digits if told."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    sizes = rng.integers(1, 4, n).tolist()
    factors = []
    for v in range(n):
        parents = rng.permutation(v)[: int(rng.integers(0, 4))].tolist()
        table = rng.dirichlet(np.full(sizes[v], 0.5), size=tuple(sizes[p] for p in parents))
        if rng.random() < 0.3:
            table = (table == table.max(axis=-1, keepdims=True)).astype(np.float64)
        if digits is not None:
            table = np.round(table, digits)
        factors.append(((*parents, v), table))
    return Model.from_factors(sizes, factors, directed=True)


def question(model: Model, seed: int) -> tuple[dict[int, int], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Random evidence and weights 0 and 1."""
    rng = np.random.default_rng(seed)
    evidence = {v: int(rng.integers(model.cardinalities[v])) for v in range(model.n_variables) if rng.random() < 0.3}
    return evidence, (rng.random(model.n_variables) < rng.choice([0.0, 0.5, 0.9, 1.0])).astype(np.float64)


def check(model: Model, evidence: dict[int, int], tau: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    elimination = small_elimination(model, evidence, tau)
    assert elimination is not None
    answer = elimination.run()
    truth = exact_value(model, tau, evidence=evidence)
    if truth == -math.inf:
        assert answer.log_value == -math.inf
        return
    # The oracle has a rounding of its own, of the same size at most.
    assert abs(answer.log_value - truth) <= 2 * answer.log_error
    assert answer.log_error < 1e-7
    chosen = {v: int(answer.states[v]) for v in np.flatnonzero(tau == 0.0).tolist() if v not in evidence}
    assert all(0 <= state < model.cardinalities[v] for v, state in chosen.items())
    assert np.all(np.delete(answer.states, list(chosen)) == -1)
    assert abs(assignment_value(model, chosen, evidence=evidence) - truth) <= 3 * answer.log_error


@pytest.mark.parametrize("seed", range(150))
def test_value_and_states_against_brute_force(seed: int) -> None:
    asked = case(seed)
    check(asked.model, asked.evidence, asked.query.weights)


@pytest.mark.parametrize("seed", range(150))
def test_networks_with_barren_variables(seed: int) -> None:
    model = random_network(seed, digits=[None, 3, 15][seed % 3])
    check(model, *question(model, seed))


@pytest.mark.parametrize("seed", range(100))
def test_marginals_against_brute_force(seed: int) -> None:
    model = random_network(seed) if seed % 2 else case(seed).model
    evidence, _ = question(model, seed)
    elimination = small_elimination(model, evidence, np.ones(model.n_variables), barren=False)
    assert elimination is not None
    found = elimination.marginals()
    joint = joint_log_table(model, evidence)
    if joint.max() == -math.inf:
        assert found is None
        return
    assert found is not None
    joint = np.exp(joint - joint.max())
    cuts = np.cumsum(model.cardinalities)[:-1]
    for v, (belief, possible) in enumerate(zip(*(np.split(part, cuts) for part in found), strict=True)):
        truth = joint.sum(axis=tuple(u for u in range(model.n_variables) if u != v))
        np.testing.assert_allclose(belief, truth / truth.sum(), rtol=1e-10, atol=1e-14)
        assert possible[truth > 0.0].all()


def test_what_is_not_small_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_network(3)
    tau = np.ones(model.n_variables)
    assert small_elimination(model, {}, tau) is not None
    monkeypatch.setattr(small, "MOST_VARIABLES", model.n_variables - 1)
    assert small_elimination(model, {}, tau) is None
    monkeypatch.undo()
    # Tables are small here, the buckets between them are not.
    rows = 20
    pairs = [((v, u), np.ones((2, 2))) for v in range(rows) for u in range(v)]
    wide = Model.from_factors([2] * rows, pairs)
    assert wide.log_values.size < small.MOST_ENTRIES
    assert small_elimination(wide, {}, np.ones(rows)) is None
