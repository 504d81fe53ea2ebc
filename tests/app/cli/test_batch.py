"""``powersum batch``: tables in, lines out, and no finished line lost to a kill of anybody."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import powersum as ps
from powersum.app.cli import INTERRUPTED
from powersum.app.cli.app import run_app
from tests.cluster.machines import SECONDS, environment, eventually, kill, machines, own_workers
from tests.interop.networks import CLINIC


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.bif"
    ps.write(CLINIC, path)
    return path


TABLE = """id,dyspnoea,xray:clear,xray:shadow
a,much,,
b,,0.2,0.6
c,awful,,
d,much,,
e,,0.2,
f,much
g,,,
"""


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def run(*arguments: Any) -> int:
    return run_app([str(argument) for argument in arguments])


def test_a_table(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases, out = tmp_path / "cases.csv", tmp_path / "answers.csv"
    cases.write_text(TABLE)
    assert run("batch", model, cases, "--max", "cancer", "--keep", "id", "-o", out) == 1
    rows = read(out)
    assert [row["row"] for row in rows] == [str(k) for k in range(1, 8)]
    assert [row["id"] for row in rows] == list("abcdefg")
    assert [row["status"] for row in rows] == ["optimal", "optimal", "error", "optimal", "error", "error", "optimal"]
    for k, evidence in ((0, {"dyspnoea": "much"}), (1, {"xray": [0.2, 0.6]}), (6, {})):
        alone = ps.solve(CLINIC, ["cancer"], evidence=evidence)
        assert alone.probability is not None
        assert rows[k]["cancer"] == alone.assignment["cancer"]
        assert float(rows[k]["log_value"]) == pytest.approx(alone.log_lower, abs=1e-9)
        assert float(rows[k]["probability"]) == pytest.approx(alone.probability.lower, abs=1e-9)
    assert rows[2]["message"].startswith("variable dyspnoea has no state 'awful': it has ")
    said = capsys.readouterr().err
    assert "row 3: variable dyspnoea has no state 'awful'" in said
    assert "row 5: the likelihoods of variable 'xray'" in said
    assert "row 6: has 2 cells, the header 4" in said


def test_json_lines(model: Path, tmp_path: Path) -> None:
    cases, out = tmp_path / "cases.jsonl", tmp_path / "answers.jsonl"
    lines: list[Any] = [{"id": 1, "dyspnoea": "much"}, {"xray": {"clear": 0.2, "shadow": 0.6}, "dyspnoea": None}, 7]
    cases.write_text("".join(json.dumps(line) + "\n" for line in lines) + "not JSON\n")
    assert run("batch", model, cases, "--max", "cancer,bronchitis", "--keep", "id", "-o", out, "-q") == 1
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["row"] for line in found] == [1, 2, 3, 4]
    assert [line["status"] for line in found] == ["optimal", "optimal", "error", "error"]
    assert found[0]["case"] == {"id": 1}
    alone = ps.solve(CLINIC, ["cancer", "bronchitis"], evidence={"xray": [0.2, 0.6]})
    assert found[1]["assignment"] == dict(alone.assignment)
    assert found[1]["log_upper"] == pytest.approx(alone.log_upper, abs=1e-9)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("dyspnea\n", "no variable is called 'dyspnea', did you mean 'dyspnoea'"),
        ("xray:clear\n", "no column is called 'xray:shadow'"),
        ("xray,xray:clear,xray:shadow\n", "variable 'xray' has a column of states and columns of likelihoods"),
        ("xray,xray\n", "two columns are called 'xray'"),
        ("", "is empty"),
    ],
)
def test_a_wrong_header_is_one_line(
    model: Path, tmp_path: Path, table: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases.csv"
    cases.write_text(table)
    assert run("batch", model, cases, "--max", "cancer") == 2
    said = capsys.readouterr().err.strip()
    assert "cases.csv: " in said
    assert message in said
    assert "\n" not in said


def test_what_does_not_go_together(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases, out = tmp_path / "cases.csv", tmp_path / "answers.csv"
    cases.write_text("xray\nclear\n")
    for options, message in (
        (("--resume",), "--resume needs -o"),
        (("--workers", 0), "--workers is 0: it must be 1 or more"),
        (("--keep", "id"), "no column is called 'id'"),
        (("-o", cases), "would be overwritten"),
    ):
        assert run("batch", model, cases, *options) == 2
        assert message in capsys.readouterr().err
    assert run("batch", model, cases, "--max", "cancer", "-o", out, "-q") == 0
    assert run("batch", model, cases, "--max", "bronchitis", "-o", out, "--resume") == 2
    assert "its columns are not those of this question" in capsys.readouterr().err
    cases.write_text("xray\n")
    assert run("batch", model, cases, "--max", "cancer", "-o", out, "--resume") == 2
    assert "has 1 answers" in capsys.readouterr().err


NUMBER = re.compile(rb"-?\d+\.\d+(?:e-?\d+)?")


def assert_same(ours: bytes, theirs: bytes) -> None:
    """The same but for the last digits: few questions are answered by another road than many."""
    assert NUMBER.sub(b"#", ours) == NUMBER.sub(b"#", theirs)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (ours, theirs)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, abs=1e-9)


def test_resume_goes_on_after_the_last_whole_line(model: Path, tmp_path: Path) -> None:
    for ending in ("csv", "jsonl"):
        cases, out = tmp_path / "cases.csv", tmp_path / f"answers.{ending}"
        cases.write_text("dyspnoea,xray\n" + "much,\n,shadow\nnone,clear\n" * 5)
        arguments = ("batch", model, cases, "--max", "cancer", "-o", out, "-q")
        assert run(*arguments) == 0
        whole = out.read_bytes()
        for place in range(0, len(whole) + 1, 97):
            out.write_bytes(whole[:place])
            assert run(*arguments, "--resume") == 0
            assert_same(out.read_bytes(), whole)
        # Without being asked to, nothing of before is taken over.
        out.write_text("something else\n")
        assert run(*arguments) == 0
        assert_same(out.read_bytes(), whole)


SLOW = f"""
import os, time, powersum.api.engine as engine, powersum.cluster.dask_workers as dask_workers
dask_workers.CONNECT_SECONDS = {SECONDS}
solve = engine.Engine.solve
def slowly(self, *arguments, **options):
    time.sleep(0.02)
    row = max((row for row, _ in options.get("evidence", {{}}).values()), default=0)
    while row > 100 and not os.path.exists(os.path.join(os.path.dirname(__file__), "go on")):
        time.sleep(0.02)
    return solve(self, *arguments, **options)
engine.Engine.solve = slowly
"""
"""Makes every answer take a while, wherever it is given; after a hundred there are none before somebody says so."""


class Batch:
    """A batch of three hundred cases in a process of its own, which is in the midst of it until it is told to go on."""

    def __init__(self, model: Path, folder: Path, *options: str) -> None:
        self._slow = folder / "slow"
        self._slow.mkdir(exist_ok=True)
        (self._slow / "sitecustomize.py").write_text(SLOW)
        self.environment = environment()
        self.environment["PYTHONPATH"] = f"{self._slow}{os.pathsep}{self.environment['PYTHONPATH']}"
        self.out = folder / "answers.csv"
        cases = folder / "cases.csv"
        cases.write_text(
            "xray:clear,xray:shadow\n" + "".join(f"{row},100\n" for row in range(1, 301)), encoding="utf-8"
        )
        self.arguments = ["batch", str(model), str(cases), "--max", "cancer", "-o", str(self.out), "-q"]
        command = [sys.executable, "-m", "powersum", *self.arguments, *options]
        self.process = subprocess.Popen(command, env=self.environment, stderr=subprocess.PIPE, text=True)

    @property
    def lines(self) -> list[str]:
        return self.out.read_text().splitlines(keepends=True) if self.out.exists() else []

    def wait_for_lines(self, number: int) -> None:
        eventually(lambda: len(self.lines) > number or self.process.poll() is not None, f"{number} lines")
        assert self.process.poll() is None

    def go_on(self) -> None:
        """To the end."""
        (self._slow / "go on").touch()

    def end(self) -> tuple[int, str]:
        _, said = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, said

    def check(self, before: list[str]) -> None:
        """Gone on with in this process, it is whole, and what was there stays."""
        whole = [line for line in before if line.endswith("\n")]
        assert run(*self.arguments, "--resume") == 0
        assert self.lines[: len(whole)] == whole
        rows = read(self.out)
        assert [row["row"] for row in rows] == [str(k) for k in range(1, 301)]
        assert {row["status"] for row in rows} == {"optimal"}


def test_a_killed_client_loses_nothing(model: Path, tmp_path: Path) -> None:
    batch = Batch(model, tmp_path, "--workers", "2")
    batch.wait_for_lines(20)
    kill(batch.process)
    batch.end()
    batch.check(batch.lines)


def test_a_killed_process_is_replaced(model: Path, tmp_path: Path) -> None:
    batch = Batch(model, tmp_path, "--workers", "2")
    batch.wait_for_lines(20)
    os.kill(own_workers(batch.process.pid)[0], signal.SIGKILL)
    batch.go_on()
    assert batch.end() == (0, "")
    batch.check(batch.lines)


def test_ctrl_c(model: Path, tmp_path: Path) -> None:
    batch = Batch(model, tmp_path, "--workers", "2")
    batch.wait_for_lines(20)
    batch.process.send_signal(signal.SIGINT)
    code, said = batch.end()
    assert code == INTERRUPTED
    assert f"stopped by Ctrl-C after {len(batch.lines) - 1} rows" in said
    assert len(said.splitlines()) == 1
    batch.check(batch.lines)


def test_a_killed_worker_of_a_cluster(model: Path, tmp_path: Path) -> None:
    with machines(tmp_path, 0) as here:
        batch = Batch(model, tmp_path, "--workers", here.address)
        # As slow as the rest, or it would all be over too soon.
        here.environment = batch.environment
        here.worker()
        here.worker()
        batch.wait_for_lines(20)
        kill(here.workers[0])
        batch.go_on()
        assert batch.end() == (0, "")
    batch.check(batch.lines)


def test_a_killed_scheduler(model: Path, tmp_path: Path) -> None:
    with machines(tmp_path, 0) as here:
        batch = Batch(model, tmp_path, "--workers", here.address)
        here.environment = batch.environment
        here.worker()
        batch.wait_for_lines(20)
        kill(here.scheduler)
        code, said = batch.end()
    assert code == 2, said
    assert "the cluster is gone" in said
    assert "with --resume goes on" in said
    assert len(said.splitlines()) == 1
    batch.check(batch.lines)


def test_progress_has_rate_and_time_left(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from powersum.app.cli import batch_progress

    cases = tmp_path / "cases.csv"
    cases.write_text("xray\nclear\nshadow\n\nclear\n")
    now = [0.0]

    def later() -> float:
        now[0] += 20.0
        return now[0]

    monkeypatch.setattr(time, "monotonic", later)
    counter = batch_progress.Counter(cases, done=1, quiet=False)
    counter.advance()
    monkeypatch.undo()
    assert capsys.readouterr().err == "powersum: 2 of about 4 rows, 0.025 rows/s, 1 min 20 s left\n"
    assert run("batch", model, cases, "--max", "cancer", "-o", tmp_path / "answers.csv") == 0
    assert "powersum: 3" in capsys.readouterr().err
