"""Folders of runs: they go with the run, and those of runs that were killed with the next one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from powersum.cluster import run_folder
from powersum.cluster.run_folder import RunFolder, remove_abandoned
from tests.cluster.machines import environment, kill

PROGRAM = """
import sys
from powersum.cluster.run_folder import RunFolder
folder = RunFolder(sys.argv[1])
(folder.path / "part.npz").write_text("large")
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_run_left_goes_with_the_next_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    owner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True)
    assert owner.stdin is not None
    assert owner.stdout is not None
    with owner.stdin, owner.stdout:
        left = Path(owner.stdout.readline().strip())
        mine = RunFolder(str(tmp_path))
        # In use, by this process or by another one.
        remove_abandoned(tmp_path)
        assert left.exists()
        assert mine.path.exists()
        kill(owner)
    another = RunFolder(str(tmp_path))
    assert not left.exists()
    assert mine.path.exists()
    mine.remove()
    another.remove()
    mine.remove()
    assert not list(tmp_path.iterdir())


def test_what_is_not_a_run_s_own_stays(tmp_path: Path) -> None:
    strange = tmp_path / "powersum-run-mine"
    strange.mkdir()
    (strange / "thesis.tex").touch()
    RunFolder(str(tmp_path)).remove()
    assert [path.name for path in strange.iterdir()] == ["thesis.tex"]


def test_without_locks_nothing_is_taken_for_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, or on a file system that has none."""

    def refused(_file: int, _how: int) -> None:
        raise OSError("no locks here")

    for flock in (None, refused):
        monkeypatch.setattr(run_folder, "_flock", lambda flock=flock: flock)
        first, second = RunFolder(str(tmp_path)), RunFolder(str(tmp_path))
        assert first.path.exists()
        first.remove()
        second.remove()
    assert not list(tmp_path.iterdir())
