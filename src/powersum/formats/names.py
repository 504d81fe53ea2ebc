"""Names for models whose format has none: one variable a line, and behind its name the labels of its states."""

from __future__ import annotations

from powersum.core.errors import InputError
from powersum.core.files import PathLike, load, shown
from powersum.model.model import Model


def read_names(path: PathLike, model: Model) -> Model:
    """The model with the names of a file.

    Parameters
    ----------
    path
        The file, plain or compressed. Each variable, in the order of numbers, has a line with its name and the labels
        of its states, separated by blanks. Empty lines and text after ``#`` do not count.
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
    lines = [(number, line.split("#")[0].split()) for number, line in enumerate(text.splitlines(), 1)]
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
