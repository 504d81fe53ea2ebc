"""What the kernel does without: models as ``.npz``, mean fields, rounding that is measured. A check with all of it."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np

from powersum_check.archive import Archive, read_bytes
from powersum_check.check import Verified
from powersum_check.check import check as kernel_check
from powersum_check.errors import BadFile
from powersum_check.limits import MEMORY, WORK
from powersum_check.mean_field import mean_field
from powersum_check.model import PER_FACTOR, Factor, Model, Question
from powersum_check.numbers import LARGEST, Table
from powersum_check.reading import read_uai, shape_of, text_of


def read_arrays(path: str | Path, archive: Archive) -> Model:
    """A model as ``.npz``: cardinalities, scope_starts, scope_variables, log_values (exact), first variable slowest."""
    cards = archive.integers("cardinalities", low=1).tolist()
    starts = archive.starts("scope_starts", len(variables := archive.integers("scope_variables", high=len(cards))))
    logs = archive.floats("log_values", infinite=True)
    archive.room.take(f"{path}: its factors", PER_FACTOR * len(starts))
    factors, at = [], 0
    for k, (first, end) in enumerate(pairwise(starts)):
        scope = variables[first:end].tolist()
        shape = shape_of(path, k, scope, cards)
        table = logs[at : (at := at + math.prod(shape))]
        if at > len(logs):
            raise BadFile(f"{path}: log_values ends before the table of factor {k}")
        if (np.abs(table[table > -math.inf]) > LARGEST).any():
            raise BadFile(f"{path}: factor {k} has a log too large")
        factors.append(Factor(tuple(scope), Table(table.reshape(shape))))
    if at != len(logs):
        raise BadFile(f"{path}: log_values has {len(logs) - at} entries too many")
    return Model(tuple(cards), tuple(factors))


def read_model(path: str | Path, limit: int = MEMORY) -> Model:
    """A model by the beginning of its file: a zip of arrays, or UAI text. Its bytes are read once."""
    data = read_bytes(path, limit)
    if data[:4] == b"PK\x03\x04":
        return read_arrays(path, Archive(data, limit, name=str(path), longest={}))
    return read_uai(path, text_of(path, data, limit), limit)


def check(
    model: Model,
    question: Question | None,
    certificate: str | Path | bytes,
    *,
    memory: int = MEMORY,
    work: float = WORK,
    exact: bool = False,
) -> Verified:
    """Check that a certificate proves its claim about a question; returns the bounds that it proves.

    Parameters
    ----------
    model
        The model.
    question
        The question; ``None`` takes that of the certificate, which the caller must then look at.
    certificate
        The file, or its bytes.
    memory
        Bytes that the certificate may take unpacked, and that each step may work with.
    work
        Entries of tables that may be computed, in all; some hundred million take a second.
    exact
        Measure the rounding of every operation in ball arithmetic: slow, needs python-flint.

    Raises
    ------
    Rejected
        Where a step fails or the claim does not follow.
    BadFile
        Where the certificate is not a well-formed file, or asks for more memory or work.
    """
    measure = None
    if exact:
        from powersum_check.balls import Balls

        measure = Balls()
    return kernel_check(
        model, question, certificate, memory=memory, work=work, more={"mean-field": mean_field}, measure=measure
    )
