"""Help: the text that every command's shares, and its form on narrow terminals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from typing import Any

NARROW = 60
"""Columns below which options and what they do stand below each other."""


def examples(*commands: str) -> str:
    """The end of a help page; an empty line keeps each command on a line of its own."""
    return "\n\n".join(["Examples:", *commands])


@contextmanager
def fitting_help(command: Any, width: int | None) -> Iterator[dict[str, Any]]:
    """What the context of a command needs for its help to fit a terminal; nothing for one that is wide enough.

    The library of the command line takes no terminal to be narrower than 50 columns, and leaves options half of them.
    """
    if width is None or width >= NARROW:
        yield {}
        return
    context = command.context_class
    usual = context.formatter_class
    context.formatter_class = type("Narrow", (usual,), {"write_dl": partialmethod(usual.write_dl, col_max=2)})
    try:
        yield {"terminal_width": width}
    finally:
        context.formatter_class = usual
