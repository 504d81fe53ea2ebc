"""Local search where the sum that an assignment leaves stays in one piece, too large to be summed for every move.

Two searches by turns. One is for the best configuration of *all* variables: there a move concerns its neighbourhood
alone, so it is quick, and where tables are strong the best configurations lie where the best assignments are. The other
goes on from what the first has found, by exact values: a block of max variables at a time, on messages that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from powersum.assign.blocks import REGION_WORK, SMALLEST_GAIN, ball_of
from powersum.assign.configurations import CONFIGURATION_BYTES, Configurations
from powersum.assign.portfolio import Draw
from powersum.assign.sum_tree import SumTree
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.model.graph import adjacency
from powersum.prepare.problem import Problem

MOST_VARIABLES = 10_000
"""With more variables ordering alone would take long."""

LEAST_WORK = REGION_WORK
"""Table entries of the sum over one component from which on it is worth keeping messages: blocks that are summed anew
are too wide then, and below they find more."""

MOST_WORK = 5e7
"""Table entries of one evaluation, at most: a fifth of a second, for nothing looks outside meanwhile."""

FIRST_BLOCK, MOST_JOINT = 4, 1024
"""Max variables of the first block around each of them, and joint states of a block at most."""

BLOCK_WORK, SINGLE_WORK = 1.0, 8.0
"""Work on a block, as a share of one evaluation, and the same for a single variable."""

EXACT_SHARE, LATE_EXACT_SHARE, STRONG_EXACT_SHARE = 0.5, 4.0, 0.1
"""Time for the search by exact values, as a share of that for configurations: as long as better configurations are
found, later on, and where tables are strong, for there the best configurations are all that matters."""

FEW = 0.1
"""Share of the max variables up to which a change is made by moving, in place of starting again."""

GLANCE_SHARE = 0.1
"""Share of the time for evaluating what an upper bound that is being tightened would like."""

MOST_JUDGED = 8
"""Assignments that are kept to go on from."""

TURN = 0.1
"""Seconds of the search for configurations between two looks at what it has found."""

SHAKEN = (2, 12)
"""Max variables that are set at random to leave the best assignment: from, to."""


def bytes_with(tree: SumTree) -> float:
    """Memory that a :class:`WideSearch` takes."""
    return tree.bytes + CONFIGURATION_BYTES


def sum_tree_for(problem: Problem, *, memory: float, seed: int) -> SumTree | None:
    """Messages for a :class:`WideSearch`; None where blocks are small enough without, or where they do not fit.

    Also where there are zeros: what they leave of a sum is often narrow, and blocks that are summed anew see that.
    """
    whole = ((problem.tau == 0.0) | (problem.tau == 1.0)).all() and (problem.tau == 0.0).any()
    if not whole or problem.model.n_variables > MOST_VARIABLES or not np.isfinite(problem.model.log_values).all():
        return None
    tree = SumTree(problem, seed=seed)
    fits = bytes_with(tree) <= memory and tree.work <= MOST_WORK
    return tree if fits and tree.largest_work > LEAST_WORK else None


class WideSearch:
    """Local search by way of configurations and of messages that are kept; used like a portfolio.

    Parameters
    ----------
    problem
        The simplified problem, of weights 0 and 1.
    tree
        Its messages.
    seed
        Seed of all that is drawn at random.

    Attributes
    ----------
    log_value, assignment
        The best so far; ``-inf`` while nothing feasible is known.
    """

    def __init__(self, problem: Problem, tree: SumTree, *, seed: int = 0) -> None:
        model = problem.model
        self._tree, self._model = tree, model
        self._is_max = problem.tau == 0.0
        self._rng = np.random.default_rng(seed)
        self._configurations = Configurations(problem, seed=seed, hasty=True)
        self._graph = adjacency(model.n_variables, model.scope_starts, model.scope_variables)
        self._centres = np.flatnonzero(self._is_max & np.isin(np.arange(model.n_variables), model.scope_variables))
        self._sizes = np.full(model.n_variables, float(FIRST_BLOCK))
        self._unknown: list[IntArray] = []
        """Assignments that wait to be evaluated."""
        self._judged: list[tuple[float, IntArray]] = []
        """Assignments to go on from, with their values."""
        self._seen: set[bytes] = set()
        self._steps: Iterator[None] | None = None
        self._improving = False
        self._glance: IntArray | None = None
        self._next_glance = -np.inf
        self._behind = 0.0
        self.log_value = -np.inf
        self.assignment: IntArray = np.full(model.n_variables, -1, dtype=np.int64)

    def suggest(self, assignment: IntArray) -> None:
        """Start from this assignment next; sum variables may be -1, and zeros may forbid it."""
        self._configurations.suggest(assignment)
        self._wait_with(assignment)

    def look_at(self, decoded: IntArray) -> None:
        """States read off an upper bound that is being tightened."""
        self._configurations.look_at(decoded)
        self._glance = decoded

    def draw_from(self, draw: Draw | None) -> None:
        """Nothing is drawn: full configurations are better starts here."""

    @property
    def keen(self) -> bool:
        """True where time gains more for the value than for any bound."""
        return self._configurations.keen

    def improve(self, deadline: float) -> bool:
        """Search until the deadline; True when a better assignment was found."""
        before = self.log_value
        while (now := time.monotonic()) < deadline:
            # Each in its share; what is known already is looked at before anything is searched.
            if self._behind >= 0.0 and (self._steps is not None or self._begin()):
                assert self._steps is not None
                if next(self._steps, True):
                    self._steps = None
                self._behind -= time.monotonic() - now
                continue
            self._configurations.improve(min(deadline, now + TURN))
            share = LATE_EXACT_SHARE if self._configurations.late else EXACT_SHARE
            share = STRONG_EXACT_SHARE if self._configurations.strong else share
            self._behind += share * (time.monotonic() - now)
            kept = self._configurations.kept
            waiting = [self._wait_with(states) for states in reversed(kept)]
            if kept and waiting[-1]:
                # A better configuration than ever: its assignment is next.
                self._interrupt()
        return self.log_value > before

    def _wait_with(self, states: IntArray) -> bool:
        """Put an assignment on the list, unless it was there before; True if it was not."""
        chosen = states[self._is_max]
        key = chosen.tobytes()
        if (chosen < 0).any() or key in self._seen:
            return False
        self._seen.add(key)
        self._unknown.append(states)
        return True

    def _interrupt(self) -> None:
        """Do something else first; where the search stands it goes on later."""
        if self._steps is not None and self._improving:
            self._keep()
        self._steps = None

    def _begin(self) -> bool:
        """Evaluate what is new, go on from the best that waits, or leave the best of all; False if nothing is known."""
        self._improving = False
        if time.monotonic() >= self._next_glance and self._glance is not None:
            # A tight bound likes the best assignment, or one near it, before anybody has found that.
            if self._wait_with(self._glance):
                self._steps = self._judge_glance(self._unknown.pop())
            self._glance = None
        if self._steps is not None:
            return True
        if self._unknown:
            self._steps = self._judge(self._unknown.pop())
        elif self._judged:
            self._improving = True
            self._steps = self._improve_from(self._judged.pop()[1])
        elif self.log_value > -np.inf and len(self._centres):
            self._steps = self._shake()
        return self._steps is not None

    def _judge(self, states: IntArray) -> Iterator[None]:
        """Evaluate an assignment, and keep it to go on from."""
        self._go_to(states)
        self._note()
        self._keep()
        yield

    def _judge_glance(self, states: IntArray) -> Iterator[None]:
        begun = time.monotonic()
        yield from self._judge(states)
        now = time.monotonic()
        self._next_glance = now + (now - begun) / GLANCE_SHARE

    def _keep(self) -> None:
        """Keep where the search stands, to go on from there, if it is among the best that wait."""
        self._judged.append((self._tree.log_value, self._tree.states.copy()))
        self._judged.sort(key=lambda judged: judged[0])
        del self._judged[:-MOST_JUDGED]

    def _improve_from(self, states: IntArray) -> Iterator[None]:
        """Block after block around each max variable, until none is better."""
        self._go_to(states)
        yield
        gained = True
        while gained:
            gained = False
            for centre in self._rng.permutation(self._centres).tolist():
                gained |= self._step(centre)
                yield

    def _shake(self) -> Iterator[None]:
        """Leave the best around some variable, and see whether a better one is found from there."""
        rng, cards = self._rng, self._model.cardinalities
        block = self._ball(int(rng.choice(self._centres)), int(rng.integers(*SHAKEN)))
        states = self.assignment.copy()
        states[block] = rng.integers(cards[block])
        best = self.log_value
        self._go_to(states)
        yield
        for centre in self._ball(int(block[0]), 3 * len(block)).tolist():
            self._step(centre)
            yield
        if self.log_value > best + SMALLEST_GAIN:
            yield from self._improve_from(self.assignment)

    def _go_to(self, states: IntArray) -> None:
        """Evaluate an assignment: what changes, if that is little, or everything."""
        changed = np.flatnonzero(self._is_max & (self._tree.states != states))
        if len(changed) <= FEW * len(self._centres) and (self._tree.states[changed] >= 0).all():
            self._tree.move(changed, states[changed])
        else:
            self._tree.start(states)

    def _step(self, centre: int) -> bool:
        """The best states of a block, all others given; True if that is a gain."""
        tree = self._tree
        block = self._ball(centre, max(1, int(self._sizes[centre])))
        joint_states = np.cumprod(self._model.cardinalities[block])
        block = block[: max(1, int((joint_states <= MOST_JOINT).sum()))]
        share = BLOCK_WORK if len(block) > 1 else SINGLE_WORK
        worth = tree.joint(block, share * tree.work)
        if worth is None:
            self._sizes[centre] = max(1.0, 0.7 * len(block))
            return False
        self._sizes[centre] = 1.15 * len(block) + 0.5
        best = np.unravel_index(int(np.argmax(worth)), worth.shape)
        if not worth[best] > worth[tuple(tree.states[block])] + SMALLEST_GAIN:
            return False
        tree.move(block, np.array(best))
        self._note()
        return True

    def _note(self) -> None:
        """Keep the present assignment, if it is the best."""
        if self._tree.log_value > self.log_value + SMALLEST_GAIN:
            self.log_value, self.assignment = self._tree.log_value, self._tree.states.copy()

    def _ball(self, centre: int, size: int) -> IntArray:
        block = ball_of(centre, size, int(self._rng.integers(1, 2**31)), self._graph, self._is_max)
        return block[np.isin(block, self._centres)]
