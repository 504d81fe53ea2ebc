"""Where the benchmarks find the real instances."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(os.environ.get("POWERSUM_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
