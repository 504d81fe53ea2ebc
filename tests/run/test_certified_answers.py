"""Every road to an answer ends in a certificate that the checker accepts, with bounds as good as the answer's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.run.tuning import DEFAULT_SCHEDULE, Schedule
from tests.cases import Case, bushy_case, case, hard_case
from tests.check.helpers import to_check
from tests.proof.test_certificate import any_weights, network
from tests.run.proofs import truth

Kind = Callable[[int], Case]
ROOM = 1e-8


def checked(result: ps.Result, asked: Case, folder: Path) -> pc.Verified:
    """What the checker says; the certificate claims what the result does, up to rounding."""
    assert result.certificate is not None
    path = folder / "proof.zip"
    result.certificate.save(path)
    question = pc.Question(tuple(asked.query.weights.tolist()), dict(asked.evidence))
    found = pc.check(to_check(asked.model), question, path)
    room = ROOM * max(1.0, abs(result.log_upper)) if math.isfinite(result.log_upper) else 0.0
    assert found.log_upper <= result.log_upper + room
    assert found.log_lower >= result.log_lower - room
    value = truth(asked)
    assert found.log_lower <= value + ROOM
    assert value <= found.log_upper + ROOM
    return found


TOO_WIDE = Schedule(quick=0.0, ibound=1, late_elimination=0.0, evaluation_cost=math.inf)
"""No sum is thought to be affordable."""

ROADS = [
    pytest.param(DEFAULT_SCHEDULE, id="any"),
    pytest.param(Schedule(quick=0.0), id="exact trees"),
    pytest.param(Schedule(quick=0.0, ibound=1, late_elimination=0.0), id="small trees and search"),
    pytest.param(TOO_WIDE, id="partial sums"),
    pytest.param(replace(TOO_WIDE, most_variables=0, quick=1e-9), id="a cutset held"),
]


@pytest.mark.parametrize("schedule", ROADS)
@pytest.mark.parametrize("kind", [case, network, hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(10))
def test_solve(kind: Kind, seed: int, schedule: Schedule, tmp_path: Path) -> None:
    asked = kind(seed)
    result = ps.solve(
        asked.model, weights=asked.query, evidence=asked.evidence, time_limit=1.0, certificate=True, schedule=schedule
    )
    found = checked(result, asked, tmp_path)
    if result.assignment:
        assert found.assignment is not None


@pytest.mark.parametrize("method", ["auto", "gdd", "mbe", "wmb", "lbfgs"])
@pytest.mark.parametrize("kind", [case, any_weights, network, hard_case])
@pytest.mark.parametrize("seed", range(6))
def test_bound(kind: Kind, seed: int, method: str, tmp_path: Path) -> None:
    asked = kind(seed)
    result = ps.bound(
        asked.model, weights=asked.query, evidence=asked.evidence, method=method, sweeps=3, certificate=True
    )
    checked(result, asked, tmp_path)


def test_bound_where_nothing_is_possible_in_an_order_of_its_own(tmp_path: Path) -> None:
    """The cases of a refutation join although variables of larger weight are eliminated later."""
    tables = [
        ((0, 1), [[1.0, 0.0], [0.0, 1.0]]),
        ((0, 2), [[1.0, 1.0], [0.0, 1.0]]),
        ((0, 3), [[0.0, 1.0], [1.0, 1.0]]),
        ((1, 2), [[1.0, 1.0], [1.0, 0.0]]),
        ((1, 3), [[2.0, 0.0], [2.0, 1.0]]),
    ]
    model = ps.Model.from_factors([2] * 4, tables)
    query, order = ps.Query(np.array([1e-6, 1.0, 1.0, 0.5])), (3, 0, 2, 1)
    result = ps.bound(model, weights=query, order=order, method="tree", ibound=0, sweeps=0, certificate=True)
    assert result.status is ps.Status.INFEASIBLE
    assert result.certificate is not None
    result.certificate.save(tmp_path / "proof.zip")
    question = pc.Question(tuple(query.weights.tolist()), order=order)
    assert pc.check(to_check(model), question, tmp_path / "proof.zip").log_upper == -math.inf


@pytest.mark.parametrize("method", ["mas", "reorder"])
def test_methods_without_a_certificate_say_so(method: str) -> None:
    asked = hard_case(0)
    with pytest.raises(ps.InputError, match="no certificate"):
        ps.bound(asked.model, weights=asked.query, method=method, certificate=True)


def test_likelihoods_and_an_order(tmp_path: Path) -> None:
    asked = hard_case(3)
    cards = asked.model.cardinalities
    likelihoods = {4: np.linspace(0.2, 0.8, cards[4]), 1: np.linspace(0.9, 0.1, cards[1])}
    query = ps.Query(np.where(np.arange(len(cards)) % 2, 0.3, 1.2))
    order = list(range(len(cards)))
    result = ps.bound(asked.model, weights=query, evidence=likelihoods, order=order, sweeps=2, certificate=True)
    assert result.certificate is not None
    result.certificate.save(tmp_path / "proof.zip")
    soft = {v: tuple(row.tolist()) for v, row in likelihoods.items()}
    question = pc.Question(tuple(query.weights.tolist()), {}, soft, tuple(order))
    found = pc.check(to_check(asked.model), question, tmp_path / "proof.zip")
    assert found.log_upper == pytest.approx(result.log_upper, abs=1e-8)


def test_a_result_without_a_certificate_has_none_and_stays_small() -> None:
    asked = hard_case(1)
    plain = ps.solve(asked.model, weights=asked.query)
    assert plain.certificate is None
    certified = ps.solve(asked.model, weights=asked.query, certificate=True)
    assert "certificate" not in certified.to_dict()
    assert repr(certified.certificate).startswith("Certificate(tree")


@pytest.mark.parametrize("kind", [hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(5))
def test_partial_sums_prove_themselves(kind: Kind, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where elimination is too wide for a certificate, too."""
    monkeypatch.setattr("powersum.proof.certificate.WIDEST", -1.0)
    asked = kind(seed)
    asked = asked._replace(query=ps.Query.of(asked.model))
    result = ps.solve(asked.model, weights=asked.query, time_limit=600.0, certificate=True, schedule=TOO_WIDE)
    assert result.log_lower > -math.inf
    found = checked(result, asked, tmp_path)
    assert found.log_upper - found.log_lower < 1e-6


@pytest.mark.parametrize("kind", [hard_case, bushy_case])
def test_variational_sums_prove_themselves(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither elimination nor partial sums are to be had, distributions have a step of their own."""
    monkeypatch.setattr("powersum.proof.certificate.WIDEST", -1.0)
    schedule = replace(TOO_WIDE, most_variables=0, quick=1e-9, held_table=8.0, longest_evaluation=0.0)
    whole = 0
    for seed in range(6):
        asked = kind(seed)
        asked = asked._replace(query=ps.Query.of(asked.model))
        result = ps.solve(asked.model, weights=asked.query, work=0.5, certificate=True, schedule=schedule)
        assert result.certificate is not None
        assert "mean-field" in [step["kind"] for step in result.certificate.head["steps"]]
        result.certificate.save(tmp_path / "proof.zip")
        question = pc.Question(tuple(asked.query.weights.tolist()))
        found = pc.check(to_check(asked.model), question, tmp_path / "proof.zip")
        assert -math.inf < found.log_lower <= truth(asked) + ROOM
        # Local search that holds a cutset may have found more, which only elimination proves.
        whole += found.log_lower >= result.log_lower - ROOM * max(1.0, abs(result.log_lower))
    assert whole >= 4


def test_a_proof_of_less_than_the_answer_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the soak: regions exclude what only two of them together make impossible, a certificate does not."""
    # The corner bound is exact for so few variables, and would be the proof.
    monkeypatch.setattr("powersum.bounds.corner.corner_of", lambda *_: None)
    rng = np.random.default_rng(0)
    noted = 0
    for _ in range(60):
        tables = [
            ((a, b), np.where(rng.random((3, 3)) < 0.35, 0.0, np.exp(rng.normal(0.0, 5.0, (3, 3)))))
            for a, b in ((0, 1), (1, 2), (2, 3), (3, 0))
        ]
        model = ps.Model.from_factors([3] * 4, tables)
        result = ps.bound(model, maximize=[1, 2, 3], method="gdd", ibound=2, sweeps=20, certificate=True)
        assert result.certificate is not None
        claim = float(result.certificate.head["claim"]["log_upper"])
        less = claim > result.log_upper + 1e-5
        assert less == any("The certificate proves less" in note for note in result.notes)
        noted += less
    assert noted > 0
