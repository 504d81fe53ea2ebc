"""An answer of an earlier run is never left as if it were that of a run that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from powersum.app.cli.fresh import older_answers_aside
from powersum.core.errors import InputError
from tests.app.cli.conftest import Command
from tests.app.cli.test_process import POWERSUM, POWERSUM_IN_FRONT

OUTPUTS = {
    "solve": ("--json", "--uai", "--plot", "--report"),
    "bound": ("--json", "--plot", "--report"),
    "compare": ("--csv", "--plot"),
    "info": ("--json",),
}
ENDINGS = {"--json": "json", "--uai": "MAP", "--plot": "png", "--report": "html", "--csv": "csv"}


@pytest.mark.parametrize("command", OUTPUTS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_ended_while_it_reads_leaves_no_older_answer(
    tmp_path: Path, command: str, number: signal.Signals
) -> None:
    # A pipe that nobody fills: the process is in the midst of reading when the other end opens.
    pipe = tmp_path / "model.uai"
    os.mkfifo(pipe)
    words: list[str] = []
    for option in OUTPUTS[command]:
        out = tmp_path / f"out.{ENDINGS[option]}"
        out.write_text("older")
        words += [option, str(out)]
    with (
        subprocess.Popen(
            [*POWERSUM_IN_FRONT, command, str(pipe), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as run,
        open(pipe, "wb"),
    ):
        run.send_signal(number)
        _, stderr = run.communicate(timeout=600)
    assert run.returncode == (130 if number is signal.SIGINT else -signal.SIGKILL)
    assert stderr == (b"powersum: stopped by Ctrl-C\n" if number is signal.SIGINT else b"")
    assert list(tmp_path.glob("out.*")) == []


def test_a_killed_competition_run_leaves_no_older_answer(tmp_path: Path) -> None:
    pipe = tmp_path / "model.uai"
    os.mkfifo(pipe)
    (tmp_path / "model.uai.PR").write_text("PR\n0.5\n")
    words = [*POWERSUM, "uai-solver", str(pipe), "", "", "PR"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as run, open(pipe, "wb"):
        run.kill()
        run.wait(timeout=600)
    assert not (tmp_path / "model.uai.PR").exists()


def test_a_wrong_question_costs_no_answer(command: Command, model_file: Path) -> None:
    out = model_file.with_name("out.json")
    out.write_text("older")
    before = sorted(model_file.parent.iterdir())
    for wrong in (("--max", "99"), ("--evidence", "0=7"), ("--time", "0")):
        assert command("solve", model_file, *wrong, "--json", out).code == 2
    assert out.read_text() == "older"
    assert sorted(model_file.parent.iterdir()) == before


def test_what_is_set_aside(tmp_path: Path) -> None:
    target, link, absent = tmp_path / "target", tmp_path / "link", tmp_path / "absent"
    target.write_text("older")
    link.symlink_to(target)

    def ask_wrongly() -> None:
        with older_answers_aside([link, absent, "-", None, "/dev/null"]):
            assert not target.exists()
            raise InputError("wrong")

    with pytest.raises(InputError, match="wrong"):
        ask_wrongly()
    assert target.read_text() == "older"
    with older_answers_aside([link, absent]):
        assert not target.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["link"]
    assert Path("/dev/null").exists()
