"""Barren nodes leave Bayesian networks without changing the value, and only where the numbers allow it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.simplify import simplify
from tests.oracle import exact_value


def random_network(rng: np.random.Generator, n_variables: int, zeros: float = 0.0) -> Model:
    """A Bayesian network with random distributions; parents come before their children."""
    cardinalities = rng.integers(1, 4, n_variables)
    factors = []
    for child in range(n_variables):
        parents = rng.permutation(child)[: rng.integers(0, 3)]
        scope = [*parents.tolist(), child]
        table = rng.random(tuple(cardinalities[scope])) * (rng.random(tuple(cardinalities[scope])) >= zeros)
        table[..., 0] += 0.1
        factors.append((scope, table / table.sum(axis=-1, keepdims=True)))
    return Model.from_factors(cardinalities.tolist(), factors, directed=True)


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**32 - 1), st.sampled_from([[1.0], [0.0, 1.0], [0.0, 0.3, 1.0, 1.7]]), st.booleans())
def test_value_of_networks(seed: int, choices: list[float], zeros: bool) -> None:
    rng = np.random.default_rng(seed)
    model = random_network(rng, int(rng.integers(1, 8)), 0.3 * zeros)
    weights = rng.choice(choices, model.n_variables)
    observed = np.flatnonzero(rng.random(model.n_variables) < 0.2)
    evidence = {int(v): int(rng.integers(model.cardinalities[v])) for v in observed}
    problem = simplify(model, Query(weights), evidence)
    found = problem.log_constant + (exact_value(problem.model, problem.tau) if problem.feasible else 0.0)
    assert found == pytest.approx(exact_value(model, weights, evidence=evidence), abs=1e-9, rel=1e-12)


def test_network_without_evidence_sums_to_one() -> None:
    model = random_network(np.random.default_rng(0), 60)
    problem = simplify(model, Query.of(model), {})
    assert problem.model.n_variables == 0
    assert problem.log_constant == pytest.approx(0.0, abs=1e-12)


def chain(last: list[list[float]], *, directed: bool = True) -> Model:
    """A → B → C with the given distribution of C."""
    first, second = [0.3, 0.7], [[0.2, 0.8], [0.6, 0.4]]
    return Model.from_factors([2, 2, 2], [((0,), first), ((0, 1), second), ((1, 2), last)], directed=directed)


def test_only_what_the_query_needs_stays() -> None:
    model = chain([[0.5, 0.5], [0.1, 0.9]])
    problem = simplify(model, Query.of(model, [0]), {})
    assert problem.variables.tolist() == [0]
    assert problem.fixed_states.tolist() == [-1, -1, -1]
    # Evidence on the leaf, or a query for it, keeps the whole chain alive.
    assert simplify(model, Query.of(model, [0]), {2: 1}).variables.tolist() == [0, 1]
    assert simplify(model, Query.of(model, [2]), {}).variables.tolist() == [0, 1, 2]


def test_sums_are_verified_not_assumed() -> None:
    model = chain([[0.5, 0.5], [0.1, 0.8]])
    problem = simplify(model, Query.of(model), {})
    assert problem.variables.tolist() == [0, 1, 2]


def test_scaled_distributions_leave_their_constant() -> None:
    problem = simplify(model := chain([[1.0, 1.0], [0.2, 1.8]]), Query.of(model), {})
    assert problem.model.n_variables == 0
    assert problem.log_constant == pytest.approx(np.log(2.0))


def test_nearly_equal_sums_are_rounded_up() -> None:
    model = chain([[0.5, 0.5], [0.1, 0.9 + 4e-10]])
    problem = simplify(model, Query.of(model, [0]), {})
    assert problem.variables.tolist() == [0]
    found = problem.log_constant + exact_value(problem.model, problem.tau)
    assert exact_value(model, [0.0, 1.0, 1.0]) <= found <= exact_value(model, [0.0, 1.0, 1.0]) + 1e-9


def test_a_network_written_as_a_markov_network_loses_its_leaves() -> None:
    """Nothing but the numbers says that these are distributions, and the child is not always the last of its table."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = 7
        cards = rng.integers(2, 4, n)
        factors = []
        for child in range(n):
            parents = rng.permutation(child)[: int(rng.integers(0, 3))]
            table = rng.dirichlet(np.ones(cards[child]), size=tuple(cards[parents]))
            axes = rng.permutation(len(parents) + 1)
            scope = np.append(parents, child)[axes]
            factors.append((scope.tolist(), np.transpose(table, axes)))
        model = Model.from_factors(cards.tolist(), factors)
        problem = simplify(model, Query.of(model), {})
        assert problem.model.n_variables == 0
        assert abs(problem.log_constant) <= problem.log_error < 1e-9
        kept = simplify(model, Query.of(model, [n - 1]), {0: 0})
        truth = exact_value(model, np.where(np.arange(n) == n - 1, 0.0, 1.0), evidence={0: 0})
        assert kept.log_constant + exact_value(kept.model, kept.tau) == pytest.approx(truth, abs=1e-11)


def test_other_weights_keep_their_leaves() -> None:
    directed = chain([[0.5, 0.5], [0.1, 0.9]])
    assert simplify(directed, Query(np.array([0.5, 1.0, 1.0])), {}).variables.tolist() == [0, 1, 2]
