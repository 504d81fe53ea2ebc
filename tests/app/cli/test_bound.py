"""``powersum bound``: its outputs and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import powersum as ps
from tests.app.cli.conftest import Command

# The tree is exact on small models at once; this method takes its time.
GDD = ("--method", "gdd")


def strict(text: str) -> dict[str, object]:
    """Parsed JSON that holds no NaN and no Infinity."""
    data = json.loads(text, parse_constant=pytest.fail)
    assert isinstance(data, dict)
    return data


def test_plain_lines_in_a_pipe(command: Command, model_file: Path) -> None:
    ran = command("bound", model_file, "--query", f"{model_file}.query", *GDD, "--sweeps", 30)
    assert ran.code == 0
    assert ran.err == ""
    lines = ran.out.splitlines()
    assert lines[0] == f"{model_file}: 16 variables, 40 factors"
    assert [int(line.split()[1]) for line in lines if line.startswith("sweep")] == [0, 1, 2, 5, 10, 20]
    assert any(line.startswith("log value ≤ ") for line in lines)
    assert "bounded: The limit of 30 sweeps was reached." in ran.out
    assert "\x1b" not in ran.out


def test_json_equals_the_python_call(command: Command, model_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    ran = command("bound", model_file, "--max", "1,3", "--evidence", "0=1, 5=0", *GDD, "--sweeps", 7, "--json", out)
    assert ran.code == 0
    assert f"wrote {out}" in ran.out
    data = strict(out.read_text())
    result = ps.bound(ps.read(model_file), [1, 3], evidence={0: 1, 5: 0}, method="gdd", sweeps=7)
    assert data["log_upper"] == result.log_upper
    assert data["assignment"] == dict(result.assignment)
    assert data["status"] == "bounded"
    assert data["method"] == "gdd"
    history = data["history"]
    assert isinstance(history, list)
    assert len(history) == 8
    assert {"seconds", "sweep", "log_upper"} <= set(history[0])


def test_json_on_stdout_is_alone_there(command: Command, model_file: Path) -> None:
    ran = command("bound", model_file, "--json", "-", "--sweeps", 2)
    assert strict(ran.out)["status"] == "optimal"
    assert "sweep" in ran.err


def test_quiet_prints_nothing_but_the_answer(command: Command, model_file: Path) -> None:
    ran = command("bound", model_file, "--sweeps", 5, "--quiet")
    assert ran.err == ""
    assert float(ran.out) == ps.bound(ps.read(model_file), sweeps=5).log_upper
    assert ran.out.count("\n") == 1


def test_quiet_json(command: Command, model_file: Path) -> None:
    ran = command("bound", model_file, "--sweeps", 5, "-q", "--json", "-")
    assert ran.err == ""
    strict(ran.out)


def test_map(command: Command, model_file: Path) -> None:
    ran = command("bound", model_file, "--max", "all", "--sweeps", 5, "--json", "-", "-q")
    assert len(strict(ran.out)["assignment"]) == 16  # type: ignore[arg-type]


def test_plot(command: Command, model_file: Path, tmp_path: Path) -> None:
    picture = tmp_path / "bound.png"
    assert command("bound", model_file, "--sweeps", 5, "--plot", picture).code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_files_by_name_are_used_only_when_asked_for(command: Command, model_file: Path) -> None:
    Path(f"{model_file}.evid").write_text("1 0 1\n")
    ran = command("bound", model_file, "--sweeps", 3, "--json", "-")
    hints = [line for line in ran.err.splitlines() if line.startswith("powersum: note:")]
    assert len(hints) == 2
    assert f"--evid {model_file}.evid" in hints[0]
    assert f"--query {model_file}.query" in hints[1]
    assert strict(ran.out)["log_upper"] == ps.bound(ps.read(model_file), sweeps=3).log_upper
    given = command("bound", model_file, "--evid", f"{model_file}.evid", "--max", "", "--sweeps", 3, "--json", "-")
    assert "note" not in given.err
    assert strict(given.out)["log_upper"] == ps.bound(ps.read(model_file), evidence={0: 1}, sweeps=3).log_upper


def test_an_order_file(command: Command, model_file: Path, tmp_path: Path) -> None:
    order = tmp_path / "order.vo"
    order.write_text("# an order\n16\n" + "\n".join(map(str, range(16))) + "\n")
    ran = command("bound", model_file, "--order", order, "--sweeps", 1, "--json", "-", "-q")
    assert strict(ran.out)["options"]["order"] == "given"  # type: ignore[index]
    assert "max variables must come last" in command("bound", model_file, "--order", order, "--max", "0").err


def test_impossible_evidence_is_an_answer(command: Command, tmp_path: Path) -> None:
    model = tmp_path / "never.uai"
    model.write_text("MARKOV 2 2 2 1 2 0 1 4 1 0 0 1")
    ran = command("bound", model, "--evidence", "0=0,1=1", "--json", "-")
    assert ran.code == 0
    data = strict(ran.out)
    assert data["log_upper"] == "-inf"
    assert data["status"] == "infeasible"
    assert command("bound", model, "--evidence", "0=0,1=1", "-q").out == "-inf\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max", "0,99"], "variable 99 is out of range: the model has variables 0 to 15"),
        (["--max", "x"], "no variable is called 'x'"),
        (["--max", "0,0"], "the query names variable 0 twice"),
        (["--max", "0", "--query", "q"], "give --query or --max, not both"),
        (["--evid", "e", "--evidence", "0=1"], "give --evid or --evidence, not both"),
        (["--evidence", "0"], "--evidence: '0' is not of the form name=state"),
        (["--evidence", "0="], "--evidence: '0=' is not of the form name=state"),
        (["--evidence", "0=1,0=0"], "evidence gives variable 0 two states: 1, 0"),
        (["--evidence", "0=2"], "state 2 of variable 0 is out of range: it has states 0 to 1"),
        (["--sweeps", "-1"], "--sweeps is -1: it must be 0 or more"),
        (["--time", "0"], "--time is 0: it must be above 0"),
        (["--time", "nan"], "--time is nan: it must be a number"),
        (["--change", "-1"], "--change is -1.0: it must be 0 or more"),
        (["--sweeps", "many"], "'--sweeps'"),
        (["--threads", "0"], "'--threads'"),
        (["--method", "magic"], "no method is called 'magic'"),
        (["--method", "gdd", "--start", "cold"], "start is 'cold'"),
        (["--query", "nowhere.query"], "nowhere.query: cannot be read"),
        (["--json", "nowhere/out.json"], "nowhere/out.json: cannot be written (No such file or directory)"),
        (["--json", "."], ".: cannot be written: it is a directory"),
        (["--json", "x" * 300], "cannot be written (File name too long)"),
        (["--plot", "out.txt"], "out.txt: the ending must be that of a picture"),
        (["--json", "same.png", "--plot", "./same.png"], "same.png: is another output already"),
        (["--magic"], "--magic"),
    ],
)
def test_refusals_are_one_line_and_code_2(
    command: Command, model_file: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model_file.parent)
    before = sorted(model_file.parent.iterdir())
    ran = command("bound", model_file, *words)
    assert ran.code == 2
    complaints = [line for line in ran.err.splitlines() if not line.startswith("powersum: note:")]
    assert len(complaints) == 1
    assert complaints[0].startswith("powersum: ")
    assert message in complaints[0]
    assert "sweep " not in ran.out
    assert sorted(model_file.parent.iterdir()) == before


def test_an_input_is_never_overwritten(command: Command, model_file: Path) -> None:
    before = model_file.read_bytes()
    ran = command("bound", model_file, "--json", model_file)
    assert ran.code == 2
    assert "is an input already" in ran.err
    assert model_file.read_bytes() == before


def test_a_missing_model(command: Command, tmp_path: Path) -> None:
    ran = command("bound", tmp_path / "none.uai")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"powersum: {tmp_path}/none.uai: cannot be read (No such file or directory)\n"
