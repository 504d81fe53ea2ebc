"""``marginals``: the distribution of every variable given evidence, exact where memory allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from powersum.assign.repair import repaired
from powersum.core.arrays import FloatArray
from powersum.core.clock import deadline_at, working_time
from powersum.core.errors import InputError
from powersum.core.interrupt import interruptible
from powersum.exact.small import small_elimination
from powersum.model.limits import Limits
from powersum.model.model import Model
from powersum.model.question import EvidenceLike, ModelLike, Question

if TYPE_CHECKING:
    from powersum.prepare.problem import Problem

DEFAULT_MEMORY = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """Distributions of all variables; approximate ones are the beliefs of an upper bound on log Z."""

    beliefs: tuple[FloatArray, ...]
    exact: bool


def marginals(
    model: ModelLike,
    evidence: EvidenceLike | None = None,
    *,
    time_limit: float | None = 10.0,
    memory: float | str = DEFAULT_MEMORY,
    threads: int = 1,
    seed: int = 0,
) -> Marginals:
    """Distribution of every variable, given the evidence and summed over all others.

    Parameters
    ----------
    model, evidence
        The model or the path of its file, and observed states or likelihoods, as in :func:`powersum.solve`.
    time_limit
        Seconds for tightening the bound where an exact answer does not fit the memory; Ctrl-C ends that early.
    memory
        Bytes that the tables of the bound may take, or a size such as ``"2G"``.
    threads, seed
        As in :func:`powersum.bound`.

    Raises
    ------
    InputError
        Where nothing has positive probability, so that there are no marginals. An exact answer proves that something
        has; beside an approximate one the search for it may have run out of time.

    Examples
    --------
    >>> import powersum as ps
    >>> rain = ps.Model.from_factors([2, 2], [((0,), [0.8, 0.2]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])])
    >>> [round(p, 3) for p in ps.marginals(rain, {1: 1}).beliefs[0].tolist()]
    [0.364, 0.636]
    """
    started = working_time()
    limits = Limits(time_limit=time_limit, memory=memory, threads=threads, seed=seed)
    question = Question.of(model, evidence=evidence, limits=limits)
    small = small_elimination(*question.observed, question.query.weights, barren=False)
    if small is not None:
        found = small.marginals()
        if found is None:
            raise impossible(question)
        return Marginals(tuple(found), exact=True)
    # Compiled modules are imported where they are used, so that ``import powersum`` stays quick.
    from powersum.bounds.tree import CoveringTree
    from powersum.prepare.ordering import elimination_order
    from powersum.prepare.simplify import simplified

    # Barren variables, which log Z can do without, have marginals too.
    problem = simplified(question, barren=False)
    if not problem.feasible:
        raise impossible(question)
    beliefs = _of_removed(question.model, problem)
    exact = True
    if problem.model.n_variables:
        order = elimination_order(problem.model, problem.tau, seed=limits.seed)
        tree = CoveringTree(problem, order, threads=limits.threads, seed=limits.seed, memory=int(limits.bytes))
        end = started + limits.seconds
        search = min(1.0, 0.1 * limits.seconds)
        if not tree.exact and repaired(problem, tree.decode(), seconds=search, seed=limits.seed) is None:
            raise impossible(question)
        with interruptible() as interrupt:
            while not tree.exact and interrupt.cause is None and working_time() < end and tree.step(deadline_at(end)):
                pass
        exact = tree.exact
        if tree.log_upper == -math.inf:
            raise impossible(question)
        for reduced, belief in enumerate(tree.beliefs()):
            kept = problem.kept_states[problem.kept_state_starts[reduced] : problem.kept_state_starts[reduced + 1]]
            own = beliefs[int(problem.variables[reduced])]
            own[:] = 0.0
            own[kept] = belief
    return Marginals(tuple(beliefs), exact)


def impossible(question: Question) -> InputError:
    """The error of a question about distributions where nothing has positive probability."""
    known = question.all_evidence
    what = "the evidence has probability 0" if known else "every state of the model has probability 0"
    return InputError(f"{what}: there are no marginals")


def _of_removed(model: Model, problem: Problem) -> list[FloatArray]:
    """For each variable its possible states, equally likely: true of one that simplification removed.

    It was observed, or what is left does not depend on it.
    """
    states = np.split(problem.possible.astype(np.float64), np.cumsum(model.cardinalities)[:-1])
    return [own / own.sum() for own in states[: model.n_variables]]
