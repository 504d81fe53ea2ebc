"""Faults planted in the checker are seen: a few of those of :mod:`tests.check.mutants`, by certificates alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.mutants import SOURCE, Mutant, battery, by_hand, generated, is_seen

SAMPLE = (
    ("tree.py", "'own == [needed]'"),
    ("cover.py", "'len(d := p.box[v]) <= 1"),
    ("conditioning.py", "'if len(settled_by) > 1:'"),
    ("cover.py", "'uppers[s + 1 :] = -math.inf'"),
    ("mean_field.py", "'entropies.append(weight"),
)
"""Files, and how what is written of the fault begins."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("planted") / "cases"
    battery(600, 1, path)
    return path


def test_the_checker_as_it_is_passes(cases: Path) -> None:
    text = (SOURCE / "tree.py").read_text(encoding="utf-8")
    assert not is_seen(Mutant("tree.py", 1, "none", text), cases, tests=False)


@pytest.mark.parametrize(("file", "words"), SAMPLE)
def test_faults_are_seen(file: str, words: str, cases: Path) -> None:
    mutant = next(one for one in by_hand() if one.file == file and one.what.startswith(words))
    assert is_seen(mutant, cases, tests=False)


def test_faults_can_be_planted_everywhere() -> None:
    faults = list(generated())
    assert len(faults) > 1500
    assert len({mutant.file for mutant in faults}) > 15
    assert len(list(by_hand())) > 80
