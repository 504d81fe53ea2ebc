"""The budget that follows the machine, with the files of other machines in place of this one's."""

from __future__ import annotations

from pathlib import Path

import pytest

from powersum.core import machine

MEMINFO = "MemTotal: 64000000 kB\nMemAvailable: 40000000 kB\n"


def pretend(monkeypatch: pytest.MonkeyPatch, files: dict[str, str], *, held: int = 0) -> None:
    def text(path: Path) -> str:
        return files.get(str(path), "")

    monkeypatch.setattr(machine, "_text", text)
    monkeypatch.setattr(machine, "_of_limits", lambda: None)
    monkeypatch.setattr(machine, "bytes_held", lambda: held)


def test_half_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"/proc/meminfo": MEMINFO})
    assert machine.free_memory() == 40000000 * 1024.0
    assert machine.default_memory() == pytest.approx(20.48e9, abs=1e8)


def test_what_the_process_holds_is_part_of_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"/proc/meminfo": MEMINFO}, held=10**9)
    assert machine.default_memory() == pytest.approx(21.48e9, abs=1e8)


@pytest.mark.parametrize(("free", "budget"), [(3e9, 2e9), (1e9, 0.9e9), (0.0, 1e8)])
def test_two_gigabytes_where_there_are_so_many(monkeypatch: pytest.MonkeyPatch, free: float, budget: float) -> None:
    pretend(monkeypatch, {"/proc/meminfo": f"MemAvailable: {int(free / 1024) + 1} kB\n"})
    assert machine.default_memory() == pytest.approx(budget, abs=1e8)


@pytest.mark.parametrize(
    ("group", "files"),
    [
        ("0::/jobs/7\n", {"jobs/7/memory.max": "max", "jobs/7/memory.current": "5", "jobs/memory.max": "3000000000",
                          "jobs/memory.current": "1500000000", "jobs/memory.stat": "anon 5\ninactive_file 500000000"}),
        ("9:cpu:/x\n4:memory:/docker/ab\n", {"memory/memory.limit_in_bytes": "3000000000",
                                             "memory/memory.usage_in_bytes": "1000000000"}),
    ],
)  # fmt: skip
def test_groups_of_processes_are_respected(monkeypatch: pytest.MonkeyPatch, group: str, files: dict[str, str]) -> None:
    placed = {f"/sys/fs/cgroup/{name}": text for name, text in files.items()}
    pretend(monkeypatch, {"/proc/meminfo": MEMINFO, "/proc/self/cgroup": group, **placed})
    assert machine.free_memory() == 2e9


def test_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {})
    pages = {"SC_PAGE_SIZE": 4096.0, "SC_PHYS_PAGES": 4e6}
    monkeypatch.setattr(machine, "_configured", pages.get)
    assert machine.free_memory() == 0.5 * 4096.0 * 4e6
    monkeypatch.setattr(machine, "_configured", lambda name: None)
    assert machine.free_memory() is None
    assert machine.default_memory() == machine.USUAL


def test_a_limit_on_the_process_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (2**40, 2**40))
    left = machine._of_limits()
    assert left is not None
    assert 0.9 * 2**40 < left < 2**40


def test_a_budget_that_was_given_is_kept() -> None:
    assert machine.budget_of("500M") == "500M"
