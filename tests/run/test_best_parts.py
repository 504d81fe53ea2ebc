"""How parts of the k best are bounded by tables, with their rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from powersum.run.best_parts import Part, lowered, pieces_of
from powersum.run.ranking import RankedBucket, Ranking, RankingLevel


@pytest.mark.parametrize("seed", range(50))
def test_a_loss_is_taken_off_upwards(seed: int) -> None:
    rng = np.random.default_rng(seed)
    log_upper, loss = (
        rng.normal() * 10.0 ** rng.integers(-300, 300),
        abs(rng.normal()) * 10.0 ** rng.integers(-300, 300),
    )
    assert Fraction(lowered(log_upper, loss)) >= Fraction(log_upper) - Fraction(loss)
    assert lowered(log_upper, 0.0) == log_upper


def test_what_is_impossible_stays_so() -> None:
    assert lowered(3.0, math.inf) == -math.inf
    assert lowered(math.inf, 1.0) == math.inf


@pytest.mark.parametrize("seed", range(20))
def test_a_long_path_below_a_large_constant_is_bounded(seed: int) -> None:
    """Each of many variables has a table of its own; the sum of what is left is known exactly."""
    rng = np.random.default_rng(seed)
    n, log_constant = 200, float(rng.uniform(1e6, 1e7))
    tables = -rng.uniform(0.0, 1.0, (n, 2))
    tables[:, 0] = 0.0
    levels = [RankingLevel(v, 2, np.arange(2), (RankedBucket(tables[v], ()),)) for v in range(n)]
    whole = Part(log_upper=log_constant, ranked=True)
    states = tuple(rng.integers(0, 2, n).tolist())
    ranking = Ranking(levels, log_constant, exact=True)
    *pieces, _ = pieces_of(whole, states, range(n), [2] * n, ranking)
    exact = Fraction(log_constant)
    for v, piece in enumerate(pieces):
        assert Fraction(piece.log_upper) >= exact + Fraction(float(tables[v, 1 - states[v]]))
        exact += Fraction(float(tables[v, states[v]]))
