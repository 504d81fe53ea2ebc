"""``.psm``, the form of ``powersum convert``: arrays that are mapped into memory, and not read until looked at.

A compressed file cannot be mapped: it is unpacked into memory as a whole.
"""

from __future__ import annotations

import os

from powersum.core.errors import InputError
from powersum.core.files import PathLike, load, plain_name, reason, saving, shown
from powersum.model.mapped import held_arrays, map_arrays, write_arrays
from powersum.model.model import Model


def write_mapped(model: Model, path: PathLike) -> None:
    """Write a model so that it can be mapped; see :mod:`powersum.model.mapped`."""
    with saving(path) as file:
        write_arrays(model, file)


def read_mapped(path: PathLike) -> Model:
    """The model of such a file; its arrays stay in the file until they are looked at, unless it is compressed."""
    mapped = plain_name(path) == os.fspath(path)
    content = b"" if mapped else load(path)
    try:
        head, arrays = map_arrays(os.fspath(path)) if mapped else held_arrays(content)
        names, states = head["names"], head["states"]
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read ({reason(error)})") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{shown(path)}: no whole file of `powersum convert`") from None
    return Model(
        *arrays,
        directed=bool(head["directed"]),
        names=None if names is None else tuple(names),
        states=None if states is None else tuple(tuple(labels) for labels in states),
    )
