"""The record of an answer: strict JSON, files, printed form."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import powersum as ps
from powersum import InputError, Result, Snapshot, Status
from powersum.model.interval import Interval
from powersum.model.question import Asked
from powersum.model.result import Residuals

RESULT = Result(
    log_upper=-3.5,
    log_lower=-math.inf,
    assignment={"Ärztin": "ja", "b": 1},
    status=Status.BOUNDED,
    reason="The limit of 2 sweeps was reached.",
    history=(Snapshot(0.1, 0, math.inf), Snapshot(0.2, 1, -3.0), Snapshot(0.3, 2, -3.5, -9.0)),
    method="gdd",
    options={"sweeps": 2, "time_limit": None, "seed": np.int64(3), "wiring": object},
    sizes={"variables": 2, "share": np.float64(math.inf)},
    version="1",
    residuals=Residuals(moment=0.5, entropy=math.nan),
)


def test_json_is_strict() -> None:
    data = json.loads(RESULT.to_json(), parse_constant=pytest.fail)
    assert data["log_upper"] == -3.5
    assert data["log_lower"] == "-inf"
    assert data["gap"] == "inf"
    assert data["status"] == "bounded"
    assert data["assignment"] == {"Ärztin": "ja", "b": 1}
    assert data["history"][0] == {"seconds": 0.1, "sweep": 0, "log_upper": "inf", "log_lower": "-inf"}
    assert data["options"]["seed"] == 3
    assert data["options"]["time_limit"] is None
    assert data["sizes"]["share"] == "inf"


def test_save(tmp_path: Path) -> None:
    RESULT.save(tmp_path / "out.json")
    text = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert text.endswith("}\n")
    assert json.loads(text)["method"] == "gdd"
    with pytest.raises(InputError, match=r"no/out.json: cannot be written"):
        RESULT.save(tmp_path / "no" / "out.json")


def test_gap() -> None:
    assert RESULT.gap == math.inf
    assert replace(RESULT, log_lower=-4.0).gap == 0.5
    assert replace(RESULT, log_lower=-3.5).gap == 0.0
    assert replace(RESULT, log_upper=-math.inf).gap == 0.0


def test_short_printed_form() -> None:
    assert repr(RESULT) == (
        "<powersum.Result: bounded, -inf ≤ log value ≤ -3.5, 2 variables assigned, 2 sweeps in 0.3 s>"
    )
    assert replace(RESULT, history=()).sweeps == 0


def test_json_names_itself_and_its_question() -> None:
    data = json.loads(ps.solve(COIN, "all", evidence={"coin": [0.25, 0.5]}).to_json())
    assert (data["format"], data["format_version"]) == ("powersum-result", 1)
    assert data["question"] == {
        "model": "",
        "digest": COIN.digest,
        "structure": COIN.structure,
        "task": "MAP",
        "maximize": ["coin"],
        "evidence": {},
        "likelihoods": {"coin": [0.25, 0.5]},
        "weights": None,
        "blocks": None,
    }
    assert data["sizes"]["variables"] == 1


COIN = ps.Model.from_tables({"coin": {"heads": 0.4, "tails": 0.6}})
ANY = st.floats(allow_nan=False)
WORDS = st.text(max_size=5) | st.sampled_from(["inf", "-inf", "nan"])
STATES = st.dictionaries(WORDS, WORDS | st.integers(0, 9), max_size=3)
ASKED = st.builds(
    Asked,
    model=WORDS,
    digest=WORDS,
    structure=WORDS,
    task=WORDS,
    maximize=st.lists(WORDS, max_size=3).map(tuple),
    evidence=STATES,
    likelihoods=st.dictionaries(WORDS, st.lists(ANY, max_size=3).map(tuple), max_size=2),
    weights=st.none() | st.lists(ANY, max_size=3).map(tuple),
)
RESULTS = st.builds(
    Result,
    log_upper=ANY,
    log_lower=ANY,
    assignment=STATES,
    status=st.sampled_from(Status),
    reason=WORDS,
    history=st.lists(st.builds(Snapshot, ANY, st.integers(0, 9), ANY, ANY), max_size=3).map(tuple),
    method=WORDS,
    options=st.dictionaries(WORDS, st.none() | st.booleans() | st.integers() | ANY | st.text("abc"), max_size=3),
    sizes=st.dictionaries(WORDS, st.integers() | ANY, max_size=3),
    version=WORDS,
    residuals=st.none() | st.builds(Residuals, ANY, ANY),
    notes=st.lists(WORDS, max_size=2).map(tuple),
    question=st.none() | ASKED,
    probability=st.none() | st.builds(Interval, ANY, ANY),
    best=st.sampled_from([(), (RESULT,)]),
    log_upper_next=st.none() | ANY,
)


@given(RESULTS)
def test_round_trips_are_exact(result: Result) -> None:
    for back in (
        Result.from_dict(result.to_dict()),
        Result.from_json(result.to_json()),
        Result.from_json(result.to_json().encode()),
        pickle.loads(pickle.dumps(result)),
        copy.deepcopy(result),
    ):
        assert back == result
        assert hash(back) == hash(result)
        # Field by field, types included: a label "inf" is no number, a whole number no float.
        for field in fields(Result):
            assert repr(getattr(back, field.name)) == repr(getattr(result, field.name))


def test_round_trip_of_answers(tmp_path: Path) -> None:
    model, query = ps.generate.grid(3, 3, seed=1)
    impossible = ps.Model.from_factors([2], [((0,), [0.0, 0.0])])
    for number, result in enumerate(
        (
            RESULT,
            ps.solve(model, query, evidence={0: [0.1, 0.9]}),
            ps.bound(model, query, sweeps=3, method="gdd"),
            ps.solve(impossible, "all"),
            ps.bound(impossible),
            ps.bound(model, weights=ps.Query(np.linspace(0.0, 1.0, 9)), sweeps=1),
        )
    ):
        for ending in ("json", "json.gz"):
            path = tmp_path / f"{number}.{ending}"
            result.save(path)
            assert Result.load(path) == result
        assert list(Result.load(path).assignment.items()) == list(result.assignment.items())
        assert pickle.loads(pickle.dumps(result)) == result


@given(RESULTS, RESULTS)
def test_results_that_differ_are_different(one: Result, other: Result) -> None:
    assert (one == other) == (one.to_json() == other.to_json() or one.to_dict() == other.to_dict())
    assert one != "result"


def test_one_field_makes_the_difference() -> None:
    other = {
        "log_upper": 1.0, "log_lower": -9.0, "assignment": {"b": 1}, "status": Status.OPTIMAL, "reason": "",
        "history": (), "method": "x", "options": {}, "sizes": {}, "version": "2", "residuals": None, "notes": ("a",),
        "question": Asked("m", "d", "s", "PR"), "probability": Interval(-1.0, 0.0),
        "best": (RESULT,), "log_upper_next": -5.0,
    }  # fmt: skip
    assert set(other) == {field.name for field in fields(Result) if field.compare}
    for name, value in other.items():
        changed: Any = {name: value}
        assert replace(RESULT, **changed) != RESULT
    assert replace(RESULT) == RESULT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_upper": None}, "result: log_upper is None, which it cannot be"),
        ({"log_upper": "much"}, "result: log_upper is 'much', which it cannot be"),
        ({"log_upper": True}, "result: log_upper is True, which it cannot be"),
        ({"status": "fine"}, "result: status is 'fine': there is optimal, bounded, infeasible, interrupted"),
        ({"history": [{"seconds": 0.1}]}, "result: history: sweep is missing"),
        ({"history": [5]}, "result: history is 5: it must be a dictionary"),
        ({"assignment": {"a": 0.5}}, "result: assignment is 0.5, which it cannot be"),
        ({"sizes": {"variables": "many"}}, "result: sizes, variables is 'many', which it cannot be"),
        ({"notes": [5]}, "result: notes is 5, which it cannot be"),
        ({"question": []}, "result: question is [], which it cannot be"),
        ({"question": {"model": ""}}, "result: question: digest is missing"),
        ({"format": "other"}, "result: format is 'other', not 'powersum-result'"),
        ({"format_version": 2}, "result: format_version is 2: read are those up to 1"),
    ],
)
def test_what_is_no_result(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    data = {**RESULT.to_dict(), **change}
    with pytest.raises(InputError) as caught:
        Result.from_dict(data)
    assert str(caught.value) == message
    (tmp_path / "wrong.json").write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        Result.load(tmp_path / "wrong.json")
    assert str(caught.value) == f"{tmp_path / 'wrong.json'}: {message}"


def test_what_is_no_file_of_a_result(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^result is 5: it must be a dictionary$"):
        Result.from_json("5")
    with pytest.raises(InputError, match=r"^result: log_upper is missing$"):
        Result.from_dict({"status": "optimal"})
    for text in ("", "{", "[" * 100_000, '{"log_upper": NaN}', '{"log_upper": -Infinity}'):
        (tmp_path / "wrong.json").write_text(text)
        with pytest.raises(InputError, match=r"wrong\.json: result: is no JSON"):
            Result.load(tmp_path / "wrong.json")
    with pytest.raises(InputError, match=r"gone\.json: cannot be read"):
        Result.load(tmp_path / "gone.json")


def test_unknown_keys_are_passed_over() -> None:
    assert Result.from_dict({**RESULT.to_dict(), "later": 5}) == RESULT
