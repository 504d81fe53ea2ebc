"""A whole question as UAI files: the model, and beside it by the name rule what is asked and known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from powersum.core.files import PathLike, plain_name
from powersum.formats.evidence import write_evidence
from powersum.formats.names import write_names
from powersum.formats.query import write_query
from powersum.formats.uai import write_uai
from powersum.model.model import Model, VariableKey
from powersum.model.query import Query


def to_uai(
    model: Model,
    path: PathLike,
    *,
    maximize: Iterable[VariableKey] | str | None = None,
    evidence: Mapping[Any, Any] | None = None,
) -> None:
    """Write a model, its query and its evidence as UAI files.

    Parameters
    ----------
    model
        The model; its names and labels go to ``path + ".names"``.
    path
        The model's file, compressed if it ends in ``.gz`` or ``.xz``. The query goes to ``path + ".query"``, the
        evidence to ``path + ".evid"``, both without the suffix of compression.
    maximize, evidence
        As in :func:`powersum.solve`; evidence must be certain, for the format knows no likelihoods.
    """
    # Checked before the first file is written.
    query = None if maximize is None else Query.of(model, maximize).max_variables.tolist()
    observed = None if evidence is None else model.evidence(evidence)
    write_uai(model, path)
    write_names(model, path)
    if query is not None:
        write_query(query, plain_name(path) + ".query")
    if observed is not None:
        write_evidence(observed, plain_name(path) + ".evid")
