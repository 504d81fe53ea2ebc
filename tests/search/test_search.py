"""AND/OR search: every part of the problem is bounded, and the search ends at the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.assign.evaluator import Evaluator
from powersum.assign.portfolio import Portfolio
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.look_up import Boundary
from powersum.bounds.tree.losses import Losses, losses_of
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.progress import Progress
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from powersum.search import AndOr
from powersum.search.pseudo_tree import Shape
from powersum.search.values import find, keep, new_values, roomy
from powersum.search.walk import best_state
from tests.cases import bushy_case, hard_case
from tests.clock import Ticks
from tests.oracle import exact_value


def searched(problem: Problem, *, ibound: int, memory: float = 1e6) -> tuple[Losses, AndOr, float]:
    order = elimination_order(problem.model, problem.tau)
    tree = CoveringTree(problem, order, ibound=ibound)
    for _ in range(2):
        tree.step(np.inf)
    losses, root = losses_of(tree.best_tree, problem)
    evaluator = Evaluator(problem, memory=2e7)
    start = np.where(evaluator.is_max, 0, -1)
    search = AndOr(
        losses,
        tree.best_tree,
        evaluator,
        log_upper=root,
        log_lower=evaluator.value(start),
        assignment=start,
        memory=memory,
    )
    return losses, search, root


def costs_at(search: AndOr, depth: int, path: IntArray) -> FloatArray:
    """What each state of the variable at a depth costs, given those above it."""
    search.walk.path[: len(path)] = path
    best_state(search.losses, search._tree, search.values, search.walk, depth)
    starts = search._tree.state_starts
    return search.walk.costs[starts[depth] : starts[depth + 1]].copy()


@pytest.mark.parametrize("seed", range(30))
def test_heuristic_bounds_every_partial_assignment(seed: int) -> None:
    problem = hard_case(seed, zeros=0.15 * (seed % 2)).problem()
    losses, search, bound = searched(problem, ibound=2)
    rng = np.random.default_rng(seed)
    path = np.zeros(len(losses.variables), dtype=np.int64)
    given: dict[int, int] = {}
    for depth, v in enumerate(losses.variables.tolist()):
        costs = costs_at(search, depth, path)
        for s in range(int(losses.cardinalities[depth])):
            truth = exact_value(problem.model, problem.tau, evidence={**given, v: s})
            assert bound - costs[s] >= truth - 1e-9
            assert costs[s] >= 0.0
        path[depth] = int(rng.integers(losses.cardinalities[depth]))
        given[v] = int(path[depth])
        bound -= costs[path[depth]]


@pytest.mark.parametrize("seed", range(3))
def test_heuristic_of_a_tree_that_chose_its_own_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", Ticks(0.01))
    # Left to itself with time to spend, a tree tries other orders than the one it was given.
    problem = simplify(*grid(seed), {})
    given = elimination_order(problem.model, problem.tau, restarts=1, seed=seed)
    poor = np.concatenate([np.sort(given[problem.tau[given] == w]) for w in (1.0, 0.0)])
    tree = CoveringTree(problem, poor, memory=10**8)
    end = time.monotonic() + 4.0
    while time.monotonic() < end and tree.step(end):
        pass
    assert not np.array_equal(tree.best_tree.order, poor)
    losses, root = losses_of(tree.best_tree, problem)
    evaluator = Evaluator(problem, memory=2e7)
    portfolio = Portfolio(evaluator, seed=seed)
    portfolio.improve(time.monotonic() + 1.0)
    best = portfolio.assignment
    search = AndOr(losses, tree.best_tree, evaluator, log_upper=root, log_lower=portfolio.log_value, assignment=best)
    # On the way to a good assignment a bound read from the wrong tables would soon be below its value.
    path = best[losses.variables]
    assert sorted(losses.variables.tolist()) == np.flatnonzero(evaluator.is_max).tolist()
    bound = root
    for depth in range(len(path)):
        bound -= costs_at(search, depth, path)[path[depth]]
        assert bound >= portfolio.log_value - 1e-9


def grid(seed: int) -> tuple[Model, Query]:
    """A grid with domains of different sizes: a table read for the wrong variable would not fit."""
    rng = np.random.default_rng(seed)
    n = 12
    cards = rng.integers(2, 5, n * n)
    factors = []
    for i in range(n):
        for j in range(n):
            for k in ((i, j + 1), (i + 1, j)):
                if max(k) < n:
                    a, b = i * n + j, k[0] * n + k[1]
                    factors.append(((a, b), np.exp(rng.normal(0.0, 1.0, (cards[a], cards[b])))))
    weights = (rng.random(n * n) < 0.5).astype(np.float64)
    return Model.from_factors(cards.tolist(), factors), Query(weights)


@pytest.mark.parametrize("seed", range(30))
def test_messages_that_leave_a_part_bound_it(seed: int) -> None:
    problem = bushy_case(seed).problem()
    _, search, root = searched(problem, ibound=1)
    shape, model = search.shape, problem.model
    rng = np.random.default_rng(seed)
    states = rng.integers(model.cardinalities)
    in_order = states[shape.order]
    for node in range(shape.root):
        part = shape.subtree(node)
        boundary = Boundary(search.bound_tree, part.inside, model.cardinalities[shape.order])
        given = {v: int(states[v]) for v in range(model.n_variables) if v not in part.variables}
        factors = [(model.scope(f), np.exp(model.factor(f).log_table)) for f in part.factors.tolist()]
        alone = Model.from_factors(model.cardinalities.tolist(), factors)
        assert boundary.log_bound(in_order) >= exact_value(alone, problem.tau, evidence=given) - 1e-9
    # All of it together is bounded by the bound of the root.
    everything = Boundary(search.bound_tree, np.ones(model.n_variables, dtype=np.bool_), model.cardinalities)
    assert everything.log_bound(in_order) == pytest.approx(root)


@pytest.mark.parametrize("seed", range(20))
def test_a_part_depends_on_its_context_only(seed: int) -> None:
    problem = bushy_case(seed).problem()
    model = problem.model
    evaluator = Evaluator(problem, memory=2e7)
    shape = Shape(evaluator, elimination_order(model, problem.tau))
    tree, n = shape.tree, model.n_variables
    for node in range(shape.root):
        part = shape.subtree(node)
        context = shape.contexts[node].tolist()
        allowed = set(part.variables.tolist()) | {int(shape.order[n - 1 - node]) for node in context}
        for f in part.factors.tolist():
            assert set(model.scope(f).tolist()) <= allowed
        # All factors of its variables are there.
        touching = [f for f in range(model.n_factors) if set(model.scope(f).tolist()) & set(part.variables.tolist())]
        assert part.factors.tolist() == touching
        # What is dropped on the way down leaves exactly the context.
        parent = int(tree.parents[node])
        above = [] if parent == shape.root else [parent, *shape.contexts[parent].tolist()]
        dropped = tree.dropped[tree.drop_starts[node] : tree.drop_starts[node + 1]].tolist()
        assert sorted(context) == sorted(set(above) - set(dropped))
    # Children have no variable in common and miss none.
    below = [shape.subtree(c).variables for c in tree.children[tree.child_starts[shape.root] :].tolist()]
    assert sorted(np.concatenate(below).tolist()) == list(range(n))


@pytest.mark.parametrize("settle_work", [1.0, 3e4])
@pytest.mark.parametrize("seed", range(40))
def test_search_ends_at_the_optimum(seed: int, settle_work: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without settling, every leaf is reached by branching.
    monkeypatch.setattr("powersum.search.and_or.SETTLE_WORK", settle_work)
    make = hard_case if seed % 4 < 2 else bushy_case
    problem = make(seed, zeros=0.15 * (seed % 2)).problem()
    truth = exact_value(problem.model, problem.tau)
    _, search, _ = searched(problem, ibound=1)
    assert search.run(np.inf) is Progress.DONE
    assert search.log_lower == pytest.approx(truth, abs=1e-9)
    assert search.log_upper == pytest.approx(truth, abs=2e-9)


@pytest.mark.parametrize("seed", range(24))
def test_bounds_hold_at_every_moment_in_little_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.search.and_or.SETTLE_WORK", 1.0)
    monkeypatch.setattr("powersum.search.and_or.STEPS", 3)
    make = hard_case if seed % 2 else bushy_case
    problem = make(seed).problem()
    truth = exact_value(problem.model, problem.tau)
    # Room for 32 nodes: almost everything that is found out is forgotten again.
    _, search, _ = searched(problem, ibound=1, memory=1024.0)
    assert len(search.values.words) == 32
    uppers, lowers = [search.log_upper], [search.log_lower]
    clock = Ticks()
    monkeypatch.setattr("powersum.search.and_or.time", clock)
    looks = 1.0
    while search.run(clock.now + looks) is Progress.MORE:
        # What is forgotten between two slices must not keep the search from its end.
        looks *= 1.1
        uppers.append(search.log_upper)
        lowers.append(search.log_lower)
        assert lowers[-1] <= truth + 1e-9
        assert uppers[-1] >= truth - 1e-9
    assert (np.diff(uppers) <= 0).all()
    assert (np.diff(lowers) >= 0).all()
    assert search.log_lower == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("seed", range(24))
def test_reading_off_the_optimum_ends_in_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found out had to make room, and finding it out again takes many slices."""
    clock = Ticks()
    monkeypatch.setattr("powersum.search.and_or.time", clock)
    monkeypatch.setattr("powersum.search.and_or.SETTLE_WORK", 1.0)
    monkeypatch.setattr("powersum.search.and_or.STEPS", 1)
    make = hard_case if seed % 2 else bushy_case
    problem = make(seed).problem()
    truth = exact_value(problem.model, problem.tau)
    _, search, _ = searched(problem, ibound=1, memory=1024.0)
    with monkeypatch.context() as patch:
        patch.setattr(search, "_offer_best", lambda _: False)
        assert search.run(np.inf) is Progress.MORE
    assert search.log_upper == pytest.approx(truth, abs=2e-9)
    assert search.log_lower < truth - 1e-3
    search.values = new_values(1024.0)
    length, slices = 4.0, 0
    while not search.done:
        assert search.log_lower < truth - 1e-3
        begun, slices = clock.now, slices + 1
        assert (search.run(begun + length) is Progress.DONE) == search.done
        # One look more in each loop that has to end.
        assert clock.now <= begun + length + 3.0
        length *= 1.05
    assert slices > 1
    assert search.log_lower == pytest.approx(truth, abs=1e-9)
    assert search.log_upper == pytest.approx(truth, abs=2e-9)


def test_values_are_found_again_until_others_need_their_place() -> None:
    values = new_values(1024.0)
    keep(values, 1, 10, 0.5, False, 3)
    keep(values, 1, 10, 0.25, False, 1)
    row = find(values, 1, 10)
    assert values.numbers[row, 2] == 0.5, "a weaker bound does not replace a stronger one"
    assert values.words[row, 3] // 2 == 4
    keep(values, 1, 10, 0.75, True, 1)
    assert (values.numbers[row, 2], values.words[row, 3] % 2) == (0.75, 1)
    # Keys with the same low bits share four places; the entry with the least work behind it goes.
    for k in range(1, 4):
        keep(values, 1 + 8 * k, 10, 0.0, False, 100)
    keep(values, 1 + 8 * 4, 10, 0.0, False, 50)
    assert find(values, 1, 10) == -1
    assert all(find(values, 1 + 8 * k, 10) >= 0 for k in range(1, 5))


def test_values_move_to_a_larger_table() -> None:
    values = new_values(1024.0)
    rng = np.random.default_rng(0)
    keys = rng.integers(-(2**62), 2**62, (20, 2))
    for k, (first, second) in enumerate(keys.tolist()):
        keep(values, first, second, float(k), k % 3 == 0, k + 1)
    kept = [k for k, (first, second) in enumerate(keys.tolist()) if find(values, first, second) >= 0]
    assert values.entries[0] == len(kept) > 16
    assert roomy(values, 4096.0) is values, "two tables at once would not fit"
    larger = roomy(values, 5120.0)
    assert len(larger.words) == 4 * len(values.words)
    for k in kept:
        row = find(larger, *keys[k].tolist())
        assert (larger.numbers[row, 2], larger.words[row, 3]) == (k, 2 * (k + 1) + (k % 3 == 0))
    assert larger.entries[0] == len(kept)
    assert roomy(larger, 1e9) is larger, "it is not crowded"
