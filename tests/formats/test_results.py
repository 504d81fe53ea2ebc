"""Result files: answers appended as they are found, the last one counts."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from powersum.core.errors import InputError
from powersum.formats import ResultWriter, read_result
from tests.formats.helpers import refusal, saved


def test_partition(tmp_path: Path) -> None:
    path = tmp_path / "m.uai.PR"
    with ResultWriter(path, "PR") as out:
        assert path.read_text() == "PR\n"
        out.partition(-2 * math.log(10))
        assert path.read_text() == "PR\n-2.0\n"
        out.partition(-math.log(10))
        assert path.read_text() == "PR\n-2.0\n-BEGIN-\n-1.0\n"
    answer = read_result(path)
    assert answer.task == "PR"
    assert answer.log_value == -math.log(10)


def test_impossible_evidence(tmp_path: Path) -> None:
    path = tmp_path / "m.PR"
    with ResultWriter(path, "PR") as out:
        out.partition(-math.inf)
    assert read_result(path).log_value == -math.inf


def test_marginals(tmp_path: Path) -> None:
    path = tmp_path / "m.MAR"
    with ResultWriter(path, "MAR") as out:
        out.marginals([[0.25, 0.75], [1.0]])
    assert path.read_text() == "MAR\n2 2 0.25 0.75 1 1.0\n"
    assert [m.tolist() for m in read_result(path).marginals] == [[0.25, 0.75], [1.0]]


def test_map(tmp_path: Path) -> None:
    path = tmp_path / "m.MAP"
    with ResultWriter(path, "MAP") as out:
        out.states([1, 1, 0])
        out.states([1, 0, 2])
    assert path.read_text() == "MAP\n3 1 1 0\n-BEGIN-\n3 1 0 2\n"
    assert read_result(path).assignment == {0: 1, 1: 0, 2: 2}


def test_marginal_map(tmp_path: Path) -> None:
    path = tmp_path / "m.MMAP"
    with ResultWriter(path, "MMAP") as out:
        out.assignment({7: 1, 3: 0})
    assert path.read_text() == "MMAP\n2 7 1 3 0\n"
    assert read_result(path).assignment == {7: 1, 3: 0}


@pytest.mark.parametrize(
    "tail", ["", "-BEGIN-", "-BEGIN-\n", "-BEGIN-\n2", "-BEGIN-\n2 7 1 3", "-BEGIN-\n2 7\n-BEGIN-\n"]
)
def test_a_run_killed_while_writing_leaves_its_last_answer(tmp_path: Path, tail: str) -> None:
    assert read_result(saved(tmp_path, "MMAP\n-BEGIN-\n1 4 0\n-BEGIN-\n1 4 1\n" + tail)).assignment == {4: 1}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("PRX\n1", "token 1: PRX is none of the tasks PR, MAR, MAP, MMAP"),
        ("PR\n", "holds no answer"),
        ("PR\n-BEGIN-\n", "holds no answer"),
        ("PR\nx", "token 2: x is not a number"),
        ("PR\nnan", "token 2: nan is not the log"),
        ("PR\n1\n-BEGIN-\n1 2", "token 5: 2 is surplus"),
        ("MAP\n3 1 1", "token 4: the answer is cut off after it"),
        ("MAP\n1000000000000 1", "cut off"),
        ("MAP\n1 -1", "token 3: -1 is not a whole number ≥ 0"),
        ("MMAP\n2 1 0 1 0", "token 5: 1 is a variable that has a state already"),
        ("MAR\n1 2 0.5", "cut off"),
        ("MAR\n1 2 0.5 1.5", "token 5: 1.5 is not a probability"),
        ("MAR\n1 1 1 1", "token 5: 1 is surplus"),
        (b"MAP\n\xff\x00", r"token 2: \xff\x00 is not a whole number"),
    ],
)
def test_refused(tmp_path: Path, content: str | bytes, said: str) -> None:
    assert said in refusal(read_result, saved(tmp_path, content, "m.PR"))


def test_unwritable(tmp_path: Path) -> None:
    assert "cannot be written" in refusal(lambda p: ResultWriter(p, "PR"), tmp_path / "no" / "m.PR")
    assert "cannot be written" in refusal(lambda p: ResultWriter(p, "PR"), tmp_path)


def test_wrong_task(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of the tasks"):
        ResultWriter(tmp_path / "m.XX", "XX")
    with (
        ResultWriter(tmp_path / "m.PR", "PR") as out,
        pytest.raises(InputError, match="takes answers to PR, not to MAP"),
    ):
        out.states([0])
