"""Every command that takes a question takes it in the same way."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command

from powersum.app.cli.app import app
from tests.app.cli.conftest import Command

TAKE_QUESTIONS = ("bound", "solve", "compare", "info", "explore")
RAIN = "MARKOV\n2\n2 2\n2\n1 0\n2 0 1\n2\n 0.8 0.2\n4\n 0.9 0.1 0.3 0.7\n"


@pytest.fixture
def rain(tmp_path: Path) -> Path:
    path = tmp_path / "rain.uai"
    path.write_text(RAIN)
    (tmp_path / "rain.names").write_text("rain dry wet\nground\n")
    return path


@pytest.mark.parametrize("name", TAKE_QUESTIONS)
def test_the_same_options(name: str) -> None:
    command = get_command(app).commands[name]  # type: ignore[attr-defined]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {"model", "--query", "--max", "--evid", "--evidence", "--names", "--likelihood"} <= options


@pytest.mark.parametrize("name", ["bound", "solve", "compare", "info"])
def test_names_and_likelihoods_count(command: Command, rain: Path, name: str) -> None:
    asked = ("--names", rain.with_suffix(".names"), "--max", "rain", "--likelihood", "ground=0.5,0.25")
    ran = command(name, rain, *asked)
    assert ran.code == 0, ran.err
    # 0.8 (0.9 0.5 + 0.1 0.25), as a log.
    if name in ("bound", "solve"):
        assert "-0.9675840" in ran.out
    assert command(name, rain, "--likelihood", "1=0.5").code == 2


@pytest.mark.parametrize("name", ["bound", "solve", "info"])
def test_no_file_that_is_read_is_written_over(command: Command, rain: Path, name: str) -> None:
    names = rain.with_suffix(".names")
    before = names.read_text()
    ran = command(name, rain, "--names", names, "--json", names)
    assert ran.code == 2
    assert "is an input already" in ran.err
    assert names.read_text() == before
