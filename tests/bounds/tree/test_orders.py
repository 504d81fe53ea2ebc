"""Orders for covering trees: the best judged first, all of them valid, and so are bounds while orders are screened."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from powersum.bounds.tree import CoveringTree, covering_tree, fixed_tree, orders
from powersum.bounds.tree.descent import Descent
from powersum.bounds.tree.orders import DRAWN_APART, Orders
from powersum.bounds.tree.phases import OwnTime, Phase
from powersum.core import work_time
from powersum.core.arrays import FloatArray
from powersum.core.work_time import Meter, counted_by
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.ordering import check_order, elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from tests.oracle import exact_value

N = 14


@pytest.fixture(autouse=True)
def screen_small_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "LEAST_SCREENED", 0)


def problem_of(seed: int, tau: FloatArray) -> Problem:
    """A dense problem of binary variables, few zeros, nothing to simplify."""
    rng = np.random.default_rng(seed)
    tables = rng.normal(0.0, 1.0, (30, 2, 2, 2))
    tables[rng.random(tables.shape) < 0.03] = -np.inf
    triples = [tuple(rng.choice(N, 3, replace=False).tolist()) for _ in tables]
    return simplify(Model.from_factors([2] * N, [*zip(triples, np.exp(tables), strict=True)]), Query(tau))


MIXED = np.where(np.arange(N) % 2 == 0, 0.0, 1.0)


def test_the_best_judged_come_first_and_each_once() -> None:
    problem = problem_of(0, MIXED)
    supply = Orders(problem, 0)
    drawn = [supply.draw() for _ in range(3)]
    for order, log_upper in zip(drawn, (2.0, 1.0, 3.0), strict=True):
        supply.judge(order, log_upper)
    assert [id(supply.best()) for _ in range(3)] == [id(drawn[k]) for k in (1, 0, 2)]
    check_order(supply.best(), problem.tau, problem.model.n_variables)


def test_all_that_were_judged_are_ranked_for_later_trees() -> None:
    problem = problem_of(0, MIXED)
    supply = Orders(problem, 0)
    drawn = [supply.draw() for _ in range(3)]
    for order, log_upper in zip(drawn, (2.0, 1.0, 3.0), strict=True):
        supply.judge(order, log_upper)
    for _ in range(2):
        assert [id(order) for order in supply.ranked()] == [id(drawn[k]) for k in (1, 0, 2)]
        # Each stage judges the order given once more; it takes part once.
        supply.judge(drawn[0].copy(), 0.0)


@pytest.mark.parametrize("tau", [MIXED, np.ones(N), np.zeros(N)])
def test_all_drawn_are_orders_of_the_question(tau: FloatArray) -> None:
    problem = problem_of(1, tau)
    supply, again = Orders(problem, 5), Orders(problem, 5)
    for k in range(3 * DRAWN_APART):
        order = supply.draw()
        check_order(order, problem.tau, problem.model.n_variables)
        assert np.array_equal(order, again.draw())
        for each in (supply, again):
            each.judge(order, float(-k))
    assert supply.screened == (len(np.unique(tau)) > 1)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_valid_while_orders_are_screened(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Enough entries for the smallest tree: where none fits, the first one is as large as memory allows, and exact.
    for name in ("SMALL_ENTRIES", "EXACT_ENTRIES", "ENTRIES_PER_VARIABLE"):
        monkeypatch.setattr(covering_tree, name, 400.0 if name == "SMALL_ENTRIES" else 0.0)
    monkeypatch.setattr(covering_tree, "STALLED", 0.0)
    monkeypatch.setattr(covering_tree, "LEAST_SCREENING", 0.1)
    problem = problem_of(seed, MIXED)
    exact = exact_value(problem.model, problem.tau)
    seen = set()
    with counted_by(Meter()):
        order = elimination_order(problem.model, problem.tau)
        tree = CoveringTree(problem, order, seed=seed)
        assert not tree.exact
        deadline, last = work_time.monotonic() + 0.1 + 1e-3, tree.log_upper
        while tree.step(deadline):
            seen.add(tree._phase)
            assert exact <= tree.log_upper <= last
            # The bound of the present tree, of whatever order, is never below the value either.
            assert tree._tree.bound() >= exact
            check_order(tree._tree.order, problem.tau, problem.model.n_variables)
            last = tree.log_upper
    assert {Phase.SCREENING, Phase.RACE} <= seen
    # Whatever order won, decoding and the bound from scratch are of it.
    assert tree.bound() >= exact
    check_order(tree.best_tree.order, problem.tau, problem.model.n_variables)


@pytest.mark.parametrize("seed", range(3))
def test_a_later_tree_knows_the_orders_of_an_earlier_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SMALL_ENTRIES", 400.0), ("EXACT_ENTRIES", 0.0), ("ENTRIES_PER_VARIABLE", 0.0)):
        monkeypatch.setattr(covering_tree, name, value)
    monkeypatch.setattr(covering_tree, "LEAST_SCREENING", 0.1)
    problem = problem_of(seed, MIXED)
    exact = exact_value(problem.model, problem.tau)
    order = elimination_order(problem.model, problem.tau)
    earlier: Orders | None = None
    with counted_by(Meter()):
        for stage in range(3):
            tree = CoveringTree(problem, order, seed=seed + stage, orders=earlier)
            known = [] if earlier is None else earlier.ranked()
            deadline = work_time.monotonic() + 0.101
            while tree._phase in (Phase.FIRST, Phase.SCREENING) and tree.step(deadline):
                pass
            assert tree.log_upper >= exact
            assert {id(each) for each in known} < {id(each) for each in tree.orders.ranked()}
            if tree._phase is Phase.RACE:
                # The best of all orders that any stage has judged takes part.
                taking_part = [one.order for one in (*tree._race.left, tree._tree)]
                assert any(one is tree.orders.ranked()[0] for one in taking_part)
            earlier = tree.orders


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_orders_are_judged_after_equally_many_passes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first tree once had twice the passes of all others, and looked the best on every model."""
    for name, value in (("SMALL_ENTRIES", 400.0), ("EXACT_ENTRIES", 0.0), ("ENTRIES_PER_VARIABLE", 0.0)):
        monkeypatch.setattr(covering_tree, name, value)
    monkeypatch.setattr(covering_tree, "STALLED", -1.0)
    # No round may be the last for want of gain: then all end by their turns.
    monkeypatch.setattr(fixed_tree, "CONVERGED", -math.inf)
    monkeypatch.setattr(fixed_tree, "LEAST_SINGLE_GAIN", -math.inf)
    monkeypatch.setattr(covering_tree, "LEAST_SCREENING", 0.1)
    passes: list[int] = []
    timed = Descent._timed

    def counted(descent: Descent) -> float:
        passes[-1] += 1
        return timed(descent)

    monkeypatch.setattr(Descent, "_timed", counted)
    problem = problem_of(seed, MIXED)
    with counted_by(Meter()):
        tree = CoveringTree(problem, elimination_order(problem.model, problem.tau))
        deadline, last = work_time.monotonic() + 1.0, None
        while tree._phase in (Phase.FIRST, Phase.SCREENING):
            if tree._tree is not last:
                passes.append(0)
                last = tree._tree
            if not tree.step(deadline):
                break
    # The last of them may have been cut short. A round more or less, with its line searches, is no fault.
    assert len(passes) > 3
    assert max(passes[:-1]) - min(passes[:-1]) <= 30


def test_small_problems_are_not_screened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "LEAST_SCREENED", N + 1)
    problem = problem_of(0, MIXED)
    assert not Orders(problem, 0).screened
    drawn = elimination_order(problem.model, problem.tau, seed=8, restarts=orders.RESTARTS)
    assert np.array_equal(Orders(problem, 7).draw(), drawn)


def test_where_time_does_not_end_nothing_is_screened() -> None:
    problem = problem_of(3, MIXED)
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau))
    for _ in range(40):
        tree.step(np.inf)
        assert tree._phase is not Phase.SCREENING


@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize("tau", [MIXED, np.ones(N), np.zeros(N)])
@pytest.mark.parametrize("seed", range(3))
def test_the_tree_of_an_earlier_stage_grows_on_where_all_others_are_no_better(
    seed: int, tau: FloatArray, grows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees are draws: one of a short stage was often better than what a long one had found, and was forgotten."""
    for name, value in (("SMALL_ENTRIES", 400.0), ("EXACT_ENTRIES", 0.0), ("ENTRIES_PER_VARIABLE", 0.0)):
        monkeypatch.setattr(covering_tree, name, value)
    monkeypatch.setattr(covering_tree, "LEAST_SCREENING", 0.1)
    if not grows:
        # It goes on as it is where it cannot grow.
        monkeypatch.setattr(fixed_tree.FixedTree, "grown", lambda *arguments: None)
    problem = problem_of(seed, tau)
    exact = exact_value(problem.model, problem.tau)
    order = elimination_order(problem.model, problem.tau)
    with counted_by(Meter()):
        rival = CoveringTree(problem, order, seed=seed, ibound=4).best_tree
        for _ in range(60):
            rival.step(math.inf)
        rival.rest()
        before, n_entries, point = rival.log_upper, rival.layout.n_entries, rival.point()
        tree = CoveringTree(problem, order, seed=seed, rival=rival)
        assert tree.log_upper > before
        deadline = work_time.monotonic() + 0.2
        while tree.step(deadline):
            assert tree.log_upper >= exact
    assert exact <= tree.log_upper <= before
    # It is left as it was, for whoever still holds it.
    assert rival.log_upper == before
    assert all(np.array_equal(now, then) for now, then in zip(rival.point(), point, strict=True))
    assert rival.bound() == pytest.approx(before, abs=1e-9)
    assert tree.best_tree.layout.n_entries >= n_entries
    assert tree.bound() >= exact


@pytest.mark.parametrize("most", [1, 2, 4])
def test_no_more_orders_are_screened_than_help(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SMALL_ENTRIES", 400.0), ("EXACT_ENTRIES", 0.0), ("ENTRIES_PER_VARIABLE", 0.0)):
        monkeypatch.setattr(covering_tree, name, value)
    monkeypatch.setattr(covering_tree, "MOST_SCREENED", most)
    problem = problem_of(0, MIXED)
    with counted_by(Meter()):
        tree = CoveringTree(problem, elimination_order(problem.model, problem.tau))
        deadline = work_time.monotonic() + 4.0
        while tree._phase in (Phase.FIRST, Phase.SCREENING) and tree.step(deadline):
            pass
    # There is no race of one or two, whose ranks are known.
    assert tree._phase is (Phase.RACE if most > 2 else Phase.GROWTH)
    assert tree.orders.n_judged == most
    assert tree.orders.log_upper == min(one.log_upper for one in tree.orders._judged)


def test_time_of_ones_own_stands_still_while_others_work(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10.0
    monkeypatch.setattr(work_time, "monotonic", lambda: now)
    own = OwnTime()
    for turn in range(3):
        with own:
            assert own.now == pytest.approx(2.0 * turn)
            now += 2.0
            assert own.now == pytest.approx(2.0 * turn + 2.0)
        now += 100.0


def test_growing_pays_as_long_as_a_doubling_is_worth_it() -> None:
    """Two nats at a doubling of 10 000 entries are one at 40 000, if they fall as the root of the entries grows."""
    problem = problem_of(1, np.array([1.0] * 7 + [0.0] * 7))
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1)
    assert tree.useful_entries(1.0) is None

    def gained(few: float, many: float) -> float:
        """The integral of 2 √(10 000 / n) over all doublings between."""
        return float(400.0 / math.log(2.0) * (few**-0.5 - many**-0.5))

    for many in (10_000, 30_000, 90_000):
        tree._small_entries, tree._screened_at = 5000.0, 0.0
        tree._tree = SimpleNamespace(  # type: ignore[assignment]
            layout=SimpleNamespace(n_entries=many), log_upper=-gained(5000.0, many)
        )
        assert tree.useful_entries(1.0) == pytest.approx(40_000.0)
        assert tree.useful_entries(2.0) == pytest.approx(10_000.0)
    tree._screened_at = -1e9
    assert tree.useful_entries(1.0) == 0.0
