"""Names for models whose format has none: one variable a line, and behind its name the labels of its states."""

from __future__ import annotations

import json
import re
from pathlib import Path

from powersum.core.errors import InputError
from powersum.core.files import PathLike, load, plain_name, saving, shown
from powersum.model.model import Model

_PLAIN = re.compile(r'[^\s#"]+')
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"(?=\s|$)|[^\s#]+|#.*')


def _words(line: str) -> list[str]:
    """The words of a line; a comment ends it."""
    words = []
    for word in _WORD.findall(line):
        if word.startswith("#"):
            break
        try:
            words.append(json.loads(word) if word.startswith('"') else word)
        except ValueError:
            words.append(word)
    return words


def names_file(path: PathLike) -> Path:
    """Where the names of a model go by the name rule: ``model.uai.names``."""
    return Path(plain_name(path) + ".names")


def write_names(model: Model, path: PathLike) -> Path | None:
    """Write the names and labels of a model beside its file; returns where, None where it has none.

    A file of names that lies there already and is not about this model is removed: it would be read with it.
    """
    target = names_file(path)
    if model.names is None and model.states is None:
        target.unlink(missing_ok=True)
        return None
    lines = []
    for v in range(model.n_variables):
        words = [model.name(v)]
        if model.states is not None:
            words += [str(model.label(v, state)) for state in range(int(model.cardinalities[v]))]
        lines.append(" ".join(word if _PLAIN.fullmatch(word) else json.dumps(word) for word in words))
    with saving(target) as handle:
        handle.write(("\n".join(lines) + "\n").encode())
    return target


def read_names(path: PathLike, model: Model) -> Model:
    """The model with the names of a file.

    Parameters
    ----------
    path
        The file, plain or compressed. Each variable, in the order of numbers, has a line with its name and the labels
        of its states, separated by blanks. A name with a blank, a ``#`` or a quotation mark is a JSON string. Empty
        lines and text after ``#`` do not count.
    model
        The model; names that it has are replaced.

    Examples
    --------
    >>> import powersum as ps
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp()) / "coin.names"
    >>> _ = file.write_text("coin heads tails")
    >>> ps.read_names(file, ps.Model.from_factors([2], [((0,), [0.4, 0.6])])).states
    (('heads', 'tails'),)
    """
    try:
        text = load(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{shown(path)}: is not text in UTF-8") from None
    lines = [(number, _words(line)) for number, line in enumerate(text.splitlines(), 1)]
    found = [(number, words) for number, words in lines if words]
    if len(found) != model.n_variables:
        raise InputError(f"{shown(path)}: {len(found)} names, but the model has {model.n_variables} variables")
    labelled = any(len(words) > 1 for _, words in found)
    labels: list[tuple[str, ...]] = []
    for v, (number, words) in enumerate(found):
        states = int(model.cardinalities[v])
        if len(words) == 1 and labelled:
            words = [*words, *map(str, range(states))]
        if labelled and len(words) != states + 1:
            raise InputError(
                f"{shown(path)}: line {number}: {len(words) - 1} labels, but variable {words[0]} has {states} states"
            )
        if len(set(words[1:])) < len(words) - 1:
            raise InputError(f"{shown(path)}: line {number}: variable {words[0]} has two states of one label")
        labels.append(tuple(words[1:]))
    names = [words[0] for _, words in found]
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise InputError(f"{shown(path)}: two variables are called {twice}")
    return model.with_names(names, labels if labelled else model.states)
