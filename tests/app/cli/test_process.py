"""The command line as a process: signals, closed pipes, full disks, terminals."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

import powersum as ps
from powersum.core.interrupt import ENDING
from tests.app.cli.conftest import without_compiling

POWERSUM = [sys.executable, "-c", "from powersum.app.cli import main; main()"]
# A shell that started the tests in the background has everything below them ignore Ctrl-C.
HEARS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
POWERSUM_IN_FRONT = [sys.executable, "-c", f"{HEARS_CTRL_C}; from powersum.app.cli import main; main()"]
LONG = ["--max", "all", "--time", "600", "--change", "0"]


@pytest.fixture
def large_model(tmp_path: Path) -> Path:
    model, _ = ps.generate.grid(60, 60, seed=1)
    path = tmp_path / "large.uai"
    ps.write(model, path)
    return path


SLOW_IMPORT = """
import os, signal, sys
{hears}

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{number})

sys.meta_path.insert(0, Interrupting())
from powersum_start import main
main()
"""
"""The command line, with a signal at the moment when a module begins to be imported."""


@pytest.mark.parametrize(
    "module",
    ["powersum", "typing", "powersum.app.cli", "typer", "numpy", "powersum.app.cli.app", "powersum.run.solver"],
)
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_during_import_is_one_line(module: str, number: str) -> None:
    code = SLOW_IMPORT.format(module=module, hears=HEARS_CTRL_C, number=number)
    words = [sys.executable, "-c", code, "solve", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    line = f"powersum: stopped by {'Ctrl-C' if number == 'SIGINT' else number}\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "", line)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_the_run_with_its_files_written(large_model: Path, number: int) -> None:
    out, picture = large_model.with_name("out.json"), large_model.with_name("out.png")
    words = ["bound", str(large_model), *LONG, "--json", str(out), "--plot", str(picture)]
    command = [*POWERSUM_IN_FRONT, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("sweep"):
                break
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 130, stderr
    assert "interrupted: Interrupted by" in stdout
    data = json.loads(out.read_text())
    assert data["status"] == "interrupted"
    assert data["log_upper"] == data["history"][-1]["log_upper"]
    assert len(data["assignment"]) == 3600
    assert picture.stat().st_size > 0


def test_a_closed_pipe_is_no_error(large_model: Path) -> None:
    with subprocess.Popen(
        [*POWERSUM, "bound", str(large_model), *LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert without_compiling(process.stderr.read()) == ""
        assert process.wait(timeout=600) in (0, 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [("--json", "-"), ()])
def test_an_answer_that_cannot_be_printed_is_one_line(model_file: Path, words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        command = [*POWERSUM, "solve", str(model_file), *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("powersum: the answer cannot be printed (No space left on device)\n")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line(model_file: Path) -> None:
    done = subprocess.run(
        [*POWERSUM, "bound", str(model_file), "-q", "--json", "/dev/full"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert without_compiling(done.stderr) == "powersum: /dev/full: cannot be written (No space left on device)\n"


def test_a_live_line_on_a_terminal(large_model: Path) -> None:
    text = on_terminal([*POWERSUM, "bound", str(large_model), "--max", "all", "--sweeps", "5"], {"NO_COLOR": "1"})
    assert "\x1b[2K" in text
    assert "sweep      0" in text
    assert "log value ≤" in text
    assert "\x1b[3" not in text


def on_terminal(words: list[str], environment: dict[str, str], folder: Path | None = None) -> str:
    """Everything a program writes when its output is a terminal."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment}
    with subprocess.Popen(words, stdout=theirs, stderr=theirs, stdin=theirs, env=variables, cwd=folder) as process:
        os.close(theirs)
        text = b""
        end = time.monotonic() + 600
        while time.monotonic() < end and select.select([ours], [], [], 600)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                # How Linux reports that the other side has closed the terminal.
                break
            if not piece:
                break
            text += piece
        process.wait(timeout=600)
    os.close(ours)
    return text.decode()
