"""``.psm``, the form of ``powersum convert``: arrays that are mapped into memory, and not read until looked at."""

from __future__ import annotations

import os

from powersum.core.errors import InputError
from powersum.formats.files import PathLike, reason, saving, shown
from powersum.model.mapped import map_arrays, write_arrays
from powersum.model.model import Model


def write_mapped(model: Model, path: PathLike) -> None:
    """Write a model so that it can be mapped; see :mod:`powersum.model.mapped`."""
    with saving(path) as file:
        write_arrays(model, file)


def read_mapped(path: PathLike) -> Model:
    """The model of such a file; its arrays stay in the file until they are looked at."""
    try:
        head, arrays = map_arrays(os.fspath(path))
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
