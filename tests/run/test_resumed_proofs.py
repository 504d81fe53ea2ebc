"""A proof of every kind is the same proof after it was resumed: the checker accepts what comes out."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.core.errors import InputError
from powersum.model.certificate import Certificate
from powersum.model.question import Question
from powersum.run.resume import Resumed
from powersum.run.tuning import DEFAULT_SCHEDULE, Schedule
from powersum_check.box import Step as Read
from tests.cases import bushy_case, hard_case
from tests.check.forgeries import honest
from tests.check.helpers import to_check
from tests.run.test_cube_proofs import Doubtful
from tests.run.workers.test_conditioning import NOT_BY_TABLES, parities

CLOSE = 1e-8
LITTLE = 0.02
"""Work in which a resumed run finds little by itself."""

SMALL_TREES = Schedule(quick=0.0, ibound=1, late_elimination=0.0)
TOO_WIDE = replace(SMALL_TREES, evaluation_cost=float("inf"))
SPREAD = replace(TOO_WIDE, most_variables=0, quick=1e-9, held_table=8.0, longest_evaluation=0.0)
BOXED = replace(SMALL_TREES, look_first=False, search_trial=0.0, nearly=0.0, first_stage=0.01, last_tightening=0.02)
BOXES = {
    "powersum.run.workers.splits.LEAST_BOXES": 0,
    "powersum.divide.tree_boxes.PASSES": 8,
    "powersum.divide.tree_boxes.FEW_PASSES": 2,
    "powersum.search.and_or.STEPS": 200,
}
NO_CORNER = {"powersum.run.work.corner_of": lambda *_: None, "powersum.bounds.corner.corner_of": lambda *_: None}
"""Without the corner bound, which is exact for so few variables and would be the proof."""

UNAFFORDABLE = {"powersum.proof.certificate.WIDEST": -1.0}
"""No value of an assignment is proven by elimination."""

Asked = tuple[ps.Model, ps.Query]


class Kind(NamedTuple):
    """A run that ends in a proof of some kind, and what tells the kind: steps or arrays of it."""

    asked: Callable[[], Asked]
    marks: set[str]
    schedule: Schedule = DEFAULT_SCHEDULE
    options: Mapping[str, Any] = {"work": 0.3}
    patches: Mapping[str, Any] = {}
    function: Callable[..., ps.Result] = ps.solve


def mixed() -> Asked:
    asked = hard_case(2)
    return asked.model, asked.query


def summed() -> Asked:
    model = bushy_case(2).model
    return model, ps.Query.of(model)


def grid() -> Asked:
    model = ps.generate.grid(9, 9, strength=1.0, seed=1).model
    return model, ps.Query.of(model, "all")


def parity() -> Asked:
    model = parities(1)
    return model, ps.Query.of(model)


def contradiction() -> Asked:
    """Propagation finds out that nothing is possible."""
    model = ps.Model.from_factors([2, 2], [((0, 1), [[1.0, 0.0], [1.0, 0.0]]), ((1,), [0.0, 1.0])])
    return model, ps.Query.of(model, "all")


def refuted() -> Asked:
    """Nothing is possible, which cases show and propagation does not."""
    tables = [((a, b), 1.0 - np.eye(2)) for a, b in ((0, 1), (1, 2), (0, 2))]
    model = ps.Model.from_factors([2] * 3, tables)
    return model, ps.Query.of(model, "all")


def by_cubes(model: ps.Model, **options: Any) -> ps.Result:
    with cf.ThreadPoolExecutor(2) as pool:
        return ps.solve(model, workers=pool, **options)


def by_method(method: str, **options: Any) -> Kind:
    def bound(model: ps.Model, *, schedule: Schedule, **given: Any) -> ps.Result:
        return ps.bound(model, method=method, **given)

    return Kind(mixed, {"tree"}, options={"sweeps": 3, **options}, function=bound)


KINDS = {
    "elimination": Kind(mixed, {"tree"}),
    "contradiction": Kind(contradiction, {"removed"}),
    "cases": Kind(refuted, {"cover"}, Schedule(quick=0.0)),
    "covering tree": Kind(mixed, {"shifts"}, SMALL_TREES, {"work": 0.003}),
    "contexts of a search": Kind(mixed, {"context_states"}, SMALL_TREES),
    "boxes": Kind(mixed, {"cover"}, BOXED, patches=BOXES),
    "branching": Kind(grid, {"branching"}, Schedule(quick=0.0)),
    "conditioning": Kind(parity, {"conditioning"}, NOT_BY_TABLES),
    "partial sums": Kind(summed, {"context_settled"}, TOO_WIDE, patches=UNAFFORDABLE),
    "partial sums given": Kind(mixed, {"context_settled"}, TOO_WIDE, patches=UNAFFORDABLE),
    "mean field": Kind(summed, {"mean-field"}, SPREAD, {"work": 0.5}, patches=UNAFFORDABLE),
    "the best": Kind(mixed, {"tree"}, SMALL_TREES, {"k": 3, "time_limit": 600.0}),
    "cubes": Kind(
        mixed,
        {"cover"},
        Schedule(quick=0.0),
        {"time_limit": None},
        {"powersum.run.cubes.bound_box": Doubtful(0)},
        by_cubes,
    ),
    "auto": by_method("auto"),
    "gdd": by_method("gdd"),
    "wmb": by_method("wmb", ibound=1),
    "mbe": by_method("mbe", ibound=1),
}


class Run:
    """A proof in a file, and runs that go on from it."""

    def __init__(self, kind: Kind, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for place, value in {**NO_CORNER, **kind.patches}.items():
            monkeypatch.setattr(place, value)
        self.path, self._schedule = path, kind.schedule
        self.model, self.query = kind.asked()
        options = dict(kind.options)
        result = kind.function(self.model, weights=self.query, schedule=kind.schedule, certificate=True, **options)
        assert result.certificate is not None
        self.certificate: Certificate = result.certificate
        self.certificate.save(path)
        self.proven = self.checked(path)

    def checked(self, path: Path) -> pc.Verified:
        return pc.check(to_check(self.model), pc.Question(tuple(self.query.weights.tolist())), path)

    def resumed(self, **options: Any) -> ps.Result:
        return ps.solve(
            self.model, weights=self.query, schedule=self._schedule, work=LITTLE, resume=self.path, **options
        )

    def no_worse(self, found: pc.Verified) -> None:
        assert found.log_upper <= self.proven.log_upper + CLOSE
        assert found.log_lower >= self.proven.log_lower - CLOSE


@pytest.mark.parametrize("name", KINDS)
def test_a_resumed_proof_is_a_proof(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(KINDS[name], tmp_path / "run.zip", monkeypatch)
    words = {step["kind"] for step in run.certificate.head["steps"]}
    words |= {array.rpartition("/")[2] for array in run.certificate.arrays}
    assert words >= KINDS[name].marks
    # What is read back is all that was written.
    read = Resumed(run.path, Question.of(run.model, weights=run.query))._steps
    assert [step.kind for step in read] == [step["kind"] for step in run.certificate.head["steps"]]
    arrays = {f"{k}/{array}": step.arrays[array] for k, step in enumerate(read) for array in step.arrays}
    assert arrays.keys() == {array for array in run.certificate.arrays if "/" in array}
    for array, values in arrays.items():
        np.testing.assert_array_equal(values, run.certificate.arrays[array])
    result = run.resumed(certificate=True)
    assert result.certificate is not None
    result.certificate.save(tmp_path / "second.zip")
    run.no_worse(run.checked(tmp_path / "second.zip"))
    # The run's own file is replaced by one that proves as much.
    run.resumed(checkpoint=run.path, every=0.0)
    run.no_worse(run.checked(run.path))


def test_every_array_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page names all arrays that the checker asks for, of steps of all kinds."""
    asked: set[str] = set()

    def watch(method: str) -> None:
        original = getattr(Read, method)

        def watched(step: Read, name: str, *given: Any, **more: Any) -> Any:
            asked.add(name)
            return original(step, name, *given, **more)

        monkeypatch.setattr(Read, method, watched)

    for method in ("__contains__", "integers", "floats", "starts"):
        watch(method)
    for seed in range(300):
        draft = honest(np.random.default_rng(seed))
        with contextlib.suppress(pc.CheckError):
            pc.check(to_check(draft.model), None, draft.zip())
    assert len(asked) > 25
    page = (Path(__file__).resolve().parents[2] / "docs" / "certificates.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:k/)?([a-z_]+)`", page))
    assert asked <= named


@pytest.mark.parametrize(
    ("kind", "name", "array"),
    [
        ("tree", "parts", np.zeros(1, dtype=np.int64)),
        ("tree", "weight", np.zeros(1, dtype=np.int64)),
        ("branching", "parts", np.zeros(2, dtype=np.int64)),
        ("conditioning", "gone", np.zeros((1, 2), dtype=np.int64)),
        ("cover", "parts", np.zeros(1, dtype=np.int64)),
        ("cover", "parts", np.array(["text"])),
        ("other", "order", np.zeros(1, dtype=np.int64)),
    ],
)
def test_steps_that_are_none_prove_nothing(kind: str, name: str, array: Any, tmp_path: Path) -> None:
    """They are refused in one line, or the checker refuses them, and the run goes on without."""
    model, query = contradiction()
    head = {"format": "powersum-certificate", "version": 6, "model": model.structure, "steps": [{"kind": kind}]}
    arrays = {"weights": query.weights, f"0/{name}": array}
    Certificate(head, arrays).save(tmp_path / "run.zip")
    question = Question.of(model, weights=query)
    if array.dtype.kind == "U":
        with pytest.raises(InputError, match=r"run\.zip: "):
            Resumed(tmp_path / "run.zip", question)
    else:
        assert not Resumed(tmp_path / "run.zip", question).checked().steps
