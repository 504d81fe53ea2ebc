"""Part-based detection: where the parts of an object are in a picture, with a table for every pair of parts."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import starts_of
from powersum.generate.blocks import Instance, check_count, check_share, check_size, draw_query
from powersum.model.model import Model


def detection(
    parts: int = 60, *, states: int = 16, strength: float = 100.0, share: float = 0.92, seed: int = 0
) -> Instance:
    """A part-based detection model: each variable is a part, each state a candidate place for it in a picture.

    Every part has a table of its own, and every pair of parts a table that is bilinear in their two places. No tree of
    the graph says much about the rest, so upper bounds are far above the value and local search ends in many places.

    Parameters
    ----------
    parts
        Number of parts.
    states
        Number of candidate places for each part.
    strength
        Scale of the log entries: they lie between −4 and 4 times as much. Files hold logs up to 709.
    share
        Share of the parts in the query.
    seed
        The same seed gives the same instance.

    Examples
    --------
    >>> import powersum as ps
    >>> model, query = ps.generate.detection()
    >>> model.n_variables, model.n_factors, len(query)
    (60, 1830, 55)
    """
    check_count("parts", parts, 1)
    check_count("states", states, 2)
    check_size("strength", strength)
    check_share("share", share)
    rng = np.random.default_rng(seed)
    one, other = np.triu_indices(parts, 1)
    places = rng.uniform(-1.0, 1.0, (parts, states, 2))
    relations = rng.uniform(-1.0, 1.0, (len(one), 2, 2))
    alone = rng.uniform(-1.0, 1.0, (parts, states))
    together = np.einsum("fix,fxy,fjy->fij", places[one], relations, places[other])
    model = Model(
        cardinalities=np.full(parts, states),
        scope_starts=starts_of(np.repeat([1, 2], [parts, len(one)])),
        scope_variables=np.concatenate([np.arange(parts), np.column_stack([one, other]).ravel()]),
        table_starts=starts_of(np.repeat([states, states**2], [parts, len(one)])),
        log_values=strength * np.concatenate([alone.ravel(), together.ravel()]),
    )
    return Instance(model, draw_query(rng, np.arange(parts), share))
