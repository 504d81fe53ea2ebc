"""The UAI model format: a stream of tokens, read into and written from the flat arrays of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from powersum.core.arrays import FloatArray, IntArray, given_up, starts_of
from powersum.core.errors import InputError
from powersum.core.files import PathLike, saving, shown
from powersum.formats.scopes import walk
from powersum.formats.tokens import Numbers, first_word, load_text, read_numbers, without_comments
from powersum.formats.uai_agrum import agrum_scopes
from powersum.formats.words import words_of
from powersum.interop.checks import INFLUENCE_DIAGRAM
from powersum.interop.distributions import with_sum_note
from powersum.model.model import Model, log_of_probabilities

_KINDS = {"MARKOV": False, "BAYES": True}
_FACTORS_AT_ONCE = 10_000


def read_uai(path: PathLike) -> Model:
    """Read a ``.uai`` file, plain or compressed.

    Entries are rounded once, to the nearest double, before their log is taken; entries below the smallest normal double
    keep their full value. Tables of a Bayesian network that do not sum to one are read as they are, with a note.
    """
    written = load_text(path)
    text = without_comments(written)
    word, end = first_word(text)
    if not word:
        raise InputError(f"{shown(path)}: is empty")
    if word.upper() in ("ID", "LIMID"):
        raise InputError(f"{shown(path)}: token 1: {INFLUENCE_DIAGRAM}")
    if word.upper() not in _KINDS:
        raise InputError(f"{shown(path)}: token 1: {word} is neither MARKOV nor BAYES")
    numbers = read_numbers(path, text, end, skipped=1)
    cardinalities, position = read_cardinalities(numbers)
    scope_starts, scope_variables, position = read_scopes(numbers, position, len(cardinalities))
    table_starts, log_values = _read_tables(numbers, position, scope_starts, cardinalities[scope_variables])
    directed = _KINDS[word.upper()]
    scope_variables, note = agrum_scopes(written, directed, scope_starts, scope_variables)
    model = Model(
        cardinalities=cardinalities,
        scope_starts=scope_starts,
        scope_variables=scope_variables,
        table_starts=table_starts,
        log_values=given_up(log_values),
        directed=directed,
        notes=() if note is None else (f"{shown(path)}: {note}",),
    )
    return with_sum_note(model, f"{shown(path)}: ")


def write_uai(model: Model, path: PathLike) -> None:
    """Write a ``.uai`` file, compressed when its name ends in ``.gz`` or ``.xz``; names and labels have no place in it.

    Reading the file gives the very same logs for every model that was read or built from probabilities. Logs that are
    the log of no double are written as the nearest one.
    """
    words, which = words_of(model, path)
    with saving(path) as handle:
        for piece in _pieces(model, words, which):
            handle.write(piece.encode("ascii"))


def read_cardinalities(numbers: Numbers) -> tuple[IntArray, int]:
    """Number of states of each variable, and where the rest begins."""
    n = numbers.whole(0, "the number of variables")
    if n > len(numbers) - 1:
        raise numbers.error(0, f"{{}} variables declared, but only {len(numbers) - 1} tokens follow")
    cardinalities = numbers.wholes(1, 1 + n, "the number of states of a variable")
    if n and int(cardinalities.min()) < 1:
        variable = int(np.argmin(cardinalities))
        raise numbers.error(1 + variable, f"variable {variable} has {{}} states: it needs at least 1")
    return cardinalities, 1 + n


def read_scopes(numbers: Numbers, position: int, n_variables: int) -> tuple[IntArray, IntArray, int]:
    """Starts and variables of all scopes, and where the rest begins."""
    n_factors = numbers.whole(position, "the number of factors")
    if n_factors > len(numbers) - position - 1:
        left = len(numbers) - position - 1
        raise numbers.error(position, f"{{}} factors declared, but only {left} tokens follow")
    begin = position = position + 1
    counts = np.zeros(n_factors, dtype=np.int64)
    total = len(numbers)
    found, position = _walk_of(numbers)(numbers.values, position, n_variables, counts)
    if found < n_factors and position >= total:
        raise numbers.ends_early(f"the scope of factor {found}")
    if found < n_factors:
        raise numbers.error(
            position, f"factor {found}: a scope of {{}} variables: expected a whole number from 0 to {n_variables}"
        )
    if position > total:
        raise numbers.ends_early("the last scope is complete")

    starts = starts_of(counts)
    is_variable = np.ones(position - begin, dtype=np.bool_)
    is_variable[starts[:-1] + np.arange(n_factors)] = False
    places = begin + np.flatnonzero(is_variable)
    owner = np.repeat(np.arange(n_factors), counts)
    listed = numbers.values[places]
    bad = (listed != np.floor(listed)) | (listed < 0) | (listed >= n_variables)
    if bad.any():
        first = int(np.argmax(bad))
        raise numbers.error(
            int(places[first]), f"factor {int(owner[first])}: variable {{}} is out of range 0 to {n_variables - 1}"
        )
    variables = listed.astype(np.int64)
    by_factor = np.argsort(owner * max(n_variables, 1) + variables, kind="stable")
    twice = (np.diff(owner[by_factor]) == 0) & (np.diff(variables[by_factor]) == 0)
    if twice.any():
        second = int(by_factor[1:][twice].min())
        raise numbers.error(
            int(places[second]), f"factor {int(owner[second])}: variable {{}} appears twice in its scope"
        )
    return starts, variables, position


def _walk_of(numbers: Numbers) -> Callable[[FloatArray, int, int, IntArray], tuple[int, int]]:
    """The walk over scopes, compiled where the scanner is anyway."""
    if not numbers.large:
        return walk
    from powersum.formats.scan_kernels import compiled_walk

    return compiled_walk


def _read_tables(
    numbers: Numbers, begin: int, scope_starts: IntArray, axis_lengths: IntArray
) -> tuple[IntArray, FloatArray]:
    """Starts and logs of all tables."""
    starts, at = table_places(numbers, begin, scope_starts, axis_lengths)
    entries = numbers.values[at]
    if entries.size and float(entries.min()) < 0.0:
        entry = int(np.argmax(entries < 0.0))
        factor = int(np.searchsorted(starts, entry, side="right")) - 1
        raise numbers.error(int(at[entry]), f"factor {factor}, entry {entry - int(starts[factor])}: {{}} is negative")
    logs = log_of_probabilities(entries)
    tiny = np.fromiter(numbers.tiny.keys(), np.int64, len(numbers.tiny))
    logs[np.searchsorted(at, tiny)] = np.fromiter(numbers.tiny.values(), np.float64, len(tiny))
    return starts, logs


def table_places(
    numbers: Numbers, begin: int, scope_starts: IntArray, axis_lengths: IntArray
) -> tuple[IntArray, IntArray]:
    """Starts of all tables, and for each entry the number of its token.

    Sizes are compared with the tokens that are there before anything is allocated.
    """
    n_factors = len(scope_starts) - 1
    total = len(numbers)
    # As doubles: exact as long as a table can be in the file, and infinite rather than wrapped beyond.
    with np.errstate(over="ignore"):
        padded = np.append(axis_lengths.astype(np.float64), 1.0)
        sizes = np.multiply.reduceat(padded, scope_starts[:-1]) if n_factors else np.zeros(0)
        sizes[np.diff(scope_starts) == 0] = 1.0
        ends = begin + np.cumsum(sizes + 1.0)
    places = np.concatenate(([float(begin)], ends[:-1]))[:n_factors]
    present = int(np.searchsorted(places, total))
    declared = numbers.values[places[:present].astype(np.int64)]
    wrong = declared != sizes[:present]
    if wrong.any():
        factor = int(np.argmax(wrong))
        raise numbers.error(
            int(places[factor]),
            f"factor {factor}: a table of {{}} entries, but its scope asks for {sizes[factor]:.15g}",
        )
    if present < n_factors:
        raise numbers.ends_early(f"the table of factor {present}")
    needed = int(ends[-1]) if n_factors and np.isfinite(ends[-1]) else begin
    if n_factors and ends[-1] > total:
        left = total - int(places[-1]) - 1
        raise numbers.ends_early(f"the table of factor {n_factors - 1} is complete: {left} of {sizes[-1]:.15g} entries")
    if needed < total:
        raise numbers.error(needed, f"{{}} is surplus: the last table is complete, {total - needed} tokens are left")

    starts = starts_of(sizes.astype(np.int64))
    is_entry = np.ones(total - begin, dtype=np.bool_)
    is_entry[starts[:-1] + np.arange(n_factors)] = False
    return starts, begin + np.flatnonzero(is_entry)


def _pieces(model: Model, words: list[str], which: IntArray) -> Iterator[str]:
    """The file in pieces; text is made for some factors at a time, not for all at once."""
    yield "BAYES\n" if model.directed else "MARKOV\n"
    yield f"{model.n_variables}\n{' '.join(map(str, model.cardinalities.tolist()))}\n{model.n_factors}\n"
    for first in range(0, model.n_factors, _FACTORS_AT_ONCE):
        starts = model.scope_starts[first : first + _FACTORS_AT_ONCE + 1].tolist()
        variables = [str(v) for v in model.scope_variables[starts[0] : starts[-1]].tolist()]
        for begin, end in pairwise(starts):
            yield " ".join([str(end - begin), *variables[begin - starts[0] : end - starts[0]]]) + "\n"
    for first in range(0, model.n_factors, _FACTORS_AT_ONCE):
        starts = model.table_starts[first : first + _FACTORS_AT_ONCE + 1].tolist()
        entries = [words[k] for k in which[starts[0] : starts[-1]].tolist()]
        for begin, end in pairwise(starts):
            yield f"\n{end - begin}\n{' '.join(entries[begin - starts[0] : end - starts[0]])}\n"
