"""Questions for the checker's tests, and their true values by brute force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import powersum_check as pc
from powersum.model.model import Model
from powersum_check.numbers import Table
from tests.check.writer import Draft
from tests.oracle import exact_value
from tests.strategies import random_model

KINDS: list[list[float]] = [[1.0], [0.0], [0.0, 1.0], [0.0, 0.3, 1.0, 1.7]]


def to_check(model: Model) -> pc.Model:
    """The same model as the checker has it; logs are taken as exact."""
    factors = tuple(pc.Factor(f.scope, Table(np.array(f.log_table))) for f in model.factors())
    return pc.Model(tuple(model.cardinalities.tolist()), factors)


def question_of(draft: Draft) -> pc.Question:
    """The question of a draft."""
    likelihoods = {v: tuple(float(x) for x in t) for v, t in draft.likelihoods.items()}
    order = None if draft.order is None else tuple(draft.order)
    return pc.Question(tuple(draft.weights), dict(draft.evidence), likelihoods, order)


def checked(draft: Draft) -> pc.Verified:
    """Check a draft with its own question."""
    return pc.check(to_check(draft.model), question_of(draft), draft.zip())


def random_draft(rng: np.random.Generator, *, n_variables: int = 5, plain: bool = False) -> Draft:
    """A random question without steps."""
    model = random_model(
        rng,
        n_variables=n_variables,
        n_factors=int(rng.integers(1, 8)),
        max_states=3,
        zeros=float(rng.choice([0.0, 0.0, 0.2])),
        spread=float(rng.choice([0.5, 2.0, 6.0])),
    )
    kind = KINDS[int(rng.integers(0, 3 if plain else 4))]
    weights = rng.choice(kind, n_variables).tolist()
    cards = model.cardinalities.tolist()
    evidence = {v: int(rng.integers(0, cards[v])) for v in range(n_variables) if rng.random() < 0.15}
    likelihoods: Mapping[int, Sequence[float]] = {}
    if rng.random() < 0.2:
        likelihoods = {v: (rng.random(cards[v]) + 0.1).tolist() for v in range(n_variables) if rng.random() < 0.4}
    order = rng.permutation(n_variables).tolist() if not plain and rng.random() < 0.1 else None
    return Draft(model, weights, evidence, likelihoods, order)


def truth(draft: Draft, domains: Sequence[Sequence[int]] | None = None) -> float:
    """The value of the question, by brute force; within a box if given."""
    model = draft.model
    cards = model.cardinalities.tolist()
    factors = [(f.scope, np.array(f.log_table)) for f in model.factors()]
    factors += [((v,), np.log(np.asarray(t))) for v, t in draft.likelihoods.items()]
    for v, d in enumerate(domains or []):
        mask = np.full(cards[v], -np.inf)
        mask[list(d)] = 0.0
        factors.append(((v,), mask))
    full = Model.from_factors(cards, factors, log=True)
    # Restricting by -inf changes nothing but where the weight of a variable matters: there the state adds 0 to a sum.
    return exact_value(full, draft.weights, evidence=draft.evidence, order=draft.order)


CLOSE = 1e-9
"""How far brute force may be off by its rounding."""


def holds(verified: pc.Verified, value: float) -> bool:
    """Whether the bounds hold a value that brute force has computed with rounding."""
    return verified.log_lower <= value + CLOSE and value <= verified.log_upper + CLOSE
