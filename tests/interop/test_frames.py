"""Data frames of pandas and polars in and out: the answers of the rows one by one, missing means not observed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import powersum as ps
from tests.interop.networks import CLINIC

pytest.importorskip("narwhals")


@pytest.fixture(params=["pandas", "polars"])
def library(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


def cases(library: Any) -> Any:
    return library.DataFrame(
        {
            "id": [7, 8, 9, 10],
            "dyspnoea": ["much", None, "none", "lots"],
            "smoker": [None, "yes", "no", "no"],
        }
    )


EVIDENCE: list[dict[str, str]] = [{"dyspnoea": "much"}, {"smoker": "yes"}, {"dyspnoea": "none", "smoker": "no"}]


def test_a_frame_of_cases_gives_a_frame_of_answers(library: Any) -> None:
    frame = ps.batch(CLINIC, cases(library), ["cancer"], keep=["id"])
    assert type(frame) is library.DataFrame
    names = ["id", "status", "cancer", "log_value", "log_upper", "probability", "probability_upper", "message"]
    assert list(frame.columns) == names
    assert list(frame["id"]) == [7, 8, 9, 10]
    assert list(frame["status"]) == ["optimal"] * 3 + ["error"]
    for row, evidence in enumerate(EVIDENCE):
        alone = ps.solve(CLINIC, ["cancer"], evidence=evidence)
        assert list(frame["cancer"])[row] == alone.assignment["cancer"]
        assert list(frame["log_value"])[row] == pytest.approx(alone.log_lower)
    assert "no state 'lots'" in list(frame["message"])[3]


def test_solve_each_takes_a_frame(library: Any) -> None:
    frame = cases(library)
    frame = frame.drop("id", axis=1) if library.__name__ == "pandas" else frame.drop("id")
    items = list(ps.solve_each(CLINIC, frame, ["cancer"]))
    assert [item.error is None for item in items] == [True, True, True, False]
    for item, evidence in zip(items[:3], EVIDENCE, strict=True):
        assert item.result is not None
        assert item.result.assignment == ps.solve(CLINIC, ["cancer"], evidence=evidence).assignment


def test_missing_values_of_each_kind_and_numbers(library: Any) -> None:
    model = ps.Model.from_tables({"a": [0.2, 0.8], ("a", "b"): [[0.9, 0.1], [0.3, 0.7]]})
    missing: list[Any] = [None, float("nan"), 1.0, 0.0]
    if library.__name__ == "pandas":
        missing.append(library.NA)
        frame = library.DataFrame({"b": library.Series(missing, dtype="object")})
    else:
        frame = library.DataFrame({"b": missing})
    found = list(ps.batch(model, frame, ["a"])["log_value"])
    for value, cell in zip(found, missing, strict=True):
        known = {"b": int(cell)} if isinstance(cell, float) and cell == cell else {}
        assert value == pytest.approx(ps.solve(model, ["a"], evidence=known).log_lower)


def test_likelihoods_are_columns_with_a_colon(library: Any) -> None:
    frame = library.DataFrame({"xray:clear": [0.2, None], "xray:shadow": [0.8, None]})
    found = list(ps.batch(CLINIC, frame, ["cancer"])["log_value"])
    wanted = [ps.solve(CLINIC, ["cancer"], evidence=known).log_lower for known in ({"xray": [0.2, 0.8]}, {})]
    assert found == pytest.approx(wanted)


def test_a_wrong_table_is_one_line(library: Any) -> None:
    with pytest.raises(ps.InputError, match="no variable is called 'couhg'"):
        ps.batch(CLINIC, library.DataFrame({"couhg": ["yes"]}), ["cancer"])
    with pytest.raises(ps.InputError, match="cases is 3: give a data frame"):
        ps.batch(CLINIC, 3, ["cancer"])
    if library.__name__ == "polars":
        with pytest.raises(ps.InputError, match=r"of a lazy one give frame\.collect"):
            ps.batch(CLINIC, library.LazyFrame({"cough": ["yes"]}), ["cancer"])


def test_without_narwhals_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch, library: Any) -> None:
    def missing(name: str) -> Any:
        if name == "narwhals":
            raise ModuleNotFoundError("no", name=name)
        return import_module(name)

    monkeypatch.setattr("powersum.interop.frames.import_module", missing)
    with pytest.raises(ps.InputError, match="pip install narwhals"):
        ps.batch(CLINIC, cases(library), ["cancer"])
