"""What the Tab key offers, asked as each shell asks."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.cli.test_process import POWERSUM

CLINIC = """network clinic { }
variable cancer { type discrete [ 2 ] { no, yes }; }
variable cough { type discrete [ 3 ] { never, seldom, often }; }
probability ( cancer ) { table 0.75, 0.25; }
probability ( cough | cancer ) { (no) 0.5, 0.25, 0.25; (yes) 0.25, 0.25, 0.5; }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "clinic.bif").write_text(CLINIC)
    (tmp_path / "pair.uai").write_text("MARKOV\n2\n2 3\n1\n2 0 1\n6\n1 1 1 1 1 1\n")
    return tmp_path


def offered(shell: str, line: str, folder: Path) -> str:
    """What a shell is told when Tab is pressed at the end of a line."""
    words = line.split(" ")
    asked = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    done = subprocess.run(
        POWERSUM,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "_POWERSUM_COMPLETE": f"complete_{shell}", **asked},
    )
    assert done.stderr == ""
    return done.stdout


def words_of(shell: str, answer: str) -> list[str]:
    """The words themselves: zsh and fish may be told what each is for, too."""
    if shell == "zsh":
        return [word.partition('":"')[0] for word in re.findall(r'"((?:[^"]|":")*)"', answer)]
    return [line.partition("\t")[0] for line in answer.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("powersum sol", ["solve"]),
        ("powersum solve clinic.bif --max c", ["cancer", "cough"]),
        ("powersum solve clinic.bif --max cancer,c", ["cancer,cough"]),
        ("powersum solve clinic.bif --evidence ca", ["cancer="]),
        ("powersum solve clinic.bif --evidence cancer=yes,c", ["cancer=yes,cough="]),
        ("powersum solve clinic.bif --evidence cough=", ["cough=never", "cough=seldom", "cough=often"]),
        ("powersum info pair.uai --evidence 1=", ["1=0", "1=1", "1=2"]),
        ("powersum bound clinic.bif --method g", ["gdd"]),
        ("powersum compare clinic.bif --methods gdd,mb", ["gdd,mbe"]),
    ],
)
def test_names_states_and_methods(folder: Path, shell: str, line: str, words: list[str]) -> None:
    assert words_of(shell, offered(shell, line, folder)) == words


@pytest.mark.parametrize("line", ["powersum solve cli", "powersum solve absent.bif --max c", "powersum solve --evid x"])
def test_files_are_left_to_the_shell(folder: Path, line: str) -> None:
    assert offered("bash", line, folder).strip() == ""
    assert offered("zsh", line, folder).strip() == "_files"
    assert offered("fish", line, folder).strip() == ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_in_a_real_bash(folder: Path) -> None:
    # The script that --install-completion installs, and the function it defines, called as bash calls it.
    command = folder / "powersum"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m powersum "$@"\n')
    command.chmod(0o755)
    script = subprocess.run(
        POWERSUM,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "_POWERSUM_COMPLETE": "source_bash"},
    ).stdout
    asked = f"""PATH={shlex.quote(str(folder))}:$PATH
{script}
COMP_WORDS=(powersum solve clinic.bif --max ca); COMP_CWORD=4
_powersum_completion powersum
echo "${{COMPREPLY[*]}}"
# To bash a = ends a word, and what is offered takes the place of what follows it.
COMP_WORDS=(powersum solve clinic.bif --evidence cough = s); COMP_CWORD=6
_powersum_completion powersum
echo "${{COMPREPLY[*]}}"
COMP_WORDS=(powersum solve clinic.bif --evidence cough =); COMP_CWORD=5
_powersum_completion powersum
echo ${{COMPREPLY[*]}}
COMP_WORDS=(powersum solve clinic.bif --evidence = cough = often,can); COMP_CWORD=7
_powersum_completion powersum
echo "${{COMPREPLY[*]}}"
complete -p powersum
"""
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=False, cwd=folder)
    assert done.stderr == ""
    reply, state, states, name, installed = done.stdout.splitlines()
    assert reply == "cancer"
    assert state == "seldom"
    assert states == "never seldom often"
    assert name == "often,cancer="
    # Where nothing is offered, bash goes on to files by itself.
    assert "-o default" in installed
