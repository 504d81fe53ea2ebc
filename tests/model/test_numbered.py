"""Names and labels that are numbers: text names them alone, places say so, guesses are refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum import InputError, Model
from powersum.model.keys import Place
from powersum.model.question import Question

STAGE = Model.from_tables(
    {"stage": [0.5, 0.3, 0.2], ("stage", "scan"): [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]},
    states={"stage": ["1", "2", "3"], "scan": ["no", "yes"]},
    directed=True,
)
PRIOR = {"1": 0.5, "2": 0.3, "3": 0.2}


def place(key: Any, labels: tuple[str, ...] = ("1", "2", "3")) -> int:
    one = Model.from_tables({"v": [1.0 / len(labels)] * len(labels)}, states={"v": list(labels)})
    return one.state(0, key)


@pytest.mark.parametrize(
    ("key", "labels", "expected"),
    [
        ("1", ("1", "2", "3"), 0),
        ("3", ("1", "2", "3"), 2),
        ("#1", ("1", "2", "3"), 1),
        ("1.0", ("1", "2", "3"), 0),
        (3, ("1", "2", "3"), 2),
        (3.0, ("1", "2", "3"), 2),
        (0, ("1", "2", "3"), 0),
        (Place(1), ("1", "2", "3"), 1),
        (1, ("0", "1", "2"), 1),
        (1.0, ("0", "1", "2"), 1),
        (np.int64(1), ("0", "1", "2"), 1),
        (np.float64(1.0), ("0.0", "1.0", "2.0"), 1),
        ("1", ("0.0", "1.0", "2.0"), 1),
        (1, ("no", "yes"), 1),
        ("1", ("no", "yes"), 1),
        (1.0, ("no", "yes"), 1),
        ("1.0", ("1", "1.0"), 1),
        ("#0", ("no", "#0"), 1),
        (5, ("5", "7"), 0),
    ],
)
def test_what_a_key_names(key: Any, labels: tuple[str, ...], expected: int) -> None:
    assert place(key, labels) == expected


@pytest.mark.parametrize(
    ("key", "labels", "message"),
    [
        ("0", ("1", "2", "3"), "variable v has no state '0': it has '1', '2', '3'"),
        ("1", ("0-1", "2-3", ">3"), "variable v has no state '1': it has '0-1', '2-3', '>3'"),
        ("2", ("<1", "1", "2+"), "variable v has no state '2', did you mean '2+'?"),
        ("#3", ("1", "2", "3"), "state #3 of variable v is out of range"),
        (1, ("1", "2", "3"), "key: state 1 of variable v could be the one called '1' or the one at place 1: "),
        (2, ("1", "2", "3"), "write '2' or '#2'"),
        (1.0, ("1", "2", "3"), "write '1' or '#1'"),
        (np.int64(1), ("1.0", "2.0", "3.0"), "write '1.0' or '#1'"),
        (0.5, ("1", "2", "3"), "0.5 is no state of variable v"),
        (True, ("1", "2", "3"), "True is no state of variable v"),
        (7, ("1", "2", "3"), "state 7 of variable v is out of range"),
    ],
)
def test_what_is_refused(key: Any, labels: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError) as caught:
        place(key, labels)
    assert message in str(caught.value)


def test_names_that_are_numbers() -> None:
    nodes = Model.from_factors([2, 2, 2], [((0,), [0.9, 0.1]), ((1,), [0.8, 0.2]), ((2,), [0.7, 0.3])])
    nodes = nodes.with_names(["1", "2", "4"], [["a", "b"]] * 3)
    assert [nodes.variable(key) for key in ("1", "#1", Place(1), 4, 0)] == [0, 1, 1, 2, 0]
    for key, message in (
        (1, "key: variable 1 could be the one called '1' or the one at place 1: write '1' or '#1'"),
        ("0", "no variable is called '0'"),
        ("#3", "variable #3 is out of range"),
    ):
        with pytest.raises(InputError, match=message):
            nodes.variable(key)
    # A file, and an order as an array, count places.
    assert Question.of(nodes, order=np.array([1, 2, 0])).order.tolist() == [1, 2, 0]  # type: ignore[union-attr]


def shown(result: ps.Result) -> float:
    return float(np.exp(result.log_upper))


@pytest.mark.parametrize("label", ["1", "2", "3"])
def test_every_road_answers_for_the_label(label: str) -> None:
    assert shown(ps.bound(STAGE, evidence={"stage": label})) == pytest.approx(PRIOR[label])
    assert ps.marginals(STAGE, evidence={"stage": label})["stage"][label].lower == 1.0
    # Through JSON and back, and through a pickle.
    result = ps.Result.from_json(ps.solve(STAGE, ["scan"], evidence={"stage": label}).to_json())
    told = result.explain(STAGE)
    assert [one.state for one in told.evidence] == [label]
    pickle.loads(pickle.dumps(Question.of(STAGE, None, evidence={"stage": label}).all_evidence))
    assert label in str(ps.solve(STAGE, ["stage"], evidence={"scan": "yes"}, k=3).best)


def test_files_count_places(tmp_path: Path) -> None:
    model = STAGE.with_names(["1", "2"], STAGE.states)
    (tmp_path / "e.evid").write_text("1 0 1\n")
    (tmp_path / "q.query").write_text("1 1\n")
    evidence = ps.read_evidence(tmp_path / "e.evid", model)
    assert shown(ps.solve(model, evidence=evidence)) == pytest.approx(PRIOR["2"])
    assert list(ps.solve(model, ps.read_query(tmp_path / "q.query", model)).assignment) == ["2"]


def test_wide_models_with_numbered_labels() -> None:
    """Roads that ask questions of their own do so by places."""
    plain, query = ps.generate.grid(5, 5, states=3, seed=3)
    model = plain.with_names([str(v + 1) for v in range(25)], [["1", "2", "3"]] * 25)
    names = [model.name(v) for v in query[:5]]
    known = {model.name(v): "2" for v in range(25) if v not in query[:5] and v % 6 == 0}
    expected = ps.solve(plain, query[:5], evidence={int(name) - 1: 1 for name in known})
    found = ps.solve(model, names, evidence=known, k=2, workers=None)
    assert found.log_upper == pytest.approx(expected.log_upper, abs=1e-6)
    assert [int(state) - 1 for state in found.assignment.values()] == list(expected.assignment.values())
    assert ps.Engine(model).solve(names, evidence=known).log_upper == pytest.approx(expected.log_upper, abs=1e-6)
    told = expected.explain(plain), ps.solve(model, names, evidence=known).explain(model)
    assert [one.log_loss_lower for one in told[0].alternatives] == pytest.approx(
        [one.log_loss_lower for one in told[1].alternatives], abs=1e-6
    )
    for one, other in zip(ps.marginals(plain).beliefs, ps.marginals(model).beliefs, strict=True):
        np.testing.assert_allclose(one, other)
