"""Random clauses with weights, of which at least one assignment satisfies all."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.generate.blocks import Instance, check_count, check_share, draw_query
from powersum.model.model import Model


def formula(
    variables: int = 60, clauses: int = 150, *, width: int = 3, weighted: float = 0.5, share: float = 0.2, seed: int = 0
) -> Instance:
    """A Boolean formula: a table of zeros and ones for each clause, and weights of some variables.

    Parameters
    ----------
    variables, clauses
        How many of each.
    width
        Literals of a clause.
    weighted
        Share of the variables that have weights, which add up to one.
    share
        Share of the variables in the query.
    seed
        The same seed gives the same instance.

    Examples
    --------
    >>> import powersum as ps
    >>> model, query = ps.generate.formula(20, 40, weighted=0.0, seed=1)
    >>> ps.solve(model).log_upper > 0.0  # it counts at least one solution
    True
    """
    check_count("variables", variables, 1)
    check_count("clauses", clauses, 0)
    check_count("width", width, 1)
    check_share("weighted", weighted)
    check_share("share", share)
    rng = np.random.default_rng(seed)
    solution = rng.integers(0, 2, variables)
    factors: list[tuple[tuple[int, ...], FloatArray]] = []
    for _ in range(clauses):
        scope = rng.choice(variables, min(width, variables), replace=False)
        excluded = rng.integers(0, 2, len(scope))
        # A clause that excludes the solution is turned over in one literal.
        if (excluded == solution[scope]).all():
            excluded[int(rng.integers(len(scope)))] ^= 1
        table = np.ones((2,) * len(scope))
        table[tuple(excluded.tolist())] = 0.0
        factors.append((tuple(scope.tolist()), table))
    for v in draw_query(rng, np.arange(variables), weighted):
        chance = float(rng.uniform(0.05, 0.95))
        factors.append(((v,), np.array([1.0 - chance, chance])))
    return Instance(Model.from_factors([2] * variables, factors), draw_query(rng, np.arange(variables), share))
