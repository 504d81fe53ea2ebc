"""Random factors on random scopes, with a share of zeros that leaves at least one solution."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import starts_of
from powersum.generate.blocks import Instance, check_count, check_share, check_size, draw_query
from powersum.model.model import Model


def random(
    variables: int = 50,
    factors: int = 75,
    *,
    states: int = 3,
    scope: int = 3,
    zeros: float = 0.0,
    spread: float = 1.0,
    share: float = 0.5,
    seed: int = 0,
) -> Instance:
    """Factors with log-normal entries on scopes drawn at random.

    Parameters
    ----------
    variables, factors
        How many of each.
    states, scope
        The largest number of states and the largest scope; both are drawn uniformly, from 2.
    zeros
        Share of the table entries that are zero. One joint state keeps a positive probability.
    spread
        Standard deviation of the log entries.
    share
        Share of the variables in the query.
    seed
        The same seed gives the same instance.

    Examples
    --------
    >>> import powersum as ps
    >>> model, query = ps.generate.random(10, 20, zeros=0.3, seed=5)
    >>> model.n_variables, model.n_factors
    (10, 20)
    """
    check_count("variables", variables, 1)
    check_count("factors", factors, 1)
    check_count("states", states, 2)
    check_count("scope", scope, 1)
    check_share("zeros", zeros)
    check_size("spread", spread)
    check_share("share", share)
    rng = np.random.default_rng(seed)
    cardinalities = rng.integers(2, states + 1, variables)
    planted = rng.integers(0, cardinalities)
    largest = min(scope, variables)
    widths = rng.integers(min(2, largest), largest + 1, factors)
    scopes = [rng.choice(variables, width, replace=False) for width in widths.tolist()]
    table_starts = starts_of([int(cardinalities[chosen].prod()) for chosen in scopes])
    log_values = rng.normal(0.0, spread, int(table_starts[-1]))
    empty = rng.random(log_values.size) < zeros
    for start, chosen in zip(table_starts[:-1].tolist(), scopes, strict=True):
        empty[start + np.ravel_multi_index(tuple(planted[chosen]), tuple(cardinalities[chosen]))] = False
    log_values[empty] = -np.inf
    model = Model(
        cardinalities=cardinalities,
        scope_starts=starts_of(widths),
        scope_variables=np.concatenate(scopes),
        table_starts=table_starts,
        log_values=log_values,
    )
    return Instance(model, draw_query(rng, np.arange(variables), share))
