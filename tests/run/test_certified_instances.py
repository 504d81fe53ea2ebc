"""Certificates of real instances: every kind of proof, read by the checker from the files themselves."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from benchmarks.instances import model_file
from benchmarks.solve import load, rows

import powersum as ps
import powersum_check as pc
from tests.data import needs_data

QUESTIONS = [
    ("grid", "50-12-5.Q0.5.I1"),
    ("grid", "90-24-5.Q0.5.I2"),
    ("grid", "90-42-5.Q0.5.I4"),
    ("pedigree", "pedigree1.Q0.5.I0"),
    ("promedas", "or_chain_42.fg.Q0.5.I0"),
]


@needs_data
@pytest.mark.parametrize(("family", "name"), QUESTIONS, ids=lambda value: value)
def test_a_real_instance(family: str, name: str, tmp_path: Path) -> None:
    row = next(row for row in rows() if (row.family, row.instance) == (family, name))
    model, maximize, evidence = load(row)
    result = ps.solve(model, maximize, evidence=evidence, time_limit=8.0, gap=8.0, certificate=True)
    assert result.certificate is not None
    result.certificate.save(tmp_path / "proof.zip")
    weights = tuple(ps.Query.of(model, maximize).weights.tolist())
    read = pc.read_model(model_file(family, name.partition(".Q")[0]), 10**9)
    found = pc.check(read, pc.Question(weights, evidence), tmp_path / "proof.zip")
    assert found.log_lower == pytest.approx(result.log_lower, abs=1e-6)
    # A search that ended early may have a proof of its tree only, and says so. That of a search may prove more than is
    # claimed: contexts on the list are proven as far as they go, not as far as the claim had need of.
    short = [note for note in result.notes if "proves less" in note]
    assert found.log_upper <= result.log_upper + 1e-6 or short
    assert found.log_upper >= result.log_lower - 1e-6
    assert found.assignment is not None or result.log_lower == -math.inf
