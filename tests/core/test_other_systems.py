"""The roads of Windows and macOS, taken here with what those systems would say; no test has run on either."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from ctypes import wintypes
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from powersum.core import cache, machine, memory


def as_on(monkeypatch: pytest.MonkeyPatch, system: str, module: ModuleType) -> Any:
    """A copy of a module as it is where ``sys.platform`` says this, and where there is no /proc."""
    monkeypatch.setattr(sys, "platform", system)
    if system == "win32":
        # None: importing it fails, as there.
        monkeypatch.setitem(sys.modules, "resource", None)
    spec = importlib.util.spec_from_file_location(f"{module.__name__}_on_{system}", str(module.__file__))
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)

    def absent(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", absent)
    return copy


class Call:
    """A function of a Windows library: its types can be set, and it fills what it is handed."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.argtypes: Any = None
        self.restype: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return self._answer(*arguments)


def windows(now: int, most: int, free: int) -> SimpleNamespace:
    """What ``ctypes.windll`` is there, as far as it is asked."""

    def working_sets(handle: Any, counters: Any, size: int) -> int:
        # Two DWORDs, which have eight bytes here, and eight sizes.
        assert size == ctypes.sizeof(counters._obj) == 2 * ctypes.sizeof(wintypes.DWORD) + 64
        counters._obj.WorkingSetSize, counters._obj.PeakWorkingSetSize = now, most
        return 1

    def status(found: Any) -> int:
        assert found._obj.length == ctypes.sizeof(found._obj) == 64
        found._obj.free = free
        return 1

    kernel = SimpleNamespace(GetCurrentProcess=Call(lambda: -1), GlobalMemoryStatusEx=Call(status))
    return SimpleNamespace(kernel32=kernel, psapi=SimpleNamespace(GetProcessMemoryInfo=Call(working_sets)))


def test_memory_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "windll", windows(5_000_000_000, 6_000_000_000, 7_000_000_000), raising=False)
    ours = as_on(monkeypatch, "win32", memory)
    assert (ours.bytes_held(), ours.most_bytes_held()) == (5_000_000_000, 6_000_000_000)
    theirs = as_on(monkeypatch, "win32", machine)
    assert theirs.free_memory() == 7e9
    # A call that fails leaves 0, which takes nothing off a budget.
    refused = windows(1, 1, 1)
    refused.psapi.GetProcessMemoryInfo = Call(lambda *_: 0)
    monkeypatch.setattr(ctypes, "windll", refused)
    assert (ours.bytes_held(), ours.most_bytes_held()) == (0, 0)


def test_memory_on_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel counts bytes where that of Linux counts kilobytes, and it does not tell what is free."""
    import resource

    monkeypatch.setattr(resource, "getrusage", lambda _: SimpleNamespace(ru_maxrss=300_000_000))
    assert as_on(monkeypatch, "darwin", memory).bytes_held() == 300_000_000
    theirs = as_on(monkeypatch, "darwin", machine)
    monkeypatch.setattr(theirs, "_configured", {"SC_PAGE_SIZE": 16384.0, "SC_PHYS_PAGES": 1e6}.get)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert theirs.free_memory() == 0.5 * 16384.0 * 1e6


@pytest.mark.parametrize(
    ("system", "folder"), [("win32", "Local/powersum"), ("darwin", "home/Library/Caches/powersum")]
)
def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str, folder: str) -> None:
    for name in ("POWERSUM_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Local"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "platform", system)
    assert cache.cache_folder() == tmp_path / folder
    monkeypatch.delenv("LOCALAPPDATA")
    if system == "win32":
        assert cache.cache_folder() is None
