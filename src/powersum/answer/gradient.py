"""``bound_and_gradient``: an upper bound and its derivative with respect to every table entry, for learning."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.clock import deadline_at, working_time
from powersum.core.errors import InputError
from powersum.core.interrupt import interruptible
from powersum.model.limits import Limits, number, whole_number
from powersum.model.model import VariableKey
from powersum.model.query import Query
from powersum.model.question import EvidenceLike, ModelLike, Question
from powersum.model.rounding import certain

DEFAULT_SWEEPS = 20


def bound_and_gradient(
    model: ModelLike,
    maximize: Iterable[VariableKey] | str | None = None,
    evidence: EvidenceLike | None = None,
    *,
    query: Query | None = None,
    temperature: float = 0.0,
    ibound: int | None = None,
    sweeps: int = DEFAULT_SWEEPS,
    time_limit: float | None = None,
    memory: float | str = 1e9,
    threads: int = 1,
    seed: int = 0,
) -> tuple[float, FloatArray]:
    """An upper bound on log Z, MAP or marginal MAP, and its derivative with respect to every log table entry.

    The bound is that of the covering tree, exact where the tree fits. Its derivative at a table entry is the tree's
    belief in the entry: for an exact log Z, the probability that the variables of the factor are in these states; for
    MAP 1 at the entries that the best state has, and 0 elsewhere. Where the tree is not exact, shifts and weights are
    those that the sweeps have found, and the derivative is taken with them held.

    Parameters
    ----------
    model, maximize, evidence, query
        The question, as in :func:`powersum.bound`.
    temperature
        Max variables are softened to this weight: the bound is smooth then, and still one, only larger. At 0, where it
        has kinks, the gradient is that of one of the best states, or a mixture of equally good ones.
    ibound
        At most one more variable than this in a table of the tree; by default as large as memory allows.
    sweeps, time_limit
        How long to tighten a tree that is not exact.
    memory, threads, seed
        As in :func:`powersum.bound`.

    Returns
    -------
    value, gradient
        The bound, rounding counted, and an array laid out like ``model.log_values``. Entries that evidence excludes
        have derivative 0; all of it is 0 where nothing has positive probability.

    Examples
    --------
    >>> import powersum as ps
    >>> rain = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    >>> value, gradient = ps.bound_and_gradient(rain, evidence={"wet": 1})
    >>> gradient.round(4).tolist()
    [0.3636, 0.6364, 0.0, 0.3636, 0.0, 0.6364]
    """
    # Compiled modules are imported where they are used, so that ``import powersum`` stays quick.
    from powersum.bounds.buckets.factor_beliefs import factor_beliefs
    from powersum.bounds.buckets.sweeps import LEAST_WEIGHT_SHARE
    from powersum.bounds.tree import CoveringTree
    from powersum.prepare.conditioned import conditioned
    from powersum.prepare.ordering import elimination_order

    started = working_time()
    limits = Limits(sweeps=sweeps, time_limit=time_limit, memory=memory, threads=threads, seed=seed)
    if ibound is not None:
        ibound = whole_number(ibound, "ibound", 0)
    temperature = number(temperature, "temperature")
    if not (temperature == 0.0 or LEAST_WEIGHT_SHARE <= temperature < math.inf):
        raise InputError(f"temperature is {temperature}: it must be 0, or {LEAST_WEIGHT_SHARE:g} or more, and finite")
    question = Question.of(model, maximize, evidence, query=query, limits=limits)
    known = conditioned(question)
    problem = known.problem
    size = question.model.log_values.size
    gradient = np.zeros(question.observed.model.log_values.size)
    log_upper = certain(problem.log_constant, problem.log_error)
    if problem.feasible:
        gradient[known.constants] = 1.0
    if problem.feasible and problem.model.n_variables:
        order = elimination_order(problem.model, problem.tau, seed=limits.seed)
        tree = CoveringTree(
            # Its gradient is computed in double precision, which takes up to twice what the descent does.
            problem,
            order,
            threads=limits.threads,
            seed=limits.seed,
            ibound=ibound,
            memory=int(limits.bytes / 2),
        )
        with interruptible() as interrupt:
            end = started + limits.seconds
            for _ in range(sweeps):
                if interrupt.cause is not None or working_time() >= end or not tree.step(deadline_at(end)):
                    break
        # Back to the best point; from there the beliefs follow.
        bound = tree.bound()
        tree.best_tree.rest()
        passes, order = tree.best_tree.passes, tree.best_tree.order
        smooth = passes.value_and_gradient(max(temperature, LEAST_WEIGHT_SHARE))
        if passes.has_max and temperature > 0.0:
            bound = certain(smooth, passes.error())
        log_upper = certain(bound + problem.log_constant, problem.log_error)
        if log_upper > -math.inf:
            gradient[known.entries] = factor_beliefs(passes, problem.model, order)
    if log_upper == -math.inf:
        gradient[:] = 0.0
    return log_upper, gradient[:size]
