"""The engine against fresh answers, over long sequences of questions about one model."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

import numpy as np
import pytest

import powersum as ps
from powersum.api import engine as engines
from powersum.api import planner
from powersum.exact import small
from tests.exact.test_small import random_network
from tests.oracle import assignment_value, exact_value, joint_log_table
from tests.strategies import random_model


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans from the first question on."""
    monkeypatch.setattr(engines, "PATIENCE", 0)


def model_of(seed: int) -> ps.Model:
    """A network or any other model, with zeros or without."""
    if seed % 2:
        return random_network(seed, digits=[None, 3][seed % 4 // 2])
    rng = np.random.default_rng(seed)
    return random_model(rng, n_variables=7, n_factors=9, zeros=float(rng.choice([0.0, 0.3])))


def check(
    engine: ps.Engine,
    maximize: list[int],
    evidence: dict[int, int],
    likelihoods: Mapping[int, list[float]] = MappingProxyType({}),
) -> ps.Status:
    """One question: value, states and marginals as brute force has them."""
    with np.errstate(divide="ignore"):
        more = [((v,), np.log(table)) for v, table in likelihoods.items()]
    own = [(factor.scope, factor.log_table) for factor in engine.model.factors()]
    model = ps.Model.from_factors(engine.model.cardinalities.tolist(), [*own, *more], log=True)
    asked = {**evidence, **likelihoods}
    weights = np.ones(model.n_variables)
    weights[maximize] = 0.0
    truth = exact_value(model, weights, evidence=evidence)
    answer = engine.solve(maximize, evidence=asked)
    if truth == -math.inf:
        assert answer.status == ps.Status.INFEASIBLE
        assert answer.log_upper == -math.inf
        assert not answer.assignment
        with pytest.raises(ps.InputError, match="there are no marginals"):
            engine.marginals(evidence=asked)
        return answer.status
    assert answer.status == ps.Status.OPTIMAL
    # The oracle has a rounding of its own.
    assert answer.log_lower - 1e-12 <= truth <= answer.log_upper + 1e-12
    assert answer.gap < 1e-9
    chosen = {int(name): int(state) for name, state in answer.assignment.items()}
    assert list(chosen) == maximize
    assert all(chosen[v] == evidence[v] for v in maximize if v in evidence)
    value = assignment_value(model, {v: s for v, s in chosen.items() if v not in evidence}, evidence=evidence)
    assert value == pytest.approx(truth, abs=1e-9)
    joint = joint_log_table(model, evidence)
    if maximize:
        assert answer.probability is not None
        share = math.exp(truth - exact_value(model, np.ones(model.n_variables), evidence=evidence))
        assert answer.probability.lower - 1e-12 <= share <= answer.probability.upper + 1e-12
        assert answer.probability.upper - answer.probability.lower < 1e-9
    else:
        assert answer.probability is None
    joint = np.exp(joint - joint.max())
    found = engine.marginals(evidence=asked)
    assert found.exact
    for v, belief in enumerate(found.beliefs):
        own = joint.sum(axis=tuple(u for u in range(model.n_variables) if u != v))
        np.testing.assert_allclose(belief, own / own.sum(), rtol=1e-9, atol=1e-13)
    return answer.status


def test_long_sequences_of_evidence_that_comes_and_goes() -> None:
    seen = set()
    for seed in range(24):
        model = model_of(seed)
        engine = ps.Engine(model)
        rng = np.random.default_rng(seed)
        evidence: dict[int, int] = {}
        for _ in range(40):
            v = int(rng.integers(model.n_variables))
            if v in evidence and rng.random() < 0.6:
                del evidence[v]
            else:
                evidence[v] = int(rng.integers(model.cardinalities[v]))
            maximize = rng.permutation(model.n_variables)[: int(rng.integers(0, 4))].tolist()
            seen.add(check(engine, maximize, evidence))
    # Impossible evidence was among it, and what came after it.
    assert seen == {ps.Status.OPTIMAL, ps.Status.INFEASIBLE}


def test_likelihoods_that_come_and_go() -> None:
    """Among them such as exclude states, or all of them, and more sets of variables than plans are kept for."""
    seen = set()
    for seed in range(16):
        model = model_of(seed)
        engine = ps.Engine(model)
        rng = np.random.default_rng(seed)
        for _ in range(25):
            chosen = rng.permutation(model.n_variables)[: int(rng.integers(1, 4))].tolist()
            evidence = {v: int(rng.integers(model.cardinalities[v])) for v in chosen[1:2]}
            soft = {v: rng.choice([0.0, 0.3, 2.0, 1e-9], int(model.cardinalities[v])).tolist() for v in chosen[2:]}
            soft |= {chosen[0]: rng.random(int(model.cardinalities[chosen[0]])).tolist()}
            maximize = rng.permutation(model.n_variables)[: int(rng.integers(0, 4))].tolist()
            seen.add(check(engine, maximize, evidence, soft))
            assert 0 < len(engine._made) <= engines.MOST_PLANNERS
    assert seen == {ps.Status.OPTIMAL, ps.Status.INFEASIBLE}


def test_messages_are_kept_only_where_nothing_below_them_changed() -> None:
    """One variable at a time, there and back, through evidence that is impossible; each variable in turn."""
    model = model_of(4)
    engine = ps.Engine(model)
    for v in range(model.n_variables):
        for state in range(int(model.cardinalities[v])):
            check(engine, [], {v: state})
            check(engine, [], {v: state, (v + 1) % model.n_variables: 0})


def test_messages_without_room_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "MESSAGES_SHARE", 0.0)
    engine = ps.Engine(random_network(15))
    for state in (0, 1, 0):
        check(engine, [], {0: state})
        assert engine._made[()]._messages is None


def test_the_road_changes_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "PATIENCE", 10)
    monkeypatch.setattr(small, "MOST_ENTRIES", 1_000_000)
    engine = ps.Engine(random_network(15))
    for v in range(engine.model.n_variables):
        assert (not engine._made) == (v <= 5)
        check(engine, [v], {})
        # Two questions each time, one about states and one about marginals.
    assert engine._made


def test_a_few_small_questions_load_no_compiler() -> None:
    code = (
        "import sys, powersum as ps;"
        "e = ps.Engine(ps.Model.from_factors([2, 2], [((0,), [0.8, 0.2]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])]));"
        "e.solve([0], evidence={1: 1}), e.marginals(evidence={1: 1}), e.log_z();"
        "assert 'numba' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr


def test_the_same_result_as_solve() -> None:
    model = random_network(7)
    # Without a number the memory is what the machine has left, which changes from call to call.
    engine = ps.Engine(model, memory=1e9)
    ours, theirs = engine.solve([0, 2], evidence={1: 0}), ps.solve(model, [0, 2], evidence={1: 0}, memory=1e9)
    assert ours.question == theirs.question
    assert ours.options == theirs.options
    assert ours.sizes.keys() == theirs.sizes.keys()
    assert (ours.status, ours.assignment, ours.method) == (theirs.status, theirs.assignment, theirs.method)
    assert engine.log_z(evidence={1: 0}).log_upper == pytest.approx(ps.solve(model, None, evidence={1: 0}).log_upper)


def test_likelihoods() -> None:
    model = random_network(5)
    evidence = {1: np.linspace(0.2, 0.9, int(model.cardinalities[1])), 0: 0}
    engine = ps.Engine(model)
    assert engine.solve([2], evidence=evidence).log_lower == pytest.approx(
        ps.solve(model, [2], evidence=evidence).log_lower
    )
    for one, other in zip(
        engine.marginals(evidence=evidence).beliefs, ps.marginals(model, evidence=evidence).beliefs, strict=True
    ):
        np.testing.assert_allclose(one, other)


def test_what_is_too_wide_takes_the_long_road(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_network(9)
    expected = ps.Engine(model).solve([1])
    monkeypatch.setattr(planner, "MOST_WORK", 0.0)
    engine = ps.Engine(model)
    assert engine.solve([1]).log_lower == pytest.approx(expected.log_lower)
    assert engine.marginals().exact


def test_wide_models_are_bounded() -> None:
    model, query = ps.generate.grid(50, 50, strength=0.1, seed=1)
    engine = ps.Engine(model, time_limit=0.3)
    answer = engine.solve(query)
    assert answer.status == ps.Status.BOUNDED
    assert answer.log_lower <= answer.log_upper < math.inf
    assert not engine.marginals().exact


def test_plans_are_forgotten_where_they_take_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_network(11)
    engine = ps.Engine(model)
    monkeypatch.setattr(planner, "PLANS_SHARE", 5000 / 2e9)
    for v in range(model.n_variables):
        check(engine, [v], {})
    plans = engine._made[()]
    assert 0 < plans._held <= 5000
    assert sum(plan.bytes for plan in plans._plans.values()) == plans._held


def test_threads_ask_at_the_same_time() -> None:
    model = random_network(13)
    engine = ps.Engine(model)
    rng = np.random.default_rng(0)
    questions = []
    for _ in range(200):
        v, u = rng.permutation(model.n_variables)[:2].tolist()
        questions.append(([v], {u: int(rng.integers(model.cardinalities[u]))}))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda question: check(engine, *question), questions))


def test_models_of_nothing() -> None:
    engine = ps.Engine(ps.Model.from_factors([], []))
    assert engine.solve().log_lower == pytest.approx(0.0)
    assert engine.marginals().beliefs == ()
    lonely = ps.Engine(ps.Model.from_factors([3, 2], []))
    assert lonely.log_z().log_lower == pytest.approx(math.log(6))
    for belief, size in zip(lonely.marginals().beliefs, (3, 2), strict=True):
        np.testing.assert_allclose(belief, np.full(size, 1 / size))


def test_bad_questions_are_refused() -> None:
    engine = ps.Engine(random_network(3))
    with pytest.raises(ps.InputError, match="out of range"):
        engine.solve([99])
    with pytest.raises(ps.InputError, match="weights 0 and 1 only"):
        engine.solve(weights=ps.Query(np.full(engine.model.n_variables, 0.5)))


def test_sums_over_variables_of_one_table_are_known_beforehand() -> None:
    rng = np.random.default_rng(3)
    tables = [((0,), rng.random(3)), *(((0, leaf), rng.random((3, 2))) for leaf in range(1, 6))]
    # One of them has states that are impossible whatever the other is.
    tables.append(((6, 0), np.array([[0.2, 0.0, 0.4], [0.1, 0.0, 0.7]])))
    engine = ps.Engine(ps.Model.from_factors([3, *[2] * 6], tables))
    assert engine.solve([0]).sizes["reduced_variables"] == 1
    # What is observed, maximised or has a likelihood is no part of such a sum.
    assert engine.solve([0, 3], evidence={1: 1, 2: [0.3, 0.9]}).sizes["reduced_variables"] == 3
    for maximize in ([], [0], [3], [0, 6]):
        for evidence in ({}, {1: 1}, {0: 2}, {0: 2, 5: 0}):
            if not set(maximize) & set(evidence):
                check(engine, maximize, evidence)
                check(engine, maximize, evidence, {2: [0.3, 0.9]})
    assert check(engine, [3], {0: 1}) is ps.Status.INFEASIBLE


def test_an_engine_can_be_pickled() -> None:
    model, query = ps.generate.grid(4, 4, seed=1)
    engine = ps.Engine(model, time_limit=5.0, memory="2G", threads=2, seed=3)
    engine.prepare()
    other = pickle.loads(pickle.dumps(engine))
    assert other.solve(query).to_dict()["options"] == engine.solve(query).to_dict()["options"]
    assert other.solve(query).log_upper == engine.solve(query).log_upper
    assert other.marginals(evidence={0: 1}).beliefs[1].tolist() == engine.marginals(evidence={0: 1}).beliefs[1].tolist()
