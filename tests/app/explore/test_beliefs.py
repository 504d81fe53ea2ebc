"""Beliefs of a large network come from a part of it, and are the same."""

from __future__ import annotations

import numpy as np
import pytest

import powersum as ps
from powersum import Model
from powersum.api.engine import MOST_VARIABLES
from powersum.app.explore.ancestors import Ancestors
from powersum.app.explore.beliefs import Beliefs
from powersum.model.question import Question


def network(count: int, *, sums: float = 1.0) -> Model:
    """A random network in which a variable has up to two parents shortly before it."""
    rng = np.random.default_rng(3)
    factors = []
    for v in range(count):
        parents = sorted({max(v - 1 - int(step), 0) for step in rng.integers(0, 6, size=2)}) if v else []
        sizes = [2 + (u % 2) for u in parents]
        table = rng.dirichlet(np.ones(2 + v % 2), size=sizes)
        factors.append(((*parents, v), table * (sums if v == count - 1 else 1.0)))
    return Model.from_factors([2 + v % 2 for v in range(count)], factors, directed=True)


@pytest.mark.parametrize("evidence", [{}, {40: 1}, {3: 0, 90: 1, 119: 0}])
def test_a_part_has_the_same_beliefs(evidence: dict[int, int]) -> None:
    model = network(120)
    part, place = Ancestors(model).of([7, 60, *evidence])
    found = ps.marginals(part, evidence={place[v]: state for v, state in evidence.items()})
    expected = ps.marginals(model, evidence=evidence)
    assert part.n_variables < model.n_variables or 119 in evidence
    for v in (7, 60):
        assert found.beliefs[place[v]] == pytest.approx(expected.beliefs[v], abs=1e-12)


def test_a_part_of_what_is_no_network_will_not_do() -> None:
    assert Ancestors(network(30)).apply
    assert not Ancestors(network(30, sums=0.9)).apply
    assert not Ancestors(ps.generate.grid(3, 3)[0]).apply
    twice = Model.from_factors([2], [((0,), [0.5, 0.5]), ((0,), [0.5, 0.5])], directed=True)
    assert not Ancestors(twice).apply
    assert Ancestors(Model.from_factors([], [], directed=True)).apply


@pytest.mark.parametrize("sums", [1.0, 0.9])
def test_large_models_by_either_road(sums: float) -> None:
    model = network(MOST_VARIABLES + 1, sums=sums)
    evidence = {200: 1, 330: 0}
    said = Beliefs(model).of(Question.of(model, evidence=evidence), [100, 300, 200])
    expected = ps.marginals(model, evidence=evidence)
    for v in (100, 300, 200):
        # The rounding of so many tables is counted where no part will do.
        for (lower, upper), belief in zip(said["beliefs"][v], expected.beliefs[v].tolist(), strict=True):
            assert lower - 1e-12 <= belief <= upper + 1e-12
            assert upper - lower < 1e-4


def test_impossible_evidence_of_a_large_network() -> None:
    tables = [((0,), [1.0, 0.0]), *(((v - 1, v), [[0.9, 0.1], [0.4, 0.6]]) for v in range(1, MOST_VARIABLES + 1))]
    model = Model.from_factors([2] * (MOST_VARIABLES + 1), tables, directed=True)
    assert "probability 0" in Beliefs(model).of(Question.of(model, evidence={0: 1}), [5])["impossible"]
