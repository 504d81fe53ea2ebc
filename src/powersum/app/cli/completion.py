"""What the Tab key offers: methods, and the names and states of the model that the line speaks of.

Files are left to the shell. A completer that fails offers nothing: it must not write into the line being typed.
"""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path

MOST_NAMES = 2000
"""More names are not offered: nobody looks through them."""


def complete_method(incomplete: str) -> list[str]:
    """The methods of ``bound``."""
    from powersum.bounds.registry import DEFAULT_METHOD, METHODS

    return [name for name in dict.fromkeys((DEFAULT_METHOD, *METHODS)) if name.startswith(incomplete)]


def complete_methods(incomplete: str) -> list[str]:
    """The methods of ``compare``, the last of a list."""
    from powersum.api.comparison import RUNNABLE

    return list(_next_of_list(incomplete, RUNNABLE))


def complete_names(incomplete: str) -> list[str]:
    """Names of variables for ``--max``, the last of a list."""
    before, _, _ = incomplete.rpartition(",")
    every = () if before else ("all",)
    return list(_next_of_list(incomplete, (*every, *(name for name, _ in _variables()))))


def complete_evidence(incomplete: str) -> list[str]:
    """Names of variables for ``--evidence``, and after ``=`` their states; the last of a list."""
    begun = incomplete.rpartition(",")[2].partition("=")[0]
    if "=" not in incomplete.rpartition(",")[2]:
        return list(_next_of_list(incomplete, (f"{name}=" for name, _ in _variables())))
    states = (state for name, own in _variables() if name == begun for state in own)
    return list(_next_of_list(incomplete, (f"{begun}={state}" for state in states)))


def _next_of_list(incomplete: str, words: Iterable[str]) -> Iterator[str]:
    """The whole of ``a,b,c`` with each word that its last part may become; no word twice."""
    before, comma, last = incomplete.rpartition(",")
    taken = {word.partition("=")[0] for word in before.split(",")}
    for word in words:
        if word.startswith(last) and word.partition("=")[0] not in taken:
            yield f"{before}{comma}{word}"


def _variables() -> list[tuple[str, list[str]]]:
    """The first variables of the model on the line, each with its states; none if it cannot be read."""
    with suppress(Exception):
        path = _model_on_the_line()
        return _numbered(path) if ".uai" in path.suffixes else _named(path)
    return []


def _model_on_the_line() -> Path:
    """The model, from the words as the shell hands them over: an option still without its value hides all others."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        words = shlex.split(line)
    except ValueError:
        # A quotation mark that is not closed yet.
        words = line.split()
    return next(path for path in map(Path, words[2:]) if path.is_file() and _is_model(path))


def _is_model(path: Path) -> bool:
    from powersum.formats import MODEL_SUFFIXES

    return not MODEL_SUFFIXES.isdisjoint(suffix.lower() for suffix in path.suffixes[-2:])


def _named(path: Path) -> list[tuple[str, list[str]]]:
    from powersum import formats

    model = formats.read(path)
    numbers = range(min(model.n_variables, MOST_NAMES))
    return [(model.name(v), [str(model.label(v, x)) for x in range(model.cardinalities[v])]) for v in numbers]


def _numbered(path: Path) -> list[tuple[str, list[str]]]:
    """From the head of the file alone: what follows may be large, and its reader takes long to load."""
    from powersum.core.files import load

    words = load(path)[: 1 << 16].split()
    sizes = [int(word) for word in words[2 : 2 + min(int(words[1]), MOST_NAMES)]]
    return [(str(v), [str(x) for x in range(size)]) for v, size in enumerate(sizes)]


@contextmanager
def whole_words_of_bash() -> Iterator[None]:
    """Give the block the words as they were typed, and bash what it asked for.

    To bash ``=`` ends a word: of ``cough=y`` it hands over three words; what is offered replaces the last.
    """
    separator = "\n" if "\n" in os.environ.get("COMP_WORDS", "") else " "
    words = os.environ.get("COMP_WORDS", "").split(separator)
    at = min(int(os.environ.get("COMP_CWORD", "0")), len(words) - 1)
    joined: list[str] = []
    for word in words[: at + 1]:
        if joined and (word == "=" or joined[-1].endswith("=")):
            joined[-1] += word
        else:
            joined.append(word)
    before = joined[-1].removesuffix("" if words[at] == "=" else words[at])
    # The name of an option is no part of its value.
    typed = before.partition("=")[2] if before.startswith("--") else before
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = separator.join(joined), str(len(joined) - 1)
    said = io.StringIO()
    try:
        with redirect_stdout(said):
            yield
    finally:
        print("\n".join(line.removeprefix(typed) for line in said.getvalue().splitlines()))
