"""Buckets reduced by stretches and lanes, on domains with gaps, block by block: brute force says the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from powersum.core.arrays import FloatArray, IntArray, positions_of, starts_of
from powersum.exact.kernels import Buckets, Domains, choice_type, new_scratch, reduce_some, trace_back
from powersum.exact.wiring import EliminationWiring, message_sizes, place_messages, wire
from powersum.model.factors import factors_of
from powersum.model.model import Model
from tests.oracle import joint_log_table, power_sum


def eliminated(
    model: Model, alive: Sequence[IntArray], tau: FloatArray, order: IntArray, work: float
) -> tuple[float, IntArray]:
    """The value and the best states of the max variables, with some states of each variable left."""
    position = positions_of(order, model.n_variables)
    wired, _ = wire(order, position, np.arange(model.n_factors), factors_of(model))
    wiring = EliminationWiring(*wired)
    sizes = np.array([len(states) for states in alive])
    # Only the first of a variable's places are in use, as in a search that has removed states.
    domains = Domains(sizes, starts_of(model.cardinalities), np.zeros(int(model.cardinalities.sum()), np.int64))
    for v, states in enumerate(alive):
        domains.states[domains.starts[v] : domains.starts[v] + len(states)] = states
    entries, _ = message_sizes(wiring, sizes, np.inf)
    places, needed, choice_places, chosen = place_messages(wiring, entries, tau[order] == 0.0)
    choices = np.empty(chosen, choice_type(int(sizes.max())))
    # What lies behind the buffer shall stay as it is.
    guarded = np.full(needed + 16, 7.25)
    reached = np.zeros(2, np.int64)
    value = 0.0
    while reached[0] < len(places):
        value += reduce_some(
            tau,
            Buckets(wiring, domains, model.table_starts[:-1].copy(), model.log_values, new_scratch(int(sizes.max()))),
            guarded[:needed],
            places,
            choices,
            choice_places,
            reached,
            work,
        )
    assert (guarded[needed:] == 7.25).all()
    states = np.full(model.n_variables, -1, np.int64)
    trace_back(wiring, domains, choices, choice_places, states)
    return value, states


@pytest.mark.parametrize("seed", range(60))
def test_any_domains_weights_and_slices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    cards = rng.choice([1, 2, 2, 3, 4, 9] if seed % 2 else [2, 2, 3], size=n)
    factors = []
    for _ in range(n + 3):
        scope = rng.choice(n, size=int(rng.integers(1, min(n, 5))), replace=False)
        table = rng.normal(scale=3.0, size=cards[scope])
        factors.append((scope.tolist(), np.where(rng.random(table.shape) < 0.15 * (seed % 3), -np.inf, table)))
    model = Model.from_factors(cards.tolist(), factors, log=True)
    alive = [np.sort(rng.choice(c, size=int(rng.integers(1, c + 1)), replace=False)) for c in cards]
    if seed % 4 == 0:
        alive = [np.arange(c) for c in cards]
    tau = rng.choice([0.0, 0.0, 0.3, 1.0, 1.0], size=n)
    order = np.argsort(-tau + 1e-3 * rng.random(n)).astype(np.int64)
    joint = joint_log_table(model)[np.ix_(*alive)]
    table, axes = joint, list(range(n))
    for v in order:
        table = power_sum(table, axes.index(v), float(tau[v]))
        axes.remove(v)
    for work in (np.inf, 50.0):
        value, states = eliminated(model, alive, tau, order, work)
        if np.isneginf(table):
            assert np.isneginf(value)
            continue
        assert value == pytest.approx(float(table), abs=1e-10)
        # The states that were traced back have that value, too, when they are the only ones.
        held = [np.array([states[v]]) if tau[v] == 0.0 else alive[v] for v in range(n)]
        part, axes = joint_log_table(model)[np.ix_(*held)], list(range(n))
        for v in order:
            part = power_sum(part, axes.index(v), float(tau[v]))
            axes.remove(v)
        assert float(part) == pytest.approx(float(table), abs=1e-10)


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_long_rows_of_every_kind_of_input(gap: bool, weight: float) -> None:
    # One bucket of 3 x 5 x 11 x 13 entries whose inputs have all axes, the last ones, the first ones, one amid.
    cards = [3, 5, 11, 13]
    rng = np.random.default_rng(3)
    scopes = [(0, 1, 2, 3), (2, 3), (0, 1), (0, 2), (3,), (1, 3), (3, 0)]
    model = Model.from_factors(cards, [(s, rng.normal(size=[cards[v] for v in s])) for s in scopes], log=True)
    alive = [np.arange(c) for c in cards]
    if gap:
        alive[3] = np.delete(alive[3], 6)
        alive[2] = alive[2][2:]
    tau = np.full(4, weight)
    order = np.arange(4)
    table = joint_log_table(model)[np.ix_(*alive)]
    for _ in order:
        table = power_sum(table, 0, weight)
    for work in (np.inf, 100.0):
        assert eliminated(model, alive, tau, order, work)[0] == pytest.approx(float(table), abs=1e-10)
