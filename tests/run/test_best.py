"""The k best assignments against brute force: values, order, ties, and bounds that hold whatever happens."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum.exact import small
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.run.tuning import Schedule
from tests.cases import case, hard_case
from tests.oracle import assignment_value

WIDE = Schedule(elimination_cost=1e3, ibound=1)
"""Nothing is eliminated, and trees are not exact."""


def ranked(model: Model, query: Query, evidence: dict[int, int]) -> list[tuple[float, tuple[int, ...]]]:
    """All possible assignments and their values, best first."""
    variables = [int(v) for v in query.max_variables]
    allowed = [[evidence[v]] if v in evidence else range(int(model.cardinalities[v])) for v in variables]
    values = [
        (assignment_value(model, dict(zip(variables, states, strict=True)), evidence=evidence), states)
        for states in itertools.product(*allowed)
    ]
    return sorted((pair for pair in values if pair[0] > -math.inf), key=lambda pair: -pair[0])


def states_of(result: ps.Result) -> tuple[int, ...]:
    return tuple(int(state) for state in result.assignment.values())


def distance(first: Sequence[int], second: Sequence[int]) -> int:
    return sum(a != b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_the_best_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every other one on the short road.
    monkeypatch.setattr(small, "MOST_ENTRIES", 1_000_000 if seed % 2 else -1)
    model, query, evidence = case(seed)
    if query.task == "PR":
        with pytest.raises(ps.InputError, match="k is 4: log Z has one value"):
            ps.solve(model, weights=query, evidence=evidence, k=4)
        return
    truth = ranked(model, query, evidence)
    result = ps.solve(model, weights=query, evidence=evidence, k=4)
    if not truth:
        assert result.status is ps.Status.INFEASIBLE
        assert result.best == ()
        return
    assert len(result.best) == min(4, len(truth))
    value_of = {states: value for value, states in truth}
    assert len({states_of(one) for one in result.best}) == len(result.best)
    for one, (value, _) in zip(result.best, truth, strict=False):
        assert one.status is ps.Status.OPTIMAL
        assert one.log_lower == pytest.approx(value, abs=2e-6)
        assert one.log_lower <= value_of[states_of(one)] + 1e-9
        assert one.log_upper >= value - 1e-9
        assert one.probability is not None
    following = truth[4][0] if len(truth) > 4 else -math.inf
    assert result.log_upper_next is not None
    assert result.log_upper_next >= following - 1e-9
    assert result.log_upper_next <= following + 1e-5 or following == -math.inf == result.log_upper_next
    assert ps.Result.from_json(result.to_json()) == result


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("distinct", [2, 3])
def test_distinct_ones(seed: int, distinct: int) -> None:
    model, query, _ = hard_case(seed)
    truth = ranked(model, query, {})
    result = ps.solve(model, weights=query, k=3, distinct=distinct)
    before: list[tuple[int, ...]] = []
    for one in result.best:
        value = max(value for value, states in truth if all(distance(states, past) >= distinct for past in before))
        assert one.log_lower == pytest.approx(value, abs=2e-6)
        assert one.status is ps.Status.OPTIMAL
        before.append(states_of(one))
    left = [value for value, states in truth if all(distance(states, past) >= distinct for past in before)]
    assert result.log_upper_next is not None
    assert result.log_upper_next >= max(left, default=-math.inf) - 1e-9
    assert len(result.best) == 3 or not left


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("distinct", [1, 2])
@pytest.mark.parametrize("time_limit", [1e-3, 0.3, 2.0])
def test_bounds_hold_whenever_it_ends(seed: int, distinct: int, time_limit: float) -> None:
    model, query, _ = hard_case(seed)
    truth = ranked(model, query, {})
    value_of = {states: value for value, states in truth}
    result = ps.solve(model, weights=query, k=4, distinct=distinct, time_limit=time_limit, schedule=WIDE)
    before: list[tuple[int, ...]] = []
    for number, one in enumerate(result.best):
        own = states_of(one)
        assert one.log_lower <= value_of[own] + 1e-9
        assert all(distance(own, past) >= distinct for past in before)
        if distinct == 1:
            assert one.log_upper >= truth[number][0] - 1e-9
        else:
            left = [value for value, states in truth if all(distance(states, past) >= distinct for past in before)]
            assert one.log_upper >= max(left) - 1e-9
        before.append(own)
    if result.best:
        assert result.log_upper_next is not None
        left = [value for value, states in truth if all(distance(states, past) >= distinct for past in before)]
        assert result.log_upper_next >= max(left, default=-math.inf) - 1e-9
    assert result.log_upper >= truth[0][0] - 1e-9


def test_likelihoods_on_maximised_variables_count() -> None:
    coins = ps.Model.from_tables({"a": [0.4, 0.6], "b": [0.3, 0.7]})
    result = ps.solve(coins, ["a", "b"], evidence={"a": [0.9, 0.1]}, k=4)
    assert [states_of(one) for one in result.best] == [(0, 1), (0, 0), (1, 1), (1, 0)]
    total = 0.4 * 0.9 + 0.6 * 0.1
    assert [float(one.probability) for one in result.best if one.probability is not None] == pytest.approx(
        [0.36 * 0.7 / total, 0.36 * 0.3 / total, 0.06 * 0.7 / total, 0.06 * 0.3 / total]
    )
    assert result.log_upper_next == -math.inf


def test_ties_are_said() -> None:
    fair = ps.Model.from_tables({"a": [0.5, 0.5], "b": [0.4, 0.6]})
    result = ps.solve(fair, ["a", "b"], k=3)
    assert "Numbers 1 to 2 are equally good, to 1e-06." in result.notes
    assert "The next one may be as good as number 3." in result.notes
    assert len(result.best) == 3
    assert result._repr_html_().count("optimal") == 4


def test_fewer_than_asked_for() -> None:
    coin = ps.Model.from_tables({"a": [0.5, 0.5], "b": [0.0, 1.0]})
    result = ps.solve(coin, ["a", "b"], k=5)
    assert [states_of(one) for one in result.best] == [(0, 1), (1, 1)] or [states_of(one) for one in result.best] == [
        (1, 1),
        (0, 1),
    ]
    assert "There are no more than 2." in result.notes


@pytest.mark.parametrize(("options", "message"), [({"k": 0}, "k is 0"), ({"distinct": 1.5}, "distinct is 1.5")])
def test_wrong_numbers_are_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ps.InputError, match=message):
        ps.solve(ps.Model.from_tables({"a": [0.5, 0.5]}), ["a"], **options)


def test_the_order_asked_for_is_kept() -> None:
    model, _ = ps.generate.grid(3, 3, seed=2)
    result = ps.solve(model, [7, 2, 5], k=3)
    assert all(list(one.assignment) == ["7", "2", "5"] for one in result.best)
    values = [one.log_lower for one in result.best]
    assert values == sorted(values, reverse=True)
    assert np.isfinite(values).all()
