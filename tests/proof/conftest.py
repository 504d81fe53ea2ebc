"""Which road the answers take."""

from __future__ import annotations

from tests.run.conftest import long_road as long_road
