"""What a first run says of compilation: how far it is, and at the end how long the run waited for it."""

from __future__ import annotations

import pytest

from powersum.app.cli import progress
from powersum.core.ahead import helpers
from powersum.core.clock import CompilationClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> CompilationClock:
    """A clock of compilation that nothing else keeps."""
    fresh = CompilationClock()
    monkeypatch.setattr(progress, "compilation", fresh)
    return fresh


def test_how_far_it_is_and_how_long_it_took(
    clock: CompilationClock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "progress", lambda: (3, 9))
    progress.announce_compilation(quiet=False)
    clock.compile()
    clock.compile()
    clock.seconds = 12.3
    progress.tell_compilation()
    assert capsys.readouterr().err.splitlines() == [
        "powersum: note: compiling 3 of about 9, first time only",
        "powersum: note: compiling and loading took 12 s, which time limits do not count",
    ]


def test_nothing_is_said_of_what_no_list_has_nor_of_a_question_that_is_through(
    clock: CompilationClock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for far in ((0, 9), (9, 9), (0, 0)):
        monkeypatch.setattr(helpers, "progress", lambda far=far: far)
        progress.announce_compilation(quiet=False)
        clock.compile()
        assert capsys.readouterr().err == "powersum: note: compiling, first time only\n"


@pytest.mark.parametrize("case", ["quiet", "loaded only", "counted", "short"])
def test_the_end_is_silent_where_no_limit_is_concerned(
    clock: CompilationClock, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    progress.announce_compilation(quiet=case == "quiet")
    clock.seconds = 0.5 if case == "short" else 12.3
    clock.counted = case == "counted"
    if case != "loaded only":
        clock.compile()
    capsys.readouterr()
    progress.tell_compilation()
    assert capsys.readouterr().err == ""
