"""Labels that are numbers, on the command line and in tables of cases."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from powersum import Model
from tests.app.cli.conftest import Command

STAGE = Model.from_tables(
    {"stage": [0.5, 0.3, 0.2], ("stage", "scan"): [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]},
    states={"stage": ["1", "2", "3"], "scan": ["no", "yes"]},
    directed=True,
)
PRIOR = {"1": 0.5, "2": 0.3, "3": 0.2}


@pytest.mark.parametrize("label", ["1", "2", "3"])
def test_a_label_and_its_place(command: Command, tmp_path: Path, label: str) -> None:
    path, out = tmp_path / "stage.bif", tmp_path / "out.json"
    ps.write(STAGE, path)
    for text in (label, f"{label}.0", f"#{int(label) - 1}"):
        assert command("solve", path, "--evidence", f"stage={text}", "--json", out).code == 0
        assert np.exp(ps.Result.load(out).log_upper) == pytest.approx(PRIOR[label])


def test_a_place_that_is_no_label_is_refused(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "stage.bif"
    ps.write(STAGE, path)
    ran = command("solve", path, "--evidence", "stage=0")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "powersum: variable stage has no state '0': it has '1', '2', '3'\n"


def test_tables_of_cases(command: Command, tmp_path: Path) -> None:
    path, cases, out = tmp_path / "stage.bif", tmp_path / "cases.csv", tmp_path / "out.csv"
    ps.write(STAGE, path)
    cases.write_text("stage\n0\n1\n2.0\n#2\n")
    assert command("batch", path, cases, "-o", out).code == 1
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["status"] for row in rows] == ["error", "optimal", "optimal", "optimal"]
    assert [float(row["log_value"]) for row in rows[1:]] == pytest.approx(np.log([0.5, 0.3, 0.2]).tolist())
    lines, answers = tmp_path / "cases.jsonl", tmp_path / "out.jsonl"
    lines.write_text('{"stage": 1}\n{"stage": "1"}\n')
    assert command("batch", path, lines, "-o", answers).code == 1
    first, second = (json.loads(line) for line in answers.read_text().splitlines())
    assert "write '1' or '#1'" in first["message"]
    assert second["log_value"] == pytest.approx(np.log(0.5))
