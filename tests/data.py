"""How a test says that it goes without the real instances."""

from __future__ import annotations

import pytest
from benchmarks.instances import DATA

needs_data = pytest.mark.skipif(
    not (DATA / "reference.csv").is_file(),
    reason="the benchmark instances are not here: set POWERSUM_DATA to their folder",
)
