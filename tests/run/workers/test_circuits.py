"""Plans by circuits: the same answers as by elimination, and certificates of them that the checker accepts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.run.tuning import Schedule
from powersum.run.workers import circuits
from tests.cases import Case, hard_case
from tests.check.helpers import to_check
from tests.oracle import exact_value
from tests.run.test_certified_answers import checked

NOT_BY_TABLES = Schedule(elimination_cost=1e3, ibound=1, early_circuits=60.0, early_circuits_share=1.0)


def planned(seed: int) -> Case:
    model, maximised = ps.generate.plan(3, 4, robots=2, actions=3, fails=0.1, seed=seed)
    return Case(model, ps.Query.of(model, maximised), {})


@pytest.mark.parametrize("seed", range(6))
def test_plans_are_proven_by_circuits(seed: int) -> None:
    asked = planned(seed)
    result = ps.solve(asked.model, weights=asked.query, time_limit=60.0, schedule=NOT_BY_TABLES)
    assert result.status is ps.Status.OPTIMAL
    assert "circuit" in result.reason
    exact = ps.solve(asked.model, weights=asked.query)
    assert result.log_lower - 1e-9 <= exact.log_upper
    assert exact.log_lower - 1e-9 <= result.log_upper


@pytest.mark.parametrize("seed", range(6))
def test_certificates_of_circuits_are_accepted(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuits, "LEAST_PROVING", 60.0)
    asked = planned(seed)
    result = ps.solve(asked.model, weights=asked.query, time_limit=60.0, schedule=NOT_BY_TABLES, certificate=True)
    assert "circuit" in result.reason
    checked(result, asked, tmp_path)


@pytest.mark.parametrize("seed", range(6))
def test_the_whole_circuit_proves_less_where_boxes_take_too_long(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuits, "LEAST_PROVING", -1e9)
    asked = planned(seed)
    result = ps.solve(asked.model, weights=asked.query, time_limit=60.0, schedule=NOT_BY_TABLES, certificate=True)
    assert result.certificate is not None
    result.certificate.save(tmp_path / "proof.zip")
    question = pc.Question(tuple(asked.query.weights.tolist()))
    found = pc.check(to_check(asked.model), question, tmp_path / "proof.zip")
    assert result.log_lower - 1e-8 <= found.log_upper <= 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_models_of_any_tables_are_answered(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not there are zeros, and with evidence."""
    monkeypatch.setattr(circuits, "worth_counting", lambda model: model.n_variables > 0)
    monkeypatch.setattr(circuits, "LEAST_PROVING", 60.0)
    asked = hard_case(seed)
    result = ps.solve(
        asked.model,
        weights=asked.query,
        evidence=asked.evidence,
        time_limit=60.0,
        schedule=NOT_BY_TABLES,
        certificate=True,
    )
    checked(result, asked, tmp_path)


def test_a_maximum_inside_a_sum_is_left_to_others() -> None:
    model = ps.Model.from_factors([2, 2], [((0, 1), np.array([[1.0, 0.0], [0.0, 1.0]]))])
    query = ps.Query.along(model, [("sum", [0]), ("max", [1])])
    result = ps.solve(model, weights=query, schedule=NOT_BY_TABLES)
    assert result.log_lower == pytest.approx(np.log(2.0), abs=1e-9)
    assert exact_value(model, np.array([1.0, 0.0])) == 0.0
