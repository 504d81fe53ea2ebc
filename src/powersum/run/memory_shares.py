"""Who may take how much of the memory: the one place where it is shared out.

What the process holds already is taken off the budget once, when a question is asked
(:func:`powersum.core.memory.memory_left`). Here the rest is divided; whoever is given bytes takes nothing off them.
"""

from __future__ import annotations

from dataclasses import dataclass

ELIMINATION = 0.9
"""Share for exact elimination, which is done before anything else is there or after all of it is gone."""

COMPONENTS = 0.2
"""Share for the elimination of easy components, before anything else is there."""

EVALUATION, BESIDE = 0.2, 0.1
"""Shares for evaluating assignments, and for doing so in a thread of its own beside the rest."""

SEARCH = 0.2
"""Share for what branch and bound remembers, or for evaluation with a cutset held, where it is not done."""

WIDE = 0.1
"""Share for messages that local search keeps from move to move, at most."""

FULL, OPEN_NODES = 0.15, 0.02
"""Shares for the search of full configurations, at most, and for its open nodes; what it does not take others have."""

SUMS = 0.4
"""Share for partial sums: no second tree and no search are there then."""


def lacking_for(size: float, seconds: float, memory: float) -> str:
    """The note of an answer that exact elimination would have proven in time, had its tables fitted."""
    return (
        f"Memory was the limit: exact elimination takes {bytes_text(size / ELIMINATION)} and about {seconds:.2g} s; "
        f"{bytes_text(memory)} were left for it."
    )


def bytes_text(size: float) -> str:
    """A size as people write it."""
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """Bytes for each kind of work; those that are there at the same time add up to no more than the whole.

    Parameters
    ----------
    whole
        Bytes to share out.
    beside
        True where local search runs beside the rest, with working memory of its own.
    full
        Bytes that the search of full configurations takes, all in all; 0 where it is not done.
    wide
        Bytes of messages that local search keeps from move to move; 0 where it keeps none.
    """

    whole: float
    beside: bool = False
    full: float = 0.0
    wide: float = 0.0

    @property
    def elimination(self) -> float:
        """For exact elimination of everything."""
        return ELIMINATION * self.whole

    @property
    def components(self) -> float:
        """For exact elimination of easy components."""
        return COMPONENTS * self.whole

    @property
    def evaluation(self) -> float:
        """For the evaluation of assignments."""
        return EVALUATION * self.whole

    @property
    def local_search(self) -> float:
        """For the evaluation of assignments by local search beside the rest."""
        return BESIDE * self.whole if self.beside else 0.0

    @property
    def most_wide(self) -> float:
        """For messages that local search keeps, at most; what it does not take trees have."""
        return WIDE * self.whole

    @property
    def search(self) -> float:
        """For branch and bound; the copy of a tree's tables that it reads has its room in the tree's share."""
        return SEARCH * self.whole

    @property
    def tree(self) -> float:
        """For one covering tree: the best of the stages before and the one at work are there together."""
        return 0.5 * (self.whole - self.evaluation - self.local_search - self.search - self.wide - self.full)

    @property
    def open_nodes(self) -> float:
        """For open nodes of the search of full configurations, and for its way back."""
        return OPEN_NODES * self.whole

    def full_search(self, tables: float) -> float:
        """Bytes for the search of full configurations, whose tables take so many; 0 where that is too much."""
        needed = tables + self.open_nodes
        return needed if needed <= FULL * self.whole else 0.0

    @property
    def alone(self) -> float:
        """For a bound that is the same in all stages, where no two trees fit."""
        return 2.0 * self.tree

    @property
    def conditioning(self) -> float:
        """For conditioning, which is done where sums are too wide, and so in place of search."""
        return 0.5 * (self.search - self.local_search)

    @property
    def held(self) -> float:
        """For evaluation with a cutset held, in place of search."""
        return 0.5 * self.search

    @property
    def variational(self) -> float:
        """For the core of a variational sum, which is there when partial sums are not."""
        return self.sums(held=True)

    def sums(self, *, held: bool) -> float:
        """For partial sums; half of it where a cutset is held."""
        return (SUMS * self.whole - self.full - self.wide) * (0.5 if held else 1.0)
