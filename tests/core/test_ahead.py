"""Helpers that compile ahead: the list is of functions that exist, claims are kept, and helpers end with the run."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from powersum.core import jit
from powersum.core.ahead import CompilePlan, Entry, Helpers, described, kind_of
from powersum.core.cache import Store

PLAN = CompilePlan.read()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty folder."""
    monkeypatch.setenv("POWERSUM_CACHE_DIR", str(tmp_path / "kept"))
    return Store()


def test_each_entry_is_a_function_and_kinds_that_can_be_written_again() -> None:
    assert len(PLAN.entries) > 50
    for entry in PLAN.entries:
        kernel = functools.reduce(getattr, entry.name.split("."), importlib.import_module(entry.module))
        assert kernel in jit.ours, entry.place
        kinds = [kind_of(kind) for kind in entry.kinds]
        assert [described(kind) for kind in kinds] == list(entry.kinds)
        assert len(kinds) <= kernel.py_func.__code__.co_argcount


def test_what_fits_best_is_gone_on_with() -> None:
    plan = CompilePlan([Entry("m", name, ()) for name in "abcdef"], [[0, 1, 2], [3, 1, 4, 5]])
    assert plan.following(["m:d"], set()) == 1
    assert plan.following(["m:d", "m:b"], {1}) == 4
    assert plan.following(["m:a"], {1}) == 2
    assert plan.following(["m:f", "m:d"], set()) is None
    assert plan.progress(["m:d", "m:e"]) == (3, 4)
    assert CompilePlan([], []).following(["m:a"], set()) is None
    assert CompilePlan([], []).progress(["m:a"]) == (0, 0)


def test_a_claim_keeps_others_waiting_until_it_is_released(store: Store) -> None:
    first = store.claim("stamp", "name")
    assert first is not None
    assert not first.waited
    assert store.claim("stamp", "name") is None
    begun = time.monotonic()
    assert store.claim("stamp", "name", 0.1) is None
    assert time.monotonic() - begun >= 0.1
    other = store.claim("stamp", "another")
    assert other is not None
    other.release()
    first.release()
    again = store.claim("stamp", "name")
    assert again is not None
    again.release()


HOLD = """
import sys
from powersum.core.cache import store
claim = store.claim("stamp", "name")
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_claim_ends_with_its_process(store: Store, tmp_path: Path) -> None:
    environment = {**os.environ, "POWERSUM_CACHE_DIR": str(tmp_path / "kept")}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    assert store.claim("stamp", "name") is None
    process.kill()
    process.communicate()
    claim = store.claim("stamp", "name", 60.0)
    assert claim is not None
    claim.release()


def test_nothing_is_begun_unless_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POWERSUM_HELPERS", raising=False)
    helpers = Helpers()
    helpers.asked("m:a")
    assert helpers._processes is None
    monkeypatch.setenv("POWERSUM_HELPERS", "0")
    helpers = Helpers()
    helpers.wanted = True
    helpers.asked("m:a")
    assert helpers._processes is None


RUN = """
import sys
from powersum.core import ahead
ahead.MOST = 1
ahead._processors = lambda: 2
ahead.helpers.wanted = True
from powersum.core.ahead import CompilePlan, kind_of
from powersum.core import jit
from powersum.core.cache import store
import importlib, time
plan = CompilePlan.read()
entries = {one.name: one for one in plan.entries}
first, second = (entries[name] for name in ("_incidence", "_components"))
jit.compile_ahead(first.module, first.name, tuple(kind_of(kind) for kind in first.kinds))
(helper,) = ahead.helpers._processes
print(helper.pid, flush=True)
kernel = getattr(importlib.import_module(second.module), second.name)
until = time.monotonic() + 600
while jit.ours[kernel].wanted(tuple(kind_of(kind) for kind in second.kinds)) and time.monotonic() < until:
    time.sleep(0.1)
kernel.compile(tuple(kind_of(kind) for kind in second.kinds))
print(sum(kernel.stats.cache_hits.values()), flush=True)
"""


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for the process in /proc")
def test_a_helper_compiles_what_comes_next_and_ends_with_the_run(tmp_path: Path) -> None:
    environment = {**os.environ, "POWERSUM_CACHE_DIR": str(tmp_path / "kept")}
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    helper, hits = done.stdout.split()
    assert hits == "1"
    until = time.monotonic() + 60.0
    while _lives(int(helper)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _lives(int(helper))


def _lives(process: int) -> bool:
    """Whether a process still runs; who has ended and was not asked for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
