"""``cache`` and ``warmup``."""

from __future__ import annotations

from pathlib import Path

import pytest

from powersum.app.cli import warmup
from powersum.core import jit
from powersum.core.cache import Store
from powersum.core.errors import InputError
from tests.app.cli.conftest import Command


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty folder for compiled code, and nothing in temporary ones."""
    monkeypatch.setenv("POWERSUM_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return Store()


def test_path_size_and_clear(command: Command, store: Store, tmp_path: Path) -> None:
    assert command("cache", "--path").out == f"{tmp_path / 'kept'}\n"
    assert command("cache", "--size").out == "0\n"
    store.write("stamp", "name", bytes(68))
    assert command("cache", "--size").out == "100\n"
    assert command("cache").out == f"{tmp_path / 'kept'}: 1 files of compiled code, 0.0 MB\n"
    assert command("cache", "--clear") == (0, "", "")
    assert command("cache", "--size").out == "0\n"


def test_one_thing_at_a_time(command: Command) -> None:
    ran = command("cache", "--clear", "--size")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "powersum: give one of --clear, --path, --size\n"


def test_warmup_is_done_once(command: Command, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[list[str]] = []
    for module in (warmup, jit):
        monkeypatch.setattr(module, "store", store)
    monkeypatch.setattr(warmup, "_run", lambda names, jobs, *, quiet: begun.append(names))
    assert command("warmup", "--workers", 2).code == 0
    assert begun == [list(warmup.TASKS)]
    assert command("warmup").out == "everything is compiled already\n"
    assert command("warmup", "--quiet").out == ""
    assert len(begun) == 1


def test_a_task_that_does_not_exist_is_refused(command: Command, store: Store) -> None:
    ran = command("warmup", "--task", "teatime")
    assert ran.code == 2
    assert ran.err.startswith("powersum: warmup: there is no task 'teatime'; there are marginal MAP, ")


def test_a_task_that_fails_is_told_in_one_line() -> None:
    with pytest.raises(InputError, match=r"^warmup: no such task failed: KeyError: 'no such task'$"):
        warmup._run(["no such task"], 1, quiet=True)
