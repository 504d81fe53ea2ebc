"""Every command ends an interrupt in one line with exit code 130, and with what is known until then."""

from __future__ import annotations

import importlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from benchmarks.instances import DATA

import powersum as ps
from powersum.app.cli.commands import COMMANDS
from powersum.core.interrupt import ENDING
from powersum.run.board import Board
from tests.app.cli.conftest import Command
from tests.app.cli.test_process import POWERSUM_IN_FRONT

NAMES = {number: "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name for number in ENDING}

BEGUN: dict[str, tuple[tuple[str, ...], str]] = {
    "bound": (("MODEL",), "powersum.formats:read"),
    "solve": (("MODEL",), "powersum.formats:read"),
    "marginals": (("MODEL",), "powersum.formats:read"),
    "ask": (("MODEL", "--about", "0"), "powersum.formats:read"),
    "decide": (("MODEL",), "powersum.formats.diagrams:read_diagram"),
    "batch": (("MODEL", "CASES"), "powersum.formats:read"),
    "explore": (("MODEL", "--no-browser"), "powersum.app.explore.serve:serve"),
    "uai-solver": (("MODEL", "", "", "PR"), "powersum.formats:read"),
    "compare": (("MODEL",), "powersum.formats:read"),
    "info": (("MODEL",), "powersum.formats:read"),
    "reproduce": (("1", "--out", "OUT"), "powersum.app.reproduce.plan:tasks"),
    "convert": (("MODEL", "OUT.psm"), "powersum.formats:read"),
    "cache": ((), "powersum.core.cache:size"),
    "warmup": (("--quiet",), "powersum.app.cli.warmup:_run"),
    "generate": (("grid", "-o", "OUT.uai"), "powersum.generate:grid"),
}
"""For each command its words, and a function that a signal interrupts before anything is known."""


def test_every_command_is_here() -> None:
    assert BEGUN.keys() == COMMANDS.keys()


def interrupting(monkeypatch: pytest.MonkeyPatch, place: str, number: int) -> None:
    """Have a signal arrive whenever the function is called."""
    where, _, name = place.partition(":")
    owner = importlib.import_module(where)
    original = getattr(owner, name)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        os.kill(os.getpid(), number)
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, interrupted)
    # Commands that have been loaded may have it under its name.
    for module in [module for key, module in sys.modules.items() if key.startswith("powersum.app.cli.")]:
        if getattr(module, name, None) is original:
            monkeypatch.setattr(module, name, interrupted)


@pytest.mark.parametrize("name", BEGUN)
@pytest.mark.parametrize("number", ENDING, ids=NAMES.values())
def test_a_signal_before_anything_is_known_is_one_line(
    name: str, number: int, command: Command, model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words, place = BEGUN[name]
    (tmp_path / "cases.csv").write_text("0\n1\n", encoding="utf-8")
    stand_for = {"MODEL": str(model_file), "CASES": "cases.csv"}
    before = [signal.getsignal(n) for n in ENDING]
    if name == "warmup":
        monkeypatch.setattr("powersum.core.cache.store.read", lambda *_: None)
    interrupting(monkeypatch, place, number)
    ran = command(name, *(stand_for.get(word, word) for word in words))
    if name == "reproduce":
        # It looks at the flag after each measurement.
        assert ran.err.splitlines()[-1].startswith(f"powersum: stopped by {NAMES[number]}; what was measured is in ")
    else:
        assert [line for line in ran.err.splitlines() if " note: " not in line] == [
            f"powersum: stopped by {NAMES[number]}"
        ]
    assert ran.code == 130
    assert [signal.getsignal(n) for n in ENDING] == before


@pytest.mark.parametrize("number", ENDING, ids=NAMES.values())
def test_solve_ends_with_what_it_has(
    number: int, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = ps.generate.grid(20, 20, seed=1)
    ps.write(model, tmp_path / "grid.uai")
    original, sent = Board.snapshot, list[int]()

    def snapshot(board: Board, seconds: float, **options: Any) -> Any:
        if len(board.history) == 1 and not sent:
            sent.append(number)
            os.kill(os.getpid(), number)
        return original(board, seconds, **options)

    monkeypatch.setattr(Board, "snapshot", snapshot)
    out = tmp_path / "out.json"
    ran = command("solve", tmp_path / "grid.uai", "--max", "all", "--json", out)
    assert ran.code == 130
    assert ran.err == f"powersum: stopped by {NAMES[number]}\n"
    assert f"interrupted: Interrupted by {NAMES[number]}" in ran.out
    assert json.loads(out.read_text())["status"] == "interrupted"


def test_marginals_end_with_what_they_have(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from powersum.bounds.tree import CoveringTree

    model, _ = ps.generate.grid(30, 30, seed=1)
    ps.write(model, tmp_path / "grid.uai")
    original = CoveringTree.step

    def step(tree: CoveringTree, deadline: float) -> bool:
        # Once: a second signal ends the command at once.
        monkeypatch.setattr(CoveringTree, "step", original)
        os.kill(os.getpid(), signal.SIGINT)
        return original(tree, deadline)

    monkeypatch.setattr(CoveringTree, "step", step)
    begun = time.monotonic()
    ran = command("marginals", tmp_path / "grid.uai", "--time", "600", "--memory", "2G")
    assert time.monotonic() - begun < 300
    assert ran.code == 130
    assert ran.err.splitlines()[-1] == "powersum: stopped by Ctrl-C"
    shown = len([line for line in ran.out.splitlines() if "unknown" in line or "%" in line])
    assert shown >= 1800 or "variables are not bounded within the time" in ran.out


def test_compare_shows_what_was_measured(command: Command, model_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupting(monkeypatch, "powersum.api.comparison:_point", signal.SIGTERM)
    ran = command("compare", model_file, "--methods", "gdd,tree:1", "--sweeps", "5")
    # A second signal, at the next point, would end it at once.
    assert ran.code == 130
    assert ran.err.splitlines()[-1] == "powersum: stopped by SIGTERM"


def test_a_signal_of_a_competition_ends_in_order(
    command: Command, model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
        with monkeypatch.context() as patched:
            interrupting(patched, "powersum.app.cli.uai_solver:Solver", number)
            assert command("uai-solver", model_file, "", "", "PR").code == code
        assert (tmp_path / f"{model_file.name}.PR").read_text().startswith("PR\n")


def test_a_signal_in_compiled_code_is_one_line() -> None:
    model = DATA / "bayes" / "link.uai"
    if not model.exists():
        pytest.skip("link.uai is not there")
    for wait in (0.0, 0.05, 0.1):
        words = [*POWERSUM_IN_FRONT, "marginals", str(model)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "question: marginals\n"
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=600)
        assert process.returncode == 130
        assert err.splitlines()[-1] == "powersum: stopped by Ctrl-C"
        assert "Traceback" not in err


def test_files_are_written_when_the_terminal_is_closed(tmp_path: Path) -> None:
    model, _ = ps.generate.grid(60, 60, seed=1)
    ps.write(model, tmp_path / "large.uai")
    out = tmp_path / "out.json"
    words = [*POWERSUM_IN_FRONT, "bound", str(tmp_path / "large.uai"), "--max", "all", "--time", "600"]
    child, ours = pty.fork()
    if child == 0:  # pragma: no cover
        # A process of a terminal of its own, which is told when that is closed.
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [*words, "--json", str(out)])
    text = b""
    while b"sweep" not in text:
        text += os.read(ours, 65536)
    os.close(ours)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert json.loads(out.read_text())["reason"].startswith("Interrupted by SIGHUP")
