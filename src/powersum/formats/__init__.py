"""Files in and out: models, evidence, queries, orders and results, one module for each format."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from powersum.core.errors import InputError
from powersum.core.files import COMPRESSED_SUFFIXES, PathLike, plain_name, shown
from powersum.model.model import Model

if TYPE_CHECKING:
    from powersum.formats.companion_files import Companions, companions
    from powersum.formats.evidence import read_evidence, write_evidence
    from powersum.formats.formulas import Formula, read_formula
    from powersum.formats.names import read_names
    from powersum.formats.order import read_order, write_order
    from powersum.formats.query import read_query, write_query
    from powersum.formats.results import ResultWriter, UAIAnswer, read_result
    from powersum.formats.whole_question import to_uai

__all__ = [
    "Companions",
    "Formula",
    "ResultWriter",
    "UAIAnswer",
    "companions",
    "is_formula",
    "read",
    "read_evidence",
    "read_formula",
    "read_names",
    "read_order",
    "read_query",
    "read_result",
    "to_uai",
    "write",
    "write_evidence",
    "write_order",
    "write_query",
]


# Imported at first use: a run reads one format, and most write none.
_LAZY = MappingProxyType(
    {
        **dict.fromkeys(("Companions", "companions"), "companion_files"),
        **dict.fromkeys(("read_evidence", "write_evidence"), "evidence"),
        **dict.fromkeys(("Formula", "read_formula"), "formulas"),
        "read_names": "names",
        **dict.fromkeys(("read_order", "write_order"), "order"),
        **dict.fromkeys(("read_query", "write_query"), "query"),
        **dict.fromkeys(("UAIAnswer", "ResultWriter", "read_result"), "results"),
        "to_uai": "whole_question",
    }
)

FORMULAS = (".cnf", ".dimacs", ".sdimacs")
"""Suffixes of formulas, whose files ask a question, too."""

# A new model format is a new module and a line here: its module, and the name of the function in it.
_READERS = MappingProxyType(
    {
        ".uai": ("uai", "read_uai"),
        ".psm": ("mapped", "read_mapped"),
        ".bif": ("bif", "read_bif"),
        ".xmlbif": ("xmlbif", "read_xmlbif"),
        ".bifxml": ("xmlbif", "read_xmlbif"),
        ".xml": ("genie", "read_xml"),
        ".xdsl": ("genie", "read_genie"),
        **dict.fromkeys((".net", ".dsl"), ("agrum", "read_agrum")),
        **dict.fromkeys(FORMULAS, ("formulas", "read_formula_model")),
    }
)
_WRITERS = MappingProxyType(
    {
        ".uai": ("uai", "write_uai"),
        ".psm": ("mapped", "write_mapped"),
        ".bif": ("network_writers", "write_bif"),
        ".xmlbif": ("network_writers", "write_xmlbif"),
        ".xml": ("network_writers", "write_xmlbif"),
        ".bifxml": ("network_writers", "write_xmlbif"),
        ".xdsl": ("network_writers", "write_genie"),
        **dict.fromkeys((".net", ".dsl"), ("agrum", "write_agrum")),
    }
)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'powersum.formats' has no attribute {name!r}")
    return _function(_LAZY[name], name)


def _function(module: str, name: str) -> Any:
    return getattr(import_module(f"powersum.formats.{module}"), name)


MODEL_SUFFIXES = frozenset(_READERS)
"""Suffixes of files that hold a model, without those of compression."""


def read(path: PathLike) -> Model:
    """Read a model; the suffix of the file tells its format.

    powersum itself reads ``.uai``, ``.psm`` (of ``powersum convert``), ``.bif``, ``.xmlbif`` (also ``.bifxml``) and
    ``.xdsl`` of GeNIe, and ``.xml`` by its first element. It reads ``.net`` of Hugin and ``.dsl`` through pyAgrum
    (``pip install pyagrum``). Of formulas (``.cnf``, ``.dimacs``, ``.sdimacs``) this is the model alone;
    :func:`powersum.read_formula` reads their question, too. Each may be compressed: ``.gz``, ``.xz``. What is odd about
    a model that can be read is in its ``notes``; its ``title`` is the file's name.
    """
    reader = _READERS.get(_suffix(path))
    if reader is None:
        if os.path.isdir(path):
            raise InputError(f"{shown(path)}: is a directory; name a file in it")
        if not os.path.exists(path):
            raise InputError(f"{shown(path)}: there is no such file")
        raise InputError(f"{shown(path)}: unknown kind of model: read are {_listed(_READERS)}")
    model: Model = _function(*reader)(path)
    return titled(model, path)


def titled(model: Model, path: PathLike) -> Model:
    """The model, called after its file."""
    return replace(model, title=os.path.basename(shown(path)))


def is_formula(path: PathLike) -> bool:
    """Whether a file is a formula, by its suffix."""
    return _suffix(path) in FORMULAS


def write(model: Model, path: PathLike) -> None:
    """Write a model; the suffix of the file tells its format, as in :func:`read`.

    The file appears under its name only when it is complete. The names and labels of a model, which ``.uai`` has no
    place for, go to a file beside it: ``model.uai.names``, for :func:`powersum.read_names`.
    """
    if not isinstance(model, Model):
        raise InputError(f"write: needs a Model, not {type(model).__name__}; of a generated instance, write its .model")
    writer = _WRITERS.get(_suffix(path))
    if writer is None:
        raise InputError(f"{shown(path)}: unknown kind of model: written are {_listed(_WRITERS)}")
    _function(*writer)(model, path)
    if _suffix(path) == ".uai":
        from powersum.formats.names import write_names

        write_names(model, path)


def _suffix(path: PathLike) -> str:
    """The suffix of the format, without that of compression."""
    return os.path.splitext(plain_name(path))[1].lower()


def _listed(formats: Iterable[str]) -> str:
    """The suffixes of formats, for messages."""
    return f"{', '.join(formats)}, each also with {' or '.join(COMPRESSED_SUFFIXES)} behind it"
