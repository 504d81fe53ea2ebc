"""Text that every command's help shares."""

from __future__ import annotations


def examples(*commands: str) -> str:
    """The end of a help page; an empty line keeps each command on a line of its own."""
    return "\n\n".join(["Examples:", *commands])
