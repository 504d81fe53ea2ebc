"""``--certificate``: a file that ``powersum-check`` accepts, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from powersum_check.__main__ import main
from tests.app.cli.conftest import Command


@pytest.mark.parametrize("entry", [("solve", "--time", 5), ("bound", "--sweeps", 3), ("bound", "--method", "gdd")])
def test_a_proof_in_two_commands(
    entry: tuple[str, ...], command: Command, model_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof, query = tmp_path / "proof.zip", f"{model_file}.query"
    ran = command(entry[0], model_file, "--query", query, "--certificate", proof, *entry[1:])
    assert ran.code == 0
    assert f"wrote {proof}" in ran.out
    assert main([str(model_file), "--query", query, str(proof)]) == 0
    assert "verified" in capsys.readouterr().out


def test_a_method_without_proofs_is_refused_in_one_line(command: Command, model_file: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof.zip"
    ran = command("bound", model_file, "--method", "mas", "--certificate", proof)
    assert ran.code != 0
    assert len(ran.err.strip().splitlines()) == 1
    assert "no certificate" in ran.err
    assert not proof.exists()


def test_the_best_are_proven_in_two_commands(
    command: Command, model_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof, query = tmp_path / "proof.zip", f"{model_file}.query"
    assert command("solve", model_file, "--query", query, "--best", "3", "--certificate", proof).code == 0
    assert main([str(model_file), "--query", query, str(proof)]) == 0
    assert "best in order, to within" in capsys.readouterr().out
