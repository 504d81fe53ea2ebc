"""Certificates of cubes join into one that the checker accepts; it refuses one where a cube is wrong or missing."""

from __future__ import annotations

import concurrent.futures as cf
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.model.certificate import Certificate
from powersum.proof.boxes import NOTHING_PROVEN, proof_of
from powersum.run import cubes
from powersum.run.box_run import BoxJob, BoxQuestion, BoxReport, bound_box
from powersum.run.tuning import Schedule
from tests.cases import Case, bushy_case, case, hard_case
from tests.check.helpers import to_check
from tests.proof.test_certificate import network
from tests.run.test_certified_answers import ROADS, checked

DEEP = 3
"""Cubes of fewer variables may be split although they are settled."""


class Doubtful:
    """Bounds cubes as workers do, but often keeps to itself what it has found, so that cubes are split."""

    def __init__(self, seed: int, seconds: float = 60.0, silent: int = 1) -> None:
        self._rng, self._seconds, self._silent = np.random.default_rng(seed), seconds, silent

    def __call__(self, asked: BoxQuestion, job: BoxJob) -> BoxReport:
        # Without a floor every cube has a value of its own, which makes proofs of all kinds.
        cube = job.allowed
        report = bound_box(asked, replace(job, log_floor=-math.inf, seconds=self._seconds))
        question = asked.question
        maximize = question.query.max_variables.tolist()
        free = [
            v
            for v in (maximize or range(question.model.n_variables))
            if v not in cube and v not in question.evidence.states
        ]
        if len(cube) >= DEEP or not free:
            return report
        dumb = len(cube) < self._silent or self._rng.random() < 0.5
        branch = int(self._rng.choice(free)) if dumb or self._rng.random() < 0.3 else report.branch
        if dumb:
            return BoxReport(branch=branch, seconds=0.0)
        return replace(report, branch=branch)


def solved(
    asked: Case,
    monkeypatch: pytest.MonkeyPatch,
    worker: Doubtful,
    schedule: Schedule,
    time_limit: float | None = None,
) -> ps.Result:
    """The answer by cubes: with a time limit some of them stay open, without one all are closed."""
    monkeypatch.setattr(cubes, "bound_box", worker)
    with cf.ThreadPoolExecutor(2) as pool:
        return ps.solve(
            asked.model,
            weights=asked.query,
            evidence=asked.evidence,
            time_limit=time_limit,
            workers=pool,
            certificate=True,
            schedule=schedule,
        )


@pytest.mark.parametrize("schedule", ROADS[1:3])
@pytest.mark.parametrize("kind", [case, network, hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(4))
def test_one_certificate_of_all_cubes(
    kind: Callable[[int], Case], seed: int, schedule: Schedule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = kind(seed)
    result = solved(asked, monkeypatch, Doubtful(seed), schedule)
    assert not result.notes
    found = checked(result, asked, tmp_path)
    if result.assignment:
        assert found.assignment is not None
        assert all(found.assignment[int(name)] == int(state) for name, state in result.assignment.items())


@pytest.mark.parametrize("kind", [case, hard_case])
@pytest.mark.parametrize("seed", range(2))
def test_what_is_proven_when_time_is_over(
    kind: Callable[[int], Case], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums that are too wide: cubes stay open, and those that nobody has looked at stand on proofs around them."""
    asked = kind(seed)
    result = solved(asked, monkeypatch, Doubtful(seed, 0.2), ROADS[3].values[0], time_limit=2.0)  # type: ignore[arg-type]
    checked(result, asked, tmp_path)


def grid(maximize: Any, seed: int = 3) -> Case:
    model, query = ps.generate.grid(4, 4, strength=2.0, seed=seed)
    return Case(model, ps.Query.of(model, query if maximize == "some" else maximize), {})


def accepted(certificate: Certificate, asked: Case, folder: Path) -> bool:
    path = folder / "changed.zip"
    certificate.save(path)
    question = pc.Question(tuple(asked.query.weights.tolist()), dict(asked.evidence))
    try:
        pc.check(to_check(asked.model), question, path)
    except (pc.Rejected, pc.BadFile):
        return False
    return True


Change = Callable[[list[list[int]]], list[list[int]]]


def changed(certificate: Certificate, numbers: list[int], change: Change) -> Certificate:
    """The certificate with other parts of some covers."""
    parts = {f"{n}/parts": np.array(change(certificate.arrays[f"{n}/parts"].tolist())) for n in numbers}
    return Certificate(certificate.head, {**certificate.arrays, **parts})


def state_of(certificate: Certificate, number: int, variable: int) -> int:
    """The state that the box of a step has for a variable."""
    return next(int(s) for v, s in certificate.arrays[f"{number}/box"].tolist() if v == variable)


@pytest.mark.parametrize("maximize", ["some", "all", None])
def test_a_cube_that_is_missing_or_not_the_one_is_refused(
    maximize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = grid(maximize)
    # Whatever the parts prove is needed: no step is about the whole but a cover.
    result = solved(asked, monkeypatch, Doubtful(1, silent=2), Schedule(quick=0.0))
    assert result.status is ps.Status.OPTIMAL
    certificate = result.certificate
    assert certificate is not None
    assert accepted(certificate, asked, tmp_path)
    steps, arrays = certificate.head["steps"], certificate.arrays
    # Both bounds of a sum have covers of their own where they rest on different steps.
    groups: dict[Any, list[int]] = {}
    for number, step in enumerate(steps):
        if step["kind"] == "cover":
            groups.setdefault(arrays.get(f"{number}/box", np.zeros(0)).tobytes(), []).append(number)
    assert len(groups) >= 3
    for numbers in groups.values():
        v = int(arrays[f"{numbers[0]}/parts"][0, 0])
        named = {c for n in numbers for c in arrays[f"{n}/parts"][:, 2].tolist() if c >= 0}
        for state in range(2):
            own = {c for c in named if state_of(certificate, c, v) == state}
            other = next(iter(named - own))

            def missing(parts: list[list[int]], own: set[int] = own) -> list[list[int]]:
                return [[u, s, -1 if step in own else step] for u, s, step in parts]

            def doubled(parts: list[list[int]], own: set[int] = own, other: int = other) -> list[list[int]]:
                return [[u, s, other if step in own else step] for u, s, step in parts]

            assert not accepted(changed(certificate, numbers, missing), asked, tmp_path)
            assert not accepted(changed(certificate, numbers, doubled), asked, tmp_path)
            # The same proofs about the other cube.
            boxes = {}
            for child in own:
                box = arrays[f"{child}/box"].copy()
                box[box[:, 0] == v, 1] = 1 - state
                boxes[f"{child}/box"] = box
            assert not accepted(Certificate(certificate.head, {**arrays, **boxes}), asked, tmp_path)
        other = next(u for u in range(asked.model.n_variables) if u != v)

        def by_another(parts: list[list[int]], u: int = other) -> list[list[int]]:
            return [[u if v >= 0 else -1, s, step] for v, s, step in parts]

        assert not accepted(changed(certificate, numbers, by_another), asked, tmp_path)


def test_what_evidence_excludes_is_proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Likelihoods of zero, and variables that are split by although they have such."""
    model, query = ps.generate.grid(4, 4, strength=2.0, seed=3)
    likelihoods = {int(query[0]): [0.0, 0.7], int(query[1]): [0.4, 0.6]}
    monkeypatch.setattr(cubes, "bound_box", Doubtful(2))
    with cf.ThreadPoolExecutor(2) as pool:
        result = ps.solve(
            model,
            query,
            evidence=likelihoods,
            workers=pool,
            certificate=True,
            time_limit=None,
            schedule=Schedule(quick=0.0),
        )
    assert result.certificate is not None
    result.certificate.save(tmp_path / "proof.zip")
    asked = pc.Question.of(
        to_check(model), maximize=[int(v) for v in query], likelihoods={v: list(row) for v, row in likelihoods.items()}
    )
    found = pc.check(to_check(model), asked, tmp_path / "proof.zip")
    alone = ps.solve(model, query, evidence=likelihoods)
    assert found.log_upper >= alone.log_lower - 1e-9
    assert found.log_upper == pytest.approx(alone.log_upper, abs=1e-6)
    assert found.log_lower == pytest.approx(alone.log_lower, abs=1e-6)


def test_bounds_are_not_better_than_their_proofs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cube that a worker settled but could not prove is split, and its parts are proven."""
    asked = grid("some")

    def late(certificate: Certificate, n_above: int, whole: Any, run: Any, known: Any) -> Any:
        return proof_of(certificate, n_above, whole, run, known) if len(known) >= 2 else NOTHING_PROVEN

    monkeypatch.setattr("powersum.run.box_run.proof_of", late)
    with cf.ThreadPoolExecutor(2) as pool:
        result = ps.solve(
            asked.model, weights=asked.query, workers=pool, certificate=True, schedule=Schedule(quick=0.0)
        )
    assert result.status is ps.Status.OPTIMAL
    assert result.sizes["cubes"] >= 4
    checked(result, asked, tmp_path)
