"""Digests that tell models apart: one of all that a model says, one of its structure that certificates carry."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from powersum.model.model import Model

STRUCTURE = b"powersum-model-1"
VALUES = b"powersum-model-values-1"


def structure_digest(model: Model) -> str:
    """SHA-256 of numbers of states, scopes and zeros, as ``powersum_check`` defines it (``docs/certificates.md``).

    The bytes ``powersum-model-1``, then as little-endian 64-bit integers: number of variables, their numbers of states,
    number of factors, the lengths of their scopes, all scopes one after another; then one bit for each table entry, 1
    where it is 0, packed as by ``numpy.packbits``. The values themselves are not part of it, for programs may take
    their logs with different last digits.
    """
    digest = hashlib.sha256(STRUCTURE + _words(model))
    digest.update(np.packbits(np.isneginf(model.log_values)).data)
    return digest.hexdigest()


def values_digest(model: Model) -> str:
    """SHA-256 of numbers of states, scopes and all table entries: equal for equal numbers, to the last digit.

    The bytes ``powersum-model-values-1``, the same integers as in :func:`structure_digest`, then every log table entry
    as a little-endian double, -0 as 0. Names, labels and notes are not part of it.
    """
    digest = hashlib.sha256(VALUES + _words(model))
    # Piece by piece, for a second array as large as the model's might not fit.
    for start in range(0, model.log_values.size, 1 << 20):
        digest.update((model.log_values[start : start + (1 << 20)] + 0.0).astype("<f8", copy=False).data)
    return digest.hexdigest()


def _words(model: Model) -> bytes:
    """All whole numbers of a model."""
    parts = (
        [model.n_variables],
        model.cardinalities,
        [model.n_factors],
        np.diff(model.scope_starts),
        model.scope_variables,
    )
    return b"".join(np.asarray(part, dtype="<i8").tobytes() for part in parts)
