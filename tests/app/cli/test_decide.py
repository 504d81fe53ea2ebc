"""``powersum decide``: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.cli.conftest import Command

UAI = """ID
3
2 2 2
3
1 0
2 0 1
2 0 2
2
0.6 0.4
4
0.9 0.1 0.3 0.7
4
0 -70 0 120
"""
KINDS = "3\nC C D\n3\nP P U\n"
ORDER = "3;\n3;\n0;\n2;\n1;\n"
"""Oil is never seen, variable 2 (drill) is decided, variable 1 (the test) is seen before."""


@pytest.fixture
def diagram(tmp_path: Path) -> Path:
    path = tmp_path / "oil.uai"
    path.write_text(UAI)
    path.with_suffix(".id").write_text(KINDS)
    path.with_suffix(".pvo").write_text(ORDER)
    return path


def test_a_policy_is_printed(command: Command, diagram: Path) -> None:
    ran = command("decide", diagram)
    assert ran.code == 0, ran.err
    assert "2 chance variables, 1 decision, 1 utility, perfect recall" in ran.out
    assert "question: best policy" in ran.out
    assert "expected utility 29.4" in ran.out
    assert "2, by 1:\n  0: 0\n  1: 1" in ran.out


def test_json(command: Command, diagram: Path, tmp_path: Path) -> None:
    out = tmp_path / "policy.json"
    assert command("decide", diagram, "--json", out, "--voi").code == 0
    data = json.loads(out.read_text())
    assert data["utility_lower"] == pytest.approx(29.4)
    assert data["utility_upper"] == pytest.approx(29.4)
    assert data["policy"] == [
        {"decision": "2", "sees": ["1"], "rows": [{"seen": [0], "do": 0}, {"seen": [1], "do": 1}]}
    ]
    # With the oil known, drilling in 0.4 of all cases is worth 48.
    (worth,) = data["value_of_information"]
    assert worth["variable"] == "0"
    assert worth["lower"] == pytest.approx(18.6, abs=1e-6)
    assert command("decide", diagram, "--json", "-").out.startswith("{")


def test_evidence(command: Command, diagram: Path) -> None:
    ran = command("decide", diagram, "--evidence", "1=1")
    assert "question: best policy given 1 = 1" in ran.out
    assert "2: 1" in ran.out
    assert command("decide", diagram, "--evidence", "1=1", "-q").out.split()[0].startswith("86.47")


@pytest.mark.parametrize(
    ("suffix", "text", "message"),
    [
        (".id", "3\nC C X\n3\nP P U\n", "a kind of variables is X"),
        (".id", "2\nC C\n3\nP P U\n", "2 variables declared"),
        (".id", "3\nC C D\n3\nP U U\n", "has no table"),
        (".id", "3\nC C C\n3\nP P U\n", "no decision"),
        (".pvo", "3;\n3;\n0;\n2;\n", "2 blocks follow"),
        (".pvo", "3;\n3;\n0;\n2;\n2;\n", "do not name each"),
        (".pvo", "3;\n2;\n0;\n2 1;\n", "decisions and chance variables"),
        (".pvo", "oil", "no order of blocks"),
        (".uai", UAI.replace("0.9 0.1", "0.9 0.2"), "sums to 1.1"),
        (".uai", UAI.replace("ID", "BAYES"), "no influence diagram"),
        (".uai", UAI.replace("0.6 0.4", "1.6 -0.6"), "negative entry"),
    ],
)
def test_bad_files_end_in_one_line(command: Command, diagram: Path, suffix: str, text: str, message: str) -> None:
    diagram.with_suffix(suffix).write_text(text)
    ran = command("decide", diagram)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_missing_file_ends_in_one_line(command: Command, diagram: Path) -> None:
    diagram.with_suffix(".pvo").unlink()
    ran = command("decide", diagram)
    assert ran.code == 2
    assert "oil.pvo: cannot be read" in ran.err


def test_an_impossible_observation_ends_in_one_line(command: Command, diagram: Path) -> None:
    diagram.write_text(UAI.replace("0.9 0.1 0.3 0.7", "1 0 1 0"))
    ran = command("decide", diagram, "--evidence", "1=1")
    assert ran.code == 0
    assert "infeasible: the evidence has probability 0: there is no policy" in ran.out
