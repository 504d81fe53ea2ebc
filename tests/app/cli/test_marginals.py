"""``powersum marginals`` and ``powersum ask``: tables, JSON, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import powersum as ps
from powersum.formats.results import read_result
from tests.app.cli.conftest import Command

CLINIC = Path("examples/clinic.bif")


def test_joint_distributions_are_shown_alone_or_beside_others(command: Command) -> None:
    ran = command("marginals", CLINIC, "--joint", "smoker,cancer")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[1].split() == ["variable", "state", "probability"]
    assert lines[2].split() == ["smoker,", "cancer", "no,", "no", "69.3", "%"]
    assert len(lines) == 6
    ran = command("marginals", CLINIC, "--joint", "smoker,cancer", "--of", "smoker")
    assert len(ran.out.splitlines()) == 8


def test_json_has_both_sides_and_the_estimate(command: Command, tmp_path: Path) -> None:
    ran = command("marginals", CLINIC, "--joint", "smoker,cancer", "--of", "xray", "--json", "-")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert found["exact"] is True
    assert [one["variable"] for one in found["marginals"]] == ["xray"]
    for state in [*found["marginals"][0]["states"], *found["joints"][0]["states"]]:
        assert 0.0 <= state["lower"] <= state["estimate"] * (1.0 + 1e-9)
        assert state["estimate"] <= state["upper"] * (1.0 + 1e-9) <= 1.1
    assert found["joints"][0]["variables"] == ["smoker", "cancer"]
    out = tmp_path / "m.json"
    ran = command("marginals", CLINIC, "--json", out)
    assert ran.out.splitlines()[-1] == f"wrote {out}"
    assert len(json.loads(out.read_text())["marginals"]) == ps.read(CLINIC).n_variables


def test_what_is_not_exact_is_said(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "grid.uai"
    ps.write(ps.generate.grid(40, 40, seed=1).model, path)
    ran = command("marginals", path, "--of", "3", "--time", "0.5")
    assert ran.code == 0
    last = ran.out.splitlines()[-1]
    assert "of 1600 distributions are exact; the widest interval is" in last


def test_ask(command: Command, tmp_path: Path) -> None:
    ran = command("ask", CLINIC, "--about", "cancer", "--among", "xray,smoker", "--evidence", "cough=yes")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "question: what to observe next to find out about cancer given cough=yes"
    assert [line.split()[0] for line in lines[1:]] == ["observe", "xray", "smoker"]
    out = tmp_path / "ask.json"
    assert command("ask", CLINIC, "--about", "cancer", "--json", out).code == 0
    found = json.loads(out.read_text())
    assert found["about"] == ["cancer"]
    assert found["variables"][0]["information"][0] <= found["variables"][0]["information"][1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ask", "--about", "nobody"], "no variable is called 'nobody'"),
        (["ask", "--about", "cancer", "--among", "cancer"], "among: 'cancer' is what is asked about"),
        (["ask", "--about", "cancer", "--among", "cough", "--evidence", "cough=yes"], "is observed already"),
        (["marginals", "--joint", "smoker"], "is a single variable"),
        (["marginals", "--joint", "smoker,smoker"], "has a variable twice"),
        (["marginals", "--joint", "smoker,nobody"], "no variable is called 'nobody'"),
    ],
)
def test_bad_input_is_one_line(command: Command, words: list[str], message: str) -> None:
    ran = command(words[0], CLINIC, *words[1:])
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_uai_solver_writes_marginals_as_it_finds_them(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INF_TIME", "4")
    monkeypatch.setattr("powersum.app.cli.uai_solver.FIRST_MARGINALS", 0.2)
    model = ps.generate.grid(30, 30, seed=1).model
    ps.write(model, tmp_path / "grid.uai")
    assert command("uai-solver", "grid.uai", "", "", "MAR").code == 0
    lines = (tmp_path / "grid.uai.MAR").read_text().splitlines()
    assert lines[0] == "MAR"
    assert len(lines) > 2
    rows = read_result(tmp_path / "grid.uai.MAR").marginals
    assert len(rows) == model.n_variables
    assert all(abs(row.sum() - 1.0) < 1e-9 for row in rows)
