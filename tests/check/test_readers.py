"""Damaged models, queries and evidence: what the checker reads, powersum reads as the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum_check as pc
from powersum.core.errors import InputError
from powersum.formats import read, read_evidence, read_query
from powersum.formats.uai import write_uai
from powersum.model.model import Model
from powersum_check.reading import read_evidence as checked_evidence
from powersum_check.reading import read_list
from tests.strategies import random_model

WORDS = [
    *(
        "0",
        "1",
        "2",
        "3",
        "-1",
        "+1",
        "1e0",
        "1.",
        ".5",
        "1e-400",
        "-1e-400",
        "1e400",
        "nan",
        "inf",
        "0x1",
        "1_0",
        "1,0",
    ),
    *(
        "#",
        "# 7",
        "c",
        "c 7",
        "\n",
        "\r",
        "\r\n",
        "\t",
        "\v",
        "\f",
        "\x00",
        "\xa0",
        "MARKOV",
        "bayes",
        "1e",
        "--1",
        "01",
    ),
    *(
        "00",
        "-0",
        "1.0",
        "2.5",
        "9007199254740993",
        "4294967296",
        "\n\n",
        "\nc\n",
        "\n#\n",
        "1#2",
        "1c",
        "1e5",
        "1E+00",
    ),
]
"""What may stand where another word was."""


def damaged(rng: np.random.Generator, text: str) -> str:
    """The text with one to three words or letters changed, lost, doubled or put in."""
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, len(text) + 1))
        end = min(len(text), at + int(rng.integers(0, 4)))
        choice = int(rng.integers(0, 4))
        word = str(rng.choice(WORDS))
        if choice == 0:
            text = text[:at] + word + text[end:]
        elif choice == 1:
            text = text[:at] + " " + word + " " + text[at:]
        elif choice == 2:
            text = text[:at] + text[end:]
        else:
            text = text[:at] + text[at:end] + text[at:]
    return text


def outcome(reader: Callable[[], Any], error: type[Exception]) -> Any:
    """What is read; None where it is refused."""
    try:
        return reader()
    except error:
        return None


def same_model(found: pc.Model, model: Model) -> bool:
    """Whether the checker and powersum have read the same."""
    if found.cardinalities != tuple(model.cardinalities.tolist()) or len(found.factors) != model.n_factors:
        return False
    for mine, other in zip(found.factors, model.factors(), strict=True):
        a, b = mine.table.values, np.asarray(other.log_table)
        if mine.scope != other.scope or a.shape != b.shape or ((a == -math.inf) != (b == -math.inf)).any():
            return False
        alive = a > -math.inf
        if (np.abs(a[alive] - b[alive]) > mine.table.up + 1e-13 * (1.0 + np.abs(b[alive]))).any():
            return False
    return True


@pytest.mark.parametrize("seed", range(10))
def test_damaged_models(seed: int, tmp_path: Path) -> None:
    rng, read_by_both, refused = np.random.default_rng(seed), 0, 0
    path = tmp_path / "model.uai"
    for _ in range(20):
        write_uai(random_model(rng, n_variables=3, n_factors=3, max_states=3, zeros=0.2, spread=3.0), path)
        sound = path.read_text(encoding="utf-8")
        for _ in range(15):
            text = damaged(rng, sound)
            path.write_bytes(text.encode("utf-8"))
            found = outcome(lambda: pc.read_model(path), pc.CheckError)
            if found is None:
                refused += 1
                continue
            model = outcome(lambda: read(path), InputError)
            assert model is not None, text
            assert same_model(found, model), text
            read_by_both += 1
    assert min(read_by_both, refused) > 20


@pytest.mark.parametrize("seed", range(10))
def test_damaged_queries_and_evidence(seed: int, tmp_path: Path) -> None:
    rng, read_by_both = np.random.default_rng(seed), 0
    model = random_model(rng, n_variables=5, n_factors=4, max_states=3)
    path = tmp_path / "file"
    for _ in range(200):
        query = rng.permutation(5)[: int(rng.integers(0, 5))].tolist()
        text = damaged(rng, f"{len(query)} {' '.join(map(str, query))}\n")
        path.write_bytes(text.encode("utf-8"))
        found = outcome(lambda: read_list(path, 10**6), pc.CheckError)
        if found is not None and all(v < 5 for v in found):
            theirs = outcome(lambda: read_query(path, model), InputError)
            assert theirs is not None, text
            assert [int(v) for v in theirs] == found, text
            read_by_both += 1
        given = {v: int(rng.integers(0, model.cardinalities[v])) for v in query}
        rows = [f"{len(given)}", *(f"{v} {s}" for v, s in given.items())]
        text = damaged(rng, str(rng.choice([" ", "\n"])).join(rows) + "\n")
        path.write_bytes(text.encode("utf-8"))
        states = outcome(lambda: checked_evidence(path, 10**6), pc.CheckError)
        if states is not None and all(v < 5 and s < model.cardinalities[v] for v, s in states.items()):
            theirs = outcome(lambda: read_evidence(path, model), InputError)
            assert theirs is not None, text
            assert {int(v): int(s) for v, s in theirs.items()} == states, text
            read_by_both += 1
    assert read_by_both > 50
