"""Conditioning as a worker: the whole sum, the value of an assignment, and when it gives up."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.prepare.simplify import simplify
from powersum.run import work
from powersum.run.board import Board
from powersum.run.tuning import Schedule
from powersum.run.workers.conditioning import Conditioning
from tests.check.helpers import to_check
from tests.oracle import exact_value
from tests.run.workers.test_workers import task_of

NOT_BY_TABLES = Schedule(elimination_cost=1e3, evaluation_cost=math.inf, ibound=1)
"""No elimination, and every sum is too wide."""


def parities(seed: int, variables: int = 14) -> ps.Model:
    """Equations modulo 2 and weights: propagation sees nothing, and terms are all alike."""
    rng = np.random.default_rng(seed)
    odd = np.indices((2, 2, 2)).sum(axis=0) % 2
    factors = [(tuple(rng.choice(variables, 3, replace=False).tolist()), odd) for _ in range(variables // 2)]
    weights = [((v,), rng.random(2) + 0.1) for v in range(variables)]
    return ps.Model.from_factors([2] * variables, [*factors, *weights])


@pytest.mark.parametrize("seed", range(3))
def test_the_sum_of_everything(seed: int) -> None:
    model = parities(seed)
    result = ps.solve(model, schedule=NOT_BY_TABLES, time_limit=None)
    truth = exact_value(model, np.ones(model.n_variables))
    if truth == -math.inf:
        assert result.status is ps.Status.INFEASIBLE
        return
    assert result.log_lower <= truth + 1e-12 * abs(truth)
    assert truth <= result.log_upper + 1e-12 * abs(truth)
    assert result.log_upper - result.log_lower < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_values_of_assignments_are_no_more_than_the_best(seed: int) -> None:
    model = parities(seed)
    chosen = list(range(0, model.n_variables, 2))
    weights = np.ones(model.n_variables)
    weights[chosen] = 0.0
    truth = exact_value(model, weights)
    result = ps.solve(model, chosen, schedule=NOT_BY_TABLES, time_limit=2.0)
    if truth == -math.inf:
        assert result.log_lower == -math.inf
        return
    assert result.log_lower <= truth + 1e-9
    assert truth <= result.log_upper + 1e-9


def test_certificates_prove_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The corner bound is exact for so few variables, and would be the proof.
    monkeypatch.setattr("powersum.run.work.corner_of", lambda *_: None)
    result = ps.solve(parities(1), schedule=NOT_BY_TABLES, time_limit=600.0, certificate=True)
    assert "onditioning" in result.reason
    assert result.certificate is not None
    assert [step["kind"] for step in result.certificate.head["steps"]] == ["conditioning"]
    result.certificate.save(tmp_path / "proof.zip")
    found = pc.check(to_check(parities(1)), None, tmp_path / "proof.zip")
    assert found.log_upper - found.log_lower < 1e-9
    assert found.log_lower <= result.log_upper
    assert found.log_upper >= result.log_lower


@pytest.mark.parametrize("seed", range(4))
def test_certificates_of_assignments(seed: int, tmp_path: Path) -> None:
    model = parities(seed)
    chosen = list(range(0, model.n_variables, 2))
    weights = np.ones(model.n_variables)
    weights[chosen] = 0.0
    result = ps.solve(model, chosen, schedule=NOT_BY_TABLES, work=2.0, time_limit=None, certificate=True)
    assert result.certificate is not None
    result.certificate.save(tmp_path / "proof.zip")
    found = pc.check(to_check(model), pc.Question.of(to_check(model), maximize=chosen), tmp_path / "proof.zip")
    truth = exact_value(model, weights)
    assert found.log_lower <= truth + 1e-9
    assert truth <= found.log_upper + 1e-9
    assert found.log_lower == pytest.approx(result.log_lower, abs=1e-6)


def test_it_is_tried_before_any_tree_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_crew(*arguments: object) -> None:
        raise AssertionError("a crew was called for")

    monkeypatch.setattr(work, "crew_of", no_crew)
    result = ps.solve(parities(1), schedule=NOT_BY_TABLES, work=2.0, time_limit=None)
    assert "onditioning" in result.reason


def test_a_promise_to_be_quicker_than_tables_is_not_believed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parities(1)
    problem = simplify(model, ps.Query.of(model), {})
    worker = Conditioning(task_of(problem, Board(model.n_variables)))
    monkeypatch.setattr(worker, "nearly_done", lambda share, seconds: True)
    worker._seconds = 2.9
    assert worker.promising(1.0, 6.0)
    worker._seconds = 3.1
    assert not worker.promising(1.0, 6.0)
    assert worker.promising(1.0, math.inf)
