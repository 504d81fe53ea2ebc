"""What every method must hold: one test walks over all of them, so that a new method is covered by being named."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings

import powersum as ps
from powersum.bounds.registry import METHODS, start_method
from powersum.core.arrays import FloatArray
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.prepare.simplify import simplify
from tests.data import DATA, needs_data
from tests.oracle import exact_value
from tests.strategies import random_model, weighted_models


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60, deadline=None)
@given(case=weighted_models())
def test_valid_and_never_rising(method: str, case: tuple[Model, FloatArray]) -> None:
    model, weights = case
    problem = simplify(model, Query(weights), {})
    exact = exact_value(model, weights)
    if not problem.feasible or problem.model.n_variables == 0:
        assert problem.log_constant == pytest.approx(exact, abs=1e-9)
        return
    order = elimination_order(problem.model, problem.tau)
    tightener = start_method(method, problem, order, threads=1, seed=0, options={})
    slack = 1e-9 * max(1.0, abs(exact))
    last = math.inf
    for _ in range(6):
        assert not math.isnan(tightener.log_upper)
        assert tightener.log_upper <= last
        assert tightener.log_upper + problem.log_constant >= exact - slack
        assert tightener.bound() + problem.log_constant >= exact - slack
        last = tightener.log_upper
        tightener.step(math.inf)
    states = tightener.decode()
    is_max = problem.tau == 0
    assert (states[~is_max] == -1).all()
    assert ((states[is_max] >= 0) & (states[is_max] < problem.model.cardinalities[is_max])).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_limiting_cases_on_chains(method: str, weight: float) -> None:
    rng = np.random.default_rng(7)
    factors = [((v, v + 1), np.exp(rng.normal(0, 1.5, (3, 3)))) for v in range(6)]
    model = Model.from_factors([3] * 7, factors)
    query = Query(np.full(7, weight))
    result = ps.bound(model, query=query, method=method, sweeps=200, change=None)
    assert result.log_upper == pytest.approx(exact_value(model, query.weights), abs=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_repeats_for_a_seed_whatever_the_threads(method: str) -> None:
    model = random_model(np.random.default_rng(3), n_variables=14, n_factors=25, max_scope=3)
    results = [ps.bound(model, maximize=range(6), method=method, sweeps=10, threads=threads) for threads in (1, 2, 1)]
    assert len({result.log_upper for result in results}) == 1
    assert len({tuple(sorted(result.assignment.items())) for result in results}) == 1


def exact_rows() -> Iterator[tuple[str, str, str, float]]:
    """Family, instance, task and value of every exact row of the reference table."""
    if not (DATA / "reference.csv").is_file():
        return
    with (DATA / "reference.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["kind"] == "exact":
                yield row["family"], row["instance"], row["task"], float(row["ln"])


@needs_data
@pytest.mark.parametrize(("family", "instance", "task", "exact"), list(exact_rows()))
def test_never_below_a_known_value(family: str, instance: str, task: str, exact: float) -> None:
    folder = DATA / family
    model_path = folder / f"{instance.split('.Q0.5')[0]}.uai"
    if not model_path.is_file():
        model_path = model_path.with_suffix(".uai.gz")
    query_path = folder / f"{instance}.map"
    if not query_path.is_file():
        query_path = folder / f"{instance}.uai.query"
    evidence_path = folder / f"{instance}.uai.evid"
    model = ps.read(model_path)
    maximize = {"PR": None, "MAP": "all", "MMAP": ps.read_query(query_path, model) if task == "MMAP" else None}[task]
    evidence = ps.read_evidence(evidence_path, model) if evidence_path.is_file() else {}
    # Published values carry a few decimals of a base-10 logarithm.
    slack = 1e-4 + 1e-6 * abs(exact) if math.isfinite(exact) else 0.0
    result = ps.bound(model, maximize, evidence, method="gdd", sweeps=10)
    uppers = [snapshot.log_upper for snapshot in result.history]
    assert uppers == sorted(uppers, reverse=True)
    assert result.log_upper >= exact - slack
    assert len(result.assignment) == (
        0 if result.status == "infeasible" or maximize is None else len(result.assignment)
    )
