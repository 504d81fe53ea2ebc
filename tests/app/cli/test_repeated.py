"""Options that are given more than once: they add up or are refused, and the answer says what was asked."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import powersum as ps
from tests.app.cli.conftest import Command

CLINIC = Path(__file__).resolve().parents[3] / "examples" / "clinic.bif"
COUGH, XRAY = ("--evidence", "cough=yes"), ("--evidence", "xray=clear")


@pytest.mark.parametrize("name", ["solve", "bound"])
def test_evidence_adds_up(command: Command, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out.json"
    ran = command(name, CLINIC, "--max", "cancer", *COUGH, *XRAY, "--json", out)
    assert ran.code == 0, ran.err
    expected = ps.solve(CLINIC, ["cancer"], evidence={"cough": "yes", "xray": "clear"})
    data = json.loads(out.read_text())
    assert data["log_upper"] == pytest.approx(expected.log_upper, abs=1e-6)
    assert data["question"]["evidence"] == {"cough": "yes", "xray": "clear"}
    assert "question: marginal MAP over cancer (1 of 7 variables) given cough=yes, xray=clear\n" in ran.out


@pytest.mark.parametrize("name", ["solve", "bound", "info", "compare"])
def test_names_add_up(command: Command, name: str) -> None:
    ran = command(name, CLINIC, "--max", "cancer", "--max", "asthma,bronchitis", *COUGH)
    assert ran.code == 0, ran.err
    words = "marginal MAP over cancer, asthma, bronchitis (3 of 7 variables) given cough=yes"
    assert words in " ".join(ran.out.split())


def test_marginals_of_each(command: Command) -> None:
    ran = command("marginals", CLINIC, "--of", "cancer", "--of", "asthma,cancer", *COUGH, *XRAY)
    assert ran.code == 0, ran.err
    question, _, *rows = ran.out.splitlines()
    assert question == "question: marginals of cancer, asthma given cough=yes, xray=clear"
    assert [row.split()[0] for row in rows] == ["cancer", "cancer", "asthma", "asthma"]
    expected = ps.marginals(CLINIC, evidence={"cough": "yes", "xray": "clear"})["cancer"]
    assert rows[0].endswith(str(next(iter(expected.values()))))


def test_likelihoods_add_up(command: Command) -> None:
    words = ("--likelihood", "cough=0.3,0.6", "--likelihood", "xray=clear:0.2,shadow:0.6")
    ran = command("solve", CLINIC, *words, "--quiet")
    expected = ps.solve(CLINIC, evidence={"cough": [0.3, 0.6], "xray": {"clear": 0.2, "shadow": 0.6}})
    assert float(ran.out.split()[0]) == pytest.approx(expected.log_lower, abs=1e-6)
    assert math.isfinite(expected.log_lower)


def test_columns_to_keep_add_up(command: Command, tmp_path: Path) -> None:
    cases = tmp_path / "cases.csv"
    cases.write_text("id,date,cough\n7,May,yes\n")
    ran = command("batch", CLINIC, cases, "--max", "cancer", "--max", "asthma", "--keep", "id", "--keep", "date")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0].startswith("row,id,date,status,cancer,asthma,")
    assert "question: marginal MAP over cancer, asthma (2 of 7 variables)\n" in ran.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*COUGH, "--evidence", "cough=no"], "evidence gives variable cough two states: yes, no"),
        (["--evidence", "cough=yes,cough=no"], "evidence gives variable cough two states: yes, no"),
        (
            ["--likelihood", "cough=1,2", "--likelihood", "cough=2,1"],
            "evidence gives variable cough likelihoods twice",
        ),
        ([*COUGH, "--likelihood", "cough=1,2"], "evidence gives variable cough both a state and likelihoods"),
    ],
)
@pytest.mark.parametrize("name", ["solve", "bound", "marginals", "info", "compare"])
def test_contradictions_are_refused(command: Command, name: str, words: list[str], message: str) -> None:
    ran = command(name, CLINIC, *words)
    assert (ran.code, ran.out, ran.err) == (2, "", f"powersum: {message}\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max", "cancer", "--max", "cancer"], "the query names variable cancer twice"),
        (["--max", "all", "--max", "cancer"], "--max: 'all' names every variable: give it alone"),
        (["--query", "a.query", "--query", "b.query"], "--query is given more than once, and takes one value"),
        (["--evid", "a.evid", "--evid", "b.evid"], "--evid is given more than once, and takes one value"),
        (["--time", "1", "--time", "2"], "--time is given more than once, and takes one value"),
    ],
)
def test_what_takes_one_value_is_given_once(command: Command, words: list[str], message: str) -> None:
    ran = command("solve", CLINIC, *words)
    assert (ran.code, ran.out, ran.err) == (2, "", f"powersum: {message}\n")


def test_long_questions_stay_one_line(command: Command, model_file: Path) -> None:
    pairs = [f"{v}=0" for v in range(15)]
    ran = command("solve", model_file, *(word for pair in pairs for word in ("--evidence", pair)))
    line = next(line for line in ran.out.splitlines() if line.startswith("question:"))
    assert line == f"question: log partition function given {', '.join(pairs[:12])} and 3 more"
