"""A small model on disk and a command line that runs in this process."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import powersum as ps
from powersum.app.cli.app import run_app
from powersum.app.cli.progress import COMPILING
from powersum.formats import write_query


class Ran(NamedTuple):
    """What a command line left behind."""

    code: int
    out: str
    err: str


Command = Callable[..., Ran]


def without_compiling(err: str) -> str:
    """What stderr has apart from the line about compilation, which only a first run prints."""
    return re.sub(rf"^{COMPILING}.*\n", "", err, flags=re.MULTILINE)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``powersum`` with the given words."""

    def run(*words: object) -> Ran:
        code = run_app([str(word) for word in words])
        out, err = capsys.readouterr()
        return Ran(code, out, without_compiling(err))

    return run


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    """A 4×4 grid with a query beside it."""
    model, query = ps.generate.grid(4, 4, seed=1)
    path = tmp_path / "grid.uai"
    ps.write(model, path)
    write_query(query, str(path) + ".query")
    return path
