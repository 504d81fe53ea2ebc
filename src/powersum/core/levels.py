"""The processors that a wheel has machine code for, and which of them this one can run."""

from __future__ import annotations

import platform
from typing import NamedTuple


class Level(NamedTuple):
    """A kind of processor: LLVM's name, and the features that code for it may use."""

    name: str
    features: frozenset[str]


_V2 = frozenset({"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"})
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_V4 = _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}

X86 = (Level("x86-64-v4", _V4), Level("x86-64-v3", _V3), Level("x86-64-v2", _V2))
"""The levels of the x86-64 psABI, best first."""

ANY = Level("generic", frozenset())
"""What every processor of its architecture can run."""


def levels() -> tuple[Level, ...]:
    """The levels of this machine's architecture, best first."""
    return X86 if platform.machine().lower() in ("x86_64", "amd64") else (ANY,)


def usable(features: str) -> list[Level]:
    """The levels that a processor can run, best first; its features are written as LLVM writes them, ``+avx,-fma``."""
    present = {one[1:] for one in features.split(",") if one.startswith("+")}
    return [level for level in levels() if level.features <= present]
