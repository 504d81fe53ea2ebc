"""Variational sums where summing is too wide: distributions in place of the states at which a cutset is held."""

from __future__ import annotations

import numpy as np

from powersum.assign.cutset import hold_cutset
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.model.graph import adjacency
from powersum.run.proofs import by_distributions
from powersum.run.workers.full_search import FullSearch
from powersum.run.workers.local_search import LocalSearchWorker
from powersum.run.workers.partial_sums import PartialSums
from powersum.run.workers.task import WorkerTask
from powersum.sums.variational import Variational

MOST_LEFT = 6
"""Maximised variables that are set otherwise at once, at most."""

PATIENCE = 2
"""Where everything is summed, stages after which it gives up unless one of them has raised the bound."""


class VariationalSums:
    """Lower bounds by Jensen's inequality, from several starts: the best full configuration, where local search stands,
    the first possible configuration, and then from the best of them with a few maximised variables set otherwise.

    Parameters
    ----------
    task
        What to work on.
    local
        Has the assignment and the cutset, where one is held.
    sums
        Knows a possible configuration, where everything is summed.
    full
        Looks for the best configuration of all variables.
    """

    def __init__(self, task: WorkerTask, local: LocalSearchWorker, sums: PartialSums, full: FullSearch) -> None:
        self._task, self._local, self._sums, self._full = task, local, sums, full
        self._bound: Variational | None = None
        self._best: IntArray | None = None
        self._starts: list[IntArray] = []
        self._in_vain = 0
        """Stages that it began where everything is summed, less those that raised the bound."""
        self._rng = np.random.default_rng(task.seed)
        model = task.problem.model
        self._graph = adjacency(model.n_variables, model.scope_starts, model.scope_variables)

    @property
    def useful_seconds(self) -> float | None:
        """A few rounds are enough."""
        return None

    def begin(self, ends: float) -> bool:
        """Begin from the configurations known; False where sums are not too wide, or none is known."""
        del ends
        task, full = self._task, self._full.configuration
        starts = [states for states in (self._best, full) if states is not None]
        if self._local.holds:
            held = self._local.held
            starts.append(self._local.portfolio.assignment)
        elif self._sums.possible is not None and not task.is_max.any() and not self._behind:
            self._in_vain += 1
            held = hold_cutset(task.problem, entries=task.schedule.held_table, seed=task.seed)
            starts.append(self._sums.possible)
        else:
            return False
        core = held.tau > 0.0
        # States of the core are summed over: which one it begins with does not matter.
        self._starts = [np.where(states >= 0, states, 0) for states in starts if not (states[~core] < 0).any()]
        if not self._starts:
            return False
        first = self._starts.pop()
        self._bound = Variational(task.problem, core, first, memory=task.shares.variational, seed=task.seed)
        self._report()
        return self._bound.possible

    def run(self, deadline: float) -> Progress:
        """Rounds of updates until the deadline, from one start after another."""
        bound, is_max = self._bound, self._task.is_max
        assert bound is not None
        progress = Progress.MORE
        while progress is Progress.MORE and time.monotonic() < deadline:
            if bound.run(deadline):
                continue
            if self._starts:
                bound.restart(self._starts.pop())
            elif is_max.any():
                self._leave(bound)
            else:
                progress = Progress.DONE
        self._report()
        return progress

    @property
    def _behind(self) -> bool:
        """True where everything is summed and partial sums have left it behind: with zeros they mostly do."""
        return self._in_vain >= PATIENCE

    def end(self) -> None:
        """Local search goes on from the states that the distributions prefer."""
        bound, self._bound = self._bound, None
        if bound is None:
            return
        if bound.log_lower >= self._task.board.best_known(self._task.problem):
            self._in_vain = 0
        known, problem = self._task.board.distributions, self._task.problem
        if known is not None and bound.log_lower > -np.inf:
            found = bound.state_sums(self._task.board.log_upper - problem.log_constant)
            known.within(problem, [found])
        self._full.wanted = not self._behind
        self._best = bound.states.copy()
        self._prove(bound)
        if self._local.holds:
            self._local.suggest(bound.states)

    def _leave(self, bound: Variational) -> None:
        """Leave the best: a few maximised variables near one another take other states at random."""
        task, rng = self._task, self._rng
        cards = task.problem.model.cardinalities
        some = np.flatnonzero(task.is_max)
        chosen = [int(rng.choice(some))]
        for _ in range(int(rng.integers(0, MOST_LEFT))):
            v = chosen[int(rng.integers(len(chosen)))]
            near = self._graph.neighbours[self._graph.starts[v] : self._graph.starts[v + 1]]
            near = near[task.is_max[near]]
            chosen.append(int(rng.choice(near)) if len(near) else int(rng.choice(some)))
        variables = np.unique(np.asarray(chosen, dtype=np.int64))
        steps = rng.integers(1, cards[variables])
        bound.leave(variables, (bound.states[variables] + steps) % cards[variables])

    def _prove(self, bound: Variational) -> None:
        """Hand over the proof, if a certificate is wanted and nothing better is proven for the present assignment."""
        task, board = self._task, self._task.board
        if board.ground is None or bound.log_lower + task.problem.log_constant <= board.below.log_lower:
            return
        states = np.where(task.is_max, bound.states, -1)
        if np.array_equal(task.problem.restore(states), board.states):
            step = by_distributions(board.ground, bound, task.problem, board.states)
            if step is not None:
                board.offer_below(task.problem, bound.log_lower, 0.0, [step])

    def _report(self) -> None:
        task, bound = self._task, self._bound
        assert bound is not None
        states = np.where(task.is_max, bound.states, -1)
        # Its rounding is taken off already.
        task.board.offer_lower(task.problem, bound.log_lower, 0.0, states)
