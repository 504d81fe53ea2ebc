"""Names of variables and states from a file of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

import powersum as ps

MODEL = ps.Model.from_factors([2, 3], [((0, 1), [[0.1, 0.1, 0.2], [0.1, 0.3, 0.2]])])


def test_names_alone_and_with_labels(tmp_path: Path) -> None:
    file = tmp_path / "m.names"
    file.write_text("# of a dream\nsleep\n\nmoon  # over the sea\n", encoding="utf-8")
    assert ps.read_names(file, MODEL).names == ("sleep", "moon")
    assert ps.read_names(file, MODEL).states is None
    file.write_text("sleep yes no\nmoon\n", encoding="utf-8")
    assert ps.read_names(file, MODEL).states == (("yes", "no"), ("0", "1", "2"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sleep", r"m\.names: 1 names, but the model has 2 variables"),
        ("sleep yes\nmoon", r"line 1: 1 labels, but variable sleep has 2 states"),
        ("sleep yes yes\nmoon", r"line 1: variable sleep has two states of one label"),
        ("sleep\nsleep", r"two variables are called sleep"),
    ],
)
def test_wrong_files_are_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "m.names"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ps.InputError, match=message):
        ps.read_names(file, MODEL)


def test_what_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "m.names"
    file.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ps.InputError, match="is not text in UTF-8"):
        ps.read_names(file, MODEL)
