"""Trees that are handed on to a question with fewer ties: valid, and about no variables but those of each bucket."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersum.bounds.tree import CoveringTree
from powersum.bounds.tree.rebuilding import rebuilt, saved_of
from powersum.core.arrays import IntArray
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from tests.oracle import exact_value

N = 9


def contexts(problem: Problem, order: IntArray) -> list[set[int]]:
    """The variables of each bucket along an order, its own included, in plain Python."""
    waiting = [set(scope) for scope, _ in problem.model.factors()]
    found = []
    for v in order.tolist():
        mine = [scope for scope in waiting if v in scope]
        waiting = [scope for scope in waiting if v not in scope]
        bucket = set().union({v}, *mine)
        found.append(bucket)
        waiting.append(bucket - {v})
    return found


@pytest.mark.parametrize("tau", [np.ones(N), np.where(np.arange(N) < 4, 0.0, 1.0)], ids=["sum", "mixed"])
@pytest.mark.parametrize("seed", range(12))
def test_scopes_lie_within_the_buckets_of_the_question_at_hand(seed: int, tau: np.ndarray) -> None:
    rng = np.random.default_rng(seed)
    scopes = [tuple(rng.choice(N, 3, replace=False).tolist()) for _ in range(14)]
    factors = [(scope, rng.random((2, 2, 2))) for scope in scopes]
    problem = simplify(Model.from_factors([2] * N, factors), Query(tau))
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=4)
    for _ in range(3):
        tree.step(math.inf)
    saved = saved_of(tree.best_tree, problem)
    fewer = simplify(Model.from_factors([2] * N, factors[: 3 + seed % 5]), Query(tau))
    if not fewer.model.n_variables:
        return
    left = rebuilt(saved, fewer, threads=1, memory=1e9)
    assert left is not None
    around = contexts(fewer, left.order)
    for k, bucket in enumerate(left.parts.bucket.tolist()):
        scope = left.parts.positions[left.parts.starts[k] : left.parts.starts[k + 1]]
        assert set(left.order[scope].tolist()) <= around[bucket]
    assert left.log_upper + 1e-9 >= exact_value(fewer.model, fewer.tau)
