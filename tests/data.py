"""Where the real instances are, and how a test says that it goes without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("POWERSUM_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")

needs_data = pytest.mark.skipif(
    not (DATA / "reference.csv").is_file(),
    reason="the benchmark instances are not here: set POWERSUM_DATA to their folder",
)
