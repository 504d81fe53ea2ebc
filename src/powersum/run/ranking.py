"""What tables say of every state of every max variable, given the states of those set before it.

Max variables are set from the last eliminated to the first, as search does (:mod:`powersum.bounds.tree.losses`): a
state then lowers the bound by what its entries are below the largest of their columns. So one elimination bounds every
part of the k best whose variables are set in this order, and where no bucket is split it tells their best values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.clock import deadline_at, working_time
from powersum.core.errors import TooLittleMemoryError
from powersum.core.interrupt import Interrupt
from powersum.core.speed import LOOK_UP
from powersum.core.work_time import spend
from powersum.exact.small import SmallElimination
from powersum.model.question import Question
from powersum.model.rounding import IMPOSSIBLE, certain, elimination_error

if TYPE_CHECKING:
    from powersum.bounds.tree.covering_tree import CoveringTree
    from powersum.bounds.tree.rebuilding import Saved
    from powersum.prepare.problem import Problem

CLOSE = 1e-7
"""A bound this close above the best value known is not tightened any more."""


class RankedBucket(NamedTuple):
    """A table of one max variable, its own axis first, then those of others, by their depths."""

    table: FloatArray
    others: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RankingLevel:
    """One max variable: its number and its states in the model, those among them that tables have, and its tables."""

    variable: int
    size: int
    states: IntArray
    buckets: tuple[RankedBucket, ...]

    def losses(self, path: Sequence[int]) -> FloatArray:
        """How much each state of the model lowers the bound, given the places of states of those before it."""
        own = np.zeros(len(self.states))
        for table, others in self.buckets:
            place: tuple[Any, ...] = (slice(None), *(path[depth] for depth in others))
            column = table[place]
            possible = column > IMPOSSIBLE
            own[~possible] = math.inf
            if possible.any():
                own[possible] += column.max() - column[possible]
        losses = np.full(self.size, math.inf)
        losses[self.states] = own
        return losses


class Ranking:
    """The tables of a question, in the order in which its max variables are set.

    Parameters
    ----------
    levels
        The max variables.
    log_upper
        Upper bound on the whole question; the rounding of everything that is read from the tables is in it.
    exact
        True where no bucket is split: bounds are then values.
    """

    def __init__(self, levels: Sequence[RankingLevel], log_upper: float, *, exact: bool) -> None:
        self._levels = levels
        self.log_upper, self.exact = log_upper, exact
        self.variables = [level.variable for level in levels]

    def losses(self, states: Sequence[int]) -> list[FloatArray]:
        """What each state of each variable takes off the bound, the variables before it being in these states."""
        spend(LOOK_UP * len(self._levels))
        found: list[FloatArray] = []
        path: list[int] = []
        for level, state in zip(self._levels, states, strict=True):
            if len(path) < len(found):
                # A state before was impossible: nothing below it has a value.
                found.append(np.full(level.size, math.inf))
                continue
            found.append(level.losses(path))
            path += np.flatnonzero(level.states == state).tolist()
        return found

    def best(self, allowed: Mapping[int, frozenset[int]]) -> tuple[int, ...]:
        """States that the bound likes best among those allowed, each given those before it."""
        spend(LOOK_UP * len(self._levels))
        states: list[int] = []
        path: list[int] = []
        for level in self._levels:
            losses = level.losses(path)
            kept = allowed.get(level.variable)
            if kept is not None:
                losses[[state for state in range(level.size) if state not in kept]] = math.inf
            states.append(int(np.argmin(losses)))
            place = np.flatnonzero(level.states == states[-1])
            path.append(int(place[0]) if len(place) else 0)
        return tuple(states)


def small_ranking(elimination: SmallElimination) -> Ranking:
    """The tables of an elimination in plain NumPy."""
    log_value, buckets = elimination.max_buckets()
    sizes = elimination.tables.cardinalities
    levels = [
        RankingLevel(v, sizes[v], np.arange(sizes[v]), (RankedBucket(table, others),)) for v, table, others in buckets
    ]
    return Ranking(levels, certain(log_value, 2.0 * elimination.tables.log_error), exact=True)


def tree_ranking(question: Question, problem: Problem, trees: Sequence[tuple[CoveringTree, Problem]]) -> Ranking:
    """The tables of covering trees, each of a part of the simplified problem that has nothing to do with the others."""
    from powersum.bounds.tree.look_up import heuristic_of

    sizes = question.model.cardinalities.tolist()
    levels: list[RankingLevel] = []
    log_upper, log_error, exact = problem.log_constant, problem.log_error, True
    for tree, part in trees:
        heuristic, root = heuristic_of(tree.best_tree, part)
        log_upper += root
        log_error += 2.0 * (tree.best_tree.log_error + elimination_error(part.model))
        exact = exact and tree.best_tree.exact
        first, cards = len(levels), heuristic.cardinalities.tolist()
        for depth, variable in enumerate(heuristic.variables.tolist()):
            buckets = []
            for b in range(heuristic.bucket_starts[depth], heuristic.bucket_starts[depth + 1]):
                others = heuristic.others[heuristic.other_starts[b] : heuristic.other_starts[b + 1]].tolist()
                table = heuristic.tables[heuristic.table_starts[b] : heuristic.table_starts[b + 1]]
                shape = (cards[depth], *(cards[other] for other in others))
                buckets.append(RankedBucket(table.reshape(shape), tuple(first + other for other in others)))
            v = int(part.variables[variable])
            low, high = part.kept_state_starts[variable : variable + 2].tolist()
            levels.append(RankingLevel(v, sizes[v], part.kept_states[low:high], tuple(buckets)))
    ranked = {level.variable for level in levels}
    starts = np.concatenate([[0], np.cumsum(question.model.cardinalities)]).tolist()
    # Simplification takes max variables out only where all their possible states are equally good.
    levels += [
        RankingLevel(v, sizes[v], np.flatnonzero(problem.possible[starts[v] : starts[v + 1]]), ())
        for v in question.query.max_variables.tolist()
        if v not in ranked and v not in question.evidence.states
    ]
    return Ranking(levels, certain(log_upper, log_error), exact=exact)


def ranking_of(
    question: Question,
    saved: Saved | None,
    *,
    log_lower: float,
    memory: float,
    seconds: float,
    ibound: int | None,
    interrupt: Interrupt,
) -> tuple[Ranking | None, Saved | None]:
    """Tables of a question that is not small, and its tree, for the parts to begin with.

    Parameters
    ----------
    question
        The whole question.
    saved
        The tree that a run on it has left; without one, a tree is tightened here.
    log_lower
        The value of the best assignment known: a bound that has come down to it will do.
    memory
        Bytes for trees; half as much again may be taken for the tables that are kept.
    seconds
        How long to tighten.
    ibound
        At most one more variable than this in a mini-bucket; None for no limit.
    interrupt
        Ends it early.
    """
    from powersum.bounds.tree.covering_tree import CoveringTree
    from powersum.bounds.tree.rebuilding import rebuilt, saved_of
    from powersum.exact.components import part_of
    from powersum.prepare.ordering import elimination_order
    from powersum.prepare.simplify import simplified

    threads, seed = question.limits.threads, question.limits.seed
    problem = simplified(question)
    if not problem.feasible:
        return None, None
    if not problem.model.n_variables:
        return tree_ranking(question, problem, []), None
    end = working_time() + seconds
    order = elimination_order(problem.model, problem.tau, seed=seed, time_limit=min(0.2, 0.2 * seconds))
    # Components that the tree does not have were easy enough to be eliminated.
    known = np.isin(problem.variables, [] if saved is None else saved.order)
    known = np.isin(problem.component, problem.component[known])
    trees: list[tuple[CoveringTree, Problem]] = []
    try:
        for chosen in (~known, known):
            if not chosen.any():
                continue
            part, part_order = part_of(problem, order, chosen)
            start = None
            if saved is not None and chosen is known:
                start = rebuilt(saved, part, threads=threads, memory=memory)
            if start is None:
                tree = CoveringTree(part, part_order, threads=threads, seed=seed, ibound=ibound, memory=int(memory))
            else:
                tree = CoveringTree.going_on(start, part, threads=threads, seed=seed, ibound=ibound, memory=int(memory))
            trees.append((tree, part))
    except TooLittleMemoryError:
        return None, saved
    if saved is None:
        ((tree, part),) = trees
        target = log_lower - problem.log_constant + CLOSE
        while tree.log_upper > target and interrupt.cause is None and working_time() < end:
            if not tree.step(deadline_at(end)):
                break
        saved = None if tree.exact else saved_of(tree.best_tree, part)
    if sum(_kept_entries(tree, part) for tree, part in trees) * 8.0 > 0.5 * memory:
        return None, saved
    ranking = tree_ranking(question, problem, trees)
    return (ranking if ranking.log_upper < math.inf else None), saved


def _kept_entries(tree: CoveringTree, problem: Problem) -> float:
    """Table entries of max variables."""
    layout = tree.best_tree.layout
    nodes = (problem.tau[tree.best_tree.order] == 0.0)[layout.bucket]
    return float((layout.wiring.columns[nodes] * layout.wiring.states[nodes]).astype(np.float64).sum())
