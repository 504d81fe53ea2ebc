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
    proven = _checked(model, question, certificate)
    return float(proven.log_lower), float(proven.log_upper)


def proven_best(model: ps.Model, question: Question, certificate: Any) -> Any:
    """What the checker proves about the best assignments."""
    return _checked(model, question, certificate).best


def checked_file(model: ps.Model, question: Question, path: Path) -> tuple[float, float]:
    """The bounds that the checker proves from a file."""
    proven = _checked(model, question, path)
    return float(proven.log_lower), float(proven.log_upper)


def _checked(model: ps.Model, question: Question, certificate: Any) -> Any:
    """The word of the checker on a certificate, or on the file of one."""
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
        if isinstance(certificate, Path):
            proof = certificate
        else:
            certificate.save(proof)
        asked = checker.Question(
            weights=question.weights,
            evidence={v: seen for v, seen in question.evidence.items() if isinstance(seen, int)},
            likelihoods={v: seen for v, seen in question.evidence.items() if not isinstance(seen, int)},
            order=question.order,
        )
        return checker.check(checker.read_model(numbers, 10**9), asked, proof)
