"""Brute force in plain NumPy: the truth that every bound is checked against. Shares no code with the kernels.

It looks at a model only through ``cardinalities`` and ``factors()``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.model.model import Model


def joint_log_table(model: Model, evidence: Mapping[int, int] | None = None) -> FloatArray:
    """Log of the product of all factors, one axis a variable; states against the evidence are ``-inf``."""
    n = model.n_variables
    joint = np.zeros(tuple(int(c) for c in model.cardinalities))
    for scope, log_table in model.factors():
        by_axis = np.argsort(scope)
        shape = [1] * n
        for v in scope:
            shape[v] = int(model.cardinalities[v])
        joint = joint + np.transpose(log_table, by_axis).reshape(shape)
    for variable, state in (evidence or {}).items():
        mask = np.full(int(model.cardinalities[variable]), -np.inf)
        mask[state] = 0.0
        shape = [1] * n
        shape[variable] = mask.size
        joint = joint + mask.reshape(shape)
    return joint


def power_sum(log_table: FloatArray, axis: int, weight: float) -> FloatArray:
    """Log of the power sum over one axis: ``weight * log Σ exp(t / weight)``, the maximum for weight 0."""
    top = np.asarray(log_table.max(axis=axis))
    if weight == 0.0:
        return top
    safe = np.where(np.isneginf(top), 0.0, top)
    inner = np.exp((log_table - np.expand_dims(safe, axis)) / weight).sum(axis=axis)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(np.isneginf(top), -np.inf, safe + weight * np.log(inner)))


def exact_value(
    model: Model,
    weights: Sequence[float] | FloatArray,
    *,
    evidence: Mapping[int, int] | None = None,
    order: Sequence[int] | None = None,
) -> float:
    """The weighted log partition function (eq. 3); the default order eliminates larger weights first."""
    table = joint_log_table(model, evidence)
    weights = np.asarray(weights, dtype=np.float64)
    # An observed variable has one state: whatever its weight, its power sum is that one entry.
    sequence = list(order) if order is not None else sorted(range(model.n_variables), key=lambda v: -weights[v])
    axes = list(range(model.n_variables))
    for v in sequence:
        table = power_sum(table, axes.index(v), float(weights[v]))
        axes.remove(v)
    return float(table)


def assignment_value(
    model: Model, assignment: Mapping[int, int], *, evidence: Mapping[int, int] | None = None
) -> float:
    """Log Q(x_B): log of the sum over everything not assigned."""
    table = joint_log_table(model, {**(evidence or {}), **assignment})
    for _ in range(model.n_variables):
        table = power_sum(table, 0, 1.0)
    return float(table)
