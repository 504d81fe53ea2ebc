"""How much memory the process holds, and what that leaves of a budget."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from powersum.core.errors import InputError

LEAST_MEMORY = 2e7
"""Bytes beside what the process holds already, without which nothing is begun."""


USUALLY_HELD = 3e8
"""Bytes that a process holds once the compiled modules are loaded, about."""


def bytes_held() -> int:
    """Bytes that this process holds now; where the system does not say, those it once held at most; else 0."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return _otherwise_held()


if sys.platform == "win32":

    def _otherwise_held() -> int:
        """The working set, as Windows knows it."""
        return _working_sets()[0]

    def most_bytes_held() -> int:
        """Bytes that this process has held at most."""
        return _working_sets()[1]

    def _working_sets() -> tuple[int, int]:
        """That of now, and the largest."""
        import ctypes
        from ctypes import wintypes

        class Counters(ctypes.Structure):
            _fields_ = (
                ("cb", wintypes.DWORD),
                ("PageFaultCount", wintypes.DWORD),
                ("PeakWorkingSetSize", ctypes.c_size_t),
                ("WorkingSetSize", ctypes.c_size_t),
                ("others", ctypes.c_size_t * 6),
            )

        counters = Counters(cb=ctypes.sizeof(Counters))
        # With its types: a handle cut to 32 bits would be another one.
        current = ctypes.windll.kernel32.GetCurrentProcess
        current.restype = wintypes.HANDLE
        ask = ctypes.windll.psapi.GetProcessMemoryInfo
        ask.argtypes = (wintypes.HANDLE, ctypes.POINTER(Counters), wintypes.DWORD)
        if not ask(current(), ctypes.byref(counters), counters.cb):
            return 0, 0
        return int(counters.WorkingSetSize), int(counters.PeakWorkingSetSize)

else:

    def _otherwise_held() -> int:
        """The peak, all that macOS and the BSDs tell: never too little, so that a budget holds."""
        return most_bytes_held()

    def most_bytes_held() -> int:
        """Bytes that this process has held at most."""
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # macOS counts bytes, all others kilobytes.
        return peak if sys.platform == "darwin" else 1024 * peak


def check_budget(memory: float, *, measured: bool = True) -> None:
    """Refuse a budget for the whole process that a hard question could not keep, however easy this one is.

    Where ``measured`` is false, what this very process holds does not count.
    """
    held = max(bytes_held(), USUALLY_HELD) if measured else USUALLY_HELD
    if not memory >= held + LEAST_MEMORY:
        # "10" may be meant as 10 GB: the message shows how to write that.
        raise InputError(
            f"memory is {_size(memory)}: the process with its compiled code takes {_size(held)}, so that at least"
            f" {_size(held + LEAST_MEMORY)} are needed; a size is written like 500M or 2G"
        )


def memory_left(memory: float) -> float:
    """Bytes that a budget for the whole process leaves; ask once the compiled modules are loaded."""
    return max(memory - bytes_held(), LEAST_MEMORY)


def memory_usually_left(memory: float) -> float:
    """The same by the bytes that a process usually holds: for runs that are the same everywhere."""
    return max(memory - USUALLY_HELD, 0.5 * memory)


def _size(size: float) -> str:
    return f"{size / 1e6:.4g} MB" if size >= 1e4 else f"{size:.4g} bytes"
