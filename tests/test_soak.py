"""The soak itself: its oracle is right, it notices what is false, it makes cases smaller; and a minute of it."""

from __future__ import annotations

import concurrent.futures as cf
import math
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from soak.cases import Case, Question, Trouble
from soak.claims import truth_of, wrong_marginals, wrong_result
from soak.draw import ENTRIES, draw, seeds_of
from soak.entries import checked
from soak.executors import executor_of
from soak.oracle import Truth
from soak.report import write_test
from soak.roads import ROADS, Injected, road
from soak.shrink import shrunk
from soak.workers import Worker

import powersum as ps
from powersum.model.certificate import Certificate
from powersum.run import box_run, cubes

N_CASES = 3000
"""Cases of the soak that are part of the tests: about a minute."""

PARTS = 12

FRACTIONS = [s for s in range(100) if math.prod((case := draw(s, "solve")).cards) <= 600 and not case.log]
"""Seeds of models that are small enough to be summed in fractions, and not given by logs."""

MODEL = Case(
    name="by hand",
    entry="solve",
    kind="chain/normal",
    cards=(2, 3, 2),
    factors=(
        ((0, 1), (0.5, 0.25, 2.0, 0.0, 4.0, 1.0)),
        ((2, 1), (1.0, 3.0, 0.5, 0.125, 0.0, 8.0)),
    ),
    questions=(Question((0.0, 1.0, 1.0)),),
    options={"time_limit": 10.0},
)


def exact_sum(case: Case, assigned: dict[int, int]) -> Fraction:
    """The sum over all configurations that agree with some states, without any rounding."""
    total = Fraction(0)
    for states in product(*(range(card) for card in case.cards)):
        if any(states[v] != state for v, state in assigned.items()):
            continue
        term = Fraction(1)
        for scope, table in case.factors:
            at = int(np.ravel_multi_index([states[v] for v in scope], [case.cards[v] for v in scope])) if scope else 0
            term *= Fraction(table[at])
        total += term
    return total


def truth(case: Case, question: Question | None = None) -> Truth:
    return truth_of(case, case.model(), question or case.questions[0])


class TestOracle:
    """Brute force in floating point against fractions."""

    def test_sum_maximum_and_assignment(self) -> None:
        sums = [exact_sum(MODEL, {0: state}) for state in range(2)]
        assert truth(MODEL).value == pytest.approx(math.log(max(sums)), abs=1e-15)
        assert truth(MODEL, Question((1.0, 1.0, 1.0))).value == pytest.approx(math.log(sum(sums)), abs=1e-15)
        assert truth(MODEL).assigned({0: 0})[0] == pytest.approx(math.log(sums[0]), abs=1e-15)
        assert truth(MODEL).assigned({0: 0})[0] < truth(MODEL).value

    @pytest.mark.parametrize("seed", FRACTIONS)
    def test_error_is_within_its_bound(self, seed: int) -> None:
        case = draw(seed, "solve")
        found = truth(case, Question((1.0,) * len(case.cards)))
        assert found.error < 1e-11
        right = exact_sum(case, {})
        if right == 0:
            assert found.value == -math.inf
            return
        log = math.log(right.numerator) - math.log(right.denominator)
        # The model's logs are rounded to double precision, each by half a unit.
        rounding = sum(2.3e-16 * max((abs(math.log(x)) for x in t if x), default=0.0) for _, t in case.factors)
        assert abs(found.value - log) <= found.error + rounding + 4e-16 * abs(log) + 1e-12

    def test_weights_between_in_the_order_given(self) -> None:
        table = np.log(np.array([[0.5, 0.25, 2.0], [0.1, 4.0, 1.0]]))
        for order in ((0, 1), (1, 0)):
            rows = np.exp(table).T if order == (0, 1) else np.exp(table)
            first, second = (0.5, 0.25) if order == (0, 1) else (0.25, 0.5)
            inner = [sum(x ** (1 / first) for x in row) ** first for row in rows.tolist()]
            value = second * math.log(sum(x ** (1 / second) for x in inner))
            assert Truth([2, 3], [((0, 1), table)], [0.5, 0.25], {}, order).value == pytest.approx(value, abs=1e-14)

    def test_evidence_and_marginals(self) -> None:
        question = Question((1.0, 1.0, 1.0), {1: 2, 0: (0.5, 3.0)})
        weighed = replace(MODEL, factors=(*MODEL.factors, ((0,), (0.5, 3.0))))
        total = exact_sum(weighed, {1: 2})
        assert truth(MODEL, question).value == pytest.approx(math.log(total), abs=1e-15)
        right = [[float(exact_sum(weighed, {1: 2, v: s}) / total) for s in range(c)] for v, c in ((0, 2), (2, 2))]
        found = truth(MODEL, question).marginals()
        np.testing.assert_allclose(found[0], right[0], atol=1e-15)
        np.testing.assert_array_equal(found[1], [0.0, 0.0, 1.0])
        np.testing.assert_allclose(found[2], right[1], atol=1e-15)


def claimed(seen: Sequence[ps.Snapshot] = (), **changes: Any) -> tuple[str, ...]:
    """What the soak says to the true answer with something changed, after some snapshots."""
    model, question = MODEL.model(), MODEL.questions[0]
    result = replace(ps.solve(model, [0], time_limit=10.0), **changes)
    return tuple(wrong_result(MODEL, model, question, result, truth(MODEL), seen))


class TestFalseClaims:
    """Each false claim is noticed, and the true one is not."""

    VALUE = truth(MODEL).value

    def test_the_truth_passes(self) -> None:
        assert claimed() == ()

    @pytest.mark.parametrize(
        ("changes", "word"),
        [
            ({"log_upper": VALUE - 1e-7}, "upper"),
            ({"log_lower": VALUE + 1e-7}, "lower"),
            ({"log_upper": math.nan}, "nan"),
            ({"log_upper": VALUE + 0.1}, "optimal"),
            ({"status": ps.Status.INFEASIBLE}, "infeasible"),
            ({"assignment": {"0": 0}}, "value"),
            ({"assignment": {}}, "assignment"),
            ({"assignment": {"1": 0}}, "assignment"),
            ({"history": (ps.Snapshot(0, 0, VALUE - 1e-7), ps.Snapshot(1, 1, VALUE, VALUE))}, "upper"),
            ({"history": (ps.Snapshot(0, 0, VALUE), ps.Snapshot(1, 1, VALUE + 1, VALUE))}, "rising"),
            ({"history": (ps.Snapshot(0, 0, VALUE, VALUE), ps.Snapshot(1, 1, VALUE, VALUE - 1))}, "falling"),
        ],
    )
    def test_false_ones_do_not(self, changes: dict[str, Any], word: str) -> None:
        assert any(word in text for text in claimed(**changes))

    @pytest.mark.parametrize(
        ("shown", "word"), [(math.nextafter(VALUE, 0.0), "history"), (VALUE, "shown, rising"), (VALUE + 1.0, "")]
    )
    def test_what_was_shown_is_kept(self, shown: float, word: str) -> None:
        snapshot = ps.Snapshot(0.0, 0, shown)
        history = (*(() if word == "history" else (snapshot,)), ps.Snapshot(1.0, 1, self.VALUE + 1e-12, self.VALUE))
        wrong = claimed([snapshot], history=history, log_upper=self.VALUE + 1e-12)
        assert any(word in text for text in wrong) if word else not wrong

    def test_marginals(self) -> None:
        question = Question((1.0, 1.0, 1.0))
        right = ps.marginals(MODEL.model())
        assert not list(wrong_marginals(right, truth(MODEL, question)))
        off = replace(right, beliefs=(right.beliefs[0] + np.array([1e-7, -1e-7]), *right.beliefs[1:]))
        assert list(wrong_marginals(off, truth(MODEL, question)))
        too_high = replace(right, log_lower=(right.log_lower[0] + 1e-7, *right.log_lower[1:]))
        assert list(wrong_marginals(too_high, truth(MODEL, question)))
        too_low = replace(right, log_upper=(right.log_upper[0] - 1e-7, *right.log_upper[1:]))
        assert list(wrong_marginals(too_low, truth(MODEL, question)))

    def test_a_fault_inside_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import powersum.exact.elimination as eliminate

        original = eliminate.Elimination.slices

        def lower(self: Any) -> Any:
            for exact in original(self):
                yield None if exact is None else replace(exact, log_value=exact.log_value - 1e-6)

        monkeypatch.setattr(eliminate.Elimination, "slices", lower)
        assert any("upper" in text for text in checked(replace(MODEL, road="compiled")).wrong)


class TestTrouble:
    """Roads and clocks do what they say."""

    @pytest.mark.parametrize("name", ROADS)
    def test_roads_can_be_gone_and_leave_nothing_behind(self, name: str) -> None:
        case = replace(MODEL, road=name, trouble=Trouble(step=0.01))
        assert checked(case).wrong == ()
        assert checked(MODEL).ended == "optimal"

    def test_exceptions_go_through(self) -> None:
        assert checked(replace(MODEL, trouble=Trouble(raise_at=2))).ended == "injected"
        assert checked(replace(MODEL, trouble=Trouble(callback_raises=1))).ended == "injected"
        with pytest.raises(Injected), road("plain", Trouble(raise_at=1)):
            ps.solve(MODEL.model(), [0])

    def test_unkind_executors_do_what_they_say(self) -> None:
        spec = {"workers": 3, "threaded": False, "lost": 0.0, "forgotten": 0.0, "seed": 1}
        for threaded in (False, True):
            with executor_of({**spec, "threaded": threaded}) as pool:
                found = [pool.submit(lambda x, *_: x, n, "", None, False, ()) for n in range(20)]
                assert [future.result(600.0) for future in found] == list(range(20))
        with executor_of({**spec, "lost": 1.0}) as pool, pytest.raises(cf.BrokenExecutor):
            pool.submit(lambda *_: 0, 0, "", None, False, ()).result()
        with executor_of({**spec, "forgotten": 1.0}) as pool:
            assert pool.submit(lambda *_: 0, 0, "", None, False, ()).result() == (False, None)
            assert pool.submit(lambda *_: 7, 0, "", None, True, ()).result() == 7

    def test_a_case_is_the_same_every_time(self) -> None:
        for entry in ENTRIES:
            assert repr(draw(17, entry)) == repr(draw(17, entry))
        name = draw(29).name
        assert repr(draw(29, name.split("-")[0])) == repr(draw(29))


BEST = replace(MODEL, entry="best", options={"time_limit": 10.0, "k": 3, "distinct": 1, "certificate": True})


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda r: replace(r, best=(r.best[1], *r.best[1:])), "best"),
        (lambda r: replace(r, best=(replace(r.best[0], log_upper=r.best[0].log_upper - 1e-3), *r.best[1:])), "best"),
        (lambda r: replace(r, best=(replace(r.best[0], log_lower=r.best[0].log_lower + 1e-3), *r.best[1:])), "best"),
        (lambda r: replace(r, best=r.best[:1], log_upper_next=r.best[1].log_lower - 1e-3), "best"),
        (lambda r: replace(r, certificate=Certificate({**r.certificate.head, "best": None}, {})), "certificate"),
    ],
)
def test_what_is_false_of_the_best_is_noticed(
    change: Callable[[Any], Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = replace(BEST, questions=(Question((0.0, 0.0, 1.0)),))
    assert checked(case).wrong == ()
    solve = ps.solve
    monkeypatch.setattr(ps, "solve", lambda *given, **options: change(solve(*given, **options)))
    assert {text.split(":")[0] for text in checked(case).wrong} >= {kind}


def test_a_gradient_whose_value_is_no_bound_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = replace(MODEL, entry="gradient", options={"seed": 0, "sweeps": 2, "steps": 1, "calls": 1})
    assert checked(case).wrong == ()
    true = ps.BoundFunction.__call__
    monkeypatch.setattr(ps.BoundFunction, "__call__", lambda *a, **o: (true(*a, **o)[0] - 1e-6, true(*a, **o)[1]))
    # The first value, and that of a call with other numbers.
    assert {text.split(":")[0] for text in checked(case).wrong} == {"gradient"}


def test_a_false_bound_of_one_cube_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = {"workers": 2, "threaded": False, "lost": 0.0, "forgotten": 0.0, "seed": 1}
    slices = {"seconds": 0.1, "doubt": 0.0, "seed": 1}
    case = replace(
        MODEL,
        entry="cubes",
        road="anytime",
        questions=(Question((0.0, 0.0, 1.0)),),
        options={"time_limit": 10.0, "executor": executor, "slices": slices},
    )
    assert checked(case).wrong == ()
    true = box_run.bound_box

    def false(*asked: Any) -> Any:
        report = true(*asked)
        return replace(report, log_upper=report.log_upper - 1e-3, log_lower=report.log_lower - 1e-3)

    monkeypatch.setattr(cubes, "bound_box", false)
    assert any("upper" in text for text in checked(case).wrong)


def test_shrinking_keeps_what_matters() -> None:
    case = draw(seeds_of(5, 0, 40)[33], "solve")
    case = replace(case, factors=(*case.factors, ((0,), (0.125,) * case.cards[0])))

    def fails(candidate: Case) -> bool:
        candidate.model()
        return any(0.125 in table for _, table in candidate.factors)

    small = shrunk(case, fails)
    assert len(small.cards) <= 1
    assert [(scope, set(table)) for scope, table in small.factors] in ([((), {0.125})], [((0,), {0.125})])


def test_failing_cases_become_tests(tmp_path: Path) -> None:
    path = write_test(tmp_path, replace(MODEL, options={"time_limit": -1.0}), "upper: so much")
    scope: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)  # as pytest would
    assert scope["CASE"].cards == MODEL.cards
    with pytest.raises(AssertionError):
        next(value for name, value in scope.items() if name.startswith("test_"))()


def test_workers_tell_crashes_and_go_on() -> None:
    worker = Worker(None)
    try:
        # It stands still before it has anything to do, and is not done before it is hit.
        os.kill(worker.pid, signal.SIGSTOP)
        worker.send([MODEL, MODEL])
        os.kill(worker.pid, signal.SIGSEGV)
        os.kill(worker.pid, signal.SIGCONT)
        lost, found = worker.receive(), worker.receive()
        assert lost.outcome.wrong == ("crash: the process ended with SIGSEGV",)
        assert (lost.case, found.case, found.outcome.ended) == (MODEL, MODEL, "optimal")
    finally:
        worker.stop()


@pytest.mark.parametrize("part", range(PARTS))
def test_a_minute_of_it(part: int) -> None:
    seeds: Sequence[int] = seeds_of(10, part * N_CASES // PARTS, N_CASES // PARTS)
    found = {case.name: outcome.wrong for case in map(draw, seeds) if (outcome := checked(case)).wrong}
    assert found == {}


def test_a_sum_that_a_tree_has_proven_from_above_is_proven_from_below_too() -> None:
    """Found as solver-43000038369: the proof of elimination was not taken, for the tree's bound was as low already."""
    largest, least, small = 1.7976931348623157e308, 5e-324, 2.2e-308
    case = Case(
        name="found",
        entry="solver",
        kind="tangle/limits",
        road="untightened",
        cards=(2, 1, 1, 1, 2, 2, 2, 1, 2, 1, 2, 1),
        factors=(
            ((11, 9), (small,)),
            ((7, 2, 10), (largest, least)),
            ((1, 2, 4), (largest, 1.0)),
            ((6, 8), (1.0, largest, small, 1.0)),
            ((2, 8, 0), (0.0, least, least, small)),
            ((9, 0), (largest, least)),
            ((8, 10, 5), (least, largest, small, 1.0, 1.0, small, least, small)),
            ((4, 6), (least, largest, least, small)),
            ((0, 7, 1), (small, small)),
            ((1, 7), (least,)),
            ((6, 3, 4), (1.0, least, least, 0.0)),
            ((10, 5, 4), (0.0, largest, small, 0.0, largest, 0.0, 0.0, largest)),
            ((5, 11, 1), (largest, 0.0)),
            ((9, 0), (small, small)),
            ((8,), (largest, small)),
            ((1,), (1.0,)),
        ),
        questions=(Question((1.0,) * 12),),
        options={"seed": 1, "threads": 2, "time_limit": 0.05, "gap": 0.001, "certificate": True},
        trouble=Trouble(step=0.0010228766837651231, raise_at=63, stop_after=5),
    )
    # The first time much of the time goes into loading.
    assert [checked(case).wrong for _ in range(2)] == [(), ()]


def test_a_partial_sum_proves_the_assignment_that_simplification_has_left_to_it() -> None:
    """Found as solve-50000017505: max variables that zeros set, or that nothing depends on, are in the assignment."""
    case = Case(
        name="found",
        entry="solve",
        kind="random/zeros",
        road="sometimes-wide",
        cards=(2, 2, 2, 2, 2),
        factors=(
            ((1, 4), (0.08, 0.72, 0.23, 0.0)),
            ((1,), (163.4, 0.0)),
            ((1, 3), (4.3, 0.0, 0.0, 1.2)),
            ((0, 4), (0.0, 0.55, 2.74, 46.3)),
            ((3,), (0.01, 0.001)),
            ((0,), (6e-06, 1.0)),
            ((4,), (0.39, 1.75)),
        ),
        questions=(Question((1.0, 0.0, 0.0, 0.0, 1.0)),),
        options={"seed": 1, "threads": 1, "time_limit": 0.05, "gap": 0.0, "certificate": True},
        trouble=Trouble(step=0.00028),
    )
    assert [checked(case).wrong for _ in range(2)] == [(), ()]
