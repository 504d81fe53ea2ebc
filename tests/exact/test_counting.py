"""Conditioning with caching against brute force, and what it does where memory is short."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.core.arrays import FloatArray
from powersum.core.progress import Progress
from powersum.exact import counting
from powersum.exact.counting import Counting, worth_counting
from powersum.prepare.ordering import elimination_order
from tests.oracle import assignment_value, exact_value


def structured(seed: int, *, variables: int = 8, most_states: int = 3, values: int = 3) -> ps.Model:
    """A model of many zeros and few different entries, whose contexts fall apart and meet again."""
    rng = np.random.default_rng(seed)
    cardinalities = rng.integers(1, most_states + 1, variables)
    entries = np.append(np.exp(rng.normal(scale=rng.choice([0.0, 1.0, 30.0]), size=values)), [0.0, 0.0])
    factors = []
    for _ in range(int(rng.integers(1, 2 * variables))):
        scope = rng.choice(variables, size=int(rng.integers(1, min(variables, 4) + 1)), replace=False)
        table = rng.choice(entries, size=tuple(cardinalities[scope]))
        factors.append((tuple(scope.tolist()), table))
    return ps.Model.from_factors(cardinalities.tolist(), factors)


def counted(model: ps.Model, tau: FloatArray, **options: object) -> Counting:
    order = elimination_order(model, tau, restarts=1)
    counting = Counting(model, tau, order, **{"memory": 1e7, **options})  # type: ignore[arg-type]
    while (progress := counting.step()) is Progress.MORE:
        pass
    assert progress is Progress.DONE
    return counting


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 10**6), st.sampled_from([(1.0,), (0.0,), (0.0, 1.0)]))
def test_against_brute_force(seed: int, kinds: tuple[float, ...]) -> None:
    model = structured(seed)
    tau = np.random.default_rng(seed).choice(kinds, size=model.n_variables)
    truth = exact_value(model, tau)
    found = counted(model, tau)
    if truth == -math.inf:
        assert found.log_value == -math.inf
        return
    assert abs(found.log_value - truth) <= found.log_error + 1e-11 * max(1.0, abs(truth))
    if (tau == 0.0).any():
        states = found.states()
        assert states is not None
        assert ((states >= 0) == (tau == 0.0)).all()
        chosen = {int(v): int(states[v]) for v in np.flatnonzero(tau == 0.0)}
        assert assignment_value(model, chosen) == pytest.approx(truth, abs=1e-9)


def test_contexts_by_place_and_by_hash_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(20):
        model = structured(seed, variables=10, most_states=4)
        by_place = counted(model, np.ones(10))
        with monkeypatch.context() as patch:
            patch.setattr(counting, "MOST_DIRECT", 5)
            by_hash = counted(model, np.ones(10))
        assert by_place.nodes == by_hash.nodes
        assert by_place.log_value == by_hash.log_value


@pytest.mark.parametrize("seed", range(10))
def test_variables_that_lose_some_of_many_states(seed: int) -> None:
    """States that are gone are part of what is remembered, the 32nd and the 63rd among them."""
    rng = np.random.default_rng(seed)
    n, states = 4, 63
    # Each factor lets a state go with those close by, so that masks of all kinds come up.
    distance = np.abs(np.subtract.outer(np.arange(states), np.arange(states)))
    factors = []
    for a, b in ((0, 1), (1, 2), (2, 3), (0, 3)):
        close = distance <= rng.integers(1, 4)
        factors.append(((a, b), np.where(close, rng.integers(1, 4, (states, states)), 0.0)))
    model = ps.Model.from_factors([states] * n, factors)
    chain = factors[0][1] @ factors[1][1] @ factors[2][1]
    found = counted(model, np.ones(n))
    assert found.log_value == pytest.approx(math.log(float((chain * factors[3][1]).sum())), abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6))
def test_with_states_given(seed: int) -> None:
    model = structured(seed)
    rng = np.random.default_rng(seed)
    states = np.where(rng.random(model.n_variables) < 0.5, rng.integers(0, model.cardinalities), -1)
    truth = exact_value(
        model, np.ones(model.n_variables), evidence={int(v): int(states[v]) for v in np.flatnonzero(states >= 0)}
    )
    found = counted(model, np.ones(model.n_variables), given=states)
    assert found.log_value == pytest.approx(truth, abs=1e-9)


def test_little_memory_forgets_and_is_still_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "TRIALS", (3, 6))
    for seed in range(20):
        model = structured(seed, variables=14)
        tau = np.ones(model.n_variables)
        whole = counted(model, tau)
        order = elimination_order(model, tau, restarts=1)
        small = Counting(model, tau, order, memory=1e7)
        # Room for a handful of parts only.
        small._state = small._state._replace(part_values=small._state.part_values[:4], keys=small._state.keys[:60])
        while (progress := small.step()) is Progress.MORE:
            pass
        assert progress is Progress.DONE
        assert small.log_value == pytest.approx(whole.log_value, abs=1e-9)


def test_too_little_memory_is_told() -> None:
    model = structured(5, variables=14)
    order = elimination_order(model, np.ones(14), restarts=1)
    small = Counting(model, np.ones(14), order, memory=1e7)
    small._state = small._state._replace(context_factor=small._state.context_factor[:5])
    while (progress := small.step()) is Progress.MORE:
        pass
    assert progress is Progress.OUT_OF_TIME
    assert math.isnan(small.log_value)


def test_what_it_is_for() -> None:
    dense = ps.Model.from_factors([2, 2], [((0, 1), [[1, 2], [3, 4]])])
    assert not worth_counting(dense)
    assert worth_counting(ps.Model.from_factors([2, 2], [((0, 1), [[1, 0], [3, 4]])]))
    assert not worth_counting(ps.Model.from_factors([64], [((0,), [0.0] * 63 + [1.0])]))


def test_a_chain_of_exclusive_ors_takes_few_nodes() -> None:
    """Dense elimination of such a grid of parities is hopeless; content makes all contexts of a component one."""
    n = 12
    cells = np.arange(n * n).reshape(n, n)
    parity = np.indices((2, 2, 2)).sum(axis=0) % 2
    corners = (cells[:-1, :-1], cells[1:, :-1], cells[1:, 1:])
    scopes = np.stack(corners, axis=-1).reshape(-1, 3).tolist()
    factors = [(tuple(scope), parity) for scope in scopes]
    model = ps.Model.from_factors([2] * (n * n), factors)
    found = counted(model, np.ones(n * n))
    # As many free bits as variables less equations, which are independent.
    assert found.log_value == pytest.approx((n * n - (n - 1) ** 2) * math.log(2.0), abs=1e-9)
