"""Evidence of probability 0 is an answer of every command: exit code 0, the word infeasible, and JSON that says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import powersum as ps
from tests.app.cli.conftest import Command

MODEL = "MARKOV 2 2 2 1 2 0 1 4 1 0 0 1"


@pytest.mark.parametrize(
    "words",
    [
        ("solve",),
        ("solve", "--max", "0"),
        ("bound",),
        ("marginals",),
        ("marginals", "--joint", "0,1"),
        ("ask", "--about", "0", "--among", "1"),
    ],
)
def test_every_command_answers(command: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    model, out = tmp_path / "never.uai", tmp_path / "out.json"
    model.write_text(MODEL)
    evidence = tmp_path / "e.evid"
    evidence.write_text("2 0 0 1 1" if words[0] != "ask" else "0")
    if words[0] == "ask":
        model.write_text("MARKOV 2 2 2 1 2 0 1 4 0 0 0 0")
    ran = command(words[0], model, *words[1:], "--evid", evidence, "--json", out)
    assert (ran.code, "infeasible" in ran.out) == (0, True), ran.err
    assert json.loads(out.read_text())["status"] == "infeasible"


def test_in_python_a_distribution_that_does_not_exist_is_an_error_with_a_name(tmp_path: Path) -> None:
    model = ps.Model.from_factors([2, 2], [((0, 1), [[1.0, 0.0], [0.0, 1.0]])])
    assert ps.solve(model, [0], evidence={0: 0, 1: 1}).status is ps.Status.INFEASIBLE
    with pytest.raises(ps.ImpossibleError, match="the evidence has probability 0"):
        ps.marginals(model, evidence={0: 0, 1: 1})
    with pytest.raises(ps.ImpossibleError, match="the evidence has probability 0"):
        ps.Engine(model).marginals(evidence={0: 0, 1: 1})
