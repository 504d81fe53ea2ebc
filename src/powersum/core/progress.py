"""What work that is done in turns says at the end of each."""

from __future__ import annotations

import enum


class Progress(enum.Enum):
    """How a turn of work ended."""

    MORE = enum.auto()
    """There is more to do: it wants another turn."""

    OUT_OF_TIME = enum.auto()
    """There would be more to do, but nothing of it can be finished in the time it was given in all."""

    DONE = enum.auto()
    """Nothing is left to do."""
