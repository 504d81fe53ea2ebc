"""``--checkpoint``, ``--resume`` and ``--work`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import powersum as ps
from powersum.formats import write_query
from powersum_check.__main__ import main
from tests.app.cli.conftest import Command


@pytest.fixture
def hard_file(tmp_path: Path) -> Path:
    """A grid that takes more than a moment."""
    model, query = ps.generate.grid(20, 20, strength=3.0, seed=1)
    path = tmp_path / "hard.uai"
    ps.write(model, path)
    write_query(query, str(path) + ".query")
    return path


def bounds_in(path: Path) -> tuple[float, float]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record["log_lower"], record["log_upper"]


def test_a_run_goes_on_in_its_own_file(
    command: Command, hard_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, query = tmp_path / "run.zip", f"{hard_file}.query"
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    words = ("solve", hard_file, "--query", query, "--checkpoint", run, "--every", 0)
    assert command(*words, "--work", 0.5, "--json", first).code == 0
    assert main([str(hard_file), "--query", query, str(run)]) == 0
    assert "verified" in capsys.readouterr().out
    assert command(*words, "--work", 0.2, "--resume", run, "--json", second).code == 0
    assert main([str(hard_file), "--query", query, str(run)]) == 0
    before, after = bounds_in(first), bounds_in(second)
    assert after[0] >= before[0] - 1e-9
    assert after[1] <= before[1] + 1e-9


def test_the_same_digits_twice(command: Command, hard_file: Path) -> None:
    for entry in ("solve", "bound"):
        words = (entry, hard_file, "--query", f"{hard_file}.query", "--work", 0.2, "--quiet")
        first = command(*words)
        assert first.code == 0
        assert command(*words, "--threads", 2).out == first.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--resume", "none.zip"), "none.zip: cannot be read (FileNotFoundError)"),
        (("--work", 1, "--time", 1), "work is given, and so is time"),
        (("--work", 0), "--work is 0: it must be above 0"),
        (("--checkpoint", "run.zip", "--every", -1), "every is -1: it must be 0 or more"),
        (("--checkpoint", "no/run.zip"), "no/run.zip"),
    ],
)
def test_what_is_refused_in_one_line(
    words: tuple[object, ...], message: str, command: Command, model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model_file.parent)
    ran = command("solve", model_file, "--max", "all", *words)
    assert ran.code == 2
    assert len(ran.err.strip().splitlines()) == 1
    assert message in ran.err
