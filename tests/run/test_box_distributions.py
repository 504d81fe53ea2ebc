"""Distributions of a question in parts: intervals hold whatever is known of the parts, and are exact in the end."""

from __future__ import annotations

import math

import numpy as np
import pytest

import powersum as ps
from powersum.core.arrays import FloatArray
from powersum.core.interrupt import Interrupt
from powersum.divide.box import Allowed
from powersum.model.limits import Limits
from powersum.model.question import Question
from powersum.run import box_distributions
from powersum.run.box_distributions import BoxSums, _added, _Parted, _split, distributions_by_boxes, no_sums
from powersum.run.tuning import Schedule
from tests.oracle import joint_log_table
from tests.strategies import random_model


def within(joint: FloatArray, box: Allowed) -> FloatArray:
    """The joint table with some states of some variables."""
    for v, states in box.items():
        shape = [-1 if axis == v else 1 for axis in range(joint.ndim)]
        joint = np.where(np.isin(np.arange(joint.shape[v]), list(states)).reshape(shape), joint, -np.inf)
    return joint


def log_sums(joint: FloatArray) -> tuple[float, FloatArray]:
    """The log of the sum of a table, and of its sums with each state of each variable set."""
    flat = np.exp(joint)
    axes = range(joint.ndim)
    with np.errstate(divide="ignore"):
        parts = [np.log(flat.sum(axis=tuple(a for a in axes if a != v))) for v in axes]
        return float(np.log(flat.sum())), np.concatenate(parts)


@pytest.mark.parametrize("seed", range(12))
def test_against_brute_force(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(box_distributions, "BOXES", int(rng.integers(2, 9)))
    # Some boxes have several states of a variable.
    monkeypatch.setattr(box_distributions, "MOST_PARTS", int(rng.integers(2, 4)))
    model = random_model(rng, n_variables=6, n_factors=8, zeros=float(rng.choice([0.0, 0.3])), spread=3.0)
    evidence = {0: 0} if rng.random() < 0.5 else {}
    limits = Limits.given(time_limit=20.0, memory=None, threads=1, seed=seed)
    question = Question.of(model, evidence=evidence, limits=limits)
    whole, states = log_sums(within(joint_log_table(model), {v: frozenset((s,)) for v, s in evidence.items()}))
    truth = np.exp(states - whole) if whole > -math.inf else np.zeros(len(states))
    found = list(distributions_by_boxes(question, None, Schedule(), memory=None, interrupt=Interrupt()))
    known, log_upper = found[-1]
    if whole == -math.inf:
        assert log_upper == -math.inf
        return
    for one, _ in found:
        assert (np.exp(one.log_lower) <= truth * (1.0 + 1e-12)).all()
        assert (np.exp(one.log_upper) >= truth * (1.0 - 1e-12)).all()
    assert known.settled
    np.testing.assert_allclose(known.beliefs, truth, atol=1e-7)


@pytest.mark.parametrize("seed", range(30))
def test_bounds_of_any_parts_join(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random bounds around the true sums of a random tree of boxes hold for the whole."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(box_distributions, "MOST_PARTS", 2)
    model = random_model(rng, n_variables=5, n_factors=6, zeros=0.2, spread=3.0)
    question = Question.of(model, limits=Limits.given(time_limit=1.0, memory=None, threads=1, seed=0))
    joint = joint_log_table(model)
    if joint.max() == -np.inf:
        return

    root = _Parted({}, no_sums(question, math.inf))
    waiting = [root]
    for _ in range(int(rng.integers(1, 6))):
        node = waiting.pop(int(rng.integers(len(waiting))))
        free = [v for v in range(5) if len(node.box.get(v, range(joint.shape[v]))) > 1]
        if not free:
            break
        whole, states = log_sums(within(joint, node.box))
        down, up = rng.exponential(1.0, 2)
        if rng.random() < 0.7:
            node.known = BoxSums((whole - down, whole + up), states - down, states + up, np.zeros(len(states)), None)
        assert _split(question, node, waiting, int(rng.choice(free)))
    for node in waiting:
        whole, states = log_sums(within(joint, node.box))
        down, up = rng.exponential(1.0, 2)
        if rng.random() < 0.7:
            node.known = BoxSums((whole - down, whole + up), states - down, states + up, np.zeros(len(states)), None)
    found, (whole, states) = root.joined(), log_sums(joint)
    assert found.whole[0] <= whole + 1e-12
    assert found.whole[1] >= whole - 1e-12
    assert (found.log_lower <= states + 1e-12).all()
    assert (found.log_upper >= states - 1e-12).all()


def test_sums_are_rounded_outward() -> None:
    """Against exact integers: logs of sums of logs of two to some powers."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        powers = rng.integers(-60, 60, int(rng.integers(1, 6)))
        exact = math.log2(sum(2.0 ** int(p) for p in powers)) * math.log(2.0)
        logs = [np.array([int(p) * math.log(2.0)]) for p in powers]
        assert _added(logs, -1)[0] < exact < _added(logs, 1)[0]
    nothing = np.array([-math.inf])
    assert _added([nothing, nothing], 1)[0] == -math.inf
    assert _added([np.array([math.inf]), nothing], 1)[0] == math.inf


def test_workers_agree_with_one_process() -> None:
    """Two processes find what one run finds."""
    model, _ = ps.generate.grid(12, 12, seed=4)
    alone = ps.marginals(model)
    together = ps.marginals(model, workers=2, time_limit=60.0)
    assert alone.exact
    assert together.exact
    for one, other in zip(alone.beliefs, together.beliefs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7)


def test_a_variable_of_very_many_states_is_not_split_into_all_of_them() -> None:
    """70,000 parts with 70,000 numbers each once asked for 36 GB."""
    model = ps.Model.from_factors([70_000, 2], [((0, 1), np.random.default_rng(0).random((70_000, 2)))])
    question = Question.of(model, limits=Limits.given(time_limit=10.0, memory=None, threads=1, seed=0))
    found = list(distributions_by_boxes(question, None, Schedule(), memory=None, interrupt=Interrupt()))
    assert found[-1][0].settled
