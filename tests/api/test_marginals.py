"""Marginals against brute force."""

from __future__ import annotations

import importlib.util
import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.core import memory
from powersum.core.interrupt import interruptible
from powersum.exact import small
from powersum.run.tuning import Schedule
from tests.cases import case, hard_case
from tests.clock import Ticks
from tests.oracle import joint_log_table
from tests.strategies import random_model

WIDE = Schedule(elimination_cost=1e3, ibound=1)
"""Nothing is eliminated, and trees are not exact."""


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 0.5]), st.booleans())
def test_exact_on_small_models(seed: int, zeros: float, observe: bool) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=6, n_factors=7, zeros=zeros)
    evidence = {2: int(rng.integers(0, model.cardinalities[2]))} if observe else {}
    joint = joint_log_table(model, evidence)
    top = joint.max()
    if top == -math.inf:
        with pytest.raises(ps.InputError, match="probability 0"):
            ps.marginals(model, evidence=evidence)
        return
    joint = np.exp(joint - top)
    found = ps.marginals(model, evidence=evidence)
    assert found.exact
    for v in range(6):
        others = tuple(a for a in range(6) if a != v)
        np.testing.assert_allclose(found.beliefs[v], joint.sum(axis=others) / joint.sum(), atol=1e-9)


SAME, OTHER = np.eye(3), 1.0 - np.eye(3)


@pytest.mark.parametrize("short", [True, False])
def test_impossible_without_being_inconsistent(short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """x0 = x1 = x2 ≠ x0: every state of every variable and of every pair seems possible."""
    if not short:
        monkeypatch.setattr(small, "MOST_ENTRIES", -1)
    triangle = [((0, 1), SAME), ((1, 2), SAME), ((0, 2), OTHER)]
    model = ps.Model.from_factors([3, 3, 3, 2], [*triangle, ((3,), [0.4, 0.6])])
    for evidence in ({}, {3: 1}):
        with pytest.raises(ps.InputError, match="probability 0"):
            ps.marginals(model, evidence=evidence)
    # With the last table the other way there are configurations.
    possible = ps.Model.from_factors([3, 3, 3, 2], [*triangle[:2], ((0, 2), SAME), ((3,), [0.4, 0.6])])
    found = ps.marginals(possible)
    assert found.exact
    assert found.beliefs[0].tolist() == pytest.approx([1 / 3] * 3)


def test_one_simplification_for_all_that_it_removes(monkeypatch: pytest.MonkeyPatch) -> None:
    from powersum.prepare.simplify import simplified

    calls = []

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return simplified(*arguments, **options)

    monkeypatch.setattr("powersum.run.work.simplified", counted)
    monkeypatch.setattr(small, "MOST_ENTRIES", -1)
    # Observed, isolated, or with one state left, in turns; nothing remains.
    n = 60
    model = ps.Model.from_factors([3] * n, [((v,), [1.0, 1.0, 0.0]) for v in range(n)])
    found = ps.marginals(
        model, evidence={v: v % 2 for v in range(0, n, 3)} | {v: [1.0, 0.0, 1.0] for v in range(1, n, 3)}
    )
    assert found.exact
    assert len(calls) == 1
    for v in range(n):
        wanted = ([1 - v % 2, v % 2, 0], [1, 0, 0], [0.5, 0.5, 0])[v % 3]
        assert found.beliefs[v].tolist() == wanted


def test_barren_variables_have_marginals() -> None:
    tables = [((0,), [0.3, 0.7]), ((0, 1), [[0.9, 0.1], [0.5, 0.5]])]
    model = ps.Model.from_factors([2, 2], tables, directed=True)
    np.testing.assert_allclose(ps.marginals(model).beliefs[1], [0.62, 0.38])


def test_approximate_ones_are_said_to_be() -> None:
    model = ps.generate.grid(40, 40, seed=3).model
    found = ps.marginals(model, time_limit=0.5, memory=memory.bytes_held() + 350e6)
    assert not found.exact
    assert all(belief.sum() == pytest.approx(1.0) for belief in found.beliefs)


def test_a_signal_ends_the_tightening() -> None:
    model, _ = ps.generate.grid(30, 30, seed=1)
    with interruptible() as flag:
        flag.cause = "Ctrl-C"
        # Without the flag this would take ten minutes.
        found = ps.marginals(model, time_limit=600.0)
    assert not found.exact
    assert all(belief.sum() == pytest.approx(1.0) for belief in found.beliefs)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("most_entries", [-1, 1_000_000], ids=["long road", "short road"])
def test_every_interval_holds_and_is_narrow_where_exact(
    seed: int, most_entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small, "MOST_ENTRIES", most_entries)
    model, _, evidence = case(seed)
    joint = joint_log_table(model, evidence)
    if joint.max() == -math.inf:
        return
    table = np.exp(joint - joint.max())
    found = ps.marginals(model, evidence=evidence)
    engine = ps.Engine(model).marginals(evidence=evidence)
    for v in range(model.n_variables):
        for side in ("log_lower", "log_upper"):
            np.testing.assert_allclose(
                np.exp(getattr(engine, side)[v]), np.exp(getattr(found, side)[v]), rtol=1e-9, atol=1e-280
            )
        truth = table.sum(axis=tuple(a for a in range(model.n_variables) if a != v)) / table.sum()
        for state, share in enumerate(truth.tolist()):
            interval = found[v][state]
            assert interval.lower <= share * (1.0 + 1e-12)
            assert interval.upper >= share * (1.0 - 1e-12)
            assert interval.upper - interval.lower < 1e-8


def held_against_truth(model: ps.Model, found: ps.Marginals, likelihoods: dict[int, list[float]]) -> None:
    """Every interval holds, with no allowance but the rounding of the truth, and single numbers are within it."""
    joint = joint_log_table(model)
    for v, values in likelihoods.items():
        joint = joint + np.log(values).reshape([-1 if a == v else 1 for a in range(model.n_variables)])
    joint = np.exp(joint - joint.max())
    for v in range(model.n_variables):
        truth = joint.sum(axis=tuple(a for a in range(model.n_variables) if a != v)) / joint.sum()
        assert found.beliefs[v].sum() == pytest.approx(1.0)
        for state, share in enumerate(truth.tolist()):
            assert found[v][state].lower <= share * (1.0 + 1e-12)
            assert found[v][state].upper >= share * (1.0 - 1e-12)
            assert found[v][state].lower * (1.0 - 1e-9) <= found.beliefs[v][state]
            assert found.beliefs[v][state] <= found[v][state].upper * (1.0 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("likely", [False, True])
@pytest.mark.parametrize("asked", [False, True])
def test_intervals_hold_where_nothing_is_exact(
    seed: int, likely: bool, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees that are never exact, and sums that are never eliminated nor explored: every side still holds."""
    monkeypatch.setattr(time, "monotonic", Ticks(1e-3))
    monkeypatch.setattr(small, "MOST_ENTRIES", -1)
    monkeypatch.setattr("powersum.sums.passes.FIRST_SHARE", 0.2)
    model, _, _ = hard_case(seed)
    tilt = np.linspace(0.2, 0.9, int(model.cardinalities[4])).tolist()
    solver = ps.MarginalSolver(
        model, evidence={4: tilt} if likely else {}, of=[4, 7] if asked else None, time_limit=3.0, schedule=WIDE
    )
    shown = list(solver)
    assert len(shown) >= 2
    widths = [
        sum(np.exp(u).sum() - np.exp(lo).sum() for u, lo in zip(one.log_upper, one.log_lower, strict=True))
        for one in shown
    ]
    assert widths == sorted(widths, reverse=True)
    for found in shown:
        held_against_truth(model, found, {4: tilt} if likely else {})


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("road", ["elimination", "conditioning", "sums", "components"])
def test_every_road_gives_the_distributions(seed: int, road: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "MOST_ENTRIES", -1)
    if road == "conditioning":
        monkeypatch.setattr("powersum.run.workers.conditioning.worth_counting", lambda model: True)
    model = hard_case(seed, zeros=[0.0, 0.3][seed % 2]).model
    if road == "components":
        model = _beside(model, random_model(np.random.default_rng(seed), n_variables=3, n_factors=4, max_states=2))
    joint = joint_log_table(model)
    if joint.max() == -math.inf:
        return
    schedule = Schedule() if road in ("elimination", "components") else WIDE
    *_, found = ps.MarginalSolver(model, time_limit=20.0, schedule=schedule)
    assert found.exact
    held_against_truth(model, found, {})
    for v in range(model.n_variables):
        assert (np.exp(found.log_upper[v]) - np.exp(found.log_lower[v]) <= 1e-6).all()


def _beside(one: ps.Model, other: ps.Model) -> ps.Model:
    """Two models as one of two components."""
    n = one.n_variables
    factors = [(f.scope, np.exp(f.log_table)) for f in one.factors()]
    factors += [(tuple(n + v for v in f.scope), np.exp(f.log_table)) for f in other.factors()]
    return ps.Model.from_factors([*one.cardinalities.tolist(), *other.cardinalities.tolist()], factors)


RAIN = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})


def test_by_names_as_a_table_and_for_pandas() -> None:
    found = ps.marginals(RAIN, evidence={"wet": 1})
    assert float(found["rain"]["yes"]) == pytest.approx(7 / 11)
    assert list(found) == ["rain", "wet"]
    assert list(found["rain"]) == ["no", "yes"]
    assert repr(found["rain"]) == "<rain: no: 36.4 %, yes: 63.6 %>"
    assert str(found).splitlines()[:3] == [
        "variable  state  probability",
        "rain      no     36.4 %",
        "rain      yes    63.6 %",
    ]
    with pytest.raises(ps.InputError, match="did you mean 'rain'"):
        found["rian"]
    with pytest.raises(ps.InputError, match="of is 'rain'"):
        ps.marginals(RAIN, of="rain")


def test_a_data_frame() -> None:
    found = ps.marginals(RAIN, evidence={"wet": 1})
    if importlib.util.find_spec("pandas") is None:
        with pytest.raises(ps.InputError, match="needs pandas"):
            found.to_pandas()
        return
    frame = found.to_pandas()
    assert frame.loc[("rain", "yes"), "lower"] <= 7 / 11 <= frame.loc[("rain", "yes"), "upper"]


def test_a_long_table_is_cut() -> None:
    model, _ = ps.generate.grid(6, 6, seed=1)
    assert str(ps.marginals(model)).splitlines()[-1] == "… and 12 more states"


def test_a_tree_that_does_not_fit_is_no_reason_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ps.generate.grid(14, 14, seed=5).model
    truth = ps.marginals(model)
    assert truth.exact
    monkeypatch.setattr(memory, "LEAST_MEMORY", 1.0)
    monkeypatch.setattr(memory, "USUALLY_HELD", 1.0)
    monkeypatch.setattr(memory, "bytes_held", lambda: 0)
    found = ps.marginals(model, of=[0], memory=1000, time_limit=1.0)
    assert found.beliefs[0].sum() == pytest.approx(1.0)
    assert (found.log_lower[0] <= np.log(truth.beliefs[0]) + 1e-9).all()
    assert (np.log(truth.beliefs[0]) <= found.log_upper[0] + 1e-9).all()
