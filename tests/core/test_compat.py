"""The versions of Numba that are claimed, that are tried, and that are tested are the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from powersum.core.jit import TESTED
from tests.compat import ROWS

ROOT = Path(__file__).resolve().parents[2]


def project() -> Any:
    """The table of the project."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_limits_are_those_of_the_rows() -> None:
    (claimed,) = (one for one in project()["dependencies"] if one.startswith("numba"))
    found = re.fullmatch(r"numba>=(\d+)\.(\d+),<(\d+)\.(\d+)", claimed)
    assert found is not None
    oldest, beyond = (int(found[1]), int(found[2])), (int(found[3]), int(found[4]))
    assert (oldest, beyond) == TESTED
    assert ROWS["oldest"].packages[0] == f"numba=={oldest[0]}.{oldest[1]}.*"
    for name, row in ROWS.items():
        if name != "oldest":
            assert row.packages[0] == f"numba=={beyond[0]}.{beyond[1] - 1}.*"
    assert ROWS["plain"].plain


def test_each_python_that_is_claimed_has_a_row() -> None:
    classified = set(re.findall(r"Python :: (3\.\d+)", " ".join(project()["classifiers"])))
    assert classified <= {row.python for row in ROWS.values()}
    assert project()["requires-python"] == ">=3.11"
