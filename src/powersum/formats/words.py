"""Table entries as decimal numbers that read back to the very same logs."""

from __future__ import annotations

import math

import numpy as np

from powersum.core.arrays import IntArray
from powersum.core.errors import InputError
from powersum.core.files import PathLike, shown
from powersum.formats.decimals import LARGEST_EXPONENT, MIN_NORMAL, log_of_decimal
from powersum.model.model import Model, log_of_probabilities


def words_of(model: Model, path: PathLike) -> tuple[list[str], IntArray]:
    """The different table entries as text, and which of them each entry is; reading them gives the same logs.

    Logs that are the log of no double become the nearest that is.
    """
    logs, which = np.unique(model.log_values, return_inverse=True)
    with np.errstate(over="ignore", under="ignore"):
        values = np.exp(logs)
    if logs.size and not np.isfinite(values[-1]):
        entry = int(np.argmax(model.log_values == logs[-1]))
        factor = int(np.searchsorted(model.table_starts, entry, side="right")) - 1
        raise InputError(f"{shown(path)}: factor {factor}: an entry with log {logs[-1]} is too large for a file")

    # Fifteen digits keep 0.1 what it was; where they are not enough, the double itself or one of its neighbours is.
    words = [f"{value:.15g}" for value in values.tolist()]
    left = np.flatnonzero(log_of_probabilities(np.array(words, dtype=np.float64)) != logs)
    tiny = left[values[left] < MIN_NORMAL]
    for k in tiny.tolist():
        words[k] = _tiny_word(float(logs[k]), path)
    left = left[values[left] >= MIN_NORMAL]
    below, above = np.nextafter(values, 0.0), np.nextafter(values, np.inf)
    for candidates in (values, below, above, np.nextafter(below, 0.0), np.nextafter(above, np.inf)):
        fits = log_of_probabilities(candidates[left]) == logs[left]
        for k in left[fits].tolist():
            words[k] = repr(float(candidates[k]))
        left = left[~fits]
    for k in left.tolist():
        words[k] = repr(float(values[k]))
    return words, which.reshape(-1)


def _tiny_word(log: float, path: PathLike) -> str:
    """The decimal number for a log below those of the normal doubles, read here at its full value."""
    power = math.floor(log / math.log(10.0))
    if -power >= LARGEST_EXPONENT:
        raise InputError(f"{shown(path)}: an entry with log {log} is too small for a file")
    # log_of_decimal is the reader's own: what it makes of the power alone is taken off exactly as it will be added.
    leading = math.exp(log - log_of_decimal(f"1e{power}".encode("ascii")))
    return f"{leading:.17g}e{power}"
