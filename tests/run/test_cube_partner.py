"""Partners: whoever works on the whole of a cube beside others, its bounds hold, and only the better ones count."""

from __future__ import annotations

import concurrent.futures as cf
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum.cluster import store
from powersum.cluster.executor import Workers
from powersum.model.question import Question
from powersum.run import cube_frontier, cube_partner, cubes
from powersum.run.cube import CubeQuestion, CubeReport
from powersum.run.cube_partner import OVER, Partners, PartnerTurn, take_turn
from powersum.run.cube_tree import Cube
from powersum.run.cubes import Conquest
from powersum.run.solver import Solver
from powersum.run.tuning import Schedule
from tests.oracle import assignment_value
from tests.run.test_certified_answers import checked
from tests.run.test_cube_proofs import Doubtful, grid
from tests.run.test_cubes import ROOM, ROUNDING, SLOW, Oracle, is_proven, question_of, truth
from tests.run.test_cubes_by_force import Case, drawn, roads_bounds_hold
from tests.strategies import random_model


def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partners are called for whatever is left."""
    monkeypatch.setattr(cubes, "PARTNER_GAP", -math.inf)
    monkeypatch.setattr(cube_partner, "LEAST_SECONDS", 0.0)


class Hopeless:
    """Every cube that is not closed is given up."""

    def __init__(self, bound_cube: Callable[..., CubeReport]) -> None:
        self._bound_cube = bound_cube

    def __call__(self, *asked: Any) -> CubeReport:
        report = self._bound_cube(*asked)
        return replace(report, given_up=report.branch is not None and asked[4] < math.inf)


class Turns:
    """Turns of partners by brute force: as loose as they like, never wrong."""

    def __init__(self, seed: int) -> None:
        self._oracle, self._rng = Oracle(seed), np.random.default_rng(seed)
        self.cubes: list[dict[int, int]] = []

    def __call__(
        self, asked: CubeQuestion, key: str, number: int, cube: dict[int, int], log_floor: float, *rest: Any
    ) -> PartnerTurn:
        self.cubes.append(cube)
        report = self._oracle(asked, cube, log_floor, 1.0, math.inf, 0)
        return PartnerTurn(replace(report, branch=None, seconds=None), more=bool(self._rng.random() < 0.7))


@pytest.mark.parametrize("road", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("seed", range(1, 12))
def test_bounds_hold_at_every_moment(seed: int, workers: int, road: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, maximize, evidence = question_of(seed)
    value, turns = truth(model, maximize, evidence), Turns(seed)
    eager(monkeypatch)
    monkeypatch.setattr(cubes, "bound_cube", Hopeless(Oracle(seed)))
    monkeypatch.setattr(cubes, "take_turn", turns)
    seen: list[ps.Snapshot] = []
    with cf.ThreadPoolExecutor(workers) as pool:
        solver = Solver(model, maximize or None, evidence=evidence, time_limit=60.0, schedule=SLOW)
        result = Conquest(solver, Workers(pool, own=False), seen.append, seconds=60.0, road=road).run()
    for snapshot in (*seen, *result.history):
        assert snapshot.log_lower - 1e-9 <= value <= snapshot.log_upper + 1e-9
    is_proven(result, model, maximize, evidence)
    # Sums have none: cubes of a sum add up, and each has to be bounded.
    assert maximize or not turns.cubes


@pytest.mark.parametrize("seed", range(6))
def test_a_turn_against_brute_force(seed: int) -> None:
    """A run in turns, with something better known elsewhere or not; what is kept of it is gone in the end."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=7, n_factors=10, zeros=0.0)
    maximize = list(range(4))
    asked = CubeQuestion(Question.of(model, evidence={}, weights=ps.Query.of(model, maximize)), ROOM, SLOW)
    value = truth(model, maximize, {0: 1})
    for number, log_floor in enumerate((-math.inf, value - 1.0, value, value + 1.0)):
        key, more = f"test {seed} {number}", True
        while more:
            turn = take_turn(asked, key, number, {0: 1}, log_floor, None, 0.0, 600.0, True)
            report, more = turn.report, turn.more
            assert report.log_upper >= value - ROUNDING
            assert report.log_lower <= value + ROUNDING
            assert report.branch is None
            if report.states is not None:
                own = {v: int(report.states[v]) for v in maximize}
                assert own[0] == 1
                assert assignment_value(model, own) >= report.log_lower - ROUNDING
            # A turn of no time at all does nothing: the next one has some.
            if more:
                turn = take_turn(asked, key, number, {0: 1}, log_floor, None, 0.05, 600.0, True)
                report, more = turn.report, turn.more
        assert store._kept[key] == OVER
        # A turn that was under way when the run ended does nothing more.
        late = take_turn(asked, key, number, {0: 1}, log_floor, None, 600.0, 600.0, True)
        assert (late.more, late.report.log_upper, late.report.log_lower) == (False, math.inf, -math.inf)
        store.forget(key)
        assert report.log_upper >= value - ROUNDING
        assert report.log_upper <= max(value, log_floor) + 1e-6


def test_whose_turn_it_is() -> None:
    partners, states = Partners(1, 3.0, certificate=False), np.zeros(2, dtype=np.int64)
    assert partners.next(1, 50.0) is None
    partners.call(Cube(), cube_partner.LEAST_SECONDS - 0.1)
    assert partners.next(1, 50.0) is None
    partners.call(Cube(), 50.0)
    partners.call(Cube(), 50.0)
    # It may wait for the end of what is under way.
    partner = partners.next(0, 50.0)
    assert partner is not None
    assert partner.number == 1
    assert partners.due
    key, number, cube, log_floor, known, seconds, left, stays = partners.begin(partner, -math.inf, states, 10.0, 50.0)
    assert (key, number, cube, log_floor, known, seconds) == (partner.key, 1, {}, -math.inf, None, 3.0)
    assert left == 0.97 * 50.0
    assert stays
    # One turn waits for the end of the one before, as long as there is time for it.
    assert partners.next(0, 3.0) is None
    assert partners.next(0, 47.0) is partner
    turn = partners.begin(partner, -1.0, states, 10.0, 50.0)
    assert turn[3] == -1.0
    assert turn[4] is states
    assert turn[6] == 0.97 * 47.0
    assert partners.next(1, 47.0) is None
    nothing = CubeReport(math.inf, -math.inf, None, None, None)
    assert not partners.take(partner, PartnerTurn(nothing, more=True), 13.0)
    # It ends before its time: there is nothing more to gain by another one.
    assert not partners.take(partner, PartnerTurn(nothing, more=False), 16.0)
    assert partners.next(1, 44.0) is None
    partners.call(Cube(), 44.0)
    again = partners.next(1, 44.0)
    assert again is not None
    assert again.number == 2


@pytest.mark.parametrize("turn_seconds", [3.0, None])
@pytest.mark.parametrize("left", [1e-9, 0.0, -1.0])
def test_a_run_that_begins_when_time_is_over(left: float, turn_seconds: float | None) -> None:
    """Found by the soak: no run can be asked for no time at all."""
    model, query = ps.generate.grid(5, 5, strength=2.0, seed=1)
    asked = CubeQuestion(Question.of(model, evidence={}, weights=ps.Query.of(model, query)), ROOM, SLOW)
    partners = Partners(1, turn_seconds, certificate=False)
    partners.call(Cube(), 50.0)
    partner = partners.next(1, left)
    assert partner is not None
    given = partners.begin(partner, -math.inf, np.zeros(25, dtype=np.int64), 50.0, left)
    assert take_turn(asked, *given).report.log_upper >= ps.solve(model, query).log_lower
    store.forget(partner.key)


def test_a_run_in_one_piece_is_heard_of_now_and_then() -> None:
    partners, states = Partners(2, None, certificate=True), np.zeros(2, dtype=np.int64)
    for _ in range(3):
        partners.call(Cube(), math.inf)
    # A slice that is under way may take as long as the run.
    assert partners.next(0, math.inf) is None
    first = partners.next(1, math.inf)
    assert first is not None
    *_, seconds, left, stays = partners.begin(first, -math.inf, states, 10.0, math.inf)
    assert (seconds, left, stays) == (20.0, 20.0, False)
    second = partners.next(1, 3600.0)
    assert second is not None
    assert second is not first
    assert partners.begin(second, -math.inf, states, 100.0, 3600.0)[5] == 100.0
    assert partners.next(5, 3600.0) is None
    assert not partners.due
    nothing = PartnerTurn(CubeReport(math.inf, -math.inf, None, None, None), more=False)
    assert partners.take(first, nothing, 30.0)
    assert not partners.take(second, nothing, 70.0)
    partners.call(Cube(), 50.0)
    third = partners.next(1, 50.0)
    assert third is not None
    assert third.number == 3
    assert partners.begin(third, -math.inf, states, 100.0, 50.0)[5] == 40.0


def test_a_run_that_was_lost_begins_anew() -> None:
    model, query = ps.generate.grid(8, 8, strength=3.0, seed=5)
    asked = CubeQuestion(Question.of(model, evidence={}, weights=ps.Query.of(model, query)), ROOM, SLOW)
    best = ps.solve(model, query)
    for _ in range(2):
        turn = take_turn(asked, "lost", 1, {}, -math.inf, None, 0.01, 600.0, True)
        assert turn.more
        assert turn.report.log_upper >= best.log_lower
        # The process that had it is gone.
        store.forget("lost")
    turn = take_turn(asked, "lost", 1, {}, -math.inf, None, 600.0, 600.0, False)
    assert not turn.more
    assert "lost" not in store._kept
    assert turn.report.log_upper == pytest.approx(best.log_upper, abs=1e-6)


def test_a_cube_that_evidence_excludes_is_empty() -> None:
    model, _ = ps.generate.grid(3, 3, seed=1)
    asked = CubeQuestion(Question.of(model, evidence={0: 1}, weights=ps.Query.of(model, [0, 1])), ROOM, SLOW)
    turn = take_turn(asked, "empty", 1, {0: 0}, -math.inf, None, 1.0, 1.0, True)
    assert turn.report.log_upper == -math.inf
    assert not turn.more
    assert store._kept["empty"] == OVER
    store.forget("empty")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("seed", range(200, 208))
def test_bounds_hold_with_tiny_slices(seed: int, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real road, real slices and real partners, against brute force."""
    case: Case = drawn(seed)
    eager(monkeypatch)
    for name, value in (("FIRST_SECONDS", 0.02), ("CUBE_SECONDS", 0.02), ("LEAST_SECONDS", 0.005)):
        monkeypatch.setattr(cubes, name, value)
    monkeypatch.setattr(cubes, "PARTNER_SECONDS", 0.02)
    monkeypatch.setattr(cube_frontier, "HOPELESS_GAP", 0.0)
    roads_bounds_hold(case, workers)


@pytest.mark.parametrize("maximize", ["some", "all"])
def test_one_certificate_of_road_cubes_and_partners(
    maximize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = grid(maximize)
    eager(monkeypatch)
    asked_turns = list[str]()

    def counted(asked_: CubeQuestion, key: str, *given: Any) -> PartnerTurn:
        asked_turns.append(key)
        return take_turn(asked_, key, *given)

    monkeypatch.setattr(cubes, "take_turn", counted)
    monkeypatch.setattr(cubes, "bound_cube", Hopeless(Doubtful(1, silent=2)))
    chosen = [int(v) for v in asked.query.max_variables]
    with cf.ThreadPoolExecutor(2) as pool:
        solver = Solver(asked.model, chosen, time_limit=60.0, schedule=Schedule(quick=0.0), certificate=True)
        result = Conquest(solver, Workers(pool, own=False), seconds=60.0, road=False).run()
    assert result.status is ps.Status.OPTIMAL, result.reason
    checked(result, asked, tmp_path)
    assert asked_turns
