"""Files in and out: models, evidence, queries, orders and results, one module for each format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace

from powersum.core.errors import InputError
from powersum.formats.bif import read_bif
from powersum.formats.companion_files import Companions, companions
from powersum.formats.evidence import read_evidence, write_evidence
from powersum.formats.files import COMPRESSED_SUFFIXES, PathLike, plain_name, shown
from powersum.formats.network_writers import write_bif, write_xmlbif
from powersum.formats.order import read_order, write_order
from powersum.formats.query import read_query, write_query
from powersum.formats.results import Answer, ResultWriter, read_result
from powersum.formats.uai import read_uai, write_uai
from powersum.formats.whole_question import to_uai
from powersum.formats.xmlbif import read_xmlbif
from powersum.model.model import Model

__all__ = [
    "Answer",
    "Companions",
    "ResultWriter",
    "companions",
    "read",
    "read_evidence",
    "read_order",
    "read_query",
    "read_result",
    "to_uai",
    "write",
    "write_evidence",
    "write_order",
    "write_query",
]


def _read_agrum(path: PathLike) -> Model:
    from powersum.formats.agrum import read_agrum

    return read_agrum(path)


def _write_agrum(model: Model, path: PathLike) -> None:
    from powersum.formats.agrum import write_agrum

    write_agrum(model, path)


# A new model format is a new module and a line here.
_READERS: dict[str, Callable[[PathLike], Model]] = {
    ".uai": read_uai,
    ".bif": read_bif,
    ".xmlbif": read_xmlbif,
    ".bifxml": read_xmlbif,
    **dict.fromkeys((".net", ".dsl", ".xdsl"), _read_agrum),
}
_WRITERS: dict[str, Callable[[Model, PathLike], None]] = {
    ".uai": write_uai,
    ".bif": write_bif,
    ".xmlbif": write_xmlbif,
    ".bifxml": write_xmlbif,
    **dict.fromkeys((".net", ".dsl", ".xdsl"), _write_agrum),
}

MODEL_SUFFIXES = frozenset(_READERS)
"""Suffixes of files that hold a model, without those of compression."""


def read(path: PathLike) -> Model:
    """Read a model; the suffix of the file tells its format.

    ``.uai``, and with names and labels ``.bif`` and ``.xmlbif`` (also ``.bifxml``), are read by powersum itself;
    ``.net``, ``.dsl`` and ``.xdsl`` through pyAgrum (``pip install 'powersum[formats]'``). Each may be compressed:
    ``.gz``, ``.xz``. What is odd about a model that can be read is in its ``notes``; its ``title`` is the file's name.
    """
    reader = _READERS.get(_suffix(path))
    if reader is None:
        if os.path.isdir(path):
            raise InputError(f"{shown(path)}: is a directory; name a file in it")
        if not os.path.exists(path):
            raise InputError(f"{shown(path)}: there is no such file")
        raise InputError(f"{shown(path)}: unknown kind of model: read are {_listed(_READERS)}")
    return replace(reader(path), title=os.path.basename(shown(path)))


def write(model: Model, path: PathLike) -> None:
    """Write a model; the suffix of the file tells its format, as in :func:`read`.

    The file appears under its name only when it is complete.
    """
    writer = _WRITERS.get(_suffix(path))
    if writer is None:
        raise InputError(f"{shown(path)}: unknown kind of model: written are {_listed(_WRITERS)}")
    writer(model, path)


def _suffix(path: PathLike) -> str:
    """The suffix of the format, without that of compression."""
    return os.path.splitext(plain_name(path))[1].lower()


def _listed(formats: Iterable[str]) -> str:
    """The suffixes of formats, for messages."""
    return f"{', '.join(formats)}, each also with {' or '.join(COMPRESSED_SUFFIXES)} behind it"
