"""Ratios of a tree's tables to its messages, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.core.arrays import starts_of
from powersum.sums.kernels import LEAST_RATIO, fill_ratios


@pytest.mark.parametrize("seed", range(20))
def test_ratios_are_rounded_up_and_zero_exactly_where_something_is_impossible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.integers(1, 40, 5)
    states = rng.integers(1, 6, 5)
    tables, messages, impossible = [], [], []
    for n_states, n_columns in zip(states.tolist(), columns.tolist(), strict=True):
        scale = 10.0 ** rng.uniform(-3.0, 3.0)
        table = scale * rng.standard_normal((n_states, n_columns))
        table[rng.random(table.shape) < 0.2] = -np.inf
        message = np.where(np.isinf(table).all(axis=0), -1e300, table.max(axis=0))
        tables.append(table.ravel())
        messages.append(message)
        impossible.append((np.isinf(table) | (message < -1e299)).ravel())
    starts = starts_of([len(table) for table in tables])
    ratios = np.full(int(starts[-1]), np.nan, dtype=np.float32)
    pool = np.concatenate(messages)
    message_starts = starts_of(columns)[:-1]
    fill_ratios(np.concatenate(tables), starts, columns, pool, message_starts, ratios)
    assert np.array_equal(ratios == 0.0, np.concatenate(impossible))
    for i, (table, message) in enumerate(zip(tables, messages, strict=True)):
        some = ratios[starts[i] : starts[i + 1]].astype(np.float64)
        possible = some > 0.0
        logs = (table.reshape(-1, len(message)) - message).ravel()
        truth = np.exp(np.minimum(logs, 0.0)[possible])
        assert (some[possible] >= truth).all()
        assert (some[possible] <= np.maximum(truth * (1.0 + 1e-6), 2.0 * LEAST_RATIO)).all()
        assert (some <= 1.0).all()
