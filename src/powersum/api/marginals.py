"""``marginals``: the distribution of every variable given evidence, exact where memory allows, else from both sides."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from powersum.api.distribution import Distribution, Marginals, known_marginals
from powersum.assign.repair import repaired
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.clock import deadline_at, working_time
from powersum.core.errors import InputError, TooLittleMemoryError
from powersum.core.interrupt import as_interrupts, interruptible
from powersum.exact.small import small_elimination
from powersum.model.keys import listed
from powersum.model.limits import Limits
from powersum.model.model import Model, VariableKey
from powersum.model.question import EvidenceLike, ModelLike, Question
from powersum.model.rounding import elimination_error
from powersum.run.shares import SumBounds

if TYPE_CHECKING:
    from powersum.bounds.single import SingleFactors
    from powersum.bounds.tree import CoveringTree
    from powersum.prepare.problem import Problem

__all__ = ["Distribution", "Marginals", "marginals"]

DEFAULT_MEMORY = 1e9

BELIEFS, WHOLE = 0.2, 0.25
"""Where nothing is exact: shares of the time for single numbers, then of what is left for the sum of everything."""


@as_interrupts()
def marginals(
    model: ModelLike,
    evidence: EvidenceLike | None = None,
    *,
    of: Iterable[VariableKey] | None = None,
    time_limit: float | None = 10.0,
    memory: float | str = DEFAULT_MEMORY,
    threads: int = 1,
    seed: int = 0,
) -> Marginals:
    """Distribution of every variable, given the evidence and summed over all others.

    Every probability is an interval that holds. Where the model is too wide for an exact answer, the sum with a state
    set and the sum of everything are bounded on both sides, for one state after another while time lasts; a state that
    was not reached is anywhere from 0 to 1.

    Parameters
    ----------
    model, evidence
        The model or the path of its file, and observed states or likelihoods, as in :func:`powersum.solve`.
    of
        Variables to spend the time on where an exact answer does not fit: by default all, in their order.
    time_limit
        Seconds for all that; Ctrl-C ends it early.
    memory
        Bytes that the tables may take, or a size such as ``"2G"``.
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
    >>> rain = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    >>> m = ps.marginals(rain, {"wet": 1})
    >>> print(m["rain"]["yes"])
    63.6 %
    >>> round(float(m["rain"]["yes"]), 4)
    0.6364
    """
    started = working_time()
    limits = Limits(time_limit=time_limit, memory=memory, threads=threads, seed=seed)
    question = Question.of(model, evidence=evidence, limits=limits)
    model = question.model
    asked = range(model.n_variables) if of is None else [model.variable(key, argument="of") for key in listed(of, "of")]
    small = small_elimination(*question.observed, question.query.weights, barren=False)
    if small is not None:
        known = small.marginals()
        if known is None:
            raise impossible(question)
        return known_marginals(model, *known, small.tables.log_error)
    # Compiled modules are imported where they are used, so that ``import powersum`` stays quick.
    from powersum.prepare.ordering import elimination_order
    from powersum.prepare.simplify import simplified

    # Barren variables, which log Z can do without, have marginals too.
    problem = simplified(question, barren=False)
    if not problem.feasible:
        raise impossible(question)
    beliefs = _of_removed(model, problem)
    possible = np.split(problem.possible, np.cumsum(model.cardinalities)[:-1])
    if not problem.model.n_variables:
        return known_marginals(model, np.concatenate([*beliefs, np.zeros(0)]), problem.possible, problem.log_error)
    order = elimination_order(problem.model, problem.tau, seed=limits.seed)
    tree = _affordable(problem, order, limits)
    if not tree.exact:
        search = min(1.0, 0.1 * limits.seconds)
        if repaired(problem, tree.decode(), seconds=search, seed=limits.seed) is None:
            raise impossible(question)
    with interruptible() as interrupt:
        end = started + limits.seconds * (BELIEFS if len(asked) else 1.0)
        while not tree.exact and interrupt.cause is None and working_time() < end and tree.step(deadline_at(end)):
            pass
        if tree.log_upper == -math.inf:
            raise impossible(question)
        for reduced, belief in enumerate(tree.beliefs()):
            kept = problem.kept_states[problem.kept_state_starts[reduced] : problem.kept_state_starts[reduced + 1]]
            own = beliefs[int(problem.variables[reduced])]
            own[:] = 0.0
            own[kept] = belief
        exact, log_error = tree.exact, tree.log_error
        # The sums that follow need the memory.
        del tree
        log_error += problem.log_error + elimination_error(problem.model)
        guesses = () if exact else problem.variables.tolist()
        answer = known_marginals(model, np.concatenate(beliefs), problem.possible, log_error, guesses=guesses)
        if exact:
            return answer
        reduced_variables = set(problem.variables.tolist())
        bounds = SumBounds(question, interrupt, end=started + limits.seconds)
        wanted = [v for v in asked if v in reduced_variables]
        if wanted and not bounds.whole(WHOLE):
            raise impossible(question)
        left = sum(int(possible[v].sum()) for v in wanted)
        for v in wanted:
            sides = bounds.shares(v, possible[v], of=left)
            left -= int(possible[v].sum())
            if (sides[1] == -math.inf).all():
                raise impossible(question)
            answer.log_lower[v][:], answer.log_upper[v][:] = sides
    return answer


def impossible(question: Question) -> InputError:
    """The error of a question about distributions where nothing has positive probability."""
    known = question.all_evidence
    what = "the evidence has probability 0" if known else "every state of the model has probability 0"
    return InputError(f"{what}: there are no marginals")


def _affordable(problem: Problem, order: IntArray, limits: Limits) -> CoveringTree | SingleFactors:
    """What single numbers are read from: a covering tree, or every factor by itself where none fits the memory."""
    from powersum.bounds.single import SingleFactors
    from powersum.bounds.tree import CoveringTree

    try:
        return CoveringTree(problem, order, threads=limits.threads, seed=limits.seed, memory=int(limits.bytes))
    except TooLittleMemoryError:
        return SingleFactors(problem)


def _of_removed(model: Model, problem: Problem) -> list[FloatArray]:
    """For each variable its possible states, equally likely: true of one that simplification removed.

    It was observed, or what is left does not depend on it.
    """
    states = np.split(problem.possible.astype(np.float64), np.cumsum(model.cardinalities)[:-1])
    return [own / own.sum() for own in states[: model.n_variables]]
