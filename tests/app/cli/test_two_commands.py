"""From a BIF file to a checked proof in two commands, with the answer by names."""

from __future__ import annotations

from pathlib import Path

import pytest

import powersum as ps
from powersum_check.__main__ import main as check
from tests.app.cli.conftest import Command
from tests.interop.networks import CLINIC


def test_a_proof_of_a_network_is_checked_by_names(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, proof = tmp_path / "clinic.bif", tmp_path / "proof.zip"
    ps.write(CLINIC, model)
    ran = command("solve", model, "--max", "cancer", "--evidence", "dyspnoea=much", "--certificate", proof)
    assert ran.code == 0
    uai = tmp_path / "proof.uai"
    assert f"powersum-check {uai} --as-claimed {proof}" in ran.out
    assert check([str(uai), "--as-claimed", str(proof)]) == 0
    wanted = ps.solve(CLINIC, ["cancer"], evidence={"dyspnoea": "much"}).assignment["cancer"]
    assert f"by the names of {uai}.names: cancer={wanted}" in capsys.readouterr().out
    Path(f"{uai}.names").write_text("a b\n")
    assert check([str(uai), "--as-claimed", str(proof)]) == 2
    assert "does not have a line for each variable" in capsys.readouterr().err
