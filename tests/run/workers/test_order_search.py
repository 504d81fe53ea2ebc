"""The search for narrower orders in long runs."""

from __future__ import annotations

import numpy as np
import pytest

import powersum as ps
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.clock import Clock
from powersum.model.interval import SAME
from powersum.model.model import Model
from powersum.prepare.ordering import check_order, elimination_order, order_cost
from powersum.prepare.ordering.tries import OrderTries
from powersum.run import work
from powersum.run.tuning import Schedule
from powersum.run.workers.order_search import OrderSearch

ALWAYS = Schedule(quick=0.0, order_search_from=0.0)


def row_by_row(model: Model, tau: FloatArray, **options: object) -> IntArray:
    """The worst of orders for a grid: sums first, in an order of chance."""
    order = np.random.default_rng(1).permutation(model.n_variables)
    return order[np.argsort(-tau[order], kind="stable")]


@pytest.mark.parametrize("maximised", [0, 30])
def test_tries_become_better_and_stay_orders(maximised: int) -> None:
    model = ps.generate.grid(9, 9, seed=2).model
    tau = np.ones(model.n_variables)
    tau[:maximised] = 0.0
    begun = row_by_row(model, tau)
    tries = OrderTries(model, tau, begun, seed=3, most_work=10**8)
    before = order_cost(model, begun)
    for _ in range(30):
        better = tries.step()
        cost = order_cost(model, tries.order)
        check_order(tries.order, tau, model.n_variables)
        assert cost.width == tries.width
        assert cost.log2_total == pytest.approx(tries.log2_total)
        now = (cost.width, cost.log2_total)
        assert (now < (before.width, before.log2_total)) == better
        before = cost
    assert before.width <= order_cost(model, elimination_order(model, tau, restarts=1)).width + 1


@pytest.mark.parametrize("maximised", [0, 20])
def test_elimination_is_done_once_an_order_allows_it(maximised: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "elimination_order", row_by_row)
    model = ps.generate.grid(11, 11, seed=4).model
    query = list(range(maximised))
    result = ps.solve(model, query, schedule=ALWAYS, work=20.0, time_limit=None)
    if not maximised:
        # Search may prove a maximum before.
        assert "Exact elimination" in result.reason
    truth = ps.solve(model, query, time_limit=None)
    assert result.status is truth.status is ps.Status.OPTIMAL
    # Bounds that close to one another end a run as well as a proof does.
    assert result.log_lower == pytest.approx(truth.log_lower, abs=SAME)


def test_a_certificate_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "elimination_order", row_by_row)
    monkeypatch.setattr(OrderSearch, "run", lambda worker, deadline: pytest.fail("an order was looked for"))
    model = ps.generate.grid(11, 11, seed=4).model
    result = ps.solve(model, [0], schedule=ALWAYS, work=0.2, time_limit=None, certificate=True)
    assert result.log_upper > result.log_lower


def test_without_a_limit_no_time_goes_into_orders_first() -> None:
    """Whoever sets no limit may have a question of a second: orders have their share of later stages only."""
    assert work._first_orders(Clock(), Schedule()) == 0.0
    assert work._first_orders(Clock(60.0), Schedule()) > 0.0
