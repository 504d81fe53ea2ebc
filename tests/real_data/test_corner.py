"""The bound that every reader sees, on planning and on stochastic satisfiability."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.instances import DATA, model_files

import powersum as ps
from powersum.model.model import Model
from tests.data import needs_data

pytestmark = needs_data

DEFINED = ("c432-er", "c499-er")
"""Rows of which the last block is defined by the others, each variable by one table."""

ROUNDING = 1e-6


def formula(path: Path) -> tuple[Model, list[int]]:
    """A formula as a model: a table for each clause and each chance, and the variables of the first block."""
    n, chosen = 0, list[int]()
    factors: list[tuple[tuple[int, ...], np.ndarray]] = []
    first = True
    words: list[str] = []
    for line in path.read_text().replace("0r", "0\nr").splitlines():
        words = line.split()
        if not words or words[0] == "c":
            continue
        if words[0] == "p":
            n = int(words[2])
        elif words[0] == "e":
            # Lines of one kind after each other are one block.
            chosen += [int(w) - 1 for w in words[1:-1]] if first else []
        elif words[0] == "r":
            first = False
            chance = float(words[1])
            factors += [((int(w) - 1,), np.array([1.0 - chance, chance])) for w in words[2:-1]]
        else:
            literals = sorted({int(w) for w in words[:-1]}, key=abs)
            table = np.ones((2,) * len(literals))
            table[tuple(int(w < 0) for w in literals)] = 0.0
            factors.append((tuple(abs(w) - 1 for w in literals), table))
    return Model.from_factors([2] * n, factors), chosen


@pytest.mark.parametrize("path", model_files("planning"), ids=lambda path: path.stem)
def test_no_plan_is_more_than_certain(path: Path) -> None:
    model = ps.read(path)
    chosen = ps.read_query(path.with_suffix(".map"), model)
    for found in (
        ps.bound(model, chosen, time_limit=1.0),
        ps.bound(model, chosen, method="mbe", sweeps=1),
        ps.solve(model, chosen, time_limit=1.0),
    ):
        assert found.log_upper <= ROUNDING


@pytest.mark.parametrize("name", DEFINED)
def test_no_formula_is_more_than_certain(name: str) -> None:
    model, chosen = formula(DATA / "ssat" / f"{name}.sdimacs")
    for found in (ps.bound(model, chosen, time_limit=1.0), ps.solve(model, chosen, time_limit=1.0)):
        assert found.log_upper <= ROUNDING
