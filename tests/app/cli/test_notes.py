"""Notes on a model: once on the screen, on stderr, and with the answer wherever that goes."""

from __future__ import annotations

import concurrent.futures as cf
import json
from dataclasses import replace
from pathlib import Path

import pytest

import powersum as ps
from powersum.run.tuning import Schedule
from tests.app.cli.conftest import Command
from tests.batch import results_of

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
        assert json.loads(ran.out)["notes"] == [ran.err.removeprefix("powersum: note: ").removesuffix("\n")]
    else:
        assert "sums to" not in ran.out


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


@pytest.mark.parametrize(
    "words", ["solve", "solve --best 2 --max all", "solve --workers 2", "bound", "bound --method gdd"]
)
def test_files_of_an_answer_have_them(command: Command, tmp_path: Path, words: str) -> None:
    path, out, page = tmp_path / "m.bif", tmp_path / "out.json", tmp_path / "out.html"
    path.write_text(TEXT)
    name, *options = words.split()
    ran = command(name, path, *options, "--json", out, "--report", page)
    assert ran.code == 0
    note = f"{path}: the distribution of variable a sums to 0.75, not to 1; the numbers are taken as they are"
    assert json.loads(out.read_text())["notes"] == [note]
    assert page.read_text().count(f"<p class='note'>{note}</p>") == 1
    assert ran.out.count(note) == 0


def test_answers_in_python_have_them(tmp_path: Path) -> None:
    path = tmp_path / "m.bif"
    path.write_text(TEXT)
    model = ps.read(path)
    assert len(model.notes) == 1
    hard = ps.generate.grid(6, 6, seed=1).model
    odd = replace(hard, notes=("This is odd.",))
    engine = ps.Engine(model)
    engine.prepare()
    answers = [
        ps.solve(model),
        ps.solve(model, "all", certificate=True),
        ps.bound(model),
        engine.solve(),
        next(ps.solve_each(model, [{}])).result,
        results_of(model, [{}])[0],
    ]
    assert [answer and answer.notes for answer in answers] == [model.notes] * len(answers)
    with cf.ThreadPoolExecutor(2) as pool:
        cubes = Schedule(quick=0.0, look_first=False)
        assert ps.solve(odd, workers=pool, time_limit=5.0, schedule=cubes).notes[0] == "This is odd."
    assert ps.solve(odd, "all", time_limit=0.01, schedule=Schedule(quick=0.0)).notes[0] == "This is odd."
