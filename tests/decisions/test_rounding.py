"""Bounds of ``decide`` hold to the last digit: against exact fractions, with no tolerance."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum.decisions.pairs import Pairs
from tests.decisions.drawn import random_diagram


def exactly(table: np.ndarray) -> np.ndarray:
    return np.array([Fraction(float(x)) for x in table.ravel()], dtype=object).reshape(table.shape)


def spread(scope: tuple[int, ...], table: np.ndarray, n: int) -> np.ndarray:
    sizes = dict(zip(scope, table.shape, strict=True))
    return np.transpose(table, np.argsort(scope)).reshape([sizes.get(v, 1) for v in range(n)])


def drawn(seed: int) -> tuple[ps.Diagram, list[tuple[tuple[int, ...], np.ndarray]]]:
    """A diagram, and its distributions as fractions whose rows sum to one."""
    rng = np.random.default_rng(seed)
    plain = random_diagram(rng, n=int(rng.integers(3, 7)), decisions=int(rng.integers(1, 3)))
    cards = plain.model.cardinalities.tolist()
    tables = []
    for scope, _ in plain.model.factors():
        rows = rng.dirichlet(np.full(cards[scope[-1]], rng.choice([0.003, 0.3, 5.0])), [cards[v] for v in scope[:-1]])
        rows[rows < 1e-290] = 0.0
        tables.append((scope, rows))
    sizes = rng.choice([1e-9, 0.1, 1.0, 1e9], len(plain.utilities))
    utilities = [
        (u.scope, size * rng.normal(rng.choice([0.0, 1e6]), 1.0, u.table.shape))
        for u, size in zip(plain.utilities, sizes, strict=True)
    ]
    model = ps.Model.from_factors(cards, tables)
    diagram = ps.Diagram.of(model, utilities, [(c.variable, c.sees) for c in plain.choices])
    exact = [(scope, exactly(rows)) for scope, rows in tables]
    return diagram, [(scope, rows / rows.sum(axis=-1, keepdims=True)) for scope, rows in exact]


def best_and_own(diagram: ps.Diagram, tables: list[Any], decision: ps.Decision) -> tuple[Fraction, Fraction]:
    """The best expected utility with perfect recall, and that of the policy that is shown."""
    n = diagram.model.n_variables
    weight: Any = np.array(Fraction(1), dtype=object)
    utility: Any = np.array(Fraction(0), dtype=object)
    for scope, rows in tables:
        weight = weight * spread(scope, rows, n)
    for part in diagram.utilities:
        utility = utility + spread(part.scope, exactly(part.table), n)
    shape = tuple(diagram.model.cardinalities.tolist())
    value = np.broadcast_to(weight * utility, shape)
    own = value
    for rule in decision.policy:
        view = [diagram.model.variable(name) for name in rule.sees]
        variable = diagram.model.variable(rule.decision)
        table = np.zeros([shape[v] for v in (*view, variable)], dtype=object)
        for seen, state in rule.rows():
            table[(*(int(s) for s in seen), int(state))] = 1
        own = own * spread((*view, variable), table, n)
    seen_before: set[int] = set()
    steps: list[tuple[bool, int]] = []
    for choice in diagram.choices:
        steps += [(False, v) for v in choice.sees if v not in seen_before]
        steps.append((True, choice.variable))
        seen_before |= {*choice.sees, choice.variable}
    steps += [(False, v) for v in range(n) if v not in seen_before]
    for decided, axis in reversed(steps):
        value = value.max(axis=axis, keepdims=True) if decided else value.sum(axis=axis, keepdims=True)
    return value.ravel()[0], own.sum()


@pytest.mark.parametrize("seed", range(60))
def test_no_digit_is_on_the_wrong_side(seed: int) -> None:
    diagram, tables = drawn(seed)
    decision = ps.decide(diagram, time_limit=5)
    best, own = best_and_own(diagram, tables, decision)
    assert Fraction(decision.utility_lower) <= own
    assert own <= best
    assert best <= Fraction(decision.utility_upper)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_error_of_each_table_covers_its_rounding(seed: int, side: float) -> None:
    """Sums along random orders: each entry of what is left lies within the error that is counted."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, 5).tolist()
    place = rng.permutation(5)
    pairs = Pairs(place.tolist(), cards, side, lambda: False, 10**6)
    exact: Any = np.array(Fraction(1), dtype=object)
    utility: Any = np.array(Fraction(0), dtype=object)
    for v in range(5):
        scope = (*rng.permutation(v)[: int(rng.integers(0, 3))].tolist(), v)
        rows = rng.dirichlet(np.full(cards[v], 0.4), [cards[u] for u in scope[:-1]])
        pairs.add(scope, rows, 0.0, v)
        exact = exact * spread(scope, exactly(rows), 5)
    for _ in range(3):
        scope = tuple(rng.permutation(5)[:2].tolist())
        table = rng.random([cards[v] for v in scope])
        pairs.add(scope, table, 0.0)
        utility = utility + spread(scope, exactly(table), 5)
    for v in np.argsort(place).tolist():
        pairs.sum_out(v)
    value, error = pairs.total()
    # Rows of doubles do not sum to one exactly: what powersum leaves out as one is divided by here.
    true = (exact * utility).sum() / np.broadcast_to(exact, tuple(cards)).sum()
    room = Fraction(1.01 * error) + Fraction(20 * 5 * 2.0**-53)
    assert abs(Fraction(float(value)) - true) <= room * true


def test_a_value_that_rounding_may_have_moved_far_is_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.decisions.eliminator.MOST_ERROR", 0.0)
    diagram, _ = drawn(1)
    decision = ps.decide(diagram, time_limit=0.5)
    assert decision.utility_lower < decision.utility_upper


@pytest.mark.parametrize("seed", range(6))
def test_work_gives_the_same_digits(seed: int) -> None:
    rng = np.random.default_rng([seed, 5])
    diagram = random_diagram(rng, n=8, decisions=3, recall=bool(seed % 2))
    first, second = (ps.decide(diagram, work=0.05) for _ in range(2))
    assert (first.utility_lower, first.utility_upper) == (second.utility_lower, second.utility_upper)
    assert first.seconds == second.seconds


def test_give_work_or_time() -> None:
    diagram = random_diagram(np.random.default_rng(1))
    with pytest.raises(ps.InputError, match="give one of them"):
        ps.decide(diagram, work=1.0, time_limit=1.0)
