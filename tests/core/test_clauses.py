"""Conflict-driven search: agrees with brute force, with and without assumptions, and proves only what is true."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from powersum.core import clauses as module
from powersum.core.clauses import Clauses, Ended


def drawn(rng: np.random.Generator, n: int, ratio: float) -> list[list[int]]:
    lengths = rng.choice([1, 2, 3, 4], int(ratio * n), p=[0.02, 0.23, 0.6, 0.15])
    return [[int(2 * v + rng.integers(2)) for v in rng.choice(n, min(length, n), replace=False)] for length in lengths]


def holds(clauses: list[list[int]], values: tuple[int, ...]) -> bool:
    return all(any(values[literal >> 1] == 1 - (literal & 1) for literal in clause) for clause in clauses)


@pytest.mark.parametrize("seed", range(200))
def test_agrees_with_brute_force_under_assumptions_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 11))
    clauses = drawn(rng, n, float(rng.uniform(0.5, 5.0)))
    solver = Clauses.of(n, clauses)
    every = [values for values in product((0, 1), repeat=n) if holds(clauses, values)]
    # One solver answers all of them, with what it has learned.
    for _ in range(8):
        assumed = [int(2 * v + rng.integers(2)) for v in rng.choice(n, int(rng.integers(0, n + 1)), replace=False)]
        expected = any(all(values[a >> 1] == 1 - (a & 1) for a in assumed) for values in every)
        ended = solver.search(np.array(assumed, dtype=np.int64))
        assert ended is (Ended.SATISFIED if expected else Ended.IMPOSSIBLE)
        if expected:
            values = tuple(solver.values.tolist())
            assert values in every
            assert all(values[a >> 1] == 1 - (a & 1) for a in assumed)


def test_counts_every_solution_by_excluding_it() -> None:
    """Clauses that are added as they are found leave exactly the others."""
    rng = np.random.default_rng(3)
    clauses = drawn(rng, 9, 2.0)
    found = 0
    while (solver := Clauses.of(9, clauses)).search() is Ended.SATISFIED:
        values = solver.values.tolist()
        assert holds(clauses, tuple(values))
        clauses.append([2 * v + value for v, value in enumerate(values)])
        found += 1
    assert found == sum(holds(drawn(np.random.default_rng(3), 9, 2.0), values) for values in product((0, 1), repeat=9))


def pigeons(n: int) -> list[list[int]]:
    """One more pigeon than holes: every clause is needed to refute it."""
    clauses = [[2 * (pigeon * n + hole) for hole in range(n)] for pigeon in range(n + 1)]
    for hole in range(n):
        for first in range(n + 1):
            clauses += [[2 * (first * n + hole) + 1, 2 * (later * n + hole) + 1] for later in range(first + 1, n + 1)]
    return clauses


def test_refutes_pigeons_and_gives_up_in_time() -> None:
    assert Clauses.of(42, pigeons(6)).search() is Ended.IMPOSSIBLE
    assert Clauses.of(132, pigeons(11)).search(deadline=-np.inf) is Ended.GIVEN_UP


def test_forgets_what_it_has_no_room_for() -> None:
    """With little room most learned clauses go many times, and the proof stands."""
    rng = np.random.default_rng(11)
    for _ in range(3):
        clauses = drawn(rng, 120, 4.2)
        solver = Clauses.of(120, clauses)
        state = solver._state
        # Only some hundred numbers are left.
        room = int(state.counts[module.FILLED]) + 1200
        small = Clauses.of(120, clauses)
        small._state = small._state._replace(arena=small._state.arena[:room].copy())
        assert small.search() is solver.search()
        if solver.search() is Ended.SATISFIED:
            assert holds(clauses, tuple(small.values.tolist()))


def test_prefers_the_values_it_is_given() -> None:
    solver = Clauses.of(6, [[0, 2, 4], [1, 3]])
    for phase in ([0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0]):
        solver.prefer(np.array(phase), np.zeros(6))
        assert solver.search() is Ended.SATISFIED
        assert solver.values.tolist() == phase
