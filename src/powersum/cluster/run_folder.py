"""The folder of a run, for files that its processes share: it goes with the run, or if that was killed with the next.

Its owner holds a lock, which the system lets go of however the owner ends. Whoever begins a run removes what nobody
holds any more.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PREFIX = "powersum-run-"
LOCK = "in-use"
"""The file that the owner of a folder has locked."""


def _flock() -> Callable[[int, int], None] | None:
    """The system's lock on open files; None where it has none, as Windows: there what a killed run leaves stays."""
    try:
        from fcntl import flock
    except ImportError:
        return None
    return flock


EXCLUSIVE_AT_ONCE = 2 | 4
"""``LOCK_EX | LOCK_NB`` of ``fcntl``: for oneself, or not at all."""


class RunFolder:
    """A new folder; what runs that were killed have left beside it is removed.

    Parameters
    ----------
    parent
        Where; the system's folder for temporary files if not given.

    Attributes
    ----------
    path
        The folder.
    """

    def __init__(self, parent: str | None = None) -> None:
        remove_abandoned(Path(parent or tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        # Locked before it has its name: nobody ever finds it without its owner.
        hidden = self.path / f".{LOCK}"
        self._held = os.open(hidden, os.O_CREAT | os.O_RDWR, 0o600)
        if (flock := _flock()) is not None:
            # A file system without locks has nothing that could be taken for abandoned, either.
            with suppress(OSError):
                flock(self._held, EXCLUSIVE_AT_ONCE)
                hidden.rename(self.path / LOCK)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1
        shutil.rmtree(self.path, ignore_errors=True)


def remove_abandoned(parent: Path) -> None:
    """Remove the folders of runs whose process is gone."""
    flock = _flock()
    if flock is None:
        return
    for lock in sorted(parent.glob(f"{PREFIX}*/{LOCK}")):
        # Somebody else's, in use, or removed by another run meanwhile.
        with suppress(OSError):
            held = os.open(lock, os.O_RDWR)
            try:
                flock(held, EXCLUSIVE_AT_ONCE)
                shutil.rmtree(lock.parent, ignore_errors=True)
            finally:
                os.close(held)
