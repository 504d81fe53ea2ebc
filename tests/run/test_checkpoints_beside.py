"""Checkpoints of many workers and of the k best: each file holds at any moment, and a run goes on from it."""

from __future__ import annotations

import concurrent.futures as cf
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import powersum as ps
import powersum_check as pc
from powersum.cluster.executor import Workers
from powersum.exact import small
from powersum.model.certificate import Certificate
from powersum.run.checkpoint import Checkpoints
from powersum.run.cubes import Conquest
from powersum.run.solver import Solver
from powersum.run.tuning import Schedule
from tests.cases import Case, case, hard_case
from tests.check.helpers import to_check
from tests.run.test_best_proofs import World, packed
from tests.run.test_cubes import question_of, truth

SEARCHED = Schedule(quick=0.0, ibound=1, late_elimination=0.0, order_search_from=math.inf)
CLOSE = 1e-8


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[Certificate]:
    """Every certificate that is written, in order; no question is small."""
    seen: list[Certificate] = []
    write = Checkpoints.write

    def noted(checkpoints: Checkpoints, certificate: Certificate) -> None:
        seen.append(certificate)
        write(checkpoints, certificate)

    monkeypatch.setattr(Checkpoints, "write", noted)
    monkeypatch.setattr(small, "MOST_ENTRIES", -1)
    return seen


@pytest.fixture
def pool() -> Iterator[cf.Executor]:
    with cf.ThreadPoolExecutor(2) as pool:
        yield pool


def asked_of(model: ps.Model, maximize: list[int], evidence: dict[int, int]) -> pc.Question:
    weights = [0.0 if v in maximize else 1.0 for v in range(model.n_variables)]
    return pc.Question(tuple(weights), dict(evidence))


def hold(files: list[Certificate], model: ps.Model, maximize: list[int], evidence: dict[int, int]) -> pc.Verified:
    """Check every file; what the last one proves."""
    value, asked = truth(model, maximize, evidence), asked_of(model, maximize, evidence)
    assert files
    for certificate in files:
        verified = pc.check(to_check(model), asked, packed(certificate))
        assert verified.log_lower - CLOSE <= value <= verified.log_upper + CLOSE
    return verified


@pytest.mark.parametrize("road", [False, True])
@pytest.mark.parametrize("seed", range(9))
def test_files_of_many_workers_hold_and_are_gone_on_from(
    seed: int, road: bool, files: list[Certificate], pool: cf.Executor, tmp_path: Path
) -> None:
    model, maximize, evidence = question_of(seed)
    path, options = tmp_path / "run.zip", dict[str, Any](evidence=evidence, schedule=SEARCHED, every=0.0)
    solver = Solver(model, maximize or None, checkpoint=path, time_limit=600.0, **options)
    result = Conquest(solver, Workers(pool, own=False), seconds=600.0, road=road).run()
    verified = hold(files, model, maximize, evidence)
    assert verified.log_upper <= result.log_upper + 1e-6
    assert verified.log_lower >= result.log_lower - 1e-6
    # From each file, here with others and alone: never worse than what it proves.
    for certificate in (files[0], files[len(files) // 2], files[-1]):
        certificate.save(path)
        before = pc.check(to_check(model), asked_of(model, maximize, evidence), packed(certificate))
        files.clear()
        for executor in (pool, None):
            again = ps.solve(
                model, maximize or None, **options, work=0.05, resume=path, checkpoint=path, workers=executor
            )
            assert again.log_upper <= before.log_upper + 1e-6
            assert again.log_lower >= before.log_lower - 1e-6
            after = hold(files, model, maximize, evidence)
            assert after.log_upper <= before.log_upper + 1e-6


@pytest.mark.parametrize("kind", [case, hard_case])
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_files_of_the_k_best_hold_and_are_gone_on_from(
    kind: Callable[[int], Case], seed: int, beside: bool, files: list[Certificate], pool: cf.Executor, tmp_path: Path
) -> None:
    asked, path = kind(seed), tmp_path / "run.zip"
    if asked.query.task == "PR":
        return
    options: dict[str, Any] = {"weights": asked.query, "evidence": asked.evidence, "k": 3, "schedule": SEARCHED}
    options |= {"workers": pool if beside else None, "every": 0.0, "checkpoint": path}
    result = ps.solve(asked.model, **options, work=2.0)
    world, question = World(asked, {}), pc.Question(tuple(asked.query.weights.tolist()), dict(asked.evidence))
    top = max(world.values.values())
    lists = 0
    for certificate in files:
        verified = pc.check(to_check(asked.model), question, packed(certificate))
        assert verified.log_lower - CLOSE <= top <= verified.log_upper + CLOSE
        if verified.best is not None:
            lists += 1
            assert not world.wrong(verified.best)
    assert lists or not result.best
    files[len(files) // 2].save(path)
    before = pc.check(to_check(asked.model), question, packed(files[len(files) // 2]))
    again = ps.solve(asked.model, **options, work=2.0, resume=path)
    assert again.log_upper <= before.log_upper + 1e-6
    assert again.log_lower >= before.log_lower - 1e-6
    assert [one.log_lower for one in again.best] == pytest.approx([one.log_lower for one in result.best], abs=2e-6)


def test_another_question_has_the_tree_and_the_assignment_only(pool: cf.Executor, tmp_path: Path) -> None:
    model, query = ps.generate.grid(8, 8, strength=2.0, seed=3)
    path, road = tmp_path / "run.zip", Schedule(elimination_cost=1e3)
    ps.solve(model, query, checkpoint=path, work=0.2, schedule=road)
    free = next(v for v in range(model.n_variables) if v not in {int(v) for v in query})
    there = ps.solve(model, query, evidence={free: 1}, schedule=road, work=2.0)
    again = ps.solve(model, query, evidence={free: 1}, schedule=road, work=2.0, resume=path, workers=pool)
    assert again.log_lower <= there.log_upper + 1e-9
    assert again.log_upper >= there.log_lower - 1e-9


def test_a_file_that_proves_nothing_is_no_proof(pool: cf.Executor, tmp_path: Path) -> None:
    model, query = ps.generate.grid(8, 8, strength=2.0, seed=3)
    path, road = tmp_path / "run.zip", Schedule(elimination_cost=1e3)
    result = ps.solve(model, query, checkpoint=path, work=0.2, schedule=road)
    certificate = result.certificate
    assert certificate is not None
    # Its claim is far below what its steps prove.
    forged = {**certificate.head, "claim": {"log_lower": -1e3, "log_upper": -1e2}}
    Certificate(forged, certificate.arrays).save(path)
    again = ps.solve(model, query, schedule=road, work=2.0, resume=path, workers=pool)
    assert again.log_upper >= result.log_lower - 1e-9
