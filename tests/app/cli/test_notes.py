"""Notes on a model: once, on stderr, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.cli.conftest import Command

TEXT = """network n {}
variable a { type discrete [ 2 ] { x, y }; }
probability (a) { table 0.5, 0.25; }
"""


@pytest.mark.parametrize("words", ["solve", "bound --sweeps 1", "info", "info --json -"])
def test_a_note_is_one_line(command: Command, tmp_path: Path, words: str) -> None:
    path = tmp_path / "m.bif"
    path.write_text(TEXT)
    name, *options = words.split()
    ran = command(name, path, *options)
    assert ran.code == 0
    assert ran.err == (
        f"powersum: note: {path}: the distribution of variable a sums to 0.75, not to 1; "
        "the numbers are taken as they are\n"
    )
    if "--json" in options:
        json.loads(ran.out)


def test_the_competition_too(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INF_TIME", "20")
    Path("m.uai").write_text("BAYES 1 2 1 1 0 2 0.5 0.25")
    ran = command("uai-solver", "m.uai", "", "", "PR")
    assert ran.code == 0
    assert ran.err.count("note: m.uai: the distribution of variable 0 sums to 0.75") == 1
    assert Path("m.uai.PR").is_file()


def test_numbers_out_of_range_are_one_line(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "m.bif"
    path.write_text(TEXT.replace("0.25", "1e999"))
    ran = command("solve", path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"powersum: {path}: line 3: variable a: 1e999 is not a finite number\n"
