"""``powersum compare`` and the function behind it."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from powersum.api.comparison import DEFAULT_METHODS, RUNNABLE, compare, parse_methods
from powersum.app.report.compare import comparison_figure
from tests.app.cli.conftest import Command
from tests.clock import Ticks
from tests.oracle import assignment_value, exact_value


def test_writes_table_picture_and_lines(command: Command, model_file: Path, tmp_path: Path) -> None:
    picture, lines = tmp_path / "out.png", tmp_path / "out.csv"
    ran = command(
        "compare", model_file, "--query", f"{model_file}.query", "--methods", "gdd,gdd:paper,wmb:0.035,lbfgs,mbe,mas",
        "--sweeps", 3, "--plot", picture, "--csv", lines,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert [line.split()[0] for line in ran.out.splitlines()[2:8]] == [
        "gdd", "gdd:paper", "wmb:0.035", "lbfgs", "mbe", "mas",
    ]  # fmt: skip
    assert picture.read_bytes().startswith(b"\x89PNG")
    with lines.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["sweep"] for row in rows if row["method"] == "gdd"] == ["0", "1", "2", "3"]
    assert [row["sweep"] for row in rows if row["method"] == "mbe"] == ["0"]
    assert all(math.isfinite(float(row["log_upper"])) for row in rows)


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ("gdd,foo", "no method is called 'foo': there is gdd, tree"),
        ("wbm:0.1", "did you mean 'wmb'?"),
        ("wmb:much", "the damping of wmb must be a number, not 'much'"),
        ("tree:1.5", "the ibound of tree must be a whole number"),
        ("lbfgs:3", "method lbfgs takes no value"),
        ("wmb:2", "damping is 2.0: it must be above 0"),
        ("gdd:often", "start is 'often'"),
        ("gdd,gdd", "method 'gdd' is given twice"),
        (",", "no method is given"),
    ],
)
def test_bad_words_are_one_line(command: Command, model_file: Path, methods: str, words: str) -> None:
    ran = command("compare", model_file, "--query", f"{model_file}.query", "--methods", methods)
    assert ran.code == 2
    assert words in ran.err
    assert ran.err.count("\n") == 1
    if "called" in words:
        assert all(name in ran.err for name in RUNNABLE)


def test_outputs_are_checked_before_the_run(command: Command, model_file: Path, tmp_path: Path) -> None:
    assert command("compare", model_file, "--plot", tmp_path / "nowhere" / "a.png").code == 2
    assert command("compare", model_file, "--csv", model_file).code == 2
    assert "picture" in command("compare", model_file, "--plot", tmp_path / "a.doc").err


def test_bounds_are_valid_and_decodings_exact() -> None:
    model, query = ps.generate.grid(3, 4, seed=2)
    weights = np.ones(12)
    weights[query] = 0.0
    exact = exact_value(model, weights)
    found = compare(model, query, methods=[*DEFAULT_METHODS, "trw"], sweeps=5)
    for trace in found.traces:
        uppers = [p.log_upper for p in trace.points]
        assert uppers == sorted(uppers, reverse=True)
        assert min(uppers) >= exact - 1e-9
        assert all(p.log_decoded is None or p.log_decoded <= exact + 1e-9 for p in trace.points)
    assert [t.label for t in found.traces if not t.guaranteed] == ["trw"]
    best = max(p.log_decoded for t in found.traces for p in t.points if p.log_decoded is not None)
    assert best == pytest.approx(exact, abs=1.0)
    result = ps.bound(model, query, method="gdd", sweeps=5)
    states = {model.variable(name): int(state) for name, state in result.assignment.items()}
    last = found.traces[0].points[-1].log_decoded
    assert last == pytest.approx(assignment_value(model, states), abs=1e-9)


@pytest.mark.parametrize(
    ("limits", "least", "most"),
    [({}, 20, 20), ({"time_limit": 0.5}, 40, 60), ({"sweeps": 30}, 30, 30), ({"sweeps": 5, "time_limit": 0.5}, 5, 5)],
)
def test_the_limit_that_is_asked_for_is_the_one(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, float], least: int, most: int
) -> None:
    # A look at the clock takes a hundredth of a second, and nothing else takes time: a sweep is one look.
    monkeypatch.setattr("powersum.api.comparison.time", Ticks(0.01))
    model, query = ps.generate.grid(4, 4, strength=2.0, seed=1)
    found = compare(model, query, methods="gdd:paper", decode=False, **limits)  # type: ignore[arg-type]
    assert least <= found.traces[0].points[-1].sweep <= most


def test_a_time_alone_is_not_stopped_by_sweeps(
    command: Command, model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersum.api.comparison.time", Ticks(0.01))
    words = ["compare", model_file, "--query", f"{model_file}.query", "--methods", "gdd:paper", "--csv"]
    assert command(*words, tmp_path / "a.csv", "--time", "0.5", "--no-decode").code == 0
    assert int((tmp_path / "a.csv").read_text().splitlines()[-1].split(",")[1]) > 20
    assert command(*words, tmp_path / "b.csv", "--no-decode").code == 0
    assert int((tmp_path / "b.csv").read_text().splitlines()[-1].split(",")[1]) == 20


def test_nothing_left_to_compare() -> None:
    model = ps.Model.from_factors([2, 2], [((0,), [0.5, 0.5]), ((1,), [0.0, 0.0])])
    for trace in compare(model, methods="gdd,mbe").traces:
        assert [p.log_upper for p in trace.points] == [-math.inf]
    single = ps.Model.from_factors([2], [((0,), [0.5, 0.25])])
    assert comparison_figure(compare(single, "all", methods="gdd")).axes


def test_methods_as_words() -> None:
    assert [choice.options for choice in parse_methods("wmb:0.1, tree:2 ,mbe")] == [{"damping": 0.1}, {"ibound": 2}, {}]


def test_dashed_lines_are_explained() -> None:
    model, query = ps.generate.grid(4, 4, seed=1)
    figure = comparison_figure(compare(model, query, methods="gdd", sweeps=3))
    (legend,) = figure.legends
    assert "value of the decoded states" in [text.get_text() for text in legend.get_texts()]
    plain = comparison_figure(compare(model, query, methods="gdd", sweeps=3, decode=False))
    assert "value of the decoded states" not in [text.get_text() for text in plain.legends[0].get_texts()]
