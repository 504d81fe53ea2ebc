"""Messages that are kept from move to move, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from powersum.assign.sum_tree import SumTree
from powersum.core.arrays import IntArray
from powersum.prepare.problem import Problem
from tests.cases import bushy_case, hard_case
from tests.oracle import assignment_value


def _truth(problem: Problem, states: IntArray) -> float:
    chosen = np.flatnonzero(problem.tau == 0.0)
    return assignment_value(problem.model, {int(v): int(states[v]) for v in chosen})


@pytest.mark.parametrize("seed", range(40))
def test_values_stay_right_from_move_to_move(seed: int) -> None:
    problem = (bushy_case if seed % 2 else hard_case)(seed, zeros=0.1 * (seed % 3)).problem()
    chosen = np.flatnonzero(problem.tau == 0.0)
    rng = np.random.default_rng(seed)
    cards = problem.model.cardinalities
    in_a_table = np.isin(chosen, problem.model.scope_variables)
    tree = SumTree(problem, seed=seed)
    tree.start(rng.integers(cards))
    assert tree.log_value == pytest.approx(_truth(problem, tree.states), abs=1e-9)
    for _ in range(12):
        block = rng.permutation(chosen[in_a_table])[: int(rng.integers(1, 4))]
        # Asked for before and after: what lies beyond a bucket must be forgotten where it no longer holds.
        if rng.random() < 0.7 and len(block):
            worth = tree.joint(block, np.inf)
            assert worth is not None
            here = worth[tuple(tree.states[block])]
            for others in itertools.product(*(range(c) for c in cards[block])):
                states = tree.states.copy()
                states[block] = others
                truth = _truth(problem, states)
                if here == -np.inf:
                    assert truth == -np.inf or worth[others] > -np.inf
                else:
                    assert worth[others] - here + tree.log_value == pytest.approx(truth, abs=1e-9)
        moved = rng.permutation(chosen)[: int(rng.integers(0, 3))]
        tree.move(moved, rng.integers(cards[moved]))
        assert tree.log_value == pytest.approx(_truth(problem, tree.states), abs=1e-9)


def test_a_block_that_takes_too_much_work_is_left() -> None:
    problem = hard_case(2).problem()
    chosen = np.flatnonzero(problem.tau == 0.0)
    tree = SumTree(problem)
    tree.start(np.zeros(problem.model.n_variables, dtype=np.int64))
    before = tree.log_value
    assert tree.joint(chosen[:3], 3.0) is None
    # Tables are read from where they were before.
    tree.move(chosen[:1], np.array([1]))
    tree.move(chosen[:1], np.array([0]))
    assert tree.log_value == pytest.approx(before, abs=1e-12)
    assert tree.joint(chosen[:3], np.inf) is not None
