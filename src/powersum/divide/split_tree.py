"""A covering tree that grows as far as it pays, and boxes of max variables for the rest of the time.

Growing a tree takes ever more time for ever less. Once a doubling of its entries gains no more than twice as many boxes
would, the time goes into these (:mod:`powersum.divide.splitting`): each has the tree tightened for it alone. On
pedigrees ten seconds of boxes are worth more than minutes of growth (dev/tree.md).
"""

from __future__ import annotations

import math

import numpy as np

from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.divide.splitting import Splitting
from powersum.divide.tree_boxes import LEAST_BOXES, SEARCH_SECONDS, SEARCHING, box_entries, box_seconds
from powersum.divide.trial import Trial, finalists_in
from powersum.model.result import Residuals
from powersum.model.rounding import elimination_error
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest

MOST_VARIABLES = 10_000
"""With more variables than this, boxes of a few would change nothing."""

TREE_SHARE = 0.5
"""Share of the time for the tree, at most, unless growing pays beyond measure."""

USEFUL_ENTRIES = 1.3e6
"""Entries that a tree may have without having shown that growing pays."""

WORTH = 0.6
"""Natural logs that a doubling of its entries must be likely to gain for a tree to grow on: twice as many boxes gain
0.4 to 1.0 on pedigrees, and from the first of them on."""

STEP_WORTH, MUCH = 0.8, 2.0
"""Natural logs that its latest growth must have gained for each doubling where nothing else tells; and beyond which
there is nothing better to do."""

TURN = 0.2
"""Seconds of splitting that count as a sweep."""

BOX_BYTES = 1e9
"""Bytes for boxes where nobody says."""


def is_splittable(problem: Problem) -> bool:
    """Whether boxes may help: some variables are maximised, there are not too many, and no weight is but 0 or 1."""
    is_max = problem.tau == 0.0
    plain = is_max | (problem.tau == 1.0)
    return bool(is_max.any() and plain.all()) and len(is_max) <= MOST_VARIABLES


def limit_growth(tree: CoveringTree, left: float, planned: float, *, processes: int = 1) -> None:
    """Let a tree whose boxes are to be split grow as far as that pays; without a limit, it pays more than boxes do.

    Parameters
    ----------
    tree
        The tree, while it is tightened.
    left
        Seconds that there would be for boxes, if these began now.
    planned
        Seconds that there shall be at the least.
    processes
        How many split boxes.
    """
    growing, useful = tree.growing, tree.useful_entries(WORTH)
    gain = math.inf if growing is None else growing.gain_of_doubling
    most = box_entries(growing or tree.best_tree, (planned if growing is None else left) / LEAST_BOXES)
    if useful is not None:
        most = min(most, useful)
    elif growing is None or gain < STEP_WORTH:
        most = min(most, USEFUL_ENTRIES)
    tree.most_finalists = finalists_in(growing or tree.best_tree, most, left * processes)
    # Where there is no time for boxes of any tree there are none.
    tree.most_entries = most if most > 0.0 and not MUCH < gain < math.inf else math.inf
    tree.grow_on()


class SplitTree:
    """Upper bound by a tree, then by boxes; follows :class:`powersum.bounds.protocol.Tightener`.

    Without a deadline it is the tree alone.

    Parameters
    ----------
    problem
        The simplified problem, which must be splittable.
    tree
        The tree, not yet tightened, whose size is free.
    memory
        Bytes for boxes.
    threads, seed
        As for the tree.
    provable
        Whether a certificate will be wanted: boxes then keep what proves them, and none is searched.

    Attributes
    ----------
    log_upper, log_error
        The best bound so far, and the rounding of the tree's.
    splitting
        The boxes whose bound is the best; None as long as there are none.
    """

    def __init__(
        self,
        problem: Problem,
        tree: CoveringTree,
        *,
        memory: float = BOX_BYTES,
        threads: int = 1,
        seed: int = 0,
        provable: bool = False,
    ) -> None:
        self._problem, self._tree = problem, tree
        self._memory, self._threads, self._seed, self._provable = memory, threads, seed, provable
        self.splitting: Splitting | None = None
        self._trial: Trial | None = None
        self._planned = False
        self._tree_ends, self._ends = math.inf, math.inf
        self._searches_from = math.inf
        self._splits = True
        """False once boxes have had their time, or none fit it."""
        self.log_upper, self.log_error = tree.log_upper, tree.log_error

    @property
    def by_boxes(self) -> bool:
        """Whether the best bound is that of boxes."""
        return self.splitting is not None and self.splitting.log_upper < self._tree.log_upper

    @property
    def exact(self) -> bool:
        """True where the tree is exact."""
        return self._tree.exact

    def step(self, deadline: float) -> bool:
        """A step of the tree, or some boxes; False when nothing is left to gain, or no time for it."""
        if not self._planned:
            self._plan(deadline)
        more = self._step(deadline)
        self.log_upper, self.log_error = min(self.log_upper, self._tree.log_upper), self._tree.log_error
        if self.splitting is not None:
            self.log_upper = min(self.log_upper, self.splitting.log_upper)
        return more

    def _step(self, deadline: float) -> bool:
        """A step, of whatever is at work."""
        if self._trial is not None and self._splits:
            return self._split(self._trial, deadline)
        tree = self._tree
        if not self._splits:
            return tree.step(deadline)
        now = time.monotonic()
        limit_growth(tree, self._ends - now, self._ends - max(self._tree_ends, now))
        until = deadline if tree.most_entries == math.inf else min(self._tree_ends, deadline)
        if time.monotonic() < until and tree.step(until):
            return True
        if tree.exact or tree.log_upper == -math.inf or not self._begin():
            self._splits = False
            tree.most_entries = math.inf
            tree.grow_on()
            return tree.step(deadline)
        return True

    def _plan(self, deadline: float) -> None:
        """Share out the time."""
        now = time.monotonic()
        self._planned, self._ends = True, deadline
        self._splits = deadline < math.inf
        self._tree_ends = now + TREE_SHARE * (deadline - now)

    def _begin(self) -> bool:
        """Begin to split by the best tree; False where too few boxes of it fit the time left."""
        tree, now = self._tree.best_tree, time.monotonic()
        # What was planned to fit takes a little longer at times; half as many are still worth it.
        if 0.5 * LEAST_BOXES * box_seconds(tree, tree.layout.n_entries) > self._ends - now:
            return False
        self._trial = Trial.of(self._tree, self._splitting_of, memory=self._memory, seconds=self._ends - now)
        self.splitting = self._trial.at
        if not self._provable:
            # Bounds of searches would have to be proven box by box.
            self._searches_from = self._ends - SEARCHING * (self._ends - now)
        return True

    def _splitting_of(self, tree: FixedTree, memory: float) -> Splitting:
        """The splitting of a tree, with so many bytes for its boxes."""
        return Splitting(
            self._problem,
            tree,
            None,
            log_lower=-math.inf,
            assignment=np.full(len(self._problem.tau), -1),
            # Searches in boxes settle parts by elimination.
            log_error=elimination_error(self._problem.model),
            memory=memory,
            keeps_all=self._provable,
            threads=self._threads,
            seed=self._seed,
        )

    def _split(self, trial: Trial, deadline: float) -> bool:
        """Some boxes; once none is left that could be split, the tree goes on."""
        splitting, begun = trial.at, time.monotonic()
        search = SEARCH_SECONDS if begun >= self._searches_from else 0.0
        progress = splitting.run(min(begun + TURN, deadline), deadline, search=search)
        assert self.splitting is not None
        if splitting.log_upper < self.splitting.log_upper:
            self.splitting = splitting
        if progress is Progress.OUT_OF_TIME:
            return False
        full = progress is Progress.DONE and not splitting.done
        if trial.spend(time.monotonic() - begun, stuck=full) or progress is Progress.MORE:
            return True
        if splitting.log_upper <= splitting.log_lower + splitting.tolerance:
            return False
        self._splits, self._tree.most_entries = False, math.inf
        self._tree.grow_on()
        return True

    def bound(self) -> float:
        """The best bound, from the problem's own tables: every box was computed from scratch when it was done."""
        if self.by_boxes:
            assert self.splitting is not None
            return self.splitting.log_upper
        return self._tree.bound()

    def certified(self) -> tuple[Forest, float]:
        """The tree's own part of a proof: boxes are proven by :func:`powersum.run.proofs.by_splitting`."""
        return self._tree.certified()

    def decode(self) -> IntArray:
        """States of max variables that the tree likes, or the best of boxes where nothing better is left in any.

        Of an exact tree they are an optimum. Boxes may be used up before anything was proven, for a box of one
        assignment that nobody searches has the bound of its tree.
        """
        splitting = self.splitting
        if self.exact or splitting is None or not splitting.done or splitting.log_lower == -math.inf:
            return self._tree.decode()
        proven = splitting.log_upper <= splitting.log_lower + splitting.tolerance
        return splitting.assignment if proven else self._tree.decode()

    def residuals(self) -> Residuals | None:
        """Those of the tree."""
        return self._tree.residuals()

    def sizes(self) -> dict[str, int | float]:
        """Those of the tree, and how many boxes were opened."""
        return {**self._tree.sizes(), **({} if self.splitting is None else {"boxes": self.splitting.n_boxes})}
