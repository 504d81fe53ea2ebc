"""Certificates through the checker, which knows nothing of powersum: it is given the case's own numbers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import powersum as ps
from soak.cases import Question


def verified(model: ps.Model, question: Question, certificate: Any) -> tuple[float, float]:
    """The bounds that the checker proves from a certificate; it raises where it does not accept it."""
    checker = import_module("powersum_check")
    with TemporaryDirectory() as folder:
        numbers, proof = Path(folder, "model.npz"), Path(folder, "proof.zip")
        # Logs as they are: a text file would round them.
        np.savez(
            numbers,
            cardinalities=model.cardinalities,
            scope_starts=model.scope_starts,
            scope_variables=model.scope_variables,
            log_values=model.log_values,
        )
        certificate.save(proof)
        asked = checker.Question(
            weights=question.weights,
            evidence={v: seen for v, seen in question.evidence.items() if isinstance(seen, int)},
            likelihoods={v: seen for v, seen in question.evidence.items() if not isinstance(seen, int)},
            order=question.order,
        )
        proven = checker.check(checker.read_model(numbers, 10**9), asked, proof)
    return float(proven.log_lower), float(proven.log_upper)
