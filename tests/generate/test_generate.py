"""Generated instances: the sizes asked for, the same for a seed, never without a solution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import powersum as ps
from powersum.generate import Instance
from powersum.generate.pedigrees import _parents
from tests.oracle import exact_value

SMALL: dict[str, Callable[[int], Instance]] = {
    "mixed grid": lambda seed: ps.generate.grid(3, 3, seed=seed),
    "attractive grid": lambda seed: ps.generate.grid(2, 4, states=3, kind="attractive", seed=seed),
    "bayes grid": lambda seed: ps.generate.grid(3, 3, kind="bayes", deterministic=0.6, seed=seed),
    "pedigree": lambda seed: ps.generate.pedigree(4, 1, founders=2, seed=seed),
    "pedigree, two loci": lambda seed: ps.generate.pedigree(3, 2, founders=2, alleles=3, typed=0.7, seed=seed),
    "diagnosis": lambda seed: ps.generate.diagnosis(10, states=3, observed=0.5, seed=seed),
    "random": lambda seed: ps.generate.random(8, 12, zeros=0.5, seed=seed),
    "formula": lambda seed: ps.generate.formula(9, 20, seed=seed),
    "plan": lambda seed: ps.generate.plan(3, 2, robots=2, actions=2, fails=0.1, seed=seed),
    "detection": lambda seed: ps.generate.detection(5, states=3, seed=seed),
}


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("seed", range(5))
def test_there_is_always_a_solution(make: Callable[[int], Instance], seed: int) -> None:
    model, query = make(seed)
    weights = np.ones(model.n_variables)
    weights[query] = 0.0
    assert np.isfinite(exact_value(model, weights))


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_the_seed_decides(make: Callable[[int], Instance]) -> None:
    first, again, other = make(7), make(7), make(8)
    assert first.query == again.query
    np.testing.assert_array_equal(first.model.log_values, again.model.log_values)
    np.testing.assert_array_equal(first.model.scope_variables, again.model.scope_variables)
    assert first.model.log_values.shape != other.model.log_values.shape or not np.array_equal(
        first.model.log_values, other.model.log_values
    )


def test_bayesian_networks_sum_to_one() -> None:
    for model, _ in (
        ps.generate.grid(3, 4, kind="bayes", states=2, seed=2),
        ps.generate.diagnosis(9, states=4, observed=0.0, seed=2),
    ):
        assert model.directed
        assert exact_value(model, np.ones(model.n_variables)) == pytest.approx(0.0, abs=1e-9)


def test_grid_neighbours() -> None:
    model, query = ps.generate.grid(2, 3, share=1 / 3)
    pairs = {factor.scope for factor in model.factors() if len(factor.scope) == 2}
    assert pairs == {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}
    assert len(query) == 2
    assert ps.generate.grid(1, 1).model.n_factors == 1


def test_attractive_grids_reward_agreement() -> None:
    model, _ = ps.generate.grid(5, 5, kind="attractive", strength=2.0)
    tables = [log_table for scope, log_table in model.factors() if len(scope) == 2]
    assert all(0 <= table[0, 0] == table[1, 1] <= 2 and table[0, 1] == 0 for table in tables)


def test_share_of_deterministic_tables() -> None:
    for share in (0.0, 0.5, 1.0):
        model, _ = ps.generate.grid(20, 20, kind="bayes", deterministic=share, seed=1)
        certain = [np.isin(f.log_table, (0.0, -np.inf)).all() for f in model.factors() if len(f.scope) == 3]
        assert np.mean(certain) == pytest.approx(share, abs=0.1)


def test_pedigrees_look_like_linkage() -> None:
    model, query = ps.generate.pedigree(80, 6, alleles=7, seed=5)
    assert int(model.cardinalities.max()) <= 7
    assert set(np.unique(np.diff(model.scope_starts)).tolist()) == {1, 2, 3, 4}
    assert (model.cardinalities == 1).any()
    assert np.isneginf(model.log_values).mean() > 0.5
    assert all(model.cardinalities[v] > 1 for v in query)


def test_families_have_no_siblings_as_couples() -> None:
    father, mother = _parents(np.random.default_rng(3), 200, 40)
    children = np.flatnonzero(father >= 0)
    assert len(children) == 160
    assert (father[children] % 2 == 0).all()
    assert (mother[children] % 2 == 1).all()
    assert (father[children] < children).all()
    assert (mother[children] < children).all()
    for man, woman in zip(father[children], mother[children], strict=True):
        assert father[man] < 0 or father[man] != father[woman]


@pytest.mark.parametrize(("variables", "states"), [(203, 7), (359, 6)])
def test_diagnosis_networks_of_the_papers_size(variables: int, states: int) -> None:
    model, _ = ps.generate.diagnosis(variables, states=states)
    assert model.n_variables == variables
    assert int(model.cardinalities.max()) == states
    assert int(np.diff(model.table_starts).max()) <= 20_000


def test_detection_has_a_table_of_several_hundred_for_each_pair() -> None:
    model, query = ps.generate.detection(seed=3)
    pairs = [(factor.scope, factor.log_table) for factor in model.factors() if len(factor.scope) == 2]
    assert [scope for scope, _ in pairs] == [(a, b) for a in range(60) for b in range(a + 1, 60)]
    assert {table.shape for _, table in pairs} == {(16, 16)}
    # Bilinear in places of two coordinates, so of rank two.
    assert all(np.linalg.matrix_rank(table) == 2 for _, table in pairs)
    assert 200 < model.log_values.max() <= 400
    assert -400 <= model.log_values.min() < -200
    assert len(query) == 55
    half, _ = ps.generate.detection(seed=3, strength=50.0)
    np.testing.assert_array_equal(2 * half.log_values, model.log_values)


def test_a_million_variables_take_no_python_loop() -> None:
    model, query = ps.generate.grid(1000, 1000)
    assert model.n_variables == 1_000_000
    assert model.n_factors == 2_998_000
    assert len(query) == 500_000


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_empty_and_full_queries(share: float) -> None:
    model, query = ps.generate.random(10, 10, share=share)
    assert len(query) == share * model.n_variables
