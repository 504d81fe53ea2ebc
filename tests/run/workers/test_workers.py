"""Workers one by one, on small problems, with a board to report to."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from powersum.assign.evaluator import Evaluator
from powersum.core.arrays import IntArray
from powersum.core.clock import Clock
from powersum.core.progress import Progress
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.model.question import Question
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from powersum.proof.certificate import ground_of
from powersum.run.board import Board
from powersum.run.memory_shares import MemoryShares
from powersum.run.tuning import Schedule
from powersum.run.work import crew_of
from powersum.run.workers.branch_and_bound import BranchAndBound
from powersum.run.workers.circuits import Circuits
from powersum.run.workers.components import Components
from powersum.run.workers.conditioning import Conditioning
from powersum.run.workers.elimination import ExactElimination
from powersum.run.workers.full_search import FullSearch
from powersum.run.workers.local_search import LocalSearchWorker
from powersum.run.workers.partial_sums import PartialSums
from powersum.run.workers.task import WorkerTask
from powersum.run.workers.tightening import Tightening
from powersum.run.workers.variational import VariationalSums
from tests.cases import Case, hard_case
from tests.clock import Ticks
from tests.oracle import exact_value

SPLIT = Schedule(ibound=1, held_table=8.0)
"""Trees that are not exact at once."""


def task_of(problem: Problem, board: Board, *, schedule: Schedule = SPLIT, threads: int = 1) -> WorkerTask:
    order = elimination_order(problem.model, problem.tau)
    shares = MemoryShares(2e8, threads > 1, full=1e7)
    return WorkerTask(problem, order, board, Clock(60.0), schedule, shares, threads, 0)


class Desk:
    """A question with its true value, a board and the workers that need one another."""

    def __init__(self, case: Case, *, threads: int = 1) -> None:
        self.board = Board(case.model.n_variables)
        self.task = task_of(case.problem(), self.board, threads=threads)
        self.truth = exact_value(case.model, case.query.weights)
        self.evaluator = Evaluator(self.task.problem, memory=1e8)
        self.local = LocalSearchWorker(self.task, self.evaluator)
        self.tightening = Tightening(self.task, self.local)
        self.tightening.begin(0, math.inf)

    def tighten(self, turns: int = 3) -> None:
        for _ in range(turns):
            # A deadline far away would be all the time there is: one round is enough here.
            tree = self.tightening.tree
            assert tree is not None
            tree.step(math.inf)
        self.tightening.run(-math.inf)

    def holds(self) -> bool:
        return self.board.log_lower - 1e-9 <= self.truth <= self.board.log_upper + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_elimination_proves(seed: int) -> None:
    case = hard_case(seed)
    board = Board(case.model.n_variables)
    task = task_of(case.problem(), board)
    worker = ExactElimination(task.problem, task.order, board, cost=15e-9)
    # A deadline that has passed is a short turn, not none.
    while worker.run(-math.inf) is Progress.MORE:
        pass
    assert board.proven
    assert board.log_lower <= exact_value(case.model, case.query.weights) <= board.log_upper
    assert board.gap < 1e-6


def two_parts(first: list[list[float]]) -> Problem:
    """A small component, and a larger one that is left."""
    tables = [((a, b), np.array([[1.0, 2.0], [3.0, 1.0]])) for a, b in ((2, 3), (3, 4), (2, 4))]
    model = Model.from_factors([2] * 5, [((0, 1), first), *tables])
    return simplify(model, Query.of(model, [0, 2]), {})


def test_easy_components_go_into_the_constant() -> None:
    problem, board = two_parts([[1.0, 2.0], [3.0, 4.0]]), Board(5)
    order = elimination_order(problem.model, problem.tau)
    worker = Components(problem, order, board, entries=1e6, size=1e6)
    assert worker.run(math.inf) is Progress.DONE
    assert worker.problem.n_components == problem.n_components - 1 or problem.n_components == 1
    whole = exact_value(problem.model, problem.tau) + problem.log_constant
    left = exact_value(worker.problem.model, worker.problem.tau) + worker.problem.log_constant
    assert left == pytest.approx(whole, abs=1e-12)
    assert not board.proven


def test_tightening_plans_for_its_own_share_of_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree that plans for the time of local search, too, is too large for the time that it will have."""
    board, ticks = Board(6), Ticks(0.0)
    case = hard_case(1)
    problem = case.problem()
    task = replace(task_of(problem, board), clock=Clock(math.inf, monotonic=ticks))
    monkeypatch.setattr("powersum.run.workers.tightening.time", ticks)
    tightening = Tightening(task, LocalSearchWorker(task, Evaluator(problem, memory=1e8)))
    with task.clock.running():
        tightening.begin(0, 100.0)
        planned: list[tuple[float, float]] = []

        def step(deadline: float) -> bool:
            del deadline
            planned.append((task.clock.spent, tightening._planned_end()))
            ticks.now += 1.0
            return True

        assert tightening.tree is not None
        monkeypatch.setattr(tightening.tree, "step", step)
        while ticks.now < 100.0:
            tightening.run(ticks.now + 1.0)
            # Others have three times as long.
            ticks.now += 3.0
    shares = [(end - now) / (100.0 - now) for now, end in planned]
    assert all(0.0 < share <= 1.0 for share in shares)
    assert shares[-1] == pytest.approx(0.25, abs=0.02)


def test_tightening_of_a_run_without_a_limit_plans_without_one() -> None:
    desk = Desk(hard_case(1))
    assert desk.tightening._planned_end() == math.inf


@pytest.mark.parametrize("seed", range(4))
def test_tightening_reports_a_bound_that_can_be_computed_again(seed: int) -> None:
    desk = Desk(hard_case(seed))
    desk.tighten()
    assert math.isfinite(desk.board.log_upper)
    claimed = desk.board.log_upper
    desk.board.confirm()
    assert desk.board.log_upper == pytest.approx(claimed, abs=1e-9)
    assert desk.holds()


def test_the_best_tree_is_kept_from_stage_to_stage() -> None:
    desk = Desk(hard_case(1))
    desk.tighten(30)
    good = desk.tightening.tree
    desk.tightening.end()
    desk.tightening.begin(1, math.inf)
    assert desk.tightening.tree is not good
    # Without a round, the new tree is no better.
    desk.tightening.end()
    assert desk.tightening.tree is good


@pytest.mark.parametrize("threads", [1, 2])
def test_local_search_reports_values_of_assignments(threads: int) -> None:
    desk = Desk(hard_case(2), threads=threads)
    desk.tighten()
    desk.local.suggest(desk.tightening.decode())
    before = desk.board.log_lower
    while desk.board.log_lower == before:
        if desk.local.beside:
            with desk.local.alongside(0.001):
                pass
        else:
            desk.local.run(desk.task.clock.deadline(0.01))
    desk.local.close()
    assert desk.local.beside == (threads > 1)
    assert -math.inf < desk.board.log_lower
    assert desk.holds()


def test_branch_and_bound_begins_with_the_assignment_that_has_the_value() -> None:
    desk = Desk(hard_case(1))
    desk.tighten()
    worker = BranchAndBound(desk.task, desk.evaluator, desk.tightening, desk.local)
    assert not worker.begin(math.inf)
    good = np.where(desk.evaluator.is_max, 1, -1)
    desk.board.offer_lower(desk.task.problem, desk.evaluator.value(good), 1e-9, good)
    # Local search stands elsewhere, as after search has found something better.
    desk.local.portfolio.assignment = np.where(desk.evaluator.is_max, 0, -1)
    assert worker.begin(math.inf)
    assert worker._search is not None
    np.testing.assert_array_equal(worker._search.assignment, good)
    while worker.run(math.inf) is Progress.MORE:
        pass
    assert desk.board.proven
    assert desk.holds()
    assert desk.board.gap < 1e-6


def test_branch_and_bound_hears_of_what_others_find() -> None:
    desk = Desk(hard_case(1))
    desk.tighten()
    worker = BranchAndBound(desk.task, desk.evaluator, desk.tightening, desk.local)
    values = {}
    for state in (0, 1):
        states = np.where(desk.evaluator.is_max, state, -1)
        values[desk.evaluator.value(states)] = states
    worse, better = sorted(values)
    desk.board.offer_lower(desk.task.problem, worse, 1e-9, values[worse])
    assert worker.begin(math.inf)
    desk.board.offer_lower(desk.task.problem, better, 1e-9, values[better])
    worker.run(-math.inf)
    assert worker._search is not None
    assert worker._search.log_lower >= better
    worker.end()
    assert worker._search is None


def test_the_outlook_of_a_tree_is_what_a_search_along_it_takes_off_its_bound() -> None:
    desk = Desk(hard_case(1))
    desk.tighten(1)
    worker = BranchAndBound(desk.task, desk.evaluator, desk.tightening, desk.local)
    assert desk.tightening.tree is not None
    tree = desk.tightening.tree.best_tree
    # There is none before an assignment is known.
    assert worker.outlook(tree, 60.0) == 0.0
    good = np.where(desk.evaluator.is_max, 1, -1)
    desk.board.offer_lower(desk.task.problem, desk.evaluator.value(good), 1e-9, good)
    upper, gap = desk.board.log_upper, tree.bound() + desk.task.problem.log_constant - desk.truth
    assert worker.outlook(tree, 60.0) == pytest.approx(gap, abs=1e-6)
    assert gap > 0.01
    # It only looks: nothing is claimed, and the tree can be tightened on.
    assert desk.board.log_upper == upper
    assert not desk.board.proven
    desk.tighten(5)
    assert desk.holds()


def test_where_a_cutset_is_held_there_is_no_search() -> None:
    desk = Desk(hard_case(1))
    desk.tighten()
    good = np.where(desk.evaluator.is_max, 1, -1)
    desk.board.offer_lower(desk.task.problem, desk.evaluator.value(good), 1e-9, good)
    desk.local.hold(good)
    assert not BranchAndBound(desk.task, desk.evaluator, desk.tightening, desk.local).begin(math.inf)


def test_tables_that_take_longer_to_copy_than_there_is_time_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(hard_case(1))
    desk.tighten()
    good = np.where(desk.evaluator.is_max, 1, -1)
    desk.board.offer_lower(desk.task.problem, desk.evaluator.value(good), 1e-9, good)
    worker = BranchAndBound(desk.task, desk.evaluator, desk.tightening, desk.local)
    monkeypatch.setattr("powersum.bounds.tree.losses.TABLE_COPY", 60.0)
    assert not worker.begin(math.inf)
    monkeypatch.undo()
    assert worker.begin(math.inf)


@pytest.mark.parametrize("seed", range(4))
def test_partial_sums_prove_where_nothing_is_dropped(seed: int) -> None:
    model = hard_case(seed).model
    desk = Desk(Case(model, Query.of(model), {}))
    desk.tighten()
    worker = PartialSums(desk.task, desk.tightening, desk.local)
    assert not worker.begin(math.inf)
    worker.possible = np.zeros(desk.task.problem.model.n_variables, dtype=np.int64)
    assert worker.useful_seconds == math.inf
    assert worker.begin(math.inf)
    progress = Progress.MORE
    while progress is Progress.MORE:
        progress = worker.run(math.inf)
        assert desk.holds()
    worker.end()
    assert progress is Progress.DONE
    assert desk.board.proven
    assert desk.board.gap < 1e-6


def test_a_crew_has_all_workers() -> None:
    task = task_of(hard_case(1).problem(), Board(hard_case(1).model.n_variables))
    crew = crew_of(task, FullSearch(task), Conditioning(task), Circuits(task))
    workers = [type(spell.worker).__name__ for spell in crew.spells]
    sums = ["Conditioning", "Circuits", "FullSearch", "PartialSums", "VariationalSums"]
    assert workers == [*sums, "SearchWorker", "OrderSearch"]
    crew.companion.close()


@pytest.mark.parametrize("seed", range(6))
def test_full_search_proves_where_everything_is_maximised(seed: int) -> None:
    model = hard_case(seed, zeros=0.2).model
    problem = simplify(model, Query.of(model, "all"))
    board = Board(model.n_variables)
    worker = FullSearch(task_of(problem, board))
    truth = exact_value(model, np.zeros(model.n_variables))
    assert worker.begin(math.inf)
    while worker.run(-math.inf) is Progress.MORE:
        assert board.log_lower <= truth <= board.log_upper
    assert board.proven
    assert board.log_lower <= truth <= board.log_upper
    assert not worker.begin(math.inf)


@pytest.mark.parametrize("seed", range(6))
def test_full_search_gives_a_lower_bound_where_sums_are_wide(seed: int) -> None:
    case = hard_case(seed, zeros=0.2)
    desk = Desk(case)
    board, worker = desk.board, FullSearch(desk.task)
    worker.local = desk.local
    desk.local.holds = True
    assert worker.begin(math.inf)
    while worker.run(-math.inf) is Progress.MORE:
        pass
    largest_term = exact_value(case.model, np.zeros(case.model.n_variables))
    assert not board.proven
    assert board.log_upper == math.inf
    assert board.log_lower == pytest.approx(largest_term, abs=1e-6)
    assert board.log_lower <= largest_term <= exact_value(case.model, case.query.weights)
    assert not worker.begin(math.inf)


def test_full_search_is_a_start_where_sums_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of the assignment is more than that of one configuration: local search is to evaluate it."""
    desk = Desk(hard_case(3))
    worker = FullSearch(desk.task)
    worker.local = desk.local
    told: list[IntArray] = []
    monkeypatch.setattr(desk.local, "suggest", told.append)
    assert worker.begin(math.inf)
    while worker.run(-math.inf) is Progress.MORE:
        pass
    worker.end()
    assert desk.board.incumbent is None
    assert worker.configuration is not None
    assert [states.tolist() for states in told] == [worker.configuration.tolist()]


def test_full_search_ends_where_its_starts_lie_below_what_is_known() -> None:
    """Its configurations are starts for local search; where that is ahead already, time is better spent elsewhere."""
    for ahead in (False, True):
        desk = Desk(hard_case(3))
        worker = FullSearch(desk.task)
        worker.local = desk.local
        assert worker.begin(math.inf)
        while worker.configuration is None:
            worker.run(-math.inf)
        assert not worker.done
        value = desk.local.value_of(worker.configuration)
        known = value + (0.5 if ahead else -0.5)
        states = np.where(desk.task.is_max, worker.configuration, -1)
        desk.board.offer_lower(desk.task.problem, known, 0.0, states)
        worker.end()
        assert worker.begin(math.inf) is not ahead


def test_full_search_without_a_configuration_ends_where_its_bound_lies_far_above_what_is_known() -> None:
    """Frustrated grids: costs that move between tables see nothing of the cycles, and dives take long to end."""
    for behind in (False, True):
        desk = Desk(hard_case(3))
        worker = FullSearch(desk.task)
        worker.local = desk.local
        assert worker.begin(math.inf)
        worker.run(-math.inf)
        while worker._orders or worker._rival is not None:
            worker.run(-math.inf)
        assert worker.configuration is None
        assert worker._search is not None
        log_upper = worker._search.costs.log_upper(worker._search.bound)
        states = np.where(desk.task.is_max, 0, -1)
        desk.board.offer_lower(desk.task.problem, log_upper - (3.0 if behind else 30.0), 0.0, states)
        desk.board.offer_upper(desk.task.problem, log_upper - 2.0, 0.0)
        worker.end()
        assert worker.begin(math.inf) is not behind


@pytest.mark.parametrize("ahead", [False, True])
def test_variational_sums_of_everything_give_up_where_others_are_ahead_and_nobody_needs_a_start_then(
    ahead: bool,
) -> None:
    model = hard_case(3).model
    board = Board(model.n_variables)
    task = task_of(simplify(model, Query.of(model, None)), board)
    local = LocalSearchWorker(task, evaluator := Evaluator(task.problem, memory=1e8))
    assert not evaluator.is_max.any()
    full, sums = FullSearch(task), PartialSums(task, Tightening(task, local), local)
    sums.possible = np.zeros(task.problem.model.n_variables, dtype=np.int64)
    worker = VariationalSums(task, local, sums, full)
    if ahead:
        nothing = np.full(task.problem.model.n_variables, -1, dtype=np.int64)
        board.offer_lower(task.problem, exact_value(model, np.ones(model.n_variables)) - 1e-9, 0.0, nothing)
    for _ in range(2):
        assert worker.begin(math.inf)
        worker.run(-math.inf)
        worker.end()
    assert worker.begin(math.inf) is not ahead
    assert full.begin(math.inf) is not ahead


def test_full_search_proves_its_bound_where_a_certificate_is_wanted() -> None:
    model = hard_case(0).model
    query = Query.of(model, "all")
    problem = simplify(model, query)
    board = Board(model.n_variables)
    board.ground = ground_of(Question.of(model, "all"), problem)
    worker = FullSearch(task_of(problem, board))
    assert worker.begin(math.inf)
    while worker.run(-math.inf) is Progress.MORE:
        pass
    assert board.proven
    proof = board.proof()
    assert [step.kind for step in proof.steps] == ["branching"]
    assert proof.log_upper == pytest.approx(exact_value(model, query.weights), abs=1e-6)
