"""The bound that every reader sees, on planning and on stochastic satisfiability."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.instances import DATA, model_files

import powersum as ps
from powersum.assign.complete import complete
from powersum.assign.evaluator import Evaluator
from powersum.core.clauses import Ended
from powersum.model.factors import configuration_value
from powersum.model.question import Question
from powersum.prepare.simplify import simplified
from tests.data import needs_data

pytestmark = needs_data

DEFINED = ("SC-5", "SC-12", "SC-19", "Tiger-10", "c432-er", "c499-er")
"""Rows of which the last block is defined by the others."""

UNDEFINED = ("toilet_a_04_01.4", "toilet_a_06_01.8", "cube_c3_ser--opt-6_", "ring_r3_ser--opt-8_")
"""Rows of which it is not: summed they count more than 1."""

ROUNDING = 1e-6


@pytest.mark.parametrize("path", model_files("planning"), ids=lambda path: path.stem)
def test_no_plan_is_more_than_certain(path: Path) -> None:
    model = ps.read(path)
    chosen = ps.read_query(path.with_suffix(".map"), model)
    for found in (
        ps.bound(model, chosen, work=1.0),
        ps.bound(model, chosen, method="mbe", sweeps=1),
        ps.solve(model, chosen, work=1.0),
    ):
        assert found.log_upper <= ROUNDING


@pytest.mark.parametrize("name", DEFINED)
def test_no_formula_is_more_than_certain(name: str) -> None:
    formula = ps.read_formula(DATA / "ssat" / f"{name}.sdimacs")
    model, query = formula.model, formula.query
    assert query.blocks is None
    for found in (ps.bound(model, weights=query, work=1.0), ps.solve(model, weights=query, work=1.0)):
        assert found.log_upper <= ROUNDING


@pytest.mark.parametrize("name", UNDEFINED)
def test_what_is_not_defined_is_refused_or_maximised_inside(name: str) -> None:
    formula = ps.read_formula(DATA / "ssat" / f"{name}.sdimacs")
    assert formula.undefined() != []
    assert formula.query.blocks is not None
    assert ps.bound(formula.model, weights=formula.query, work=1.0).log_upper <= ROUNDING


@pytest.mark.parametrize("name", ["bw_p44_15", "comm_p01_16"])
def test_a_plan_is_found(name: str) -> None:
    """Local repair meets only dead ends in the first of them."""
    model = ps.read(DATA / "planning" / f"{name}.uai")
    problem = simplified(Question.of(model, ps.read_query(DATA / "planning" / f"{name}.map", model)))
    evaluator = Evaluator(problem, memory=1e7)
    ended, states = complete(evaluator, np.zeros(int(problem.model.cardinalities.sum())), deadline=-np.inf)
    assert ended is Ended.SATISFIED
    assert configuration_value(problem.model, states) > -np.inf
