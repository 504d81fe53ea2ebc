"""Output that arrives on every terminal: any encoding, any width."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from powersum.app.cli.app import app
from powersum.app.cli.progress import LiveLine, two_sided_line, upper_line, with_time_left
from powersum.app.cli.terminal import value_text, wrapped
from powersum.model.result import Snapshot
from tests.app.cli.conftest import Command
from tests.app.cli.test_process import POWERSUM, on_terminal

CLINIC = """network clinic { }
variable größe { type discrete [ 2 ] { klein, groß }; }
variable cough_during_the_night { type discrete [ 2 ] { no, yes }; }
probability ( größe ) { table 0.75, 0.25; }
probability ( cough_during_the_night | größe ) { (klein) 0.75, 0.25; (groß) 0.5, 0.5; }
"""


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.bif"
    path.write_text(CLINIC, encoding="utf-8")
    return path


def in_encoding(encoding: str, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*POWERSUM, *map(str, words)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        encoding=encoding,
        check=False,
    )


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8", "cp437"])
def test_an_answer_arrives_in_every_encoding(clinic: Path, encoding: str) -> None:
    done = in_encoding(encoding, "bound", clinic, "--max", "größe")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "log value = -0.287682" in done.stdout
    assert "gr\\xf6\\xdfe=klein" in done.stdout if encoding == "ascii" else "größe=klein" in done.stdout


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_signs_that_an_encoding_lacks_are_spelled_out(encoding: str, model_file: Path) -> None:
    done = in_encoding(encoding, "bound", model_file, "--max", "all", "--method", "gdd", "--sweeps", 1)
    assert done.returncode == 0, done.stderr
    assert "log value <= " in done.stdout


@pytest.mark.parametrize("words", [("--help",), ("solve", "--help"), ("compare", "--help")])
def test_help_arrives_in_ascii(words: tuple[str, ...]) -> None:
    done = in_encoding("ascii", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: powersum" in done.stdout


def test_help_needs_no_signs_beyond_ascii() -> None:
    # The command-line library writes help in UTF-8 where it takes an ASCII terminal for a mistake.
    commands = [get_command(app)]
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        words = [command.help, command.epilog, *(getattr(option, "help", "") for option in command.params)]
        metavars = [option.metavar for option in command.params]
        assert all((word or "").isascii() for word in [*words, *metavars]), command.name
    assert len(commands) > 10


def test_json_keeps_every_name_in_ascii(clinic: Path) -> None:
    done = in_encoding("ascii", "bound", clinic, "--max", "größe", "--json", "-")
    assert json.loads(done.stdout)["assignment"] == {"größe": "klein"}


def test_complaints_arrive_in_ascii(clinic: Path) -> None:
    done = in_encoding("ascii", "solve", clinic, "--max", "größer")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "gr\\xf6\\xdfer" in done.stderr


@pytest.mark.parametrize(
    "words", [("bound", "--max", "all", "-q"), ("info",), ("bound", "--max", "größe", "--evidence", "x=1")]
)
def test_a_narrow_terminal_gets_whole_words(clinic: Path, words: tuple[str, ...]) -> None:
    command = [*POWERSUM, words[0], clinic.name, *words[1:]]
    piped = subprocess.run(command, capture_output=True, text=True, check=False, cwd=clinic.parent)
    narrow = on_terminal(command, {"COLUMNS": "40", "NO_COLOR": "1"}, clinic.parent)
    assert narrow.split() == (piped.stdout + piped.stderr).split()
    assert max(map(len, narrow.splitlines())) <= 40


@pytest.mark.parametrize("words", [("--help",), ("explore", "--help"), ("generate", "grid", "--help"), ()])
def test_help_on_a_narrow_terminal(tmp_path: Path, words: tuple[str, ...]) -> None:
    narrow = on_terminal([*POWERSUM, *words], {"COLUMNS": "40", "NO_COLOR": "1"}, tmp_path)
    # A form such as --likelihood NAME=L,L,... is one word to whoever types it.
    assert max(map(len, narrow.splitlines())) <= 40
    wide = in_encoding("utf-8", *words).stdout
    # Commands are cut to what fits beside their names, so their summaries are not compared.
    if words[:1] in (("explore",), ("generate",)):
        assert narrow.split() == wide.split()


COLORAMA = """
import atexit, sys
__version__ = "0.4.6"
class Fore: RED = GREEN = YELLOW = BLUE = CYAN = MAGENTA = WHITE = BLACK = RESET = ""
Style = type("Style", (), {"BRIGHT": "", "RESET_ALL": ""})
init = reinit = deinit = lambda *_, **__: atexit.register(lambda: sys.stdout.write("\x1b[0m"))
"""
"""What it does to a terminal, for it is there or not by whatever else is installed."""


def test_numba_does_not_dress_the_terminal(clinic: Path) -> None:
    (clinic.parent / "colorama.py").write_text(COLORAMA)
    paths = os.pathsep.join([str(clinic.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [*POWERSUM, "bound", str(clinic), "--max", "all", "-q", "--method", "gdd"]
    assert "\x1b" not in on_terminal(command, {"NO_COLOR": "1", "PYTHONPATH": paths})


def test_words_longer_than_the_line_stay_whole() -> None:
    assert wrapped("a /some/long/path b", 8) == "a\n/some/long/path\nb"
    assert wrapped("name:     one two three", 14, indent=4) == "name:     one\n    two three"
    assert wrapped("as it is", None) == "as it is"


def test_zero_has_no_sign() -> None:
    almost = Snapshot(seconds=0.0, sweep=0, log_upper=-1e-12, log_lower=-1e-9)
    for line in (two_sided_line, upper_line):
        assert "-0.000000" not in line(almost, 0.0)
        assert " 0.000000" in line(almost, 0.0)


def test_an_answer_of_zero_has_no_sign(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "one.uai"
    path.write_text("MARKOV\n1\n2\n1\n1 0\n2\n0.25 0.75\n")
    assert "log value = 0   (log10 = 0)\n" in command("solve", path).out
    assert "log value = 0   (log10 = 0)\n" in command("bound", path).out


def test_values_as_people_read_them() -> None:
    assert [value_text(x) for x in (-2e-14, -0.0, -1.25, -math.inf, math.inf)] == ["0", "0", "-1.25", "-inf", "inf"]


@pytest.mark.parametrize("words", [(), ("generate",)])
def test_a_bare_command_shows_its_help(command: Command, words: tuple[str, ...]) -> None:
    ran = command(*words)
    assert (ran.code, ran.err) == (0, "")
    assert "Usage:" in ran.out


def test_what_is_left_of_the_time_limit() -> None:
    line = with_time_left(two_sided_line, 20.0)
    assert line(Snapshot(3.5, 1, -1.0, -2.0), 0.0).endswith("3.50 s, 16.5 s left")
    assert line(Snapshot(21.0, 1, -1.0, -2.0), 0.0).endswith("21.00 s, 0 s left")
    assert with_time_left(two_sided_line, math.inf) is two_sided_line


def test_a_clock_moves_while_no_bound_does(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("powersum.app.cli.progress.time.monotonic", lambda: now[0])
    line = LiveLine(upper_line)
    assert line.__rich__() == "preparing"
    now[0] = 107.0
    assert line.__rich__() == "preparing   [dim]7 s since the start[/dim]"
    line(Snapshot(1.0, 3, -2.5))
    assert line.__rich__() == upper_line(Snapshot(1.0, 3, -2.5), 0.0)
    now[0] = 109.0
    assert "9 s since the start" in line.__rich__()
