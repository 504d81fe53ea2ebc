"""Random models of every awkward kind, for Hypothesis and for plain seeded loops."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from powersum.model.model import Model


def random_model(
    rng: np.random.Generator,
    *,
    n_variables: int = 5,
    n_factors: int = 6,
    max_states: int = 4,
    max_scope: int = 3,
    zeros: float = 0.0,
    spread: float = 1.5,
) -> Model:
    """A random model: domains from 1 to ``max_states``, repeated and empty scopes, a share of hard zeros."""
    cardinalities = rng.integers(1, max_states + 1, n_variables)
    factors = []
    for _ in range(n_factors):
        size = int(rng.integers(0, min(max_scope, n_variables) + 1))
        scope = rng.permutation(n_variables)[:size]
        table = np.exp(rng.normal(0.0, spread, tuple(cardinalities[scope])))
        table = np.where(rng.random(table.shape) < zeros, 0.0, table)
        factors.append((scope, table))
    return Model.from_factors(cardinalities.tolist(), factors)


@st.composite
def models(draw: st.DrawFn, *, max_variables: int = 6) -> Model:
    """Small models: domains 1–4, zeros, constants, isolated variables, any number of factors."""
    return random_model(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        n_variables=draw(st.integers(1, max_variables)),
        n_factors=draw(st.integers(0, 9)),
        zeros=draw(st.sampled_from([0.0, 0.0, 0.2, 0.5])),
        spread=draw(st.sampled_from([0.5, 2.0, 6.0])),
    )


@st.composite
def weighted_models(
    draw: st.DrawFn, *, max_variables: int = 6
) -> tuple[Model, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """A model with weights τ: all sum, all max, mixed, or anything between."""
    model = draw(models(max_variables=max_variables))
    choices = draw(st.sampled_from([[1.0], [0.0], [0.0, 1.0], [0.0, 0.3, 1.0, 1.7]]))
    weights = draw(st.lists(st.sampled_from(choices), min_size=model.n_variables, max_size=model.n_variables))
    return model, np.asarray(weights)
