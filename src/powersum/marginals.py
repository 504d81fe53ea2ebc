"""``marginals``: the distribution of every variable given evidence, exact where memory allows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from powersum.arrays import FloatArray
from powersum.compiling import deadline_at, working_time
from powersum.errors import InputError
from powersum.model import Model
from powersum.query import Query
from powersum.soft_evidence import observe
from powersum.tighten.run import interruptible

DEFAULT_MEMORY = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """Distributions of all variables; approximate ones are the beliefs of an upper bound on log Z."""

    beliefs: tuple[FloatArray, ...]
    exact: bool


def marginals(
    model: Model,
    evidence: Mapping[Any, Any] | None = None,
    *,
    time_limit: float | None = 10.0,
    memory: float = DEFAULT_MEMORY,
    threads: int = 1,
    seed: int = 0,
) -> Marginals:
    """Distribution of every variable, given the evidence and summed over all others.

    Parameters
    ----------
    model, evidence
        The model, and observed states or likelihoods as in :func:`powersum.solve`.
    time_limit
        Seconds for tightening the bound where an exact answer does not fit the memory; Ctrl-C ends that early.
    memory
        Bytes that may be used.
    threads, seed
        As in :func:`powersum.bound`.

    Examples
    --------
    >>> import powersum as ps
    >>> rain = ps.Model.from_factors([2, 2], [((0,), [0.8, 0.2]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])])
    >>> [round(p, 3) for p in ps.marginals(rain, {1: 1}).beliefs[0].tolist()]
    [0.364, 0.636]
    """
    # Compiled modules are imported where they are used, so that ``import powersum`` stays quick.
    from powersum.ordering import elimination_order
    from powersum.simplify import simplify
    from powersum.tighten.tree import CoveringTree

    started = working_time()
    model, observed = observe(model, evidence)
    # As a Markov network: barren variables, which log Z can do without, have marginals too.
    undirected = replace(model, directed=False)
    problem = simplify(undirected, Query.of(model), observed)
    if not problem.feasible:
        raise InputError("the evidence has probability 0: there are no marginals given it")
    beliefs: list[FloatArray | None] = [None] * model.n_variables
    exact = True
    if problem.model.n_variables:
        order = elimination_order(problem.model, problem.tau, seed=seed)
        tree = CoveringTree(problem, order, threads=threads, seed=seed, memory=int(memory))
        end = math.inf if time_limit is None else started + time_limit
        with interruptible() as interrupt:
            while not tree.exact and interrupt.cause is None and working_time() < end and tree.step(deadline_at(end)):
                pass
        exact = tree.exact
        for reduced, belief in enumerate(tree.beliefs()):
            variable = int(problem.variables[reduced])
            full = np.zeros(int(model.cardinalities[variable]))
            full[problem.kept_states[problem.kept_state_starts[reduced] : problem.kept_state_starts[reduced + 1]]] = (
                belief
            )
            beliefs[variable] = full
    return Marginals(
        tuple(b if b is not None else _removed(undirected, v, observed) for v, b in enumerate(beliefs)), exact
    )


def _removed(model: Model, variable: int, observed: Mapping[int, int]) -> FloatArray:
    """The marginal of a variable that simplification removed: observed, or independent of all that is left.

    All its possible states are then equally likely; a state is possible if the model is, given it.
    """
    from powersum.simplify import simplify

    card = int(model.cardinalities[variable])
    possible = np.zeros(card)
    states = [observed[variable]] if variable in observed else range(card)
    for state in states:
        possible[state] = float(simplify(model, Query.of(model), {**observed, variable: state}).feasible)
    return np.asarray(possible / possible.sum())
