"""The covering tree: valid at every step, never rising, exact when regions are large, right gradients."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powersum.bounds.buckets.partition import limits_of, partition
from powersum.bounds.buckets.passes import Passes, _largest_of_stretches
from powersum.bounds.buckets.scopes import scopes_in_order
from powersum.bounds.buckets.wiring import lay_out
from powersum.bounds.tree import CoveringTree, covering_tree
from powersum.bounds.tree.budget import largest_within
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.core.speed import TREE_PASS
from powersum.core.work_time import Meter, counted_by
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.model.rounding import magnitudes
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from tests.clock import Ticks
from tests.oracle import assignment_value, exact_value
from tests.strategies import random_model, weighted_models

ROUNDING = 1e-9


def problem_of(model: Model, tau: FloatArray, evidence: dict[int, int] | None = None) -> Problem:
    return simplify(model, Query(tau), evidence or {})


def tree_of(problem: Problem, ibound: int | None = None, threads: int = 1) -> CoveringTree:
    return CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=ibound, threads=threads)


def passes_of(model: Model, tau: FloatArray, ibound: int, threads: int = 1, seed: int | None = None) -> Passes:
    order = np.argsort(-tau, kind="stable")
    scopes = scopes_in_order(model, order)
    layout = lay_out(partition(scopes, limits_of(ibound)), scopes, model.cardinalities[order])
    passes = Passes(layout, model, order, tau, threads=threads)
    if seed is not None:
        passes.parameters[:] = np.random.default_rng(seed).normal(0.0, 0.5, passes.parameters.size)
    return passes


@settings(max_examples=60, deadline=None)
@given(weighted_models(), st.integers(0, 3), st.booleans())
def test_valid_and_never_rising(weighted: tuple[Model, FloatArray], ibound: int, observe: bool) -> None:
    model, tau = weighted
    evidence = {0: 0} if observe else {}
    exact = exact_value(model, tau, evidence=evidence)
    problem = problem_of(model, tau, evidence)
    if not problem.feasible:
        assert exact == -math.inf
        return
    tree = tree_of(problem, ibound)
    last = math.inf
    for _ in range(12):
        upper = tree.log_upper + problem.log_constant
        assert upper <= last
        assert not math.isnan(upper)
        assert upper >= exact - ROUNDING * max(1.0, abs(exact)) or upper == exact
        last = upper
        if not tree.step(math.inf):
            break
    assert tree.bound() == pytest.approx(tree.log_upper, abs=1e-9, rel=1e-12) or tree.log_upper == -math.inf
    if tree.exact:
        assert tree.log_upper + problem.log_constant == pytest.approx(exact, abs=1e-9, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(weighted_models())
def test_exact_when_regions_hold_everything(weighted: tuple[Model, FloatArray]) -> None:
    model, tau = weighted
    exact = exact_value(model, tau)
    problem = problem_of(model, tau)
    if not problem.feasible:
        assert exact == -math.inf
        return
    tree = tree_of(problem, ibound=10)
    assert tree.exact
    assert not tree.step(math.inf)
    assert tree.log_upper + problem.log_constant == pytest.approx(exact, abs=1e-9, rel=1e-11)


@settings(max_examples=40, deadline=None)
@given(weighted_models())
def test_exact_tree_decodes_the_optimum(weighted: tuple[Model, FloatArray]) -> None:
    model, tau = weighted
    tau = np.where(tau > 0.0, 1.0, 0.0)
    exact = exact_value(model, tau)
    problem = problem_of(model, tau)
    if exact == -math.inf:
        return
    states = problem.restore(tree_of(problem, ibound=10).decode())
    assignment = {int(v): int(states[v]) for v in np.flatnonzero(tau == 0.0)}
    assert all(state >= 0 for state in assignment.values())
    assert assignment_value(model, assignment) == pytest.approx(exact, abs=1e-9, rel=1e-11)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("zeros", [0.0, 0.25])
def test_gradient_is_the_slope_of_the_bound(seed: int, zeros: float) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=7, n_factors=12, zeros=zeros, max_scope=3)
    tau = rng.choice([0.0, 0.3, 1.0, 1.7], 7)
    passes = passes_of(model, tau, ibound=1, seed=seed)
    value = passes.value_and_gradient(0.3)
    if value == -math.inf:
        return
    gradient = passes.gradient.copy()
    for i in range(gradient.size):
        slopes = []
        old = passes.parameters[i]
        for change in (1e-5, -1e-5):
            passes.parameters[i] = old + change
            slopes.append(passes.value(0.3))
        passes.parameters[i] = old
        assert gradient[i] == pytest.approx((slopes[0] - slopes[1]) / 2e-5, abs=2e-6)


@settings(max_examples=40, deadline=None)
@given(weighted_models(), st.integers(0, 2), st.integers(0, 100))
def test_any_point_and_any_temperature_is_valid(weighted: tuple[Model, FloatArray], ibound: int, seed: int) -> None:
    model, tau = weighted
    exact = exact_value(model, tau)
    passes = passes_of(model, tau, ibound, seed=seed)
    cold = passes.value()
    warm = passes.value(0.2)
    assert cold >= exact - ROUNDING * max(1.0, abs(exact)) or cold == exact
    assert warm >= cold - ROUNDING * max(1.0, abs(cold)) or warm == cold
    if cold > -math.inf:
        assert passes.value_and_gradient(0.2) == pytest.approx(warm, rel=1e-12, abs=1e-12)
        assert np.isfinite(passes.gradient).all()


def wide_model(n: int = 400) -> Model:
    """Two rows of variables with long-range ties: several components' worth of independent branches."""
    rng = np.random.default_rng(5)
    factors = []
    for i in range(n - 3):
        scope = [i, i + 1, int(rng.integers(max(0, i - 20), i)) if i > 20 else i + 3]
        factors.append((scope, rng.random((3, 3, 3))))
    return Model.from_factors([3] * n, factors)


def test_threads_change_nothing() -> None:
    model = wide_model()
    tau = np.where(np.arange(model.n_variables) % 3 == 0, 0.0, 1.0)
    problem = problem_of(model, tau)
    order = elimination_order(problem.model, problem.tau)
    bounds, states = [], []
    for threads in (1, 2, 3):
        tree = CoveringTree(problem, order, ibound=6, threads=threads)
        for _ in range(3):
            tree.step(math.inf)
        bounds.append(tree.log_upper)
        states.append(tree.decode())
    assert bounds[0] == bounds[1] == bounds[2]
    assert (states[0] == states[1]).all()


def test_a_glance_shows_what_decoding_would_and_disturbs_nothing() -> None:
    model = wide_model()
    problem = problem_of(model, np.where(np.arange(model.n_variables) % 3 == 0, 0.0, 1.0))
    watched, other = (tree_of(problem, ibound=3) for _ in range(2))
    for _ in range(4):
        for tree in (watched, other):
            tree.step(math.inf)
        states = watched.glance()
        assert ((states >= 0) == (problem.tau == 0.0)).all()
        assert (states < problem.model.cardinalities).all()
    assert watched.log_upper == other.log_upper
    decoded = watched.decode()
    assert (watched.glance() == decoded).all()


def test_larger_tables_than_a_block() -> None:
    """Rows, blocks and bases: tables well above one block must agree with brute force."""
    rng = np.random.default_rng(1)
    cardinalities = [4, 3, 6, 3, 2, 5, 3]
    factors = [
        (scope, np.exp(rng.normal(0, 1, [cardinalities[v] for v in scope])))
        for scope in ([0, 1, 2, 3, 4], [3, 4, 5, 6], [6, 0, 2], [5, 1, 0])
    ]
    model = Model.from_factors(cardinalities, factors)
    for tau in (np.ones(7), np.zeros(7), np.array([1.0, 1.0, 0.0, 1.0, 0.3, 0.0, 1.7])):
        order = np.argsort(-tau, kind="stable")
        passes = passes_of(model, tau, ibound=9)
        assert (passes.layout.wiring.blocks > 1).any()
        assert passes.value() == pytest.approx(exact_value(model, tau, order=order.tolist()), abs=1e-9)


def test_deadline_in_the_past_changes_nothing() -> None:
    model = wide_model(60)
    problem = problem_of(model, np.ones(60))
    tree = tree_of(problem, ibound=2)
    before = tree.log_upper
    assert not tree.step(time.monotonic() - 1.0), "there is no time for it"
    assert tree.log_upper == before
    assert tree.step(np.inf)
    assert tree.log_upper < before


def test_residuals_shrink() -> None:
    problem = problem_of(wide_model(60), np.ones(60))
    tree = tree_of(problem, ibound=3)
    tree.step(math.inf)
    early = tree.residuals()
    while tree.step(math.inf):
        pass
    late = tree.residuals()
    assert early is not None
    assert late is not None
    assert late.moment < 0.1 * early.moment
    assert {"mini_buckets", "table_entries", "parameters"} <= set(tree.sizes())


def test_sizes_follow_the_memory() -> None:
    problem = problem_of(wide_model(), np.ones(400))
    order = elimination_order(problem.model, problem.tau)
    scopes = scopes_in_order(problem.model, order)
    cardinalities = problem.model.cardinalities[order]
    for size in (2**21, 2**24, 2**26):
        found = largest_within(scopes, cardinalities, entries=np.inf, size=size)
        assert found is not None
        tree = FixedTree(problem, order, scopes, found[1], threads=1)
        assert tree.step(math.inf)
        held = [tree, tree.passes, tree._guide, tree._descent]
        arrays = [array for part in held for array in vars(part).values()] + list(tree.layout.wiring)
        unique = {id(a): a.nbytes for a in arrays if isinstance(a, np.ndarray) and a.base is None}
        assert sum(unique.values()) <= size
        assert found[2].bytes <= size


def test_free_size_is_valid_and_no_worse_than_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", Ticks(0.01))
    model = wide_model(120)
    tau = np.where(np.arange(120) % 2 == 0, 0.0, 1.0)
    problem = problem_of(model, tau)
    tree = tree_of(problem)
    last = tree.log_upper
    deadline = time.monotonic() + 4.0
    while tree.step(deadline) and time.monotonic() < deadline:
        assert tree.log_upper <= last
        last = tree.log_upper
    assert tree.bound() == pytest.approx(tree.log_upper, abs=1e-8)
    small = tree_of(problem, ibound=1)
    for _ in range(10):
        small.step(math.inf)
    assert tree.log_upper < small.log_upper


def test_free_size_repeats_without_a_clock() -> None:
    problem = problem_of(wide_model(60), np.where(np.arange(60) % 2 == 0, 0.0, 1.0))
    bounds = []
    for threads in (1, 2):
        tree = tree_of(problem, threads=threads)
        for _ in range(30):
            tree.step(math.inf)
        bounds.append(tree.log_upper)
    assert bounds[0] == bounds[1]


def test_the_pace_of_a_tree_counts_whole_rounds() -> None:
    """Sizes are planned by it; the quickest pass alone leaves out the step and the evaluation that is claimed."""
    problem = problem_of(wide_model(60), np.where(np.arange(60) % 2 == 0, 0.0, 1.0))
    with counted_by(Meter()):
        tree = tree_of(problem, ibound=4)._tree
        assert tree.seconds_per_entry == 0.0
        tree.step(math.inf)
        for _ in range(5):
            assert tree._descent is not None
            begun, before = time.monotonic(), tree._descent.evaluations
            tree.step(math.inf)
            elapsed, passes = time.monotonic() - begun, tree._descent.evaluations - before
            # One of them may have come after the round, at a new temperature.
            assert TREE_PASS < tree.seconds_per_entry <= elapsed / ((passes - 1) * tree.layout.n_entries)
        pace = tree.seconds_per_entry
        tree.rest()
        assert tree.seconds_per_entry == pace


def test_the_pace_follows_the_machine() -> None:
    """Beside other programs one quick slice, and one that was held up, do not decide what fits into the time."""
    problem = problem_of(wide_model(60), np.where(np.arange(60) % 2 == 0, 0.0, 1.0))
    tree = tree_of(problem, ibound=4)._tree
    entries = tree.layout.n_entries
    for pace in (1e-9, 20e-9, 22e-9, 400e-9, 21e-9):
        tree._note_pace(pace * entries, 1)
    assert tree.seconds_per_entry == pytest.approx(21e-9)
    for _ in range(5):
        tree._note_pace(2e-9 * entries, 1)
    assert tree.seconds_per_entry == pytest.approx(2e-9)


def test_growth_takes_a_larger_step_where_a_small_one_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid's run once ended after a third of its time, since every merge left took more than the step allowed."""
    monkeypatch.setattr(covering_tree, "EXACT_ENTRIES", 0.0)
    monkeypatch.setattr(covering_tree, "SMALL_ENTRIES", 5000.0)
    monkeypatch.setattr(covering_tree, "ENTRIES_PER_VARIABLE", 0.0)
    grown, asked = FixedTree.grown, []

    def only_by_much(tree: FixedTree, factor: float, size: float, seed: int) -> FixedTree | None:
        asked.append(factor)
        return None if factor < 5.0 else grown(tree, factor, size, seed)

    monkeypatch.setattr(FixedTree, "grown", only_by_much)
    problem = problem_of(wide_model(60), np.where(np.arange(60) % 2 == 0, 0.0, 1.0))
    tree = tree_of(problem)
    before, entries = tree.log_upper, tree._tree.layout.n_entries
    tree.step(math.inf)
    assert tree._grow(math.inf)
    assert tree._tree.layout.n_entries > entries
    assert asked == [covering_tree.GROWTH**k for k in (1, 2, 3)]
    assert tree._tree.log_upper <= before
    # Neither does it try what memory does not hold.
    asked.clear()
    tree._builder = replace(tree._builder, memory=int(2.0 * tree._tree.n_bytes))
    monkeypatch.setattr(FixedTree, "grown", lambda tree, factor, size, seed: asked.append(factor))
    assert not tree._grow(math.inf)
    assert asked == [covering_tree.GROWTH]


def test_the_order_given_is_taken_where_it_alone_is_exact() -> None:
    """Whatever order small trees prefer: log Z of pedigree19 was exact or two nats loose by a hair in the trial."""
    rng = np.random.default_rng(0)
    n = 14
    # A wheel: narrow if the hub comes last, one table of everything if it comes first.
    spokes = [((0, k), rng.random((2, 2))) for k in range(1, n)]
    rim = [((k, k + 1), rng.random((2, 2))) for k in range(1, n - 1)]
    problem = problem_of(Model.from_factors([2] * n, [*spokes, *rim]), np.ones(n))
    narrow, wide = np.arange(n)[::-1].copy(), np.arange(n)
    tree = CoveringTree.going_on(
        CoveringTree(problem, wide, ibound=1)._tree, problem, threads=1, seed=0, ibound=None, memory=20_000
    )
    tree._given = narrow
    first = tree.best_tree
    assert not first.exact
    assert tree._builder.exact(wide, math.inf) is None
    tree.step(math.inf)
    assert tree._grow(math.inf)
    assert tree._tree.exact
    assert tree._tree.log_upper == pytest.approx(exact_value(problem.model, problem.tau), abs=1e-9)


def test_too_little_memory_is_said() -> None:
    problem = problem_of(wide_model(), np.ones(400))
    order = elimination_order(problem.model, problem.tau)
    with pytest.raises(InputError, match="memory"):
        CoveringTree(problem, order, memory=10_000)
    with pytest.raises(InputError, match="memory"):
        CoveringTree(problem, order, ibound=8, memory=10_000)
    with pytest.raises(InputError, match="ibound"):
        CoveringTree(problem, order, ibound=-1)


def test_peak_memory_stays_within_the_budget() -> None:
    """In a process of its own, whose peak is its own.

    The peak that ``getrusage`` tells would include the parent's memory before the new program was loaded.
    """
    if not Path("/proc/self/status").is_file():
        pytest.skip("the system does not tell the peak memory of a process")
    program = (
        "import math, re, time, numpy as np\n"
        "from powersum.prepare.ordering import elimination_order\n"
        "from powersum.bounds.tree import CoveringTree\n"
        "from powersum.core.memory import memory_left\n"
        "from tests.bounds.tree.test_tree import problem_of, wide_model\n"
        "problem = problem_of(wide_model(), np.ones(400))\n"
        "order = elimination_order(problem.model, problem.tau)\n"
        "tree = CoveringTree(problem, order, memory=int(memory_left(400 * 2**20)))\n"
        "for _ in range(8): tree._grow(math.inf); tree.step(time.monotonic() + 1.0)\n"
        "peak = int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "print(peak / 1024, tree._tree.layout.n_entries)\n"
    )
    # The first run compiles, which takes memory that has nothing to do with the model.
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=1800)
    peak, entries = (float(word) for word in done.stdout.split())
    assert entries > 1e6
    assert peak <= 1.1 * 400


@pytest.mark.parametrize("ibound", [None, 0, 4])
def test_nothing_left_to_eliminate(ibound: int | None) -> None:
    model = Model.from_factors([2, 3], [((0,), [1.0, 0.0]), ((0, 1), [[0.0, 0.5, 0.0], [1.0, 1.0, 1.0]])])
    problem = problem_of(model, np.zeros(2))
    tree = tree_of(problem, ibound)
    assert tree.exact
    assert tree.log_upper + problem.log_constant == pytest.approx(math.log(0.5))
    assert not tree.step(math.inf)
    assert tree.decode().size == problem.model.n_variables


@settings(max_examples=25, deadline=None)
@given(weighted_models())
def test_free_size_is_exact_on_small_models(weighted: tuple[Model, FloatArray]) -> None:
    model, tau = weighted
    exact = exact_value(model, tau)
    problem = problem_of(model, tau)
    if problem.feasible:
        tree = tree_of(problem)
        assert tree.exact
        assert tree.log_upper + problem.log_constant == pytest.approx(exact, abs=1e-9, rel=1e-11)


def test_largest_entries_are_those_that_rounding_is_counted_by() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0.0, 100.0, 1000)
    values[rng.random(1000) < 0.2] = -np.inf
    values[rng.random(1000) < 0.1] = -1e300
    starts = np.unique(np.append(0, rng.integers(0, 1000, 120)))
    found = np.empty(len(starts))
    _largest_of_stretches(values, starts, found)
    np.testing.assert_array_equal(found, magnitudes(values, starts))
