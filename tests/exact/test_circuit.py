"""The way down of conditioning against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.core.progress import Progress
from powersum.exact import circuit, counting
from powersum.exact.counting import Counting
from powersum.prepare.ordering import elimination_order
from tests.exact.test_counting import counted, structured
from tests.oracle import joint_log_table


def marginals_by_force(model: ps.Model) -> list[list[float]]:
    """The distribution of each variable, from the whole table."""
    joint = joint_log_table(model)
    joint = np.exp(joint - joint.max())
    axes = range(model.n_variables)
    return [(joint.sum(axis=tuple(a for a in axes if a != v)) / joint.sum()).tolist() for v in axes]


def held_against_truth(model: ps.Model, found: Counting) -> None:
    """Each number is the true one, up to the rounding that is told."""
    down = circuit.distributions(found.circuit, model.cardinalities)
    assert down is not None
    beliefs, error = down
    error = 2.0 * error + 4.0 * found.log_error + 1e-12
    assert error < 1e-9
    truth = np.concatenate([np.array(own) for own in marginals_by_force(model)])
    assert (np.abs(beliefs - truth) <= error * truth + 1e-290).all()


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 10**6), st.sampled_from([2, 3, 5]))
def test_against_brute_force(seed: int, most_states: int) -> None:
    model = structured(seed, most_states=most_states, variables=8 if most_states < 5 else 6)
    found = counted(model, np.ones(model.n_variables), circuit=True)
    if found.log_value == -math.inf:
        assert circuit.distributions(found.circuit, model.cardinalities) is None
        return
    held_against_truth(model, found)


def test_a_circuit_takes_no_more_nodes_and_proofs_are_the_same() -> None:
    for seed in range(20):
        model = structured(seed, variables=12)
        tau = np.ones(12)
        plain, logged = counted(model, tau), counted(model, tau, circuit=True)
        assert logged.nodes == plain.nodes
        assert logged.log_value == plain.log_value
        proven, both = counted(model, tau, log=True), counted(model, tau, log=True, circuit=True)
        for one, other in zip(proven.log, both.log, strict=True):
            np.testing.assert_array_equal(one, other)
        if both.log_value > -math.inf:
            held_against_truth(model, both)


def test_after_trials_and_where_everything_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of a trial that was given up count for nothing, and those met again after that are others."""
    monkeypatch.setattr(counting, "TRIALS", (3, 6))
    for seed in range(40):
        model = structured(seed, variables=11)
        order = elimination_order(model, np.ones(11), restarts=1)
        small = Counting(model, np.ones(11), order, memory=1e7, circuit=True)
        if seed % 2:
            small._state = small._state._replace(part_values=small._state.part_values[:4], keys=small._state.keys[:60])
        while (progress := small.step()) is Progress.MORE:
            pass
        assert progress is Progress.DONE
        if small.log_value > -math.inf:
            held_against_truth(model, small)


def test_logs_that_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "LOGGED", 64)
    monkeypatch.setattr(counting, "SLICE", 20)
    for seed in range(10):
        model = structured(seed, variables=12)
        found = counted(model, np.ones(12), circuit=True)
        if found.log_value > -math.inf:
            held_against_truth(model, found)


def test_a_log_too_large_for_the_memory_is_told() -> None:
    model = structured(5, variables=14)
    order = elimination_order(model, np.ones(14), restarts=1)
    found = Counting(model, np.ones(14), order, memory=1e7, circuit=True)
    found._most_logged = 100.0
    while (progress := found.step()) is Progress.MORE:
        pass
    assert progress is Progress.OUT_OF_TIME


def test_more_terms_than_rounding_is_told_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit, "MOST_TERMS", 10.0)
    model = structured(7, variables=12)
    found = counted(model, np.ones(12), circuit=True)
    assert found.log_value > -math.inf
    assert circuit.distributions(found.circuit, model.cardinalities) is None
