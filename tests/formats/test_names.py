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


def test_names_are_kept_beside_a_uai_file(tmp_path: Path) -> None:
    model = ps.Model.from_tables({"rain": {"no": 0.4, "yes": 0.6}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    path = tmp_path / "m.uai.gz"
    ps.write(model, path)
    beside = tmp_path / "m.uai.names"
    again = ps.read_names(beside, ps.read(path))
    assert (again.names, again.states) == (model.names, model.states)
    # A model without names must not be read with those of an earlier one.
    ps.write(ps.generate.grid(1, 2, seed=1).model, path)
    assert not beside.exists()
    odd = model.with_names(["heavy rain", "#1"], [['"a"', ""], ["ä", "a\tb"]])
    ps.write(odd, path)
    again = ps.read_names(beside, ps.read(path))
    assert (again.names, again.states) == (odd.names, odd.states)
