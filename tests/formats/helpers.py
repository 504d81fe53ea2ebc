"""What the tests of files share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powersum.errors import InputError
from powersum.model import Model


def saved(folder: Path, content: str | bytes, name: str = "m.uai") -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(action: Callable[..., Any], path: Path, *arguments: Any) -> str:
    """The message with which ``action`` refuses a file: one line that begins with the file."""
    with pytest.raises(InputError) as caught:
        action(path, *arguments)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message.splitlines()) == 1
    return message.removeprefix(f"{path}: ")


def assert_same(one: Model, other: Model) -> None:
    """Equal in every array, to the last bit."""
    assert one.directed == other.directed
    for field in ("cardinalities", "scope_starts", "scope_variables", "table_starts", "log_values"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)
