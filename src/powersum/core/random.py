"""Random numbers inside compiled code: a xorshift generator, so that what is drawn hangs on the given seed alone.

The state is a number that the caller keeps: ``state = seeded(seed, attempt)``, then
``state = following(state)`` before each draw.
"""

from __future__ import annotations

import numpy as np

from powersum.core.jit import inner


@inner
def seeded(seed: int, attempt: int | np.int64) -> np.uint64:
    """First state of a generator. Neighbouring seeds and attempts are far apart, and none is 0, where it would stay."""
    first = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
    return (first + np.uint64(attempt) * np.uint64(0xD1B54A32D192ED03)) | np.uint64(1)


@inner
def following(state: np.uint64) -> np.uint64:
    """The next state."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@inner
def number_below(state: np.uint64, limit: int) -> np.int64:
    """One of the numbers from 0 to ``limit`` less 1."""
    return np.int64((state >> np.uint64(11)) % np.uint64(limit))


@inner
def share_of_one(state: np.uint64) -> float:
    """A number from 0 up to, but without, 1."""
    return np.float64(state >> np.uint64(11)) / 9007199254740992.0
