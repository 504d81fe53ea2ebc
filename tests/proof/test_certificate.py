"""Certificates of preparation, elimination, trees and assignments: the checker verifies what is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from powersum.bounds.protocol import Provable
from powersum.bounds.registry import start_method
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.exact.elimination import Elimination
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.proof.elimination import elimination_forest
from tests.cases import Case, bushy_case, case, hard_case
from tests.oracle import assignment_value
from tests.run.proofs import CLOSE, draft_of, of_max, truth, verified

SEEDS = range(30)
Kind = Callable[[int], Case]


def any_weights(seed: int) -> Case:
    """A case with weights between and beyond 0 and 1."""
    asked = case(seed)
    rng = np.random.default_rng(seed)
    return asked._replace(query=Query(rng.choice([0.0, 0.3, 1.0, 1.7], asked.model.n_variables)))


def network(seed: int) -> Case:
    """A Bayesian network with barren leaves, zeros and evidence."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    cards = rng.integers(1, 4, n).tolist()
    factors = []
    for v in range(n):
        parents = rng.permutation(v)[: int(rng.integers(0, 3))].tolist()
        table = rng.dirichlet(np.ones(cards[v]), tuple(cards[p] for p in parents))
        table = np.where((rng.random(table.shape) < 0.2) & (table < table.max(axis=-1, keepdims=True)), 0.0, table)
        factors.append(((*parents, v), table / table.sum(axis=-1, keepdims=True)))
    model = Model.from_factors(cards, factors, directed=True)
    weights = (rng.random(n) < 0.7).astype(np.float64)
    evidence = {int(v): int(rng.integers(cards[v])) for v in range(n) if rng.random() < 0.2}
    return Case(model, Query(weights), evidence)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [case, any_weights, network])
def test_elimination_is_proven_from_both_sides(kind: Kind, seed: int, tmp_path: Path) -> None:
    asked = kind(seed)
    problem = asked.problem()
    draft, value = draft_of(asked, problem), truth(asked)
    if not problem.feasible:
        draft.add(draft.ground.contradiction())
        certificate = draft.done(-math.inf, -math.inf)
        assert verified(asked, certificate, tmp_path).log_upper == -math.inf == value
        return
    order = elimination_order(problem.model, problem.tau)
    draft.add(draft.ground.tree([elimination_forest(problem, order)]))
    exact = Elimination(problem.model, order, problem.tau).run()
    log_value = exact.log_value + problem.log_constant
    states = problem.restore(exact.states)
    chosen = of_max(asked, states) if log_value > -math.inf else {}
    if chosen:
        draft.add_value(chosen)
    found = verified(asked, draft.done(log_value, log_value, chosen), tmp_path)
    if value == -math.inf:
        assert found.log_upper == -math.inf
    else:
        assert found.log_lower <= value + CLOSE
        assert value - CLOSE <= found.log_upper
        assert found.log_upper - found.log_lower < CLOSE


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [case, any_weights, network, hard_case, bushy_case])
def test_the_bound_of_a_tree_is_proven_at_its_best_point(kind: Kind, seed: int, tmp_path: Path) -> None:
    asked = kind(seed)
    problem = asked.problem()
    if not problem.model.n_variables:
        return
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1 + seed % 3)
    for _ in range(seed % 4):
        tree.step(math.inf)
    log_upper = tree.bound() + problem.log_constant
    draft = draft_of(asked, problem)
    draft.add(draft.ground.tree([tree.best_tree.forest(problem)]))
    found = verified(asked, draft.done(-math.inf, log_upper), tmp_path)
    value = truth(asked)
    assert value - CLOSE <= found.log_upper
    assert found.log_upper == pytest.approx(log_upper, abs=CLOSE) or value == found.log_upper == -math.inf


@pytest.mark.parametrize("seed", SEEDS)
def test_a_given_order_is_part_of_the_question(seed: int, tmp_path: Path) -> None:
    asked = any_weights(seed)
    rng = np.random.default_rng(seed)
    weights = asked.query.weights
    order = rng.permutation(len(weights))
    order = order[np.argsort(weights[order] == 0.0, kind="stable")]
    problem = asked.problem()
    draft = draft_of(asked, problem, order)
    if not problem.feasible:
        return
    draft.add(draft.ground.tree([elimination_forest(problem, problem.reduced_order(order))]))
    found = verified(asked, draft.done(-math.inf, math.inf), tmp_path, order)
    value = truth(asked, order)
    assert found.log_lower - CLOSE <= value <= found.log_upper + CLOSE
    assert found.log_upper - found.log_lower < CLOSE or value == -math.inf


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [case, network, hard_case])
def test_the_value_of_an_assignment_is_proven_from_below(kind: Kind, seed: int, tmp_path: Path) -> None:
    asked = kind(seed)
    rng = np.random.default_rng(seed)
    states = np.array([rng.integers(card) for card in asked.model.cardinalities])
    for v, s in asked.evidence.items():
        states[v] = s
    chosen = of_max(asked, states)
    value = assignment_value(asked.model, chosen, evidence=asked.evidence)
    draft = draft_of(asked)
    draft.add_value(chosen)
    found = verified(asked, draft.done(value, math.inf, chosen), tmp_path)
    assert found.log_lower == pytest.approx(value, abs=CLOSE)
    assert found.assignment == (chosen if chosen and value > -math.inf else None)


def test_states_that_only_groups_of_factors_exclude(tmp_path: Path) -> None:
    """x0 = x1 by one table, x0 ≠ x1 for one of the states by another: neither alone excludes it."""
    same, other = np.eye(3), np.ones((3, 3))
    other[2, 2] = 0.0
    model = Model.from_factors(
        [3, 3, 2], [((0, 1), same), ((1, 0), other), ((0, 2), np.arange(1.0, 7.0).reshape(3, 2))]
    )
    asked = Case(model, Query(np.array([1.0, 0.0, 1.0])), {})
    problem = asked.problem()
    draft = draft_of(asked, problem)
    step = draft.ground.tree([elimination_forest(problem, elimination_order(problem.model, problem.tau))])
    assert "removed" in step.arrays
    assert "groups" in step.arrays
    draft.add(step)
    found = verified(asked, draft.done(truth(asked), truth(asked)), tmp_path)
    assert found.log_upper - found.log_lower < CLOSE


def test_an_axis_that_is_lost_beside_a_table_that_keeps_all_its_own(tmp_path: Path) -> None:
    """Found by the soak (solve-50000054294): absorbed tables lose an axis that only one of them had."""
    factors: list[tuple[tuple[int, ...], list[int]]] = [
        ((3, 4), [0, 0, 1, 0, 0, 1, 1, 1, 1]),
        ((0, 2), [0, 1, 1, 0, 1, 1, 1, 1, 1]),
        ((5, 4), [0, 0, 1, 1, 0, 1, 0, 1, 1]),
        ((6, 0), [0, 0, 1, 1, 1, 1, 1, 1, 0]),
        ((5, 7, 4), [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0]),
        ((1, 4, 2), [1] * 17 + [0] + [1] * 9),
        ((2, 7, 4), [1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1]),
        ((1, 7), [0, 1, 0, 1, 1, 0, 0, 1, 0]),
    ]
    tables = [(scope, np.array(numbers, float).reshape([3] * len(scope))) for scope, numbers in factors]
    asked = Case(Model.from_factors([3] * 8, tables), Query(np.ones(8)), {})
    problem = asked.problem()
    draft = draft_of(asked, problem)
    draft.add(draft.ground.tree([elimination_forest(problem, elimination_order(problem.model, problem.tau))]))
    found = verified(asked, draft.done(truth(asked), truth(asked)), tmp_path)
    assert found.log_upper - found.log_lower < CLOSE


METHODS: list[tuple[str, dict[str, int]]] = [
    ("gdd", {}),
    ("gdd", {"ibound": 2}),
    ("mbe", {"ibound": 1}),
    ("wmb", {"ibound": 1}),
    ("lbfgs", {}),
    ("tree", {"ibound": 2}),
]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", [case, any_weights, network, hard_case])
@pytest.mark.parametrize(("method", "options"), METHODS, ids=lambda value: str(value))
def test_the_bounds_of_all_methods_that_can_be_expressed(
    method: str, options: dict[str, int], kind: Kind, seed: int, tmp_path: Path
) -> None:
    asked = kind(seed)
    problem = asked.problem()
    if not problem.model.n_variables:
        return
    order = elimination_order(problem.model, problem.tau)
    tightener = start_method(method, problem, order, threads=1, seed=0, options=options)
    for _ in range(1 + seed % 3):
        tightener.step(math.inf)
    assert isinstance(tightener, Provable)
    forest, log_bound = tightener.certified()
    log_upper = log_bound + problem.log_constant
    # What is proven may be weaker than what the method knows by its own zeros, and never is without them.
    if not np.isneginf(problem.model.log_values).any():
        assert log_bound <= tightener.log_upper + CLOSE
    draft = draft_of(asked, problem)
    draft.add(draft.ground.tree([forest]))
    found = verified(asked, draft.done(-math.inf, log_upper), tmp_path)
    value = truth(asked)
    assert value - CLOSE <= found.log_upper
    assert found.log_upper == pytest.approx(log_upper, abs=CLOSE) or value == found.log_upper == -math.inf


@pytest.mark.parametrize("method", ["mas", "reorder"])
def test_the_others_say_that_they_cannot(method: str) -> None:
    problem = hard_case(0).problem()
    order = elimination_order(problem.model, problem.tau)
    assert not isinstance(start_method(method, problem, order, threads=1, seed=0, options={}), Provable)
