"""Axes on which a table does not depend leave its scope; the value stays, for any weights."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.simplify import simplify
from powersum.prepare.simplify.flat import drop_flat_axes
from powersum.prepare.simplify.tables import Tables
from tests.oracle import exact_value, joint_log_table


def with_flat_axes(rng: np.random.Generator) -> Model:
    """Random tables, each repeated along axes it does not depend on."""
    cards = rng.integers(1, 4, 5)
    factors = []
    for _ in range(6):
        scope = rng.permutation(5)[: int(rng.integers(1, 4))]
        flat = rng.random(len(scope)) < 0.5
        table = np.exp(rng.normal(0.0, 1.0, np.where(flat, 1, cards[scope])))
        factors.append((scope.tolist(), np.broadcast_to(table, cards[scope]).copy()))
    return Model.from_factors(cards.tolist(), factors)


@pytest.mark.parametrize("seed", range(40))
def test_the_product_of_all_tables_stays(seed: int) -> None:
    model = with_flat_axes(np.random.default_rng(seed))
    tables = drop_flat_axes(Tables.of(model))
    left = Model(
        model.cardinalities, tables.scope_starts, tables.scope_variables, tables.table_starts, tables.log_values
    )
    np.testing.assert_array_equal(joint_log_table(left), joint_log_table(model))
    for _, table in left.factors():
        for axis in range(table.ndim):
            assert table.shape[axis] == 1 or (np.diff(table, axis=axis) != 0).any()


@pytest.mark.parametrize("seed", range(20))
def test_the_value_stays_for_any_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = with_flat_axes(rng)
    tau = rng.choice([0.0, 0.4, 1.0], 5)
    problem = simplify(model, Query(tau), {})
    found = problem.log_constant + exact_value(problem.model, problem.tau)
    assert found == pytest.approx(exact_value(model, tau), abs=1e-10)


def test_tables_without_such_axes_are_left_alone() -> None:
    tables = Tables.of(Model.from_factors([2, 2], [((0, 1), [[1.0, 2.0], [3.0, 4.0]])]))
    assert drop_flat_axes(tables) is tables
