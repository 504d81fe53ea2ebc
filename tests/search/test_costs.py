"""Search in whole numbers against brute force, and what its bounds promise on the way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersum.core.progress import Progress
from powersum.model.model import Model
from powersum.search.costs import Costs, CostSearch
from powersum.search.costs.branching import CONSISTENT, new_path, take_step
from powersum.search.costs.cells import cost_of, new_cells
from powersum.search.costs.consistency import sweep
from tests.oracle import exact_value


def random_model(seed: int) -> Model:
    """Few variables of two to five states; tables of one to four, some with zeros, on wide and on narrow ranges."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    cards = rng.integers(2, 6, n)
    zeros = rng.choice([0.0, 0.2, 0.6])
    tables = []
    for _ in range(int(rng.integers(1, 3 * n))):
        scope = rng.choice(n, int(rng.integers(1, min(n, 4) + 1)), replace=False)
        table = np.exp(rng.normal(0.0, rng.choice([0.01, 1.0, 10.0]), cards[scope]))
        table = np.where(rng.random(table.shape) < zeros, 0.0, table)
        tables.append((scope, table))
    return Model.from_factors(cards.tolist(), tables)


def values_of(model: Model, costs: Costs) -> tuple[np.ndarray, np.ndarray]:
    """True log value and cost of every configuration."""
    states = np.array(list(np.ndindex(*model.cardinalities.tolist())))
    values = np.zeros(len(states))
    for f in range(model.n_factors):
        scope = model.scope_variables[model.scope_starts[f] : model.scope_starts[f + 1]]
        table = model.log_values[model.table_starts[f] : model.table_starts[f + 1]].reshape(model.cardinalities[scope])
        values += table[tuple(states[:, v] for v in scope)]
    return values, np.array([cost_of(s, costs.tables) for s in states])


@pytest.mark.parametrize("seed", range(60))
def test_search_finds_the_best_and_proves_it(seed: int) -> None:
    model = random_model(seed)
    truth = exact_value(model, np.zeros(model.n_variables))
    costs = Costs(model)
    search = CostSearch(costs, np.random.default_rng(seed).permutation(model.n_variables))
    bounds = []
    while search.run(-math.inf) is Progress.MORE:
        bounds.append(search.bound)
        assert truth <= costs.log_upper(search.bound) + costs.log_error
    assert bounds == sorted(bounds)
    assert search.proven
    if truth == -math.inf:
        assert search.states is None
        assert costs.log_upper(search.bound) == -math.inf
        return
    log_upper = costs.log_upper(search.bound)
    assert truth <= log_upper + costs.log_error <= truth + 2.0 * costs.log_slack
    assert search.states is not None
    model_value = -math.inf
    values, all_costs = values_of(model, costs)
    place = int(np.ravel_multi_index(tuple(search.states), tuple(model.cardinalities)))
    model_value = values[place]
    assert all_costs[place] == search.best
    assert model_value == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_costs_never_exceed_what_is_lost(seed: int) -> None:
    model = random_model(seed)
    costs = Costs(model)
    values, all_costs = values_of(model, costs)
    for value, cost in zip(values.tolist(), all_costs.tolist(), strict=True):
        assert value <= costs.log_upper(cost) + costs.log_error
        assert (value == -math.inf) == (cost >= costs.hard)
        if value > -math.inf:
            assert costs.log_upper(cost) <= value + costs.log_slack + 1e-12 * abs(value)


@pytest.mark.parametrize("seed", range(40))
def test_moves_leave_what_every_configuration_costs(seed: int) -> None:
    """Sweeps and consistency move costs about; the sum of all parts stays, and no part falls below 0."""
    model = random_model(seed)
    costs = Costs(model)
    tables = costs.tables
    now = new_cells(tables, np.random.default_rng(seed).permutation(model.n_variables), costs.hard, trail=10_000)
    path = new_path(tables)
    # Nothing is removed, for a state that is gone is no longer kept up.
    now.counts[0] = np.iinfo(np.int64).max // 2
    for round_ in range(4):
        sweep(round_ % 2 == 1, tables, now)
        take_step(np.int64(CONSISTENT), np.int64(0), np.int64(0), tables, path, now)
    for states in np.ndindex(*model.cardinalities.tolist()):
        total = int(now.cells[0])
        for v, s in enumerate(states):
            own = int(now.cells[now.unary + tables.state_starts[v] + s])
            assert own >= 0
            total += own
        for f in range(model.n_factors):
            places = range(tables.scope_starts[f], tables.scope_starts[f + 1])
            entry = tables.table_starts[f] + sum(tables.strides[i] * states[tables.scope_variables[i]] for i in places)
            moved = sum(
                int(now.cells[now.delta + tables.delta_starts[i] + states[tables.scope_variables[i]]]) for i in places
            )
            part = int(tables.tables[entry]) - moved
            assert part >= 0
            total += part
        assert total == cost_of(np.array(states), tables)


@pytest.mark.parametrize("seed", range(20))
def test_a_good_start_only_helps(seed: int) -> None:
    model = random_model(seed)
    costs = Costs(model)
    order = np.arange(model.n_variables)
    alone = CostSearch(costs, order)
    while alone.run(-math.inf) is Progress.MORE:
        pass
    if alone.states is None:
        return
    helped = CostSearch(costs, order, states=alone.states)
    while helped.run(-math.inf) is Progress.MORE:
        pass
    assert helped.proven
    assert helped.best == alone.best == helped.bound
    np.testing.assert_array_equal(helped.states, alone.states)


def test_little_memory_searches_on_from_where_it_stands(hard_pairs: Model) -> None:
    """With no room for open nodes it is plain depth-first search, and proves as much."""
    costs = Costs(hard_pairs)
    roomy, narrow = (CostSearch(costs, np.arange(hard_pairs.n_variables), memory=m) for m in (1e8, 1.0))
    for search in (roomy, narrow):
        while search.run(-math.inf) is Progress.MORE:
            pass
        assert search.proven
    assert roomy.best == narrow.best


@pytest.fixture
def hard_pairs() -> Model:
    """A dense graph of pairs at random: dozens of dead ends."""
    rng = np.random.default_rng(0)
    n = 12
    tables = [(np.array([i, j]), np.exp(rng.normal(0.0, 1.0, (3, 3)))) for i in range(n) for j in range(i)]
    return Model.from_factors([3] * n, tables)
