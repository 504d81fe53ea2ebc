"""A run goes on from its checkpoint, however it ended; what the file says is never believed."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.bounds.buckets.scopes import scopes_in_order
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.rebuilding import rebuilt, saved_of
from powersum.model.certificate import Certificate
from powersum.prepare.ordering import elimination_order
from powersum.prepare.simplify import simplify
from powersum.run.board import FROM_FILE
from powersum.run.checkpoint import MOST_SHARE, Checkpoints
from powersum.run.solver import Solver
from powersum.run.tuning import Schedule
from powersum.search.recall import Recall
from tests.cases import Case, bushy_case, case, hard_case
from tests.check.helpers import to_check
from tests.oracle import assignment_value
from tests.run.proofs import truth

SEARCH = Schedule(quick=0.0, ibound=1, late_elimination=0.0)
TOO_WIDE = replace(SEARCH, evaluation_cost=math.inf)
HELD = replace(TOO_WIDE, most_variables=0, quick=1e-9)
ROADS = pytest.mark.parametrize("schedule", [SEARCH, TOO_WIDE, HELD], ids=["search", "sums", "held"])
CLOSE = 1e-8
LITTLE = 0.02
"""Work that is over after the first few turns."""


def question_of(asked: Case) -> pc.Question:
    return pc.Question(tuple(asked.query.weights.tolist()), dict(asked.evidence))


def arrays_in(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Head and arrays of a file."""
    with zipfile.ZipFile(path) as archive:
        head = json.loads(archive.read("head.json"))
        arrays = {
            name.removesuffix(".npy"): np.load(BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name.endswith(".npy")
        }
    return head, arrays


@ROADS
@pytest.mark.parametrize("kind", [case, hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_no_worse_than_those_of_any_checkpoint(
    kind: Callable[[int], Case], seed: int, schedule: Schedule, tmp_path: Path
) -> None:
    asked = kind(seed)
    path = tmp_path / "run.zip"
    options: dict[str, Any] = {"weights": asked.query, "evidence": asked.evidence, "schedule": schedule, "seed": seed}
    solver = Solver(asked.model, work=0.6, checkpoint=path, every=0.0, **options)
    turns = random.Random(seed).randrange(1, 30)
    for _, snapshot in zip(range(turns), solver, strict=False):
        assert snapshot.log_upper < math.inf
    del solver
    proven = pc.check(to_check(asked.model), question_of(asked), path)
    resumed = ps.solve(asked.model, work=LITTLE, resume=path, **options)
    assert resumed.log_upper <= proven.log_upper + CLOSE
    assert resumed.log_lower >= proven.log_lower - CLOSE
    value = truth(asked)
    assert resumed.log_lower <= value + CLOSE
    assert value <= resumed.log_upper + CLOSE


def test_the_last_checkpoint_is_the_certificate(tmp_path: Path) -> None:
    asked = hard_case(2)
    path = tmp_path / "run.zip"
    result = ps.solve(asked.model, weights=asked.query, work=0.3, schedule=SEARCH, checkpoint=path)
    assert result.certificate is not None
    result.certificate.save(tmp_path / "proof.zip")
    assert path.read_bytes() == (tmp_path / "proof.zip").read_bytes()


def test_a_tree_goes_on_where_it_was(tmp_path: Path) -> None:
    model, maximize = ps.generate.grid(26, 26, strength=3.0, seed=1)
    path = tmp_path / "run.zip"
    long = ps.solve(model, maximize, work=3.0, checkpoint=path)
    short = ps.solve(model, maximize, work=0.1)
    resumed = ps.solve(model, maximize, work=0.1, resume=path)
    assert short.gap > 1.5 * long.gap
    # Of what a search has found in its last moments there may be no time to prove all: the answer says so.
    proven = pc.check(to_check(model), pc.Question.of(to_check(model), maximize), path)
    assert proven.log_upper <= long.log_upper + CLOSE or any("proves less" in note for note in long.notes)
    assert resumed.log_upper <= proven.log_upper + CLOSE
    assert resumed.log_lower >= long.log_lower - CLOSE
    longer = ps.solve(model, maximize, work=3.0, resume=path)
    # The answer can be ahead of its file, by more than as much time again makes up for: the file is what counts.
    assert longer.log_upper < proven.log_upper
    assert longer.log_lower >= long.log_lower - CLOSE


def test_a_search_visits_what_an_earlier_one_has_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, maximize = ps.generate.grid(10, 10, strength=2.0, seed=1)
    monkeypatch.setattr("powersum.search.and_or.SETTLE_WORK", 1.0)
    # Branch and bound alone lists contexts; boxes that are split have trees of their own.
    monkeypatch.setattr("powersum.run.workers.splits.LEAST_BOXES", math.inf)
    visits: list[int] = []

    class Watched(Recall):
        def run(self, deadline: float) -> bool:
            before = len(self)
            done = super().run(deadline)
            visits.append(before - len(self))
            return done

    monkeypatch.setattr("powersum.run.workers.branch_and_bound.Recall", Watched)
    path = tmp_path / "run.zip"
    first = ps.solve(model, maximize, work=0.8, schedule=SEARCH, checkpoint=path)
    assert first.status == "bounded"
    _, arrays = arrays_in(path)
    listed = len(arrays["0/context_settled"])
    assert listed > 1000
    assert not visits
    second = ps.solve(model, maximize, work=2.0, schedule=SEARCH, resume=path)
    assert second.log_upper <= first.log_upper
    assert 0.5 * listed < sum(visits) <= listed


def test_checkpoints_do_not_disturb(tmp_path: Path) -> None:
    asked = hard_case(5)
    runs = []
    for every in (0.0, 1e9):
        result = ps.solve(
            asked.model, weights=asked.query, work=0.5, schedule=SEARCH, checkpoint=tmp_path / "run.zip", every=every
        )
        runs.append((result.log_lower, result.log_upper, result.assignment))
    plain = ps.solve(asked.model, weights=asked.query, work=0.5, schedule=SEARCH, certificate=True)
    assert runs[0][2] == runs[1][2] == plain.assignment
    assert runs[1][:2] == (plain.log_lower, plain.log_upper)
    assert runs[0][1] == pytest.approx(runs[1][1], abs=0.05)


@ROADS
@pytest.mark.parametrize("kind", [case, hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(8))
def test_another_question_is_begun_warm(
    kind: Callable[[int], Case], seed: int, schedule: Schedule, tmp_path: Path
) -> None:
    asked = kind(seed)
    path = tmp_path / "run.zip"
    ps.solve(asked.model, weights=asked.query, evidence=asked.evidence, work=0.1, schedule=schedule, checkpoint=path)
    rng = np.random.default_rng(seed)
    n = asked.model.n_variables
    observed = {int(v): int(rng.integers(asked.model.cardinalities[v])) for v in np.flatnonzero(rng.random(n) < 0.3)}
    weights = (rng.random(n) < 0.5).astype(np.float64)
    likelihoods = {v: np.linspace(0.2, 0.9, asked.model.cardinalities[v]) for v in range(n) if v not in observed}
    for query, evidence in [
        (asked.query, observed),
        (ps.Query(weights), asked.evidence),
        (ps.Query(weights), observed),
        (ps.Query(np.zeros(n)), {}),
        (ps.Query(np.ones(n)), {}),
    ]:
        other = Case(asked.model, query, dict(evidence))
        result = ps.solve(other.model, weights=query, evidence=evidence, work=LITTLE, schedule=schedule, resume=path)
        value = truth(other)
        assert result.log_lower <= value + CLOSE
        assert value <= result.log_upper + CLOSE
    result = ps.solve(
        asked.model, weights=asked.query, evidence={**likelihoods}, work=LITTLE, schedule=schedule, resume=path
    )
    plain = ps.solve(asked.model, weights=asked.query, evidence={**likelihoods})
    assert result.log_lower <= plain.log_upper + CLOSE
    assert plain.log_lower <= result.log_upper + CLOSE


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_of_another_question_stays_within_buckets(seed: int) -> None:
    """A search may read a table only at variables that are set by then: those of the bucket of exact elimination."""
    rng = np.random.default_rng(seed)
    model = ps.generate.grid(5, 5, seed=seed).model
    n = model.n_variables
    first, other = (simplify(model, ps.Query((rng.random(n) < 0.5).astype(np.float64)), {}) for _ in range(2))
    tree = CoveringTree(first, elimination_order(first.model, first.tau), ibound=3).best_tree
    again = rebuilt(saved_of(tree, first), other, threads=1, memory=1e9)
    assert again is not None
    scopes = scopes_in_order(other.model, again.order)
    exact = [{p} for p in range(n)]
    for places in np.split(scopes.positions, scopes.starts[1:-1]):
        exact[places[0]].update(places.tolist())
    for p in range(n):
        later = exact[p] - {p}
        if later:
            exact[min(later)] |= later
    for own in np.split(again.parts.positions, again.parts.starts[1:-1]):
        assert set(own.tolist()) <= exact[own[0]]


@pytest.mark.parametrize("seed", range(6))
def test_another_question_begun_warm_is_proven(seed: int, tmp_path: Path) -> None:
    """The certificate of what a search adds to a tree that was made for another question."""
    rng = np.random.default_rng(seed)
    model = ps.generate.grid(5, 5, seed=seed).model
    n = model.n_variables
    path = tmp_path / "run.zip"
    first, other = (ps.Query((rng.random(n) < 0.5).astype(np.float64)) for _ in range(2))
    ps.solve(model, weights=first, work=0.2, schedule=SEARCH, checkpoint=path)
    result = ps.solve(model, weights=other, work=0.3, schedule=SEARCH, resume=path, certificate=True)
    assert result.certificate is not None
    result.certificate.save(path)
    verified = pc.check(to_check(model), pc.Question(tuple(other.weights.tolist())), path)
    exact = ps.solve(model, weights=other)
    assert verified.log_lower <= exact.log_upper + CLOSE
    assert exact.log_lower <= verified.log_upper + CLOSE


def spoilt(rng: np.random.Generator, head: dict[str, Any], arrays: dict[str, Any]) -> Certificate:
    """A file with something changed: numbers, lengths, types, the claim, the steps."""
    arrays = {name: array.copy() for name, array in arrays.items()}
    for _ in range(int(rng.integers(1, 4))):
        name = str(rng.choice(sorted(arrays)))
        array = arrays[name]
        way = int(rng.integers(0, 7))
        if way == 0:
            del arrays[name]
        elif way == 1:
            arrays[name] = array[: len(array) // 2]
        elif way == 2:
            arrays[name] = np.concatenate([array, array])
        elif way == 3:
            arrays[name] = array.astype(rng.choice(["<f8", "<i4"]))
        elif array.size:
            flat = array.reshape(-1)
            at = rng.integers(0, flat.size, int(rng.integers(1, 4)))
            if array.dtype.kind == "f":
                flat[at] = rng.choice([0.0, -1.0, 1e9, 1e300, -1e300, math.nan, math.inf, 0.3], len(at))
            else:
                flat[at] = rng.integers(-1, 12, len(at))
    head = json.loads(json.dumps(head))
    if rng.random() < 0.2:
        head["claim"]["log_upper"] = -100.0
    if rng.random() < 0.1:
        head["assignment"] = [[int(a), int(b)] for a, b in rng.integers(-2, 12, (4, 2))]
    if rng.random() < 0.1:
        head["steps"] = head["steps"][::-1]
    return Certificate(head, arrays)


@ROADS
@pytest.mark.parametrize("kind", [hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(2))
def test_no_spoilt_file_makes_a_false_bound(
    kind: Callable[[int], Case], seed: int, schedule: Schedule, tmp_path: Path
) -> None:
    asked = kind(seed)
    path = tmp_path / "run.zip"
    ps.solve(asked.model, weights=asked.query, work=0.2, schedule=schedule, checkpoint=path)
    head, arrays = arrays_in(path)
    value = truth(asked)
    rng = np.random.default_rng(seed)
    refusals: list[str] = []
    for _ in range(12):
        with zipfile.ZipFile(path, "w") as archive:
            changed = spoilt(rng, head, arrays)
            archive.writestr("head.json", json.dumps(changed.head))
            for name, array in changed.arrays.items():
                buffer = BytesIO()
                np.save(buffer, array)
                archive.writestr(f"{name}.npy", buffer.getvalue())
        try:
            result = ps.solve(asked.model, weights=asked.query, work=LITTLE, schedule=schedule, resume=path)
        except ps.InputError as error:
            refusals.append(str(error))
            continue
        assert result.log_lower <= value + CLOSE
        assert value <= result.log_upper + CLOSE
    assert refusals
    for words in refusals:
        assert "\n" not in words
        assert words.startswith(str(path))


@pytest.mark.parametrize("cut", [0, 10, 200, -1, -30])
def test_a_file_cut_short_is_refused(cut: int, tmp_path: Path) -> None:
    asked = hard_case(1)
    path = tmp_path / "run.zip"
    ps.solve(asked.model, weights=asked.query, work=0.1, schedule=SEARCH, checkpoint=path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ps.InputError) as refusal:
        ps.solve(asked.model, weights=asked.query, work=0.1, resume=path)
    assert "\n" not in str(refusal.value)
    assert "run.zip" in str(refusal.value)


def test_what_is_refused(tmp_path: Path) -> None:
    asked, other = hard_case(1), hard_case(2)
    path = tmp_path / "run.zip"
    ps.solve(asked.model, weights=asked.query, work=0.1, schedule=SEARCH, checkpoint=path)
    with pytest.raises(ps.InputError, match=r"run\.zip: is about another model"):
        ps.solve(other.model, weights=other.query, resume=path)
    with pytest.raises(ps.InputError, match=r"none\.zip: cannot be read"):
        ps.solve(asked.model, weights=asked.query, resume=tmp_path / "none.zip")
    with pytest.raises(ps.InputError, match="every is -1"):
        ps.solve(asked.model, weights=asked.query, checkpoint=path, every=-1.0)
    with pytest.raises(ps.InputError, match="resume is 3: it must be the path of a file"):
        ps.solve(asked.model, weights=asked.query, resume=3)  # type: ignore[arg-type]
    with pytest.raises(ps.InputError, match="cannot be written"):
        ps.solve(asked.model, weights=asked.query, checkpoint=tmp_path / "no" / "run.zip")


def test_no_time_at_all_is_enough_to_be_no_worse(tmp_path: Path) -> None:
    model, maximize = ps.generate.grid(26, 26, strength=3.0, seed=4)
    path = tmp_path / "run.zip"
    before = ps.solve(model, maximize, work=1.0, certificate=True)
    assert before.certificate is not None
    before.certificate.save(path)
    proven = pc.check(to_check(model), pc.Question.of(to_check(model), maximize), path)
    assert proven.log_lower > -math.inf
    resumed = ps.solve(model, maximize, work=1e-6, resume=path)
    assert resumed.log_upper <= proven.log_upper + CLOSE
    assert resumed.log_lower >= proven.log_lower - CLOSE
    assert before.log_upper < ps.solve(model, maximize, work=1e-6).log_upper


def test_a_bound_on_the_value_is_said_to_be_one_after_it_was_resumed(tmp_path: Path) -> None:
    """Found by the soak: partial sums of the run before lie below the value of the assignment, and it was not said."""
    asked = hard_case(2)
    path = tmp_path / "run.zip"
    schedule = replace(TOO_WIDE, first_share=0.9, split_stage=1.0, split_tightening=1.0)
    options: dict[str, Any] = {"weights": asked.query, "schedule": schedule, "seed": 2}
    below = 0
    # Runs that end when the sum is known in part; how much work that is depends on what work is taken to cost.
    for work in (0.003, 0.0035, 0.004, 0.0045, 0.005, 0.006):
        ps.solve(asked.model, work=work, checkpoint=path, **options)
        for turns in range(1, 6):
            solver = Solver(asked.model, work=0.5, resume=path, **options)
            for turn, _ in enumerate(solver, 1):
                if turn == turns:
                    solver.interrupt("Enough.")
            result = solver.result()
            chosen = {int(name): int(state) for name, state in result.assignment.items()}
            if result.log_lower < assignment_value(asked.model, chosen) - CLOSE:
                below += FROM_FILE in result.notes
                assert result.notes
            else:
                assert FROM_FILE not in result.notes
    assert below


SCRIPT = """
import sys
import powersum as ps
model, maximize = ps.generate.grid(26, 26, strength=3.0, seed=4)
print("begun", flush=True)
ps.solve(model, maximize, time_limit=600, checkpoint=sys.argv[1], every=0.0)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_killed_at_any_moment(tmp_path: Path) -> None:
    model, maximize = ps.generate.grid(26, 26, strength=3.0, seed=4)
    path = tmp_path / "run.zip"
    moments = random.Random(1)
    question = pc.Question.of(to_check(model), maximize)
    for _ in range(4):
        path.unlink(missing_ok=True)
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.PIPE)
        try:
            while not path.exists():
                assert process.poll() is None or path.exists()
                time.sleep(0.01)
            time.sleep(3.0 * moments.random() ** 2)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        proven = pc.check(to_check(model), question, path)
        resumed = ps.solve(model, maximize, work=0.1, resume=path)
        assert resumed.log_upper <= proven.log_upper + CLOSE
        assert resumed.log_lower >= proven.log_lower - CLOSE


def test_writing_takes_a_tenth_of_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = hard_case(5)
    original = Checkpoints.keep
    taken: list[float] = []

    def keep(own: Checkpoints, spent: Callable[[], float], make: Callable[[], tuple[Certificate, int] | None]) -> None:
        begun = spent()
        original(own, spent, make)
        # A look at the meter is no writing.
        if spent() - begun > 1e-4:
            taken.append(spent() - begun)

    monkeypatch.setattr(Checkpoints, "keep", keep)
    work = 0.5
    runs = [
        ps.solve(
            asked.model, weights=asked.query, work=work, schedule=SEARCH, checkpoint=tmp_path / f"{k}.zip", every=0.0
        )
        for k in range(2)
    ]
    assert len(taken) > 4
    # Each is followed by nine times as much other work, but for the last of either run.
    assert sum(taken) < 2 * (MOST_SHARE * work + max(taken))
    assert runs[0].log_upper == runs[1].log_upper
    assert (tmp_path / "0.zip").read_bytes() == (tmp_path / "1.zip").read_bytes()


def test_a_checkpoint_is_replaced_by_one_that_can_be_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = hard_case(2)
    path = tmp_path / "run.zip"
    options: dict[str, Any] = {"weights": asked.query, "schedule": SEARCH, "checkpoint": path, "every": 0.0}
    ps.solve(asked.model, work=0.1, **options)
    good = path.read_bytes()
    original = np.lib.format.write_array

    def forgetting(file: Any, array: Any, **given: Any) -> None:
        """A disk that loses the last number of each array."""
        original(file, array[:-1] if len(array) > 1 else array, **given)

    monkeypatch.setattr(np.lib.format, "write_array", forgetting)
    with pytest.raises(ps.InputError, match=r"run\.zip: cannot be written \(what was written cannot be read back\)"):
        ps.solve(asked.model, work=0.1, **options)
    assert path.read_bytes() == good
    assert os.listdir(tmp_path) == ["run.zip"]


def test_a_damaged_file_is_found_out(tmp_path: Path) -> None:
    asked = hard_case(2)
    result = ps.solve(asked.model, weights=asked.query, work=0.1, schedule=SEARCH, certificate=True)
    assert result.certificate is not None
    good, bad = tmp_path / "good.zip", tmp_path / "bad.zip"
    result.certificate.save(good)
    result.certificate._check(good)
    data = bytearray(good.read_bytes())
    # Real numbers are stored as they are.
    data[data.index(asked.query.weights.tobytes()) + 7] ^= 1
    for damaged in (bytes(data), good.read_bytes()[: len(data) // 2], b""):
        bad.write_bytes(damaged)
        with pytest.raises(OSError, match="read back"):
            result.certificate._check(bad)
