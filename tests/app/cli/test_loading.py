"""Commands are loaded when they are called, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command

from powersum.app.cli.app import app
from powersum.app.cli.commands import COMMANDS
from tests.app.cli.conftest import Command


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["slove"], ["cache", "--path"], ["warmup", "--help"]])
def test_what_needs_no_model_loads_not_even_numpy(words: list[str]) -> None:
    code = (
        f"import sys; from powersum.app.cli.app import run_app; run_app({words!r});"
        "assert not {'numpy', 'rich', 'powersum.model.model'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_help_lists_every_command_on_a_line_of_its_own(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = command("--help").out.splitlines()
    for name, one in COMMANDS.items():
        assert f"  {name:<12}{one.summary}" in lines


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_where_the_table_says(name: str, command: Command) -> None:
    found = get_command(app).commands[name]  # type: ignore[attr-defined]
    assert found.name == name
    shown = command(name, "--help")
    assert shown.code == 0
    assert shown.out.startswith(f"Usage: powersum {name} ")
    assert "install-completion" not in shown.out
    assert all(example in " ".join(shown.out.split()) for example in COMMANDS[name].examples)


def test_a_name_that_is_nearly_right(command: Command) -> None:
    shown = command("margnals")
    assert shown.code == 2
    assert "marginals" in shown.err
