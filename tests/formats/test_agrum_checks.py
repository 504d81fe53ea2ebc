"""What is refused before pyAgrum sees it, for it would end the process or read something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from powersum.core.errors import InputError
from powersum.formats.agrum import _message
from powersum.formats.agrum_checks import look


@pytest.mark.parametrize("kind", ["NET", "DSL"])
@pytest.mark.parametrize("data", [b"\xef", b"\xef\xbb", b"\xef\xbbnet {}", b"\xefnet {}"])
def test_a_broken_byte_order_mark_is_refused(kind: str, data: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 1: the file begins with a broken byte order mark"):
        look(kind, data, tmp_path / "model")


def test_complaints_can_be_printed() -> None:
    """The other library quotes names as they are in the file."""
    path = Path("model.xdsl")
    assert _message(ValueError("[pyAgrum] Object not found: < \ufeff name1>\nmore"), path, path) == (
        "Object not found: < name1>"
    )
