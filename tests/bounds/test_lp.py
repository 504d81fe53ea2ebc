"""On all-max problems with factor cliques only, the bounds meet the linear program of the local polytope."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from powersum.bounds.gdd import GDD
from powersum.bounds.tree import CoveringTree
from powersum.core.arrays import FloatArray
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.prepare.simplify import simplify
from tests.oracle import exact_value


def local_polytope_value(model: Model) -> float:
    """The largest expected log value of beliefs that agree on single variables: an independent oracle."""
    cards = [int(c) for c in model.cardinalities]
    begins = np.concatenate([[0], np.cumsum(cards)])
    factors = list(model.factors())
    objective = [np.zeros(begins[-1])]
    rows: list[dict[int, float]] = []
    right: list[float] = []
    for variable, card in enumerate(cards):
        rows.append({int(begins[variable]) + state: 1.0 for state in range(card)})
        right.append(1.0)
    column = int(begins[-1])
    for scope, log_table in factors:
        objective.append(-np.asarray(log_table).ravel())
        tuples = list(itertools.product(*(range(cards[v]) for v in scope)))
        for axis, variable in enumerate(scope):
            for state in range(cards[variable]):
                row = {column + k: 1.0 for k, states in enumerate(tuples) if states[axis] == state}
                row[int(begins[variable]) + state] = -1.0
                rows.append(row)
                right.append(0.0)
        column += len(tuples)
    matrix = np.zeros((len(rows), column))
    for number, row in enumerate(rows):
        matrix[number, list(row)] = list(row.values())
    solved = linprog(np.concatenate(objective), A_eq=matrix, b_eq=right, bounds=(0, None), method="highs")
    assert solved.fun is not None
    return -float(solved.fun)


def frustrated_grid(seed: int, states: int, width: int = 3) -> Model:
    """A grid of strong couplings of random signs: its local polytope has a fractional optimum more often than not."""
    rng = np.random.default_rng(seed)
    factors: list[tuple[tuple[int, ...], FloatArray]] = []
    for row, column in itertools.product(range(width), repeat=2):
        here = row * width + column
        factors.append(((here,), np.exp(rng.normal(0.0, 0.3, states))))
        if column + 1 < width:
            factors.append(((here, here + 1), np.exp(rng.normal(0.0, 2.0, (states, states)))))
        if row + 1 < width:
            factors.append(((here, here + width), np.exp(rng.normal(0.0, 2.0, (states, states)))))
    return Model.from_factors([states] * width**2, factors)


CASES = [(seed, states) for seed in range(6) for states in (2, 3)]


@pytest.mark.parametrize(("seed", "states"), CASES)
def test_annealed_tree_reaches_the_program(seed: int, states: int) -> None:
    model = frustrated_grid(seed, states)
    tau = np.zeros(model.n_variables)
    value = local_polytope_value(model)
    problem = simplify(model, Query(tau), {})
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1)
    for _ in range(400):
        if not tree.step(math.inf):
            break
    upper = tree.log_upper + problem.log_constant
    assert upper >= value - 1e-7
    assert upper <= value + 2e-3
    assert value >= exact_value(model, tau) - 1e-7


@pytest.mark.parametrize(("seed", "states"), CASES)
def test_decomposition_never_passes_the_program(seed: int, states: int) -> None:
    """Block descent can stick above the program's value where maxima are not unique, but never falls below it."""
    model = frustrated_grid(seed, states)
    value = local_polytope_value(model)
    problem = simplify(model, Query(np.zeros(model.n_variables)), {})
    method = GDD(problem, elimination_order(problem.model, problem.tau))
    for _ in range(200):
        if not method.step(math.inf):
            break
    upper = method.log_upper + problem.log_constant
    assert value - 1e-7 <= upper <= value + 2.0


def test_larger_regions_pass_the_program() -> None:
    """Where the program is loose, larger mini-buckets close the gap to the value itself."""
    loose = [seed for seed in range(30) if _gap(seed) > 0.1]
    assert loose
    for seed in loose[:3]:
        model = frustrated_grid(seed, 2)
        problem = simplify(model, Query(np.zeros(model.n_variables)), {})
        tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=3)
        while tree.step(math.inf):
            pass
        assert tree.log_upper + problem.log_constant < local_polytope_value(model) - 0.05


def _gap(seed: int) -> float:
    model = frustrated_grid(seed, 2)
    return local_polytope_value(model) - exact_value(model, np.zeros(model.n_variables))
