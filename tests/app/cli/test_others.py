"""Help, version, ``info`` and ``generate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import powersum as ps
from tests.app.cli.conftest import Command

COMMANDS = [
    "",
    "bound",
    "info",
    "generate",
    *(f"generate {kind}" for kind in ("grid", "pedigree", "diagnosis", "detection", "random")),
]


@pytest.mark.parametrize("words", COMMANDS)
def test_help_ends_with_two_examples(command: Command, words: str) -> None:
    ran = command(*words.split(), "--help")
    assert ran.code == 0
    lines = [line.strip() for line in ran.out.split("Examples:")[1].splitlines() if line.strip()]
    assert sum(line.startswith("powersum ") for line in lines) == 2


def test_version(command: Command) -> None:
    assert command("--version").out == f"powersum {ps.__version__}\n"


def test_unknown_command(command: Command) -> None:
    ran = command("guess")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "powersum: No such command 'guess'.\n"


def test_info(command: Command, model_file: Path) -> None:
    ran = command("info", model_file, "--query", f"{model_file}.query")
    assert ran.code == 0
    for words in ("16, states 2 (16×)", "1 (16×), 2 (24×)", "(8 of 16 variables)", "constrained width:", "gdd:"):
        assert words in ran.out


def test_info_json(command: Command, model_file: Path, tmp_path: Path) -> None:
    ran = command("info", model_file, "--max", "all", "--json", "-")
    data = json.loads(ran.out, parse_constant=pytest.fail)
    assert data["task"] == "MAP"
    assert data["model"]["variables"] == 16
    assert data["model"]["zeros"] == 0
    assert data["components"] == 1
    assert data["width"] >= 4
    assert data["gdd_bytes"] > 0
    assert all(size > 0 for size in data["tree_bytes"].values())
    assert command("info", model_file, "--max", "all", "--json", tmp_path / "i.json").code == 0
    assert json.loads((tmp_path / "i.json").read_text()) == data


def test_info_where_nothing_is_left_to_do(command: Command, tmp_path: Path) -> None:
    model = tmp_path / "small.uai"
    model.write_text("MARKOV 2 2 2 1 2 0 1 4 1 0 0 1")
    assert "nothing has positive probability" in command("info", model, "--evidence", "0=0,1=1").out
    assert "exact, by simplification alone" in command("info", model, "--evidence", "0=0").out
    data = json.loads(command("info", model, "--evidence", "0=0", "--json", "-").out, parse_constant=pytest.fail)
    assert data["log2_exact_bytes"] == "-inf"


@pytest.mark.parametrize(
    "words",
    [
        "grid --rows 3 --columns 4",
        "grid --rows 3 --columns 4 --kind bayes --states 3",
        "pedigree --people 8 --loci 2",
        "diagnosis --variables 20 --states 3",
        "detection --parts 6 --states 4",
        "random --variables 9 --factors 12 --zeros 0.2",
    ],
)
@pytest.mark.parametrize("ending", [".uai", ".uai.gz"])
def test_generate(command: Command, tmp_path: Path, words: str, ending: str) -> None:
    path = tmp_path / f"made{ending}"
    ran = command("generate", *words.split(), "--seed", 4, "-o", path)
    assert ran.code == 0, ran.err
    model = ps.read(path)
    query = ps.read_query(tmp_path / "made.uai.query", model)
    assert f"{model.n_variables} variables" in ran.out
    assert f"{len(query)} variables to maximise" in ran.out
    bounded = command("bound", path, "--query", tmp_path / "made.uai.query", "--sweeps", 3, "-q")
    assert float(bounded.out) > -1e9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("grid --rows 0 -o x.uai", "rows is 0: it must be 1 or more"),
        ("grid --share 2 -o x.uai", "share is 2.0: it must be between 0 and 1"),
        ("grid --kind odd -o x.uai", "kind is 'odd': there is mixed, attractive, bayes"),
        ("grid --strength nan -o x.uai", "strength is nan: it must be a number ≥ 0"),
        ("pedigree --people 5 --founders 6 -o x.uai", "people is 5: it must be 6 or more"),
        ("diagnosis --states 1 -o x.uai", "states is 1: it must be 2 or more"),
        ("detection --parts 20 --strength 900 -o x.uai", "is too large for a file"),
        ("random --seed -1 -o x.uai", "'--seed'"),
        ("grid -o x.bin", "x.bin: unknown kind of model"),
        ("grid -o nowhere/x.uai", "nowhere/x.uai: cannot be written (No such file or directory)"),
        ("grid", "Missing option '--output' / '-o'."),
    ],
)
def test_generate_refusals(
    command: Command, tmp_path: Path, words: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = command("generate", *words.split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert message in ran.err
    assert list(tmp_path.iterdir()) == []


def test_marginals(command: Command, model_file: Path) -> None:
    ran = command("marginals", model_file, "--evidence", "5=1", "--of", "5,0")
    assert (ran.code, ran.err) == (0, "")
    question, *lines = ran.out.splitlines()
    assert question == "question: marginals of 5, 0 given 5=1"
    assert len(lines) == 5
    assert lines[:3] == ["variable  state  probability", "5         0      0 %", "5         1      100 %"]
    share = ps.marginals(ps.read(model_file), evidence={5: 1})[0][0]
    assert lines[3].split() == ["0", "0", *str(share).split()]
    assert command("marginals", model_file, "--of", "99").code == 2
