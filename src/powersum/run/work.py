"""All the work on one question, in turns: preparation, exact elimination where it fits, else a crew of workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from weakref import WeakMethod, proxy

import numpy as np

from powersum.assign.complete import without_impossible
from powersum.assign.configurations import CONFIGURATION_BYTES
from powersum.assign.evaluator import Evaluator
from powersum.assign.guided_search import is_guided
from powersum.assign.wide_search import bytes_with, sum_tree_for
from powersum.bounds.affordable import HUGE
from powersum.bounds.blankets import blanket_bounds
from powersum.bounds.corner import corner_of
from powersum.bounds.single import SingleFactors, single_seconds
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.race import Outlook
from powersum.core import work_time as time
from powersum.core.arrays import BoolArray, IntArray
from powersum.core.clock import Clock
from powersum.core.progress import Progress
from powersum.core.speed import ELIMINATION, SLOW_ELIMINATION, WAY_BACK
from powersum.core.work_time import metered
from powersum.exact.counting import worth_counting
from powersum.model.factors import configuration_value
from powersum.model.question import Question
from powersum.prepare.ordering import MIN_FILL_VARIABLES, MIN_FILL_WORK, elimination_order
from powersum.prepare.ordering.tries import OrderTries
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplified
from powersum.prepare.sizes import order_sizes, question_sizes
from powersum.proof.certificate import ground_of
from powersum.run.board import Board
from powersum.run.distributions import Distributions
from powersum.run.inheritance import Legacy
from powersum.run.memory_shares import MemoryShares, lacking_for
from powersum.run.proofs import by_contradiction, by_corner, by_elimination
from powersum.run.scheduler import Crew, Scheduler, Spell, exhaust
from powersum.run.tuning import Schedule
from powersum.run.workers.branch_and_bound import BranchAndBound
from powersum.run.workers.circuits import Circuits
from powersum.run.workers.components import Components
from powersum.run.workers.conditioning import Conditioning
from powersum.run.workers.elimination import ExactElimination
from powersum.run.workers.first_assignment import FirstAssignment
from powersum.run.workers.full_search import FullSearch
from powersum.run.workers.local_search import LocalSearchWorker
from powersum.run.workers.order_search import OrderSearch
from powersum.run.workers.partial_sums import PartialSums
from powersum.run.workers.search import SearchWorker
from powersum.run.workers.splits import Splits
from powersum.run.workers.task import Lender, StageWorker, WorkerTask
from powersum.run.workers.tightening import Tightening
from powersum.run.workers.variational import VariationalSums
from powersum.search.costs import Costs

SHORT_ORDERS, LONG_ORDERS = 0.2, 1.0
"""Seconds for the first order at most; distributions cost several times what a sum does along the same order."""

MORE_ORDERS, WORTH = 0.05, 0.15
"""Orders of fewer entries are looked for during this share of the time, and for no longer than this share of what both
ways of an elimination take along the best order."""

USUAL = ELIMINATION / SLOW_ELIMINATION
"""What an elimination usually takes, as a share of what it takes at worst."""

LEAST_PACE = 0.5
"""Seconds after which the pace of an elimination is known."""

AROUND = 0.1
"""Share of the time for bounds on distributions from the variables around, at most."""

ASKING, MOST_ASKING = 0.02, 1.0
"""Share of the time, and seconds at most, for asking which states are impossible."""

QUICK_SHARE = 0.05
"""Share of the time that first bounds may take."""


def work(
    question: Question,
    *,
    board: Board,
    clock: Clock,
    schedule: Schedule,
    memory: float,
    threads: int,
    seed: int,
    certificate: bool = False,
    resumed: Legacy | None = None,
    lender: Lender | None = None,
    possible: BoolArray | None = None,
) -> Generator[None]:
    """Work on a question; at each pause the board says what is known, with ``certificate`` also how it is proven.

    ``resumed`` is what an earlier run has left, ``lender`` knows others who have time for boxes, and ``possible`` says
    of the states of all variables which were not proven impossible.
    """
    # Barren variables, which a sum can do without, have distributions, too.
    problem = simplified(question, barren=not board.wants_distributions, possible=possible)
    board.sizes = question_sizes(question, problem)
    if certificate:
        board.ground = ground_of(question, problem)
    if not problem.feasible:
        board.impossible(by_contradiction)
        yield
        return
    if board.wants_distributions:
        board.distributions = Distributions(problem, question.model.cardinalities)
    if problem.model.n_variables == 0:
        nothing = np.zeros(0, dtype=np.int64)
        board.offer_exact(problem, 0.0, 0.0, nothing, "Simplification alone gave the exact value.", by_elimination)
        yield
        return
    unbounded = board.log_upper == math.inf
    # These bounds have no proof: where one is wanted, only what would have no bound at all for long gets them.
    huge = problem.model.n_variables >= HUGE
    quick = not certificate and single_seconds(problem.model) <= QUICK_SHARE * clock.limit
    if unbounded and (huge or quick):
        # Of large models a bound with a point takes long; these are there at once.
        single = SingleFactors(problem)
        board.offer_upper(problem, single.log_upper, 0.0, single.bound)
        if not certificate:
            states = single.configuration()
            board.offer_first(problem, configuration_value(problem.model, states), single.log_error, states)
    # No bound that is reported is above what a reader of the model sees, whoever finds another one.
    reader = None if board.wants_distributions else corner_of(question, problem, clock.limit)
    if reader is not None:
        board.offer_upper(problem, reader.log_upper, 0.0, None, partial(by_corner, found=reader))
    # Each part of the preparation takes long on a very large model: between them is a look at the outside.
    yield
    shares = MemoryShares(memory)
    full: FullSearch | None = None
    few_sums = not (problem.tau > 0.0).any() or is_guided(problem, memory=shares.most_wide)
    if resumed is None and few_sums and problem.model.n_variables <= schedule.most_variables:
        full = yield from early_search(problem, board, clock, schedule, shares, threads, seed)
        if board.proven:
            return
    most = LONG_ORDERS if board.wants_distributions else SHORT_ORDERS
    order = elimination_order(problem.model, problem.tau, seed=seed, time_limit=min(most, 0.05 * clock.limit))
    if board.wants_distributions:
        yield
        order = with_fewer_entries(problem, order, seed, clock.deadline(MORE_ORDERS * clock.limit))
    yield
    elimination = ExactElimination(problem, order, board, cost=schedule.elimination_cost, memory=shares.elimination)
    board.sizes.update(order_sizes(elimination.width, elimination.log2_entries))
    fits = elimination.bytes <= shares.elimination
    if not fits and elimination.seconds <= clock.limit < math.inf:
        board.lacking = lacking_for(elimination.bytes, elimination.seconds, memory)
    share = USUAL if board.wants_distributions else 1.0
    if fits and share * elimination.seconds < schedule.quick:
        yield from exhaust(elimination, clock, schedule.slice)
        return
    entries = schedule.quick / schedule.elimination_cost
    components = Components(problem, order, board, entries=entries, size=shares.components)
    yield from exhaust(components, clock, schedule.slice)
    if board.proven:
        return
    # A certificate cannot tell why states are impossible, and trees of other runs may have them.
    kept = certificate or board.keeps_tree or board.wants_distributions or resumed is not None
    if possible is None and not kept and worth_counting(components.problem.model):
        seconds = min(MOST_ASKING, ASKING * clock.limit)
        possible = without_impossible(components.problem, question.model.cardinalities, clock.deadline(seconds))
        if possible is not None:
            board.forget_variables()
            again = partial(work, question, board=board, clock=clock, schedule=schedule, memory=memory)
            yield from again(threads=threads, seed=seed, lender=lender, possible=possible)
            return
    # With threads, local search runs beside the rest, one thread of its own.
    # Not where work is counted: what it finds in its own time would depend on the machine.
    beside = threads > 1 and not metered() and bool((components.problem.tau == 0.0).any())
    shares = replace(shares, beside=beside)
    if components.problem.model.n_variables <= schedule.most_variables:
        shares = replace(shares, full=shares.full_search(Costs.bytes_needed(components.problem.model)))
    task = WorkerTask(
        components.problem, components.order, board, clock, schedule, shares, threads, seed, resumed, lender
    )
    if resumed is not None and resumed.proves_more:
        resumed.verify(board, task.problem)
        yield
    if full is not None and not np.array_equal(full.task.problem.variables, task.problem.variables):
        full = None
        board.forget_variables()
    full, conditioning, circuits = full or FullSearch(task), Conditioning(task), Circuits(task)
    full.task = task
    settled = False
    if full.maximises_all:
        settled = yield from first_try(full, _first_full(clock, schedule), task)
    elif conditioning.sums_all:
        # Where tables will do, it must be quicker than they.
        late = elimination.seconds if fits else math.inf
        seconds = min(schedule.early_conditioning, schedule.early_conditioning_share * clock.limit, late)
        on = partial(conditioning.promising, schedule.hopeful_conditioning, late)
        settled = yield from first_try(conditioning, seconds, task, on)
    else:
        seconds = min(schedule.early_circuits, schedule.early_circuits_share * clock.limit)
        settled = yield from first_try(circuits, seconds, task)
    if settled:
        return
    if board.distributions is not None:
        if fits and USUAL * elimination.seconds < schedule.late_elimination * clock.left:
            # Nothing else has exact distributions of what is in one piece.
            done = yield from exhaust_in_time(elimination, clock, schedule.slice)
            if done:
                return
        yield from look_around(task, board.distributions, schedule.slice)

    def try_late(order: IntArray) -> None:
        narrower = ExactElimination(
            task.problem, order, board, cost=schedule.elimination_cost, memory=shares.elimination
        )
        if narrower.bytes <= shares.elimination and narrower.seconds < scheduler.late_seconds:
            scheduler.late, scheduler.late_seconds = narrower, narrower.seconds

    crew = crew_of(task, full, conditioning, circuits, try_late)
    scheduler = Scheduler(crew, board, clock, schedule, elimination)
    if fits:
        scheduler.late_seconds = elimination.seconds
    yield
    yield from scheduler.turns()


def with_fewer_entries(problem: Problem, order: IntArray, seed: int, deadline: float) -> IntArray:
    """The order of some tries with the fewest table entries, which are what both ways of an elimination take."""
    if not 1 < problem.model.n_variables <= MIN_FILL_VARIABLES:
        return order
    tries = OrderTries(problem.model, problem.tau, order, seed=seed, most_work=MIN_FILL_WORK, by_entries=True)
    begun = time.monotonic()
    while time.monotonic() < deadline:
        if time.monotonic() - begun > WORTH * (ELIMINATION + WAY_BACK) * 2.0**tries.log2_total:
            break
        tries.step()
    return tries.order


def exhaust_in_time(elimination: ExactElimination, clock: Clock, seconds: float) -> Generator[None, None, bool]:
    """Turns of an elimination until it is done; False where it was given up, for its pace would take too long."""
    begun = clock.spent
    for _ in exhaust(elimination, clock, seconds):
        yield
        spent = clock.spent - begun
        if spent > LEAST_PACE and spent > elimination.share * (spent + clock.left):
            elimination.give_up()
            return False
    return True


def look_around(task: WorkerTask, known: Distributions, seconds: float) -> Generator[None]:
    """Bounds on distributions from the variables around each, which need no sum."""
    clock = task.clock
    ends = clock.spent + AROUND * clock.left
    turn = clock.deadline(seconds)
    for variable, lower, upper in blanket_bounds(task.problem.model):
        known.between(task.problem, variable, lower, upper)
        if time.monotonic() >= turn:
            yield
            if clock.spent >= ends:
                break
            turn = clock.deadline(seconds)
    known.agree()
    yield


def early_search(
    problem: Problem,
    board: Board,
    clock: Clock,
    schedule: Schedule,
    shares: MemoryShares,
    threads: int,
    seed: int,
) -> Generator[None, None, FullSearch | None]:
    """Search full configurations before a good order is looked for; None where tables along any order are quick.

    For questions that sum few variables or none. Components that a greedy order makes easy are settled before.
    """
    order = elimination_order(problem.model, problem.tau, seed=seed, restarts=1)
    elimination = ExactElimination(problem, order, board, cost=schedule.elimination_cost)
    if elimination.seconds < schedule.early_full_from:
        return None
    board.sizes.update(order_sizes(elimination.width, elimination.log2_entries))
    entries = schedule.early_full_from / schedule.elimination_cost
    components = Components(problem, order, board, entries=entries, size=shares.components)
    yield from exhaust(components, clock, schedule.slice)
    rest = components.problem
    if board.proven:
        return None
    shares = replace(shares, full=shares.full_search(Costs.bytes_needed(rest.model)))
    task = WorkerTask(rest, components.order, board, clock, schedule, shares, threads, seed)
    full = FullSearch(task)
    seconds = min(schedule.early_full, schedule.early_full_share * clock.limit)
    yield from first_try(full, seconds, task)
    if not full.maximises_all and full.configuration is not None and board.ground is None:
        board.offer_first(
            rest, configuration_value(rest.model, full.configuration), 2.0 * task.log_error, full.configuration
        )
    return full


def first_try(
    worker: StageWorker, seconds: float, task: WorkerTask, nearly_done: Callable[[], bool] = lambda: False
) -> Generator[None, None, bool]:
    """Easy questions are settled before the first tree is built: a worker that may do so has so many seconds.

    It goes on beyond them as long as ``nearly_done`` says so. Returns whether the answer is proven.
    """
    clock = task.clock
    ends = clock.spent + seconds
    progress = Progress.MORE if worker.begin(ends) else Progress.DONE
    while progress is Progress.MORE and (clock.spent < ends or nearly_done()):
        progress = worker.run(clock.deadline(task.schedule.slice))
        yield
    worker.end()
    return task.board.proven


def _first_full(clock: Clock, schedule: Schedule) -> float:
    """Seconds for a first search of full configurations."""
    return min(schedule.first_full, schedule.first_full_share * clock.limit)


def _first_orders(clock: Clock, schedule: Schedule) -> float:
    """Seconds for narrower orders before the first stage; none where nobody knows how long the run will be."""
    return min(schedule.first_orders, schedule.first_orders_share * clock.limit) if clock.limit < math.inf else 0.0


def _held_by_others(outlook: Outlook) -> Outlook:
    """An outlook whose searcher it does not hold: who holds each other keeps memory until it is collected."""
    method = WeakMethod(outlook)

    def asked(tree: FixedTree, seconds: float) -> float:
        found = method()
        return 0.0 if found is None else found(tree, seconds)

    return asked


def crew_of(
    task: WorkerTask,
    full: FullSearch,
    conditioning: Conditioning,
    circuits: Circuits,
    narrower: Callable[[IntArray], None] = lambda order: None,
) -> Crew:
    """The workers on a task. A new one is a file in ``workers`` and a line among the spells.

    ``narrower`` is called with each narrower order that is found.
    """
    schedule = task.schedule
    messages = sum_tree_for(task.problem, memory=task.shares.most_wide, seed=task.seed)
    if messages is not None:
        task = replace(task, shares=replace(task.shares, wide=bytes_with(messages)))
    elif is_guided(task.problem, memory=task.shares.most_wide):
        task = replace(task, shares=replace(task.shares, wide=CONFIGURATION_BYTES))
    evaluator = Evaluator(task.problem, memory=task.shares.evaluation)
    full.local = local = LocalSearchWorker(task, evaluator, messages)
    if full.configuration is not None:
        local.suggest(full.configuration)
    tightening = Tightening(task, local)
    sums = PartialSums(task, tightening, local)
    along = BranchAndBound(task, evaluator, tightening, local)
    splits = Splits(task, evaluator, tightening, local)
    search = SearchWorker(task, along, splits)
    tightening.outlook = _held_by_others(along.outlook)
    # Who holds each other keeps memory until it is collected.
    tightening.boxes = proxy(splits)
    conditioning.sums = sums

    def take(order: IntArray) -> None:
        tightening.order = order
        narrower(order)

    return Crew(
        first=FirstAssignment(task, evaluator, tightening, local, sums),
        tightening=tightening,
        companion=local,
        spells=(
            Spell(
                conditioning,
                (schedule.conditioning_share,) * 2,
                first=schedule.first_conditioning,
                accompanied=False,
                nearly_done=conditioning.nearly_done,
            ),
            Spell(circuits, (schedule.circuits_share,) * 2, accompanied=False),
            Spell(
                full,
                (schedule.full_share,) * 2,
                first=_first_full(task.clock, schedule),
                accompanied=False,
                modest=True,
            ),
            Spell(sums, (schedule.sum_share, schedule.sum_share), first=schedule.first_sum, accompanied=False),
            Spell(
                VariationalSums(task, local, sums, full),
                (schedule.variational_share,) * 2,
                first=schedule.first_variational,
                accompanied=False,
                modest=True,
            ),
            Spell(search, (schedule.hopeful_search, schedule.hopeless_search)),
            # After the search, which ends the run where the bound is near: orders are for trees to come.
            Spell(
                OrderSearch(task, take),
                (schedule.order_share,) * 2,
                first=_first_orders(task.clock, schedule),
                accompanied=False,
                modest=True,
            ),
        ),
    )
