"""The reproduction on tiny settings: everything is written, stored, taken up again, and judged."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powersum.app.cli.app import run_app
from powersum.app.reproduce import FIGURES, Settings, reproduce
from powersum.app.reproduce.claims import Claim, claims, markdown
from powersum.app.reproduce.grid3 import measure, spanning_trees
from powersum.app.reproduce.instances import half_of, ising_grid
from powersum.app.reproduce.page import page
from powersum.app.reproduce.plan import FigureTask
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt

TINY = Settings(
    sweeps=2,
    long_sweeps=2,
    seconds=1.0,
    dampings=(0.05,),
    shares=(0.0, 0.5, 1.0),
    grids=2,
    grid_sweeps=3,
    instances=1,
    descent_sweeps=20,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole reproduction on tiny settings."""
    out = tmp_path_factory.mktemp("reproduction")
    assert reproduce(out, FIGURES, TINY)
    return out


def test_everything_is_written(folder: Path) -> None:
    stems = ["figure-1", "figure-2", "figure-3", "supplement-a", "supplement-b", "supplement-c", "beyond"]
    for stem in stems:
        assert (folder / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in (folder / f"{stem}.svg").read_text(encoding="utf-8")
        with (folder / f"{stem}.csv").open(encoding="utf-8") as file:
            rows = list(csv.reader(file))
        assert len(rows) > 1
        assert len({len(row) for row in rows}) == 1
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert all(f"{stem}.svg" in text for stem in stems)


def test_claims_are_regenerated_from_what_was_measured(folder: Path) -> None:
    before = (folder / "claims.md").read_text(encoding="utf-8")
    assert before.count("\n| ") > 15
    for words in ("24d shifts", "| A |", "| B |", "| C |", "beyond the paper"):
        assert words in before
    # Nothing is measured twice: a change of what is stored is a change of what is judged.
    place = folder / "data" / "1-grid3x3.json"
    record = json.loads(place.read_text(encoding="utf-8"))
    record["rows"][0]["log_upper"] += 1.0
    place.write_text(json.dumps(record), encoding="utf-8")
    (folder / "claims.md").unlink()
    assert reproduce(folder, ("1",), TINY)
    after = (folder / "claims.md").read_text(encoding="utf-8")
    assert after != before
    assert "same tightness after optimisation" in after
    assert next(line for line in after.splitlines() if "same tightness" in line).endswith("| **does not hold** |")


def test_interrupted_runs_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    stop = {"after": 1}

    def tasks(settings: Settings, figures: tuple[str, ...]) -> list[FigureTask]:
        def run(number: int) -> dict[str, Any]:
            ran.append(str(number))
            if len(ran) > stop["after"]:
                import signal

                handler = signal.getsignal(signal.SIGINT)
                owner = getattr(handler, "__self__", None)
                assert isinstance(owner, Interrupt)
                owner.cause = "Ctrl-C"
            return {"title": "t", "share": 0.5, "best": {"gdd": 0.0, "gdd:paper": 0.5, "wmb:0.5": 1.0}}

        return [FigureTask("B", str(n), "t", lambda _, n=n: run(n)) for n in range(3)]  # type: ignore[misc]

    monkeypatch.setattr("powersum.app.reproduce.plan.tasks", tasks)
    assert not reproduce(tmp_path, ("B",), TINY)
    assert ran == ["0", "1"]
    assert not (tmp_path / "claims.md").exists()
    stop["after"] = 100
    assert reproduce(tmp_path, ("B",), TINY)
    assert ran == ["0", "1", "1", "2"]
    # Other settings do not take up what was stored.
    assert reproduce(tmp_path, ("B",), Settings(seed=7))
    assert ran[-3:] == ["0", "1", "2"]


def test_wrong_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["reproduce", "4", "--out", str(tmp_path / "out")]) == 2
    assert "there is no figure '4': there is 1, 2, 3, A, B, C" in capsys.readouterr().err
    assert run_app(["reproduce", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "no instances are there" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert run_app(["reproduce", "1", "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(InputError):
        reproduce(tmp_path, ["x"])


def test_three_relaxations_of_a_grid_agree() -> None:
    record = measure()
    assert [(row["shifts"], row["weights"]) for row in record["rows"]] == [(16, 8), (48, 24), (512, 16)]
    bounds = [row["log_upper"] for row in record["rows"]]
    assert max(bounds) - min(bounds) < 1e-3
    assert min(bounds) >= record["exact"] - 1e-9
    assert record["block_descent"] >= min(bounds) - 1e-9
    trees = spanning_trees()
    assert len(set(trees)) == 16
    assert all(len(tree) == 8 for tree in trees)


def test_verdicts_and_escaping() -> None:
    found = [Claim("1", "a < b", "x", True), Claim("2", "c", "y", False), Claim("3", "d", "z", None)]
    assert [claim.verdict for claim in found] == ["holds", "does not hold", "beyond the paper"]
    assert "a &lt; b" in page(["1"], found, "generated")
    assert markdown(found, "generated").count("**") == 6
    assert claims({}) == []


def test_shares_are_nested_and_grids_repeat() -> None:
    model = ising_grid(5, 2.0, 3)
    small, large = half_of(model, 1, 0.2), half_of(model, 1, 0.6)
    assert set(small) < set(large)
    assert (len(small), len(large)) == (5, 15)
    assert np.array_equal(model.log_values, ising_grid(5, 2.0, 3).log_values)
