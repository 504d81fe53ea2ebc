"""Frozen runs: they repeat digit by digit, every difference is seen, and a run that ends its process is an answer."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import frozen
from benchmarks.frozen_runs import SEED, names

ROOT = Path(__file__).resolve().parents[1]

SOME = [
    f"{entry}-{SEED + number}" for entry in ("solve", "bound", "best", "gradient", "resume") for number in (1, 2, 3)
]

ANSWER: dict[str, Any] = {
    "log_upper": -1.25,
    "assignment": {"x0": 1, "x1": 0},
    "history": [{"seconds": 0.5, "log_upper": -1.0}, {"seconds": 0.75, "log_upper": -1.25}],
    "certificate": {"digest": "abc", "proven": "-2.0 to -1.25"},
}


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The answer with one value put in place of another."""
    answer = copy.deepcopy(ANSWER)
    place: Any = answer
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return answer


def test_runs_repeat_whatever_ran_before_them_in_their_process() -> None:
    once, again = frozen.recorded(ROOT, SOME, 1), frozen.recorded(ROOT, SOME[::-1], 2)
    assert list(once["runs"]) == SOME
    for name in SOME:
        assert frozen.differences(once["runs"][name]["answer"], again["runs"][name]["answer"], []) == []
        assert "raised" not in once["runs"][name]["answer"]


def test_each_set_has_its_own_names_and_the_small_one_is_part_of_the_other() -> None:
    assert len(set(names(quick=False))) == len(names(quick=False))
    assert set(names(quick=True)) < set(names(quick=False))


@pytest.mark.parametrize(
    ("other", "place"),
    [
        (changed("log_upper", to=-1.2499999999999998), "log_upper"),
        (changed("log_upper", to=-1), "log_upper"),
        (changed("assignment", "x1", to=False), "assignment.x1"),
        (changed("history", 1, "seconds", to=0.7500000000000001), "history.1.seconds"),
        (changed("history", to=ANSWER["history"][:1]), "history.1.seconds"),
        (changed("new", to="word"), "new"),
        (changed("certificate", to=None), "certificate.digest"),
    ],
)
def test_every_difference_is_found(other: dict[str, Any], place: str) -> None:
    assert place in [found[0] for found in frozen.differences(ANSWER, other, [])]
    assert place in [found[0] for found in frozen.differences(other, ANSWER, [])]


def test_equal_answers_do_not_differ() -> None:
    assert frozen.differences(ANSWER, copy.deepcopy(ANSWER), []) == []


def test_ignored_fields_are_whole_names() -> None:
    other = changed("certificate", "digest", to="def")
    assert frozen.differences(ANSWER, other, ["certificate.digest"]) == []
    assert frozen.differences(ANSWER, other, ["certificate"]) == []
    assert frozen.differences(ANSWER, other, ["certificate.dig", "digest.certificate", "proven"]) != []


def test_a_run_that_ends_its_process_is_an_answer_and_the_next_one_is_asked(tmp_path: Path) -> None:
    package = tmp_path / "src" / "powersum"
    (package / "core").mkdir(parents=True)
    (tmp_path / "soak").mkdir()
    (tmp_path / "soak" / "roads.py").write_text("")
    for place in (package, package / "core"):
        (place / "__init__.py").write_text("")
    (package / "core" / "work_time.py").write_text("import os\nos._exit(3)\n")
    runs = frozen.recorded(tmp_path, ["solve-1", "solve-2"], 1)["runs"]
    assert [run["answer"] for run in runs.values()] == [{"ended": "the process ended with exit code 3"}] * 2


def test_a_comparison_says_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(name: str, answer: dict[str, Any]) -> str:
        runs = {name: {"seconds": 1.0, "answer": answer} for name in ("solve-1", "solve-2")}
        runs["solve-1"] = {"seconds": 2.0, "answer": ANSWER}
        frozen.write(
            tmp_path / name, {"format": frozen.FORMAT, "version": frozen.VERSION, "about": {"numba": "0"}, "runs": runs}
        )
        return str(tmp_path / name)

    before, same = record("before.json", ANSWER), record("same.json.gz", ANSWER)
    other = record("other.json", changed("log_upper", to=-1.5))
    for now, code in ((same, 0), (other, 1), (str(tmp_path / "none"), 2)):
        monkeypatch.setattr(sys, "argv", ["frozen", "compare", "--against", before, "--recorded", now])
        assert frozen.main() == code
        shown = capsys.readouterr()
        assert ("solve-2" in shown.out, "solve-1" in shown.out) == (code == 1, False)
    monkeypatch.setattr(sys, "argv", ["frozen", "compare", "--against", "no-such-commit"])
    assert frozen.main() == 2
    assert "neither a file nor a commit" in capsys.readouterr().err
