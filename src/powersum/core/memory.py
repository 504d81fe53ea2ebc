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


def check_memory(memory: float, argument: str = "memory") -> None:
    """Refuse a budget that no run can keep."""
    if not memory >= LEAST_MEMORY:
        # Whoever says 10 means 10 GB: the words tell how to say that.
        least = f"at least {_size(LEAST_MEMORY)} are needed, and a size is written like 500M or 2G"
        raise InputError(f"{argument} is {_size(memory)}: {least}")


def memory_left(memory: float) -> float:
    """What a budget for the whole process leaves.

    To be asked once the compiled modules are loaded, which take a good part of what the process holds.
    """
    check_memory(memory)
    held = bytes_held()
    if memory - held < LEAST_MEMORY:
        raise InputError(
            f"memory is {_size(memory)}, of which the process already holds {_size(held)}:"
            f" at least {_size(LEAST_MEMORY)} more are needed"
        )
    return memory - held


def memory_usually_left(memory: float) -> float:
    """The same by what a process usually holds, whatever this one does: for runs that shall be the same everywhere."""
    check_memory(memory)
    return max(memory - USUALLY_HELD, 0.5 * memory)


def _size(size: float) -> str:
    return f"{size / 1e6:.4g} MB" if size >= 1e4 else f"{size:.4g} bytes"
