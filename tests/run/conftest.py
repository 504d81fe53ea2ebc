"""Which road the answers take."""

from __future__ import annotations

import pytest

from powersum.exact import small


@pytest.fixture(autouse=True)
def long_road(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models take the road of large ones, which these tests are about; ``test_small.py`` compares the two."""
    monkeypatch.setattr(small, "MOST_ENTRIES", -1)
