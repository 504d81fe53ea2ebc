"""The best bound that fits: a covering tree, else the decomposed bound, else every factor by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from powersum.bounds.gdd import GDD
from powersum.bounds.protocol import Tightener
from powersum.bounds.single import SingleFactors
from powersum.bounds.tree.covering_tree import ENTRIES_PER_VARIABLE, SMALL_ENTRIES, CoveringTree
from powersum.core.arrays import IntArray
from powersum.core.errors import TooLittleMemoryError
from powersum.core.machine import default_memory
from powersum.core.memory import bytes_held
from powersum.core.speed import TREE_BUILDING
from powersum.prepare.problem import Problem

NAMES: Mapping[type, str] = MappingProxyType({CoveringTree: "tree", GDD: "gdd", SingleFactors: "single"})
"""What the results of each are called by."""

HUGE = 50_000
"""With fewer variables than this a tree is always there in time."""

LARGE_TABLES = 2.0
"""Entries of the model, as a multiple of those of a first tree, beyond which a tree is not the first bound."""

BYTES_PER_ENTRY, BYTES_PER_PLACE, BYTES_PER_VARIABLE = 24.0, 200.0, 150.0
"""What the decomposed bound takes, at most: for each entry of a table, each variable of a scope, each variable."""


def affordable(
    problem: Problem,
    order: IntArray,
    *,
    threads: int = 1,
    seed: int = 0,
    ibound: int | None = None,
    memory: int | None = None,
    seconds: float = math.inf,
) -> Tightener:
    """A bound to tighten that takes at most so many bytes; there always is one, for the last needs hardly any.

    Parameters
    ----------
    problem, order, threads, seed, ibound, memory
        As for :class:`~powersum.bounds.tree.CoveringTree`; ``ibound`` is for trees only.
    seconds
        Time until the end: of very many variables a tree would hardly be built by then.
    """
    if in_time(problem, seconds):
        # What a tree takes where nobody says is little; a machine may have more.
        for size in (memory,) if memory is not None else (None, int(default_memory()) - bytes_held()):
            try:
                return CoveringTree(problem, order, threads=threads, seed=seed, ibound=ibound, memory=size)
            except TooLittleMemoryError:
                continue
    if memory is None or decomposed_bytes(problem) <= memory:
        return GDD(problem, order, threads=threads, seed=seed)
    return SingleFactors(problem)


def in_time(problem: Problem, seconds: float) -> bool:
    """Whether a covering tree would be there in so many seconds."""
    n_variables = problem.model.n_variables
    return n_variables < HUGE or TREE_BUILDING * n_variables <= seconds


def decomposed_first(problem: Problem) -> bool:
    """Whether the decomposed bound is the better one to begin with: tables are so large that a tree splits all of them.

    On image alignment (77 states) five sweeps of it, a second, are worth more than ten seconds of a tree.
    """
    entries = problem.model.log_values.size
    return entries > LARGE_TABLES * max(SMALL_ENTRIES, ENTRIES_PER_VARIABLE * problem.model.n_variables)


def decomposed_bytes(problem: Problem) -> float:
    """What the decomposed bound on the factor graph of a problem takes, at most."""
    model = problem.model
    return (
        BYTES_PER_ENTRY * model.log_values.size
        + BYTES_PER_PLACE * len(model.scope_variables)
        + BYTES_PER_VARIABLE * model.n_variables
    )
