"""How the tests of rivals set up a problem, an order and a method."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, cast

import numpy as np

from powersum.bounds.rivals import BASELINES, BOUNDS
from powersum.core.arrays import FloatArray, IntArray
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify

GUARANTEED = list(BOUNDS)


def rival(name: str, problem: Problem, order: IntArray, **options: Any) -> Any:
    """A rival by its name."""
    module, _, class_name = BASELINES[name].partition(":")
    return cast(Any, getattr(import_module(module), class_name))(problem, order, threads=1, seed=0, **options)


def prepared(model: Model, weights: FloatArray) -> tuple[Problem, IntArray]:
    """The simplified problem and an order."""
    problem = simplify(model, Query(weights), {})
    return problem, elimination_order(problem.model, problem.tau)


def swept(method: Any, sweeps: int) -> Any:
    """The method after some sweeps."""
    for _ in range(sweeps):
        if not method.step(math.inf):
            break
    return method


def ising(side: int, spread: float, seed: int) -> Model:
    """A grid of two-state variables with normally distributed fields and couplings."""
    rng = np.random.default_rng(seed)
    cells = np.arange(side * side).reshape(side, side)
    pairs = [*zip(cells[:, :-1].flat, cells[:, 1:].flat, strict=True)]
    pairs += [*zip(cells[:-1].flat, cells[1:].flat, strict=True)]
    factors: list[tuple[tuple[int, ...], FloatArray]] = [
        ((int(v),), rng.normal(0, spread) * np.array([1.0, -1.0])) for v in cells.flat
    ]
    factors += [((int(a), int(b)), rng.normal(0, spread) * np.array([[1.0, -1.0], [-1.0, 1.0]])) for a, b in pairs]
    return Model.from_factors([2] * cells.size, factors, log=True)
