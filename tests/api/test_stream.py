"""Questions as a stream: the same answers as one by one, in order, once each, and gone on with after a crash."""

from __future__ import annotations

import concurrent.futures as cf
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import powersum as ps
from powersum.api.engine import Engine
from powersum.cluster import ordered as stream
from powersum.cluster.executor import workers_of
from tests.api.test_many import QUESTIONS
from tests.batch import results_of
from tests.cluster.machines import machines
from tests.interop.networks import CLINIC

MANY = [*QUESTIONS, {"maximize": ["cancer"], "evidence": {"xray": "no such state"}}] * 20


def check(answers: list[ps.BatchItem], questions: list[dict[str, Any]]) -> None:
    assert [answer.number for answer in answers] == list(range(len(questions)))
    for answer, question in zip(answers, questions, strict=True):
        if question == MANY[6]:
            assert answer.result is None
            assert answer.error == "variable xray has no state 'no such state': it has 'clear', 'shadow'"
            continue
        alone = ps.solve(CLINIC, **question)
        assert answer.error is None
        assert answer.result is not None
        assert answer.result.log_upper == pytest.approx(alone.log_upper, abs=1e-9)
        assert dict(answer.result.assignment) == dict(alone.assignment)
        assert (answer.result.probability is None) == (alone.probability is None)


@pytest.mark.parametrize("executor", [None, 2])
def test_same_as_one_by_one(executor: int | None) -> None:
    check(list(ps.solve_each(CLINIC, MANY, workers=executor)), MANY)


def test_same_on_a_cluster(tmp_path: Path) -> None:
    from powersum.cluster.dask_workers import connected

    with machines(tmp_path, 2) as here, connected(here.address) as client:
        check(list(ps.solve_each(CLINIC, MANY, workers=client)), MANY)
        results = results_of(CLINIC, QUESTIONS, workers=client)
    assert [result.status for result in results] == [ps.Status.OPTIMAL] * len(QUESTIONS)


@pytest.mark.parametrize("executor", [False, True])
def test_equal_questions_are_answered_once(monkeypatch: pytest.MonkeyPatch, executor: bool) -> None:
    asked: list[Any] = []
    solve = Engine.solve

    def counted(self: Engine, *arguments: Any, **options: Any) -> ps.Result:
        asked.append(options)
        return solve(self, *arguments, **options)

    monkeypatch.setattr(Engine, "solve", counted)
    monkeypatch.setattr(Engine, "prepare", lambda self: None)
    with cf.ThreadPoolExecutor(2) as pool:
        check(list(ps.solve_each(CLINIC, MANY, workers=pool if executor else None)), MANY)
    assert len(asked) == len(QUESTIONS) + 1


def doubled(_: object, options: int, chunk: list[int]) -> list[int]:
    return [options * item for item in chunk]


def test_memory_does_not_grow_with_questions() -> None:
    """Items are taken only as they are needed, and results are forgotten."""
    taken = 0

    def items(number: int) -> Iterator[tuple[int, int]]:
        nonlocal taken
        for k in range(number):
            taken += 1
            yield k, k

    for k, result in enumerate(stream.here(None, doubled, 2, items(3000))):
        assert result == 2 * k
        assert taken == k + 1
    taken = 0
    with workers_of(None) as workers:
        for k, result in enumerate(stream.ordered(workers, workers.share(None), doubled, 2, items(50_000))):
            assert result == 2 * k
            assert taken - k <= stream.WAITING_CHUNKS * stream.LARGEST_CHUNK
    assert taken == 50_000
    remembered = stream.Remembered()
    for k in range(3 * stream.MOST_REMEMBERED):
        remembered.slot(k)
    assert len(remembered._slots) == stream.MOST_REMEMBERED


@pytest.mark.parametrize("executor", [None, 1])
def test_goes_on_after_the_last_whole_line(
    tmp_path: Path, executor: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "answers.jsonl"
    whole = list(ps.solve_each(CLINIC, MANY, checkpoint=file))
    text = file.read_bytes()
    rng = random.Random(1)
    for place in (0, 5, len(text) - 1, len(text), *rng.choices(range(len(text)), k=4)):
        file.write_bytes(text[:place])
        again = list(ps.solve_each(CLINIC, MANY, checkpoint=file, workers=executor))
        check(again, MANY)
        assert len(file.read_bytes().splitlines()) == len(MANY) + 1
        assert file.read_bytes().startswith(text[:place].rpartition(b"\n")[0])
        assert [a.result is None for a in again] == [a.result is None for a in whole]
    # Nothing is computed where everything is there.
    monkeypatch.setattr(Engine, "solve", None)
    check(list(ps.solve_each(CLINIC, MANY, checkpoint=file)), MANY)


def test_answers_to_other_questions_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    list(ps.solve_each(CLINIC, QUESTIONS[:3], checkpoint=file))
    with pytest.raises(ps.InputError, match="answer 1 is to another question than number 1 now"):
        list(ps.solve_each(CLINIC, [QUESTIONS[0], QUESTIONS[2]], checkpoint=file))
    with pytest.raises(ps.InputError, match="answer 2 is to another question"):
        list(ps.solve_each(CLINIC, QUESTIONS[:2], checkpoint=file))
    other = ps.generate.grid(2, 2, seed=1)[0]
    with pytest.raises(ps.InputError, match="its answers are about another model"):
        list(ps.solve_each(other, [{}], checkpoint=file))
    file.write_text("a letter to my aunt\n")
    with pytest.raises(ps.InputError, match="line 1 is no answer"):
        list(ps.solve_each(CLINIC, QUESTIONS, checkpoint=file))


def test_answers_of_processes_are_read_back(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    first = results_of(CLINIC, QUESTIONS, workers=1, checkpoint=file, gap=0.1)
    assert first == results_of(CLINIC, QUESTIONS, checkpoint=file)
    with pytest.raises(ps.InputError, match="give workers or threads, not both"):
        results_of(CLINIC, QUESTIONS, workers=1, threads=2)
    with pytest.raises(ps.InputError, match="workers is 'two': give a number of processes"):
        results_of(CLINIC, QUESTIONS, workers="two")


def test_models_that_differ_only_in_their_names_have_answers_of_their_own(tmp_path: Path) -> None:
    tables = [((0,), [0.9, 0.1]), ((1,), [0.2, 0.8])]
    first = ps.Model.from_factors([2, 2], tables, names=["a", "b"], states=[["no", "yes"]] * 2)
    swapped = first.with_names(["b", "a"], [["no", "yes"]] * 2)
    labelled = first.with_names(["a", "b"], [["x", "y"]] * 2)
    file = tmp_path / "answers.jsonl"
    for model in (first, swapped, labelled):
        (answer,) = results_of(model, [{"maximize": ["a"]}])
        assert answer.assignment == ps.solve(model, ["a"]).assignment
    results_of(first, [{"maximize": ["a"]}], checkpoint=file)
    with pytest.raises(ps.InputError, match="its answers are about another model"):
        results_of(swapped, [{"maximize": ["a"]}], checkpoint=file)


def test_a_model_is_read_only_wherever_it_comes_to() -> None:
    """Compiled code takes an array that may be written to for another type, and would be compiled once more."""
    model = pickle.loads(pickle.dumps(CLINIC))
    assert not model.log_values.flags.writeable
    assert not model.cardinalities.flags.writeable
    assert model.digest == CLINIC.digest
    assert (model.names, model.states, model.title) == (CLINIC.names, CLINIC.states, CLINIC.title)
    query = pickle.loads(pickle.dumps(ps.Query.of(CLINIC, ["xray", "cancer"])))
    assert not query.weights.flags.writeable
    assert query.answered == ps.Query.of(CLINIC, ["xray", "cancer"]).answered


@pytest.mark.parametrize("how", [{}, {"threads": 2}, {"workers": 2}])
def test_distributions_among_the_questions(how: dict[str, Any]) -> None:
    """Questions with ``of`` are answered as by ``marginals``, between others, wherever they are answered."""
    questions = [
        {"of": ["cancer", ("smoker", "cancer")], "evidence": {"xray": "shadow"}},
        {"maximize": ["cancer"], "evidence": {"xray": "shadow"}},
        {"of": ["cancer"], "evidence": {"xray": "no such state"}},
        {"of": ["cancer"], "maximize": ["cancer"]},
    ] * 6
    items = list(ps.solve_each(CLINIC, questions, **how))
    alone = ps.marginals(CLINIC, evidence={"xray": "shadow"}, of=["cancer", ("smoker", "cancer")])
    for item in items[::4]:
        assert item.result is None
        assert item.error is None
        assert item.marginals is not None
        assert float(item.marginals["cancer"]["yes"]) == pytest.approx(float(alone["cancer"]["yes"]), abs=1e-9)
        joint = item.marginals["smoker", "cancer"]["yes", "yes"]
        assert float(joint) == pytest.approx(float(alone["smoker", "cancer"]["yes", "yes"]), abs=1e-9)
    assert all(item.result is not None and item.marginals is None for item in items[1::4])
    assert all(item.error is not None and "no such state" in item.error for item in items[2::4])
    assert items[3].error == "give maximize or of, not both: distributions sum over all other variables"


def test_distributions_are_not_kept_in_a_file(tmp_path: Path) -> None:
    with pytest.raises(ps.InputError, match="distributions are not kept"):
        list(ps.solve_each(CLINIC, [{"of": ["cancer"]}], checkpoint=tmp_path / "answers.jsonl"))
