"""A question in words asks the same question again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import powersum as ps
from powersum import InputError, Model
from powersum.app.cli.app import run_app
from powersum.app.explore.questions import Words, question_from
from tests.interop.networks import CLINIC

ODD = Model.from_tables(
    {
        "a,b": {"x=1": 0.3, "y, z": 0.7},
        ("a,b", "all"): [[0.9, 0.1], [0.2, 0.8]],
        ("all", "-max"): [[0.6, 0.4], [0.1, 0.9]],
        ("-max", "1"): [[0.5, 0.5], [0.3, 0.7]],
    }
)


def words_of(model: Model, data: dict[str, Any], file: str = "m.bif", **options: Any) -> Words:
    return Words(question_from(model, data), file, **options)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"max": "all"},
        {"max": ["cancer", "bronchitis"], "evidence": [["dyspnoea", "much"]]},
        {"evidence": [["xray", "shadow"], ["smoker", 1]]},
        {"max": [1]},
        {"max": [1], "evidence": [["smoker", 1], ["dyspnoea", [0.1, 0.2, 0.7]], ["xray", [1e-300, 3]]]},
    ],
)
def test_by_numbers_it_is_the_same(data: dict[str, Any]) -> None:
    question = question_from(CLINIC, data)
    said = Words(question, "m.bif").to_json()
    assert question_from(CLINIC, said).key == question.key


@pytest.mark.parametrize("model", [CLINIC, ODD], ids=["clinic", "odd"])
def test_a_link_is_the_same(model: Model) -> None:
    question = question_from(model, {"max": [1, 2], "evidence": [[0, 1]]})
    parts = dict(part.split("=", 1) for part in Words(question, "m").link().split("&"))
    asked = {
        "max": [unquote(word) for word in parts["max"].split(",")],
        "evidence": [[unquote(word) for word in pair.split(":")] for pair in parts["see"].split(",")],
    }
    assert question_from(model, asked).key == question.key


def test_likelihoods_in_all_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = {"max": [1], "evidence": [["smoker", 1], ["dyspnoea", [0.1, 0.25, 1e-7]]]}
    file = tmp_path / "clinic.bif"
    ps.write(CLINIC, file)
    words, expected = (
        words_of(CLINIC, data, str(file)),
        ps.solve(CLINIC, [1], evidence={"smoker": 1, "dyspnoea": [0.1, 0.25, 1e-7]}),
    )
    assert words.link() == "max=cancer&see=smoker:yes&lean=dyspnoea:0.1;0.25;1e-07"
    assert [one["text"] for one in words.to_json()["leaning"]] == ["0.1 : 0.25 : 1e-07"]
    place: dict[str, Any] = {}
    exec(words.python(), place)
    capsys.readouterr()
    command = words.command()
    assert command is not None
    assert run_app([*shlex.split(command)[1:], "--json", "-"]) == 0
    for found in (place["result"], ps.Result.from_dict(json.loads(capsys.readouterr().out))):
        assert found.log_upper == pytest.approx(expected.log_upper, abs=1e-9)
        assert found.assignment == expected.assignment
    assert words_of(ODD, {"evidence": [["1", [1, 2]]]}).command() is not None


def test_the_command_gives_the_same_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "the clinic.bif"
    ps.write(CLINIC, file)
    words = words_of(CLINIC, {"max": [1, 2], "evidence": [["dyspnoea", "much"]]}, str(file), seconds=5, best=2)
    command = words.command()
    assert command is not None
    assert run_app([*shlex.split(command)[1:], "--json", "-"]) == 0
    found = ps.Result.from_dict(json.loads(capsys.readouterr().out))
    expected = ps.solve(ps.read(file), [1, 2], evidence={"dyspnoea": "much"}, k=2)
    assert [one.assignment for one in found.best] == [one.assignment for one in expected.best]


def test_python_gives_the_same_answer(tmp_path: Path) -> None:
    file = tmp_path / "clinic.bif"
    ps.write(CLINIC, file)
    for data in ({"max": [1, 2], "evidence": [["dyspnoea", "much"]]}, {"max": "all"}, {"evidence": [[0, 0]]}):
        place: dict[str, Any] = {}
        exec(words_of(CLINIC, data, str(file)).python(), place)
        question = question_from(CLINIC, data)
        expected = ps.solve(CLINIC, weights=question.query, evidence=question.all_evidence)
        assert place["result"].assignment == expected.assignment
        assert place["result"].log_upper == pytest.approx(expected.log_upper, abs=1e-9)


def test_names_of_a_file_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is copied reads them, too."""
    bare, named = tmp_path / "clinic.uai", tmp_path / "clinic.names"
    ps.write(CLINIC, bare)
    assert CLINIC.names is not None
    named.write_text("\n".join(CLINIC.names) + "\n", encoding="utf-8")
    model = ps.read_names(named, ps.read(bare))
    words = words_of(model, {"max": ["cancer"], "evidence": [["smoker", 1]]}, str(bare), names=str(named))
    place: dict[str, Any] = {}
    exec(words.python(), place)
    assert list(place["result"].assignment) == ["cancer"]
    command = words.command()
    assert command is not None
    capsys.readouterr()
    assert run_app([*shlex.split(command)[1:], "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["assignment"].keys() == {"cancer"}


def test_odd_names_go_by_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "odd.uai"
    ps.write(ODD, file)
    command = words_of(ODD, {"max": ["all", "-max"], "evidence": [["a,b", "x=1"]]}, str(file)).command()
    assert command is not None
    assert "--evidence '#0=#0'" in command
    assert words_of(ODD, {"max": ["-max"]}).command() == "powersum solve m.bif --max '#2' --time 60"
    alone = words_of(ODD, {"max": ["all"]}).command()
    assert alone is not None
    assert "'all,'" in alone or "all," in alone


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "must be a dictionary"),
        ({"max": "some"}, "max is 'some'"),
        ({"max": [99]}, "out of range"),
        ({"max": [0.5]}, "is no variable"),
        ({"max": [1, 1]}, "twice"),
        ({"evidence": {"a": 1}}, "list of pairs"),
        ({"evidence": [[1]]}, "no pair"),
        ({"evidence": [[1, None]]}, "no pair"),
        ({"evidence": [["nobody", 0]]}, "no variable is called"),
        ({"evidence": [[0, 7]]}, "out of range"),
        ({"evidence": [[0, [1]]]}, "it has 2 states"),
        ({"evidence": [[0, ["a", "b"]]]}, "must be one number for each state"),
        ({"evidence": [[0, [0.5, -1]]]}, "not negative"),
    ],
)
def test_what_is_no_question_is_refused(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        question_from(CLINIC, data)
