"""The record of an answer: strict JSON, files, printed form."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from powersum import InputError, Residuals, Result, Snapshot, Status

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
