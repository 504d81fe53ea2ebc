"""The mode of the tests in which every index of every kernel is checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import numpy as np

from powersum.core.jit import compiled, inlined, inner


@inlined
def at_once(array, place):
    return array[place]


@inner
def within(array, place):
    return array[place]


@compiled
def by_itself(array, place):
    return array[place]


@compiled
def by_inner(array, place):
    return within(array, place)


@compiled
def by_inlined(array, place):
    return at_once(array, place)


for kernel in (by_itself, by_inner, by_inlined):
    assert kernel(np.arange(5), 3) == 3
    try:
        kernel(np.arange(5), PLACE)
    except IndexError:
        print("IndexError")
    print(kernel.stats.cache_path)
"""


def run(folder: Path, place: int, *, checked: bool) -> list[str]:
    """What the kernels print when they read an array of five at this place."""
    script = folder / "kernels.py"
    script.write_text(KERNELS.replace("PLACE", str(place)), encoding="utf-8")
    environment = {**os.environ, "POWERSUM_BOUNDSCHECK": "1" if checked else "0"}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("place", [5, 1_000_000_000])
def test_places_beyond_the_end_are_refused(place: int, tmp_path: Path) -> None:
    printed = run(tmp_path, place, checked=True)
    assert printed.count("IndexError") == 3


def test_the_two_kinds_of_kernels_never_share_a_cache(tmp_path: Path) -> None:
    plain = run(tmp_path, 4, checked=False)
    checked = run(tmp_path, 4, checked=True)
    assert "IndexError" not in plain + checked
    assert len(plain) == len(checked) == 3
    assert not set(plain) & set(checked)
    assert run(tmp_path, 5, checked=True).count("IndexError") == 3
