"""Digests of models: equal for equal numbers, different for anything else, and the checker's own for structure."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import powersum as ps
from powersum import Model
from powersum.core.arrays import FloatArray
from tests.strategies import weighted_models

BASE = Model.from_factors([2, 3], [((0,), [0.5, 0.0]), ((1, 0), [[1.0, 2.0]] * 3), ((), [2.0])])


def by_definition(model: Model, head: bytes, tail: bytes) -> str:
    """The words of ``docs/certificates.md`` and ``docs/formats.md``, one by one."""
    factors = list(model.factors())
    words = [model.n_variables, *model.cardinalities.tolist(), len(factors)]
    words += [len(factor.scope) for factor in factors] + [v for factor in factors for v in factor.scope]
    return hashlib.sha256(head + b"".join(struct.pack("<q", word) for word in words) + tail).hexdigest()


@given(weighted_models())
def test_digests_are_what_the_documents_say(case: tuple[Model, FloatArray]) -> None:
    model, _ = case
    entries = [float(x) for factor in model.factors() for x in factor.log_table.ravel()]
    bits = [x == -np.inf for x in entries]
    bits += [False] * (-len(bits) % 8)
    packed = bytes(sum(bit << (7 - k) for k, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits), 8))
    assert model.structure == by_definition(model, b"powersum-model-1", packed)
    values = b"".join(struct.pack("<d", x + 0.0) for x in entries)
    assert model.digest == by_definition(model, b"powersum-model-values-1", values)


def test_structure_is_that_of_the_checker() -> None:
    checker = pytest.importorskip("powersum_check.model")
    numbers = pytest.importorskip("powersum_check.numbers")
    factors = tuple(
        checker.Factor(factor.scope, numbers.Table(np.asarray(factor.log_table), 0.0, 0.0)) for factor in BASE.factors()
    )
    assert BASE.structure == checker.Model(tuple(BASE.cardinalities.tolist()), factors).digest()


def test_what_changes_a_digest() -> None:
    values = BASE.log_values.copy()
    values[0] = np.nextafter(values[0], 0.0)
    nudged = replace(BASE, log_values=values)
    assert nudged.digest != BASE.digest
    assert nudged.structure == BASE.structure
    others = [
        Model.from_factors([2, 3], [((0,), [0.5, 0.5]), ((1, 0), [[1.0, 2.0]] * 3), ((), [2.0])]),
        Model.from_factors([2, 3], [((0,), [0.5, 0.0]), ((0, 1), [[1.0] * 3, [2.0] * 3]), ((), [2.0])]),
        Model.from_factors([2, 3], [((0,), [0.5, 0.0]), ((1, 0), [[1.0, 2.0]] * 3)]),
        Model.from_factors([2, 3, 2], [((0,), [0.5, 0.0]), ((1, 0), [[1.0, 2.0]] * 3), ((), [2.0])]),
    ]
    for part in ("digest", "structure"):
        assert len({getattr(model, part) for model in (BASE, *others)}) == 5
    assert BASE.with_names(["a", "b"]).digest == BASE.digest
    # Chunks are joined, and 0 has no sign.
    large = Model.from_factors([2] * 18 + [8], [(range(19), np.ones(2**21))])
    assert replace(large, log_values=-large.log_values).digest == large.digest


def test_a_digest_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = replace(BASE)
    model.digest, model.structure  # noqa: B018
    monkeypatch.setattr("powersum.model.digest.hashlib", None)
    assert ps.solve(model, "all").question is not None
    with pytest.raises(AttributeError):
        _ = replace(model).digest
