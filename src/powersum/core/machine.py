"""How much memory is free: of the machine, of the group of processes this one is in, of what it may hold itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from powersum.core.memory import bytes_held

USUAL = 2e9
"""Bytes that a run may take where nobody says how many, if there is so much."""

SHARE = 0.5
"""Share of what is free that it may take where that is more."""

UNIT = 1e8
"""Budgets are whole multiples of this, so that they do not change with every small program that starts or ends."""


def default_memory(processes: int = 1) -> float:
    """A budget for this process, what it holds already included: half of what is free, or 2 GB where there is so much.

    Where nothing tells how much is free it is 2 GB. So many ``processes`` share it equally.
    """
    held, free = bytes_held(), free_memory()
    if free is None:
        return USUAL / processes
    budget = held + max(SHARE * free, min(USUAL - held, 0.9 * free)) / processes
    return max(budget // UNIT, 1.0) * UNIT


def budget_of(memory: float | str | None, *, measured: bool = True) -> float | str:
    """A budget as it was given; that of the machine for ``None``, or 2 GB where nothing measured may decide."""
    if memory is not None:
        return memory
    return default_memory() if measured else USUAL


def free_memory() -> float | None:
    """Bytes that this process could still take without hurting others; None where the system does not tell."""
    known = [size for size in (_of_machine(), _of_groups(), _of_limits()) if size is not None]
    return max(min(known), 0.0) if known else None


def _of_machine() -> float | None:
    """What the machine has free, or half of what it has where only that is known."""
    for line in _text(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return 1024.0 * float(line.split()[1])
    if sys.platform == "win32":
        return _of_windows()
    page = _configured("SC_PAGE_SIZE")
    for name, share in (("SC_AVPHYS_PAGES", 1.0), ("SC_PHYS_PAGES", SHARE)):
        if page is not None and (pages := _configured(name)) is not None:
            return share * page * pages
    return None


def _of_groups() -> float | None:
    """What the groups of processes (containers, batch jobs) that this one is in leave of their limits."""
    left = []
    for folder in _groups():
        for limit, usage in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            most, used = _text(folder / limit).strip(), _text(folder / usage).strip()
            # "max" stands for no limit, and so does a number beyond any memory.
            if most.isdigit() and used.isdigit() and int(most) < 2**60:
                left.append(float(int(most) - int(used) + _reclaimable(folder)))
    return min(left, default=None)


def _groups() -> Iterator[Path]:
    """Folders of the groups, innermost first; inside a container only the outermost may be seen."""
    root = Path("/sys/fs/cgroup")
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, _, rest = line.partition(":")
        kinds, _, name = rest.partition(":")
        if kinds and "memory" not in kinds.split(","):
            continue
        base = root / "memory" if kinds else root
        inside = Path(name.strip("/") or ".")
        for part in (inside, *inside.parents):
            yield base / part


def _reclaimable(folder: Path) -> int:
    """Pages of files that are kept only as long as nobody needs the memory."""
    for line in _text(folder / "memory.stat").splitlines():
        name, _, number = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file") and number.strip().isdigit():
            return int(number)
    return 0


def _text(path: Path) -> str:
    """The text of a file of the system; empty where there is none."""
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def _configured(name: str) -> float | None:
    """A number that the system was configured with."""
    try:
        number = os.sysconf(name)
    except (AttributeError, OSError, ValueError):
        return None
    return float(number) if number > 0 else None


if sys.platform == "win32":

    def _of_windows() -> float | None:
        """Physical memory that is free, as Windows knows it."""
        import ctypes

        class Status(ctypes.Structure):
            _fields_ = (
                ("length", ctypes.c_uint32),
                ("load", ctypes.c_uint32),
                ("total", ctypes.c_uint64),
                ("free", ctypes.c_uint64),
                ("others", ctypes.c_uint64 * 5),
            )

        status = Status(length=ctypes.sizeof(Status))
        return float(status.free) if ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else None

    def _of_limits() -> float | None:
        """Windows has no such limits."""
        return None

else:

    def _of_limits() -> float | None:
        """What a limit on the size of this process leaves (``ulimit -v``)."""
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most == resource.RLIM_INFINITY:
            return None
        size = _text(Path("/proc/self/statm")).split()
        used = int(size[0]) * (_configured("SC_PAGE_SIZE") or 4096.0) if size else float(bytes_held())
        return float(most) - used
