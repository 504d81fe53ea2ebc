"""Query files: the variables to maximise, as ``.query`` or ``.map``."""

from __future__ import annotations

from collections.abc import Iterable

from powersum.core.files import PathLike, saving
from powersum.formats.lists import read_list, refuse_repeats
from powersum.model.keys import Place, whole
from powersum.model.model import Model


def read_query(path: PathLike, model: Model | None = None) -> list[int]:
    """Read a ``.query`` or ``.map`` file: the maximised variables in the order of the file.

    Parameters
    ----------
    path
        The file, plain or compressed: a count and that many different variables.
    model
        Given, variables are checked against it.
    """
    numbers, variables = read_list(path, None if model is None else model.n_variables)
    refuse_repeats(numbers, variables)
    return [Place(v) for v in variables]


def write_query(variables: Iterable[int], path: PathLike) -> None:
    """Write the maximised variables: a count and the variables on one line."""
    listed = [whole(v, "a variable of the query") for v in variables]
    with saving(path) as handle:
        handle.write((" ".join(map(str, [len(listed), *listed])) + "\n").encode("ascii"))
