"""Bounds of real instances are never below what is known of them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator

import numpy as np
import pytest
from benchmarks.instances import DATA, model_file

import powersum as ps
from powersum.bounds.tree import CoveringTree
from powersum.core.progress import Progress
from powersum.prepare.ordering import elimination_order
from powersum.prepare.simplify import simplify
from powersum.sums.passes import SumPasses
from tests.data import needs_data

pytestmark = needs_data


def exact_rows() -> Iterator[tuple[str, str, str, float]]:
    """Family, instance, task and value of every exact row of the reference table."""
    if not (DATA / "reference.csv").is_file():
        return
    with (DATA / "reference.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["kind"] == "exact":
                yield row["family"], row["instance"], row["task"], float(row["ln"])


@pytest.mark.parametrize(("family", "instance", "task", "exact"), list(exact_rows()))
def test_never_below_a_known_value(family: str, instance: str, task: str, exact: float) -> None:
    folder = DATA / family
    query_path = folder / f"{instance}.map"
    if not query_path.is_file():
        query_path = folder / f"{instance}.uai.query"
    evidence_path = folder / f"{instance}.uai.evid"
    model = ps.read(model_file(family, instance.split(".Q0.5")[0]))
    maximize = {"PR": None, "MAP": "all", "MMAP": ps.read_query(query_path, model) if task == "MMAP" else None}[task]
    evidence = ps.read_evidence(evidence_path, model) if evidence_path.is_file() else {}
    # Published values carry a few decimals of a base-10 logarithm.
    slack = 1e-4 + 1e-6 * abs(exact) if math.isfinite(exact) else 0.0
    result = ps.bound(model, maximize, evidence=evidence, method="gdd", sweeps=10)
    uppers = [snapshot.log_upper for snapshot in result.history]
    assert uppers == sorted(uppers, reverse=True)
    assert result.log_upper >= exact - slack
    assert bool(result.assignment) == (maximize is not None and result.status != "infeasible")


def test_bounds_of_a_real_pedigree_come_closer_with_every_pass() -> None:
    truth = -192.802659
    model = ps.read(model_file("pedigree", "pedigree30"))
    problem = simplify(model, ps.Query(np.ones(model.n_variables)), {})
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau, restarts=4), ibound=8)
    for _ in range(3):
        tree.step(math.inf)
    passes = SumPasses(problem, tree, memory=1e8)
    before = -math.inf
    for _ in range(3):
        while not passes.sum.n_arcs or passes.share == before:
            assert passes.run(math.inf, math.inf) is Progress.MORE
        before = passes.share
        assert passes.sum.log_lower + problem.log_constant <= truth + 1e-5
        assert passes.sum.log_upper + problem.log_constant >= truth - 1e-5
    assert passes.sum.log_lower + problem.log_constant > truth - 15.0


@pytest.mark.parametrize(("instance", "truth"), [("2bitcomp_5.cnf", 36.825239), ("2bitmax_6.cnf", 67.501693)])
def test_formulas_are_counted_exactly(instance: str, truth: float) -> None:
    result = ps.solve(ps.read(model_file("uai2014-pr", instance)), work=20.0, time_limit=None)
    assert result.status is ps.Status.OPTIMAL
    assert result.log_lower == pytest.approx(truth, abs=1e-6)
    assert result.log_upper - result.log_lower < 1e-8
