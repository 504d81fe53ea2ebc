"""One example to learn from: a model whose log tables are linear in parameters, and what should be its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.model.evidence import evidence_of
from powersum.model.model import Model


@dataclass(frozen=True, eq=False)
class Example:
    """One example: its log tables are ``model.log_values + features @ parameters``.

    Parameters
    ----------
    model
        The structure, and what is fixed of the log tables (zeros where everything is learned).
    features
        A matrix, dense or sparse, with a row for each entry of ``model.log_values`` and a column for each parameter.
        For tied parameters an array of whole numbers is enough: which parameter each entry is, -1 for none.
    labels
        What should be answered: the states of some variables, by names or numbers. Variables that are neither here nor
        in ``evidence`` are hidden.
    evidence
        States that are known when the question is asked.

    Examples
    --------
    >>> import powersum as ps
    >>> coin = ps.Model.from_tables({"side": [1.0, 1.0]})
    >>> heads = ps.learn.Example(coin, [0, -1], {"side": 0})
    >>> heads.n_parameters
    1
    """

    model: Model
    features: Any
    labels: Any
    evidence: Any = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise InputError("model must be a powersum.Model")
        object.__setattr__(self, "features", _matrix(self.features, self.model.log_values.size))
        for name in ("labels", "evidence"):
            known = evidence_of(self.model, getattr(self, name))
            if known.likelihoods:
                raise InputError(f"{name} must be states, not likelihoods")
            object.__setattr__(self, name, known.states)
        if not self.labels:
            raise InputError("labels are empty: there is nothing to learn from")
        both = [self.model.name(v) for v in self.labels if v in self.evidence]
        if both:
            raise InputError(f"variable {both[0]} is among the labels and in the evidence")

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return int(self.features.shape[1])

    def log_values(self, parameters: Any) -> FloatArray:
        """The log tables with these parameters."""
        values: FloatArray = self.model.log_values + self.features @ np.asarray(parameters, dtype=np.float64)
        return values

    def with_parameters(self, parameters: Any) -> Model:
        """The model with these parameters, to ask questions about."""
        return self.model.with_log_values(self.log_values(parameters))


def _matrix(features: Any, entries: int) -> Any:
    """Features as a sparse matrix by rows."""
    if not sparse.issparse(features):
        array = np.asarray(features)
        if array.ndim == 1 and array.dtype.kind in "iu":
            features = _tied(array)
        elif array.ndim == 2 and array.dtype.kind in "iuf":
            features = array
        else:
            raise InputError("features must be a matrix, or an array of whole numbers: the parameter of each entry")
    matrix = sparse.csr_array(features, dtype=np.float64)
    if matrix.shape[0] != entries:
        raise InputError(f"features have {matrix.shape[0]} rows: the model has {entries} table entries")
    if not np.isfinite(matrix.data).all():
        raise InputError("features must be finite")
    return matrix


def _tied(parameter: Any) -> Any:
    """The matrix of tied parameters."""
    if parameter.size and parameter.min() < -1:
        raise InputError(f"features name parameter {parameter.min()}: give numbers from 0, or -1 for none")
    rows = np.flatnonzero(parameter >= 0)
    shape = (len(parameter), int(parameter.max(initial=-1)) + 1)
    return sparse.csr_array((np.ones(len(rows)), (rows, parameter[rows])), shape=shape)
