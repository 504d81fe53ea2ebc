"""How much memory the process holds, and what that leaves of a budget."""

from __future__ import annotations

import os
from pathlib import Path

from powersum.core.errors import InputError

LEAST_MEMORY = 2e7
"""Bytes beside what the process holds already, without which nothing is begun."""


def bytes_held() -> int:
    """Bytes that this process holds now; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def memory_left(memory: float) -> float:
    """What a budget for the whole process leaves.

    To be asked once the compiled modules are loaded, which take a good part of what the process holds.
    """
    if not memory >= LEAST_MEMORY:
        raise InputError(f"memory is {_megabytes(memory)}: at least {_megabytes(LEAST_MEMORY)} are needed")
    held = bytes_held()
    if memory - held < LEAST_MEMORY:
        raise InputError(
            f"memory is {_megabytes(memory)}, of which the process already holds {_megabytes(held)}:"
            f" at least {_megabytes(LEAST_MEMORY)} more are needed"
        )
    return memory - held


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.4g} MB"
