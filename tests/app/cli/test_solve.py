"""``powersum solve`` and ``powersum uai-solver``."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from powersum.app.cli import seconds_running
from powersum.formats import read_result
from tests.app.cli.conftest import Command
from tests.oracle import assignment_value, exact_value

POWERSUM = [sys.executable, "-c", "from powersum.app.cli import main; main()"]


def exact(model_file: Path, maximize: list[int]) -> float:
    model = ps.read(model_file)
    return exact_value(model, np.where(np.isin(np.arange(model.n_variables), maximize), 0.0, 1.0))


def test_marginal_map(command: Command, model_file: Path, tmp_path: Path) -> None:
    query = ps.read_query(f"{model_file}.query")
    out, uai, picture = tmp_path / "out.json", tmp_path / "out.MMAP", tmp_path / "out.png"
    ran = command("solve", model_file, "--query", f"{model_file}.query", "--json", out, "--uai", uai, "--plot", picture)
    assert ran.code == 0
    assert ran.err == ""
    assert "optimal: " in ran.out
    data = json.loads(out.read_text())
    assert data["log_lower"] == pytest.approx(exact(model_file, query), abs=1e-6)
    assert data["status"] == "optimal"
    assert read_result(uai).assignment == {int(v): s for v, s in data["assignment"].items()}
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_answer_knows_file_and_order_asked(command: Command, model_file: Path, tmp_path: Path) -> None:
    for name in ("solve", "bound"):
        words = ["--max", "3,0,2", "--evidence", "1=0", "--likelihood", "5=0.2,0.7", "--json", tmp_path / "out.json"]
        assert command(name, model_file, *words).code == 0
        result = ps.Result.load(tmp_path / "out.json")
        assert list(result.assignment) == ["3", "0", "2"]
        assert result.question is not None
        assert result.question.model == model_file.name
        assert result.question.digest == ps.read(model_file).digest
        assert result.question.maximize == ("3", "0", "2")
        assert result.question.evidence == {"1": 0}
        assert result.question.likelihoods == {"5": (0.2, 0.7)}
        assert result.sizes["evidence"] == 1


def test_quiet_prints_both_bounds(command: Command, model_file: Path) -> None:
    ran = command("solve", model_file, "--quiet")
    lower, upper = map(float, ran.out.split())
    assert lower <= exact(model_file, []) + 1e-9
    assert upper >= exact(model_file, []) - 1e-9
    assert upper - lower < 1e-6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--time", "0"], "--time is 0: it must be above 0"),
        (["--gap", "-1"], "--gap is -1.0: it must be 0 or more"),
        (["--memory", "lots"], "--memory is 'lots': it must be bytes or a size such as 500M or 2G"),
        (
            ["--memory", "10"],
            "--memory is 10 bytes: the process with its compiled code takes ",
        ),
        (["--max", "99"], "variable 99 is out of range"),
        (["--uai", "nowhere/x"], "nowhere/x: cannot be written"),
    ],
)
def test_wrong_input_is_one_line(command: Command, model_file: Path, words: list[str], message: str) -> None:
    ran = command("solve", model_file, *words)
    assert ran.code == 2
    complaints = [line for line in ran.err.splitlines() if not line.startswith("powersum: note:")]
    assert len(complaints) == 1
    assert message in complaints[0]


@pytest.mark.parametrize("task", ["PR", "MAR", "MAP", "MMAP"])
def test_competition_entry(
    command: Command, model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INF_TIME", "20")
    # The process of the tests may hold a gigabyte of its own by now.
    monkeypatch.setenv("INF_MEMORY", "8")
    evidence = tmp_path / "grid.evid"
    evidence.write_text("1 5 1\n")
    ran = command("uai-solver", model_file, evidence, f"{model_file}.query", task)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    answer = read_result(tmp_path / f"grid.uai.{task}")
    model, query = ps.read(model_file), ps.read_query(f"{model_file}.query")
    if task == "PR":
        assert answer.log_value == pytest.approx(exact_value(model, np.ones(16), evidence={5: 1}), abs=1e-6)
    elif task == "MAR":
        assert [len(b) for b in answer.marginals] == [2] * 16
        assert answer.marginals[5].tolist() == [0.0, 1.0]
    else:
        best = np.where(np.isin(np.arange(16), query), 0.0, 1.0) if task == "MMAP" else np.zeros(16)
        assert len(answer.assignment) == (16 if task == "MAP" else len(query))
        value = assignment_value(model, dict(answer.assignment), evidence={5: 1})
        assert value == pytest.approx(exact_value(model, best, evidence={5: 1}), abs=1e-6)


def test_the_time_since_the_start_is_that_of_the_process() -> None:
    first = seconds_running()
    assert 0.0 < first <= seconds_running()
    if not Path("/proc/self/stat").exists():
        pytest.skip("the system does not tell when a process was started")
    script = (
        "import time; import powersum; from powersum.app.cli import seconds_running;"
        "used = time.process_time(); print(seconds_running() - used)"
    )
    # One thread only: several would use more seconds of the processor than pass.
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=alone)
    # It has worked since it was started, most of that before the module was loaded. The system counts the start and the
    # present in whole ticks, so that each may be off by one.
    assert float(done.stdout) >= -2.0 / os.sysconf("SC_CLK_TCK")


def test_competition_entry_refuses(
    command: Command, model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("uai-solver", model_file, "", "", "MMAP").err == "powersum: the task MMAP needs a query file\n"
    assert "no task is called 'XX'" in command("uai-solver", model_file, "", "", "XX").err
    monkeypatch.setenv("INF_TIME", "soon")
    ran = command("uai-solver", model_file, "", "", "PR")
    assert ran.code == 2
    assert "the environment variable INF_TIME is 'soon'" in ran.err


def test_a_killed_run_leaves_its_best(tmp_path: Path) -> None:
    model, query = ps.generate.grid(60, 60, strength=3.0, seed=2)
    path, out = tmp_path / "hard.uai", tmp_path / "out.MMAP"
    ps.write(model, path)
    names = ",".join(map(str, query))
    words = ["solve", str(path), "--max", names, "--time", "600", "--uai", str(out)]
    with subprocess.Popen([*POWERSUM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "≤ log value ≤" in line and not line.lstrip().startswith("-inf"):
                break
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=600)
    assert process.returncode == -signal.SIGKILL
    assignment = read_result(out).assignment
    assert sorted(assignment) == sorted(query)


def test_a_signal_keeps_both_bounds(tmp_path: Path) -> None:
    # No time is enough for this one, or it might be proven before the signal comes.
    model, query = ps.generate.grid(60, 60, strength=3.0, seed=2)
    path, out = tmp_path / "hard.uai", tmp_path / "out.json"
    ps.write(model, path)
    words = ["solve", str(path), "--max", ",".join(map(str, query)), "--time", "600", "--json", str(out)]
    with subprocess.Popen([*POWERSUM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "≤ log value ≤" in line and not line.lstrip().startswith("-inf"):
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)
    assert process.returncode == 130
    data = json.loads(out.read_text())
    assert data["status"] == "interrupted"
    assert -math.inf < data["log_lower"] <= data["log_upper"]


def test_likelihoods_are_those_of_the_api(command: Command, model_file: Path) -> None:
    words = ["solve", model_file, "--max", "0,1", "--likelihood", "5=0.2,0.7", "--likelihood", "6= 1:0.4, 0:0.1"]
    ran = command(*words, "--quiet")
    assert ran.code == 0
    model = ps.read(model_file)
    wanted = ps.solve(model, [0, 1], evidence={5: [0.2, 0.7], 6: [0.1, 0.4]})
    assert float(ran.out.split()[0]) == pytest.approx(wanted.log_lower, abs=1e-9)
    assert float(command("bound", *words[1:], "--quiet").out) == pytest.approx(wanted.log_lower, abs=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--likelihood", "5"], "--likelihood: '5' is not of the form name=0.2,0.8"),
        (["--likelihood", "5=x,y"], "--likelihood: 'x,y' is not a list of numbers such as 0.2,0.8"),
        (["--likelihood", "5=0.2"], "the likelihoods of variable 5 have shape (1,): it has 2 states"),
        (["--likelihood", "5=-1,1"], "must be finite and not negative"),
        (["--likelihood", "5=0:1,0:2"], "'0:1,0:2' must name each state of 5 once, or none"),
        (["--likelihood", "5=1,1", "--likelihood", "5=1,1"], "gives variable 5 likelihoods twice"),
        (["--likelihood", "5=1,1", "--evidence", "5=0"], "evidence gives variable 5 both a state and likelihoods"),
        (["--likelihood", "99=1,1"], "variable 99 is out of range"),
    ],
)
def test_wrong_likelihoods_are_one_line(command: Command, model_file: Path, words: list[str], message: str) -> None:
    ran = command("solve", model_file, *words)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_the_probability_comes_first(command: Command, model_file: Path) -> None:
    ran = command("solve", model_file, "--max", "0,1", "--evidence", "5=1")
    model = ps.read(model_file)
    weights = np.ones(16)
    weights[:2] = 0.0
    share = math.exp(exact_value(model, weights, evidence={5: 1}) - exact_value(model, np.ones(16), evidence={5: 1}))
    assert f"probability: {100 * share:.3g} % given the evidence\nlog value = " in ran.out
    assert "probability" not in command("solve", model_file).out


def test_several_answers(command: Command, model_file: Path) -> None:
    ran = command("solve", model_file, "--max", "0,1", "--best", "3")
    model = ps.read(model_file)
    values = sorted((assignment_value(model, {0: a, 1: b}) for a in (0, 1) for b in (0, 1)), reverse=True)
    lines = [line for line in ran.out.splitlines() if line[:2] in ("1.", "2.", "3.")]
    assert [float(line.split("log value ")[1].split()[0]) for line in lines] == pytest.approx(values[:3], abs=1e-6)
    (following,) = [line for line in ran.out.splitlines() if line.startswith("next: at most ")]
    assert float(following.split()[-1]) == pytest.approx(values[3], abs=1e-6)
    assert "next: there are no more" in command("solve", model_file, "--max", "0", "--best", "3").out
    assert "not both" in command("solve", model_file, "--max", "0", "--best", "3", "--uai", "x").err


def test_an_explanation(command: Command, model_file: Path) -> None:
    ran = command("solve", model_file, "--max", "0,1", "--evidence", "5=1", "--explain")
    told = ps.solve(ps.read(model_file), ["0", "1"], evidence={5: 1}).explain(model_file)
    assert ran.out.endswith(f"\n\n{told}\n")
    assert "without" not in command("solve", model_file, "--explain").out


def test_the_page_has_the_explanation(model_file: Path, command: Command, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    command("solve", model_file, "--max", "0,1", "--evidence", "5=1", "--explain", "--report", page, "--quiet")
    text = page.read_text(encoding="utf-8")
    assert "What it rests on" in text
    assert "same answer if multiplied by" in text
    command("solve", model_file, "--max", "0,1", "--evidence", "5=1", "--report", page, "--quiet")
    assert "What it rests on" not in page.read_text(encoding="utf-8")


def test_names_of_a_file_without_any(command: Command, model_file: Path, tmp_path: Path) -> None:
    model = ps.read(model_file)
    lines = [f"v{v} {' '.join(f's{s}' for s in range(int(size)))}" for v, size in enumerate(model.cardinalities)]
    names = tmp_path / "names"
    names.write_text("\n".join(lines), encoding="utf-8")
    ran = command("solve", model_file, "--names", names, "--max", "v1,v0", "--evidence", "v5=s1", "--json", "-")
    found = ps.Result.from_json(ran.out)
    plain = ps.solve(model, [1, 0], evidence={5: 1})
    assert found.assignment == {f"v{name}": f"s{state}" for name, state in plain.assignment.items()}
    for name in ("bound", "info", "compare"):
        assert command(name, model_file, "--names", names, "--max", "v1,v0", "--evidence", "v5=s1").code == 0
    assert "v0" in command("marginals", model_file, "--names", names, "--evidence", "v5=s1").out


def test_a_formula_is_its_own_question(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "f.cnf"
    path.write_text("c t pmc\nc p show 1 2 0\np cnf 3 3\n1 2 3 0\n-3 1 0\n3 -1 0\n")
    ran = command("solve", path, "--competition")
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert lines[1:3] == ["s SATISFIABLE", "c s type pmc"]
    assert lines[4:] == ["c s exact arb int 3"]
    # Options ask another question.
    assert "optimal states: 2=1" in command("solve", path, "--max", "2").out
    assert "log value = 1.098612289" in command("bound", path).out


def test_shown_variables_that_do_not_define_the_others_are_counted(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "f.cnf"
    path.write_text("c p show 1 0\np cnf 2 1\n1 2 0\n")
    ran = command("solve", path, "--competition")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "c s exact arb int 2"
    ran = command("solve", path, "--certificate", tmp_path / "f.pszip")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "solve and bound take any blocks" in ran.err
    ran = command("solve", tmp_path / "f.uai", "--competition")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "is not a formula" in ran.err
