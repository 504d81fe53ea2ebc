"""What every method must hold: one test walks over all of them, so that a new method is covered by being named."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings

import powersum as ps
from powersum.bounds.gdd import GDD
from powersum.bounds.protocol import Method
from powersum.bounds.registry import METHODS, start_method
from powersum.bounds.rivals.lbfgs import LBFGS
from powersum.bounds.rivals.mas import MAS
from powersum.bounds.rivals.mbe import MBE
from powersum.bounds.rivals.reorder import Reordered
from powersum.bounds.rivals.wmb import WMB
from powersum.bounds.tree import CoveringTree
from powersum.core.arrays import FloatArray
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.prepare.simplify import simplify
from tests.oracle import exact_value
from tests.strategies import random_model, weighted_models

CHECKED: dict[str, Method] = {
    "gdd": GDD,
    "tree": CoveringTree,
    "mbe": MBE,
    "wmb": WMB,
    "lbfgs": LBFGS,
    "reorder": Reordered,
    "mas": MAS,
}
"""The class of every method. mypy refuses this table where one of them does not keep the protocol."""


def test_the_types_of_every_method_are_checked() -> None:
    assert list(CHECKED) == list(METHODS)
    for name, place in METHODS.items():
        module, _, class_name = place.partition(":")
        assert getattr(import_module(module), class_name) is CHECKED[name]


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
    result = ps.bound(model, weights=query, method=method, sweeps=200, change=None)
    assert result.log_upper == pytest.approx(exact_value(model, query.weights), abs=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_repeats_for_a_seed_whatever_the_threads(method: str) -> None:
    model = random_model(np.random.default_rng(3), n_variables=14, n_factors=25, max_scope=3)
    results = [ps.bound(model, maximize=range(6), method=method, sweeps=10, threads=threads) for threads in (1, 2, 1)]
    assert len({result.log_upper for result in results}) == 1
    assert len({tuple(sorted(result.assignment.items())) for result in results}) == 1
