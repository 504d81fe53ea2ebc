"""What the tests of this folder share: a network as each library has it, and ways to compare two models."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
import pytest

from powersum import Model
from powersum.core.arrays import FloatArray
from tests.oracle import joint_log_table


def library(name: str) -> Any:
    """A library that may be missing, imported where its own warnings are no errors; the test is skipped without it."""
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        pytest.skip(f"{name} is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


CLINIC = Model.from_tables(
    {
        "smoker": [0.7, 0.3],
        ("smoker", "cancer"): [[0.99, 0.01], [0.9, 0.1]],
        ("smoker", "bronchitis"): [[0.7, 0.3], [0.4, 0.6]],
        ("cancer", "bronchitis", "dyspnoea"): [
            [[0.9, 0.08, 0.02], [0.2, 0.5, 0.3]],
            [[0.3, 0.3, 0.4], [0.1, 0.2, 0.7]],
        ],
        ("cancer", "xray"): [[0.95, 0.05], [0.02, 0.98]],
    },
    states={
        "smoker": ["no", "yes"],
        "cancer": ["no", "yes"],
        "bronchitis": ["no", "yes"],
        "dyspnoea": ["none", "some", "much"],
        "xray": ["clear", "shadow"],
    },
    directed=True,
)


def joint(model: Model) -> FloatArray:
    """All joint probabilities with one axis a variable, axes by name and states by label: equal for equal models."""
    table = np.exp(joint_log_table(model))
    names = [model.name(v) for v in range(model.n_variables)]
    for v in range(model.n_variables):
        labels = [str(model.label(v, state)) for state in range(table.shape[v])]
        table = np.take(table, np.argsort(labels), axis=v)
    return np.transpose(table, np.argsort(names))


def described(model: Model) -> dict[str, set[str]]:
    """Names and labels."""
    return {
        model.name(v): {str(model.label(v, state)) for state in range(int(model.cardinalities[v]))}
        for v in range(model.n_variables)
    }


def distribution(model: Model, name: str) -> FloatArray:
    """The table of a variable given its parents, axes by name and states by label."""
    child = model.variable(name)
    (factor,) = [f for f in model.factors() if f.scope and f.scope[-1] == child]
    table = np.exp(factor.log_table)
    for axis, v in enumerate(factor.scope):
        labels = [str(model.label(v, state)) for state in range(table.shape[axis])]
        table = np.take(table, np.argsort(labels), axis=axis)
    return np.transpose(table, np.argsort([model.name(v) for v in factor.scope]))
