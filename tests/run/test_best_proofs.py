"""Certificates of the k best: the checker accepts them, and what it proves of each place is true by brute force."""

from __future__ import annotations

import itertools
import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import powersum as ps
import powersum_check as pc
from powersum.exact import small
from powersum.model.certificate import Certificate
from powersum.model.query import Query
from powersum.proof.certificate import value_step
from powersum.run.best import BestFirst
from powersum.run.best_parts import Part
from powersum.run.box_run import BoxReport
from powersum.run.tuning import DEFAULT_SCHEDULE, Schedule
from powersum_check.__main__ import main
from tests.cases import Case, bushy_case, case, hard_case
from tests.check.helpers import to_check
from tests.proof.test_certificate import network
from tests.run.test_certified_answers import TOO_WIDE

CLOSE = 1e-8

ROADS = [
    pytest.param(DEFAULT_SCHEDULE, id="any"),
    pytest.param(Schedule(quick=0.0, ibound=1, late_elimination=0.0), id="small trees and search"),
    pytest.param(TOO_WIDE, id="partial sums"),
    pytest.param(replace(TOO_WIDE, most_variables=0, quick=1e-9), id="a cutset held"),
]

Likelihoods = dict[int, tuple[float, ...]]


class World:
    """All assignments of a question and their values, by brute force over the joint table."""

    def __init__(self, asked: Case, likelihoods: Likelihoods) -> None:
        model, cards = asked.model, asked.model.cardinalities.tolist()
        self.variables = asked.query.max_variables.tolist()
        self.values: dict[tuple[int, ...], float] = {}
        factors = [(f.scope, np.exp(f.log_table)) for f in model.factors()]
        factors += [((v,), np.array(row)) for v, row in likelihoods.items()]
        for states in itertools.product(*(range(c) for c in cards)):
            if any(states[v] != s for v, s in asked.evidence.items()):
                continue
            own = tuple(states[v] for v in self.variables)
            mass = math.prod(float(table[tuple(states[v] for v in scope)]) for scope, table in factors)
            self.values[own] = self.values.get(own, 0.0) + mass
        self.values = {states: math.log(mass) if mass else -math.inf for states, mass in self.values.items()}

    def wrong(self, best: pc.Best) -> str:
        """The first thing that is false of what a checker proved; nothing where all is true."""
        before: list[tuple[int, ...]] = []
        places = [(tuple(p.assignment[v] for v in self.variables), p.log_lower, p.log_upper) for p in best.places]
        for number, (states, lower, upper) in enumerate(places):
            if lower > self.values[states] + CLOSE:
                return f"number {number}: {lower} is above its value {self.values[states]}"
            if upper < self._left(before, best.distinct) - CLOSE:
                return f"number {number}: {upper} is below {self._left(before, best.distinct)}"
            if any(_distance(states, past) < best.distinct for past in before):
                return f"number {number} is too near to one before it"
            before.append(states)
        if best.log_upper_next < self._left(before, best.distinct) - CLOSE:
            return f"the next: {best.log_upper_next} is below {self._left(before, best.distinct)}"
        return ""

    def _left(self, before: list[tuple[int, ...]], distinct: int) -> float:
        far = (v for s, v in self.values.items() if all(_distance(s, past) >= distinct for past in before))
        return max(far, default=-math.inf)


def _distance(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    return sum(a != b for a, b in zip(first, second, strict=True))


def with_likelihoods(asked: Case, seed: int) -> Likelihoods:
    """Likelihoods of some variables that are not observed, maximised ones among them, with zeros."""
    rng = np.random.default_rng(seed)
    found = {}
    for v, card in enumerate(asked.model.cardinalities.tolist()):
        if v not in asked.evidence and rng.random() < 0.3:
            row = np.where(rng.random(card) < 0.3, 0.0, rng.random(card) + 0.1)
            found[v] = tuple(row.tolist()) if row.any() else (1.0,) * card
    return found


def small_case(seed: int) -> Case:
    """A few variables, all pairs of them in tables, most of them maximised."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, int(rng.integers(3, 6)))
    pairs = itertools.combinations(range(len(cards)), 2)
    factors = [(pair, np.exp(rng.normal(0.0, 2.0, tuple(cards[list(pair)])))) for pair in pairs]
    weights = (rng.random(len(cards)) < 0.3).astype(np.float64)
    weights[int(rng.integers(len(cards)))] = 0.0
    return Case(ps.Model.from_factors(cards.tolist(), factors), Query(weights), {})


def question_of(asked: Case, likelihoods: Likelihoods) -> pc.Question:
    return pc.Question(tuple(asked.query.weights.tolist()), dict(asked.evidence), likelihoods)


def packed(certificate: Certificate) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("head.json", json.dumps(certificate.head))
        for name, array in certificate.arrays.items():
            place = BytesIO()
            np.lib.format.write_array(place, np.ascontiguousarray(array))
            archive.writestr(f"{name}.npy", place.getvalue())
    return file.getvalue()


@pytest.mark.parametrize("schedule", ROADS)
@pytest.mark.parametrize("kind", [case, network, hard_case, bushy_case])
@pytest.mark.parametrize("distinct", [1, 2])
@pytest.mark.parametrize("seed", range(2))
def test_the_checker_proves_the_best(kind: Callable[[int], Case], seed: int, distinct: int, schedule: Schedule) -> None:
    asked = kind(seed)
    if asked.query.task == "PR":
        return
    likelihoods = with_likelihoods(asked, seed) if seed % 2 else {}
    result = ps.solve(
        asked.model,
        weights=asked.query,
        evidence={**asked.evidence, **likelihoods},
        k=3,
        distinct=distinct,
        time_limit=1.0,
        certificate=True,
        schedule=schedule,
    )
    assert result.certificate is not None
    assert all(one.certificate is None for one in result.best)
    verified = pc.check(to_check(asked.model), question_of(asked, likelihoods), packed(result.certificate))
    if not result.best:
        assert verified.best is None
        return
    world, best = World(asked, likelihoods), verified.best
    assert best is not None
    assert world.wrong(best) == ""
    for one, place in zip(result.best, best.places, strict=False):
        assert tuple(place.assignment[v] for v in world.variables) == tuple(int(s) for s in one.assignment.values())
    # All that the answer says is proven, or it is said that it is not.
    if not any("certificate proves less" in note for note in result.notes):
        sides = [*(place.log_upper for place in best.places), best.log_upper_next]
        for one, place in zip(result.best, best.places, strict=False):
            assert place.log_lower >= one.log_lower - 1e-5
            assert place.log_upper <= one.log_upper + 1e-5
        assert result.log_upper_next is not None
        assert sides[len(result.best)] <= result.log_upper_next + 1e-5


def test_a_proof_without_gaps_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = hard_case(1)
    ps.write(asked.model, tmp_path / "model.uai")
    model = ps.read(tmp_path / "model.uai")
    query = asked.query.max_variables.tolist()
    (tmp_path / "query").write_text(" ".join(map(str, [len(query), *query])))
    result = ps.solve(model, maximize=query, k=4, certificate=True)
    assert all(one.status is ps.Status.OPTIMAL for one in result.best)
    assert result.certificate is not None
    result.certificate.save(tmp_path / "proof.zip")
    arguments = [str(tmp_path / "model.uai"), "--query", str(tmp_path / "query"), str(tmp_path / "proof.zip")]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[3:7]] == ["best 1", "best 2", "best 3", "best 4"]
    assert lines[7].startswith("every other one: log value <= ")
    assert lines[8].startswith("so these are the 4 best in order, to within ")
    assert float(lines[8].split()[-1]) < 1e-5


def test_sums_too_wide_to_be_eliminated_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then what was proven where an assignment was found has to do."""

    def too_wide(*arguments: Any, above: bool = False) -> Any:
        return None if above else value_step(*arguments)

    monkeypatch.setattr("powersum.run.best_proofs.value_step", too_wide)
    asked = hard_case(2)
    result = ps.solve(asked.model, weights=asked.query, k=3, certificate=True)
    assert result.certificate is not None
    verified = pc.check(to_check(asked.model), question_of(asked, {}), packed(result.certificate))
    assert verified.best is not None
    assert World(asked, {}).wrong(verified.best) == ""
    assert verified.best.tolerance < 1e-5


def mutated(rng: np.random.Generator, certificate: Certificate) -> Certificate:
    """One or two things of a certificate changed, most often what it says of the best."""
    head = json.loads(json.dumps(certificate.head))
    arrays: dict[str, NDArray[Any]] = dict(certificate.arrays)
    for _ in range(int(rng.integers(1, 3))):
        match int(rng.integers(8)):
            case 0 if head["best"]["claims"]:
                claim = head["best"]["claims"][int(rng.integers(len(head["best"]["claims"])))]
                name = str(rng.choice(["log_lower", "log_upper"]))
                claim[name] = float(rng.choice([-1e3, 1e3, 0.0, float(claim[name]) + rng.normal()]))
            case 1:
                head["best"]["distinct"] = int(rng.choice([0, 1, 2, 3, 100]))
            case 2:
                head["best"]["claims"] = head["best"]["claims"][int(rng.integers(2)) : int(rng.integers(1, 6))]
            case 3:
                name = str(rng.choice(["best_variables", "best_states", "best_parts"]))
                rows = rng.permutation(len(arrays[name])) if rng.random() < 0.5 else np.arange(len(arrays[name]) - 1)
                arrays[name] = arrays[name][rows]
            case 4:
                name = str(rng.choice(sorted(arrays)))
                array = arrays[name].copy()
                if array.size:
                    flat = array.reshape(-1)
                    flat[int(rng.integers(flat.size))] += rng.choice(np.array([-2, -1, 1, 2]).astype(array.dtype))
                arrays[name] = array
            case _:
                name = str(rng.choice(["best_states", "best_parts", "best_parts", "best_parts"]))
                array = arrays[name].astype(np.int64)
                if array.size:
                    flat = array.reshape(-1)
                    flat[int(rng.integers(flat.size))] = int(rng.choice([-1, 0, 1, 2, 3, int(rng.integers(0, 60))]))
                arrays[name] = array
    return Certificate(head, arrays)


def refuse_all_false(
    rng: np.random.Generator,
    certificate: Certificate,
    model: pc.Model,
    question: pc.Question,
    world: World,
    *,
    rounds: int,
) -> tuple[int, int]:
    """Damage a certificate so often, and see that what is accepted is true; how many were accepted, and refused."""
    accepted = refused = 0
    truth = max(world.values.values())
    for _ in range(rounds):
        try:
            verified = pc.check(model, question, packed(mutated(rng, certificate)))
        except pc.CheckError:
            refused += 1
            continue
        accepted += 1
        assert verified.log_lower <= truth + CLOSE
        assert verified.log_upper >= truth - CLOSE
        if verified.best is not None:
            assert world.wrong(verified.best) == ""
    return accepted, refused


@pytest.mark.parametrize("seed", range(8))
def test_no_mutation_makes_a_false_claim_accepted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    asked = [hard_case, bushy_case, network, case][seed % 4](40 + seed)
    if asked.query.task == "PR":
        asked = hard_case(40 + seed)
    distinct = 1 + seed % 3
    result = ps.solve(
        asked.model,
        weights=asked.query,
        evidence=asked.evidence,
        k=3,
        distinct=distinct,
        certificate=True,
        time_limit=600.0,
    )
    certificate = result.certificate
    assert certificate is not None
    model, question, world = to_check(asked.model), question_of(asked, {}), World(asked, {})
    accepted, refused = refuse_all_false(rng, certificate, model, question, world, rounds=60)
    assert refused > accepted / 4


def small_proof() -> tuple[pc.Model, pc.Question, Certificate]:
    coins = ps.Model.from_factors([2, 3], [((0,), [0.4, 0.6]), ((1,), [0.5, 0.3, 0.2]), ((0, 1), np.ones((2, 3)))])
    result = ps.solve(coins, maximize="all", k=2, certificate=True)
    assert result.certificate is not None
    return to_check(coins), pc.Question((0.0, 0.0)), result.certificate


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        ("best_parts", lambda rows: rows[:-1], "parts missing"),
        ("best_parts", lambda rows: rows[:0], "parts missing"),
        ("best_parts", lambda rows: np.concatenate([rows, rows[-1:]]), "rows too many"),
        ("best_parts", lambda rows: np.where(rows >= 0, 90, rows), "does not exist"),
        ("best_states", lambda rows: rows[[0, 0]], "differs in fewer than 1 variables"),
        ("best_states", lambda rows: rows + 7, "state that does not exist"),
        ("best_variables", lambda rows: rows[[0, 0]], "each max variable"),
    ],
)
def test_what_is_wrong_is_told(name: str, change: Callable[[NDArray[Any]], NDArray[Any]], line: str) -> None:
    model, question, certificate = small_proof()
    assert pc.check(model, question, packed(certificate)).best is not None
    arrays = {**certificate.arrays, name: change(certificate.arrays[name])}
    with pytest.raises(pc.CheckError, match=line):
        pc.check(model, question, packed(Certificate(certificate.head, arrays)))


def test_a_part_that_is_left_out_is_missed() -> None:
    """A part that names the step of another one has a bound that says nothing about it."""
    model, question, certificate = small_proof()
    rows = certificate.arrays["best_parts"].astype(np.int64)
    seen = []
    for at, other in itertools.product(range(len(rows)), range(-1, len(certificate.head["steps"]))):
        changed = rows.copy()
        changed[at, 2] = other
        proof = packed(Certificate(certificate.head, {**certificate.arrays, "best_parts": changed}))
        try:
            pc.check(model, question, proof)
        except pc.Rejected as error:
            seen.append(str(error))
    assert len(seen) >= len(rows) // 2
    assert all("claims an upper bound" in line for line in seen)


def test_parts_within_parts_take_no_more_memory_than_allowed() -> None:
    """One variable of very many states can be divided as often as it has states."""
    size, most = 2000, 1500
    model = pc.Model((size,) + (1,) * 500, ())
    head = {
        "format": "powersum-certificate",
        "version": 6,
        "model": model.digest(),
        "claim": {"log_lower": None, "log_upper": None},
        "steps": [],
        "best": {"distinct": 1, "claims": [{}] * (most + 1)},
    }
    arrays = {
        "weights": np.array([0.0] + [1.0] * 500),
        "best_variables": np.array([0]),
        "best_states": np.arange(most).reshape(-1, 1),
        "best_parts": np.array([[0, n, -1] for n in range(most)][::-1] + [[-1, -1, -1]] * (most + 1)),
    }
    question = pc.Question.of(model, [0])
    proof = packed(Certificate(head, arrays))
    best = pc.check(model, question, proof).best
    assert best is not None
    assert best.log_upper_next == math.inf
    with pytest.raises(pc.BadFile, match="so deeply would take"):
        pc.check(model, question, proof, memory=5_000_000)
    short = Certificate(head, {**arrays, "best_parts": arrays["best_parts"][:100]})
    with pytest.raises(pc.BadFile, match="parts missing"):
        pc.check(model, question, packed(short))


@pytest.mark.parametrize("share", [0.0, 5e-7, 1e-6])
def test_proofs_that_do_not_fit_the_memory_are_left_out_and_that_is_said(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersum.run.best.PROOF_SHARE", share)
    asked = hard_case(3)
    result = ps.solve(asked.model, weights=asked.query, k=3, certificate=True, memory=2e9)
    assert result.certificate is not None
    noted = any("certificate proves less than the answer says" in note for note in result.notes)
    assert noted or share > 0.0
    verified = pc.check(to_check(asked.model), question_of(asked, {}), packed(result.certificate))
    assert verified.best is not None
    assert World(asked, {}).wrong(verified.best) == ""
    assert noted or verified.best.tolerance < 1e-5


@pytest.fixture
def short_road(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models are done quickly again: the values of assignments then have bounds from above as well."""
    monkeypatch.setattr(small, "MOST_ENTRIES", 1_000_000)


def forget(monkeypatch: pytest.MonkeyPatch, forgotten: Callable[[bool], bool]) -> None:
    """Leave out proofs of parts as if memory had no room for them; what decides is told whether it is the whole."""
    kept = BestFirst._keep_proof

    def forgetful(search: BestFirst, part: Part, report: BoxReport) -> None:
        before = part.proof, part.found
        kept(search, part, report)
        if forgotten(not part.allowed):
            part.proof, part.found = before

    monkeypatch.setattr(BestFirst, "_keep_proof", forgetful)


@pytest.mark.usefixtures("short_road")
@pytest.mark.parametrize("kind", [case, small_case])
@pytest.mark.parametrize("seed", range(12))
def test_claims_stay_within_what_the_proofs_that_were_kept_show(
    kind: Callable[[int], Case], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above all where there was no room for the proof about the whole, but for those of parts, which show more.

    The soak found such certificates (best-204000003963, best-204000005806): the checker refused their claims.
    """
    rng = np.random.default_rng(seed)
    forget(monkeypatch, lambda whole: bool(rng.random() < (0.7 if whole else 0.3)))
    asked = kind(70 + seed)
    if asked.query.task == "PR":
        asked = small_case(80 + seed)
    road = Schedule(quick=0.0, ibound=1, late_elimination=0.0) if seed % 2 else DEFAULT_SCHEDULE
    result = ps.solve(
        asked.model, weights=asked.query, evidence=asked.evidence, k=3, certificate=True, work=1.0, schedule=road
    )
    assert result.certificate is not None
    world, model, question = World(asked, {}), to_check(asked.model), question_of(asked, {})
    verified = pc.check(model, question, packed(result.certificate))
    truth = max(world.values.values())
    assert verified.log_lower <= truth + CLOSE
    assert verified.log_upper >= truth - CLOSE
    if verified.best is None:
        assert not result.best
        return
    assert world.wrong(verified.best) == ""
    if not any("certificate proves less" in note for note in result.notes):
        assert verified.log_upper <= result.log_upper + 1e-5
    refuse_all_false(rng, result.certificate, model, question, world, rounds=15)


@pytest.mark.usefixtures("short_road")
def test_the_whole_is_claimed_by_a_step_about_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pieces and the value of what it was divided around must not claim for it, though they show as much."""
    forget(monkeypatch, lambda whole: whole)
    asked = small_case(3)
    result = ps.solve(asked.model, weights=asked.query, k=3, certificate=True)
    assert result.certificate is not None
    assert float(result.certificate.head["claim"]["log_upper"]) == math.inf
    assert any("of the whole" in note for note in result.notes)
    verified = pc.check(to_check(asked.model), question_of(asked, {}), packed(result.certificate))
    assert verified.best is not None
    # What is said of the places rests on the parts, and stands.
    assert verified.best.tolerance < 1e-5
    assert World(asked, {}).wrong(verified.best) == ""
