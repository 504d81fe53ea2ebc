"""Orders with the fewest table entries, whatever their width."""

from __future__ import annotations

import numpy as np

import powersum as ps
from powersum.prepare.ordering import MIN_FILL_WORK, elimination_order
from powersum.prepare.ordering.cost import order_cost
from powersum.prepare.ordering.tries import OrderTries


def test_tries_never_take_more_entries_and_sometimes_fewer() -> None:
    fewer = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        cards = rng.choice([2, 2, 8], 24)
        pairs = {tuple(sorted(rng.permutation(24)[:2].tolist())) for _ in range(45)}
        model = ps.Model.from_factors(cards.tolist(), [(p, np.ones(cards[list(p)])) for p in sorted(pairs)])
        tau = np.ones(24)
        order = elimination_order(model, tau, restarts=2)
        before = order_cost(model, order).log2_total
        tries = OrderTries(model, tau, order, seed=seed, most_work=MIN_FILL_WORK, by_entries=True)
        for _ in range(20):
            tries.step()
        assert sorted(tries.order.tolist()) == list(range(24))
        after = order_cost(model, tries.order).log2_total
        assert after == tries.log2_total or abs(after - tries.log2_total) < 1e-9
        assert after <= before
        fewer += after < before - 0.1
    assert fewer
