"""Every figure of the paper by one command: measure, draw, judge the claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from powersum.app.reproduce.plan import FIGURES, Settings
from powersum.core.errors import InputError

__all__ = ["FIGURES", "Settings", "reproduce"]

Progress = Callable[[int, int, str], None]
"""Called with the number of tasks done, that of all, and the title of the one at work."""


def reproduce(
    out: str | Path,
    figures: Sequence[str] = FIGURES,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> bool:
    """Measure the figures and write pictures, tables, ``claims.md`` and ``index.html`` into a folder.

    Measurements are stored as they are made. A call that is interrupted, or made again with more figures, takes up what
    is there if it was made with the same settings and version.

    Parameters
    ----------
    out
        The folder; made if it does not exist.
    figures
        Some of ``1``, ``2``, ``3`` and the supplements ``A``, ``B``, ``C``.
    settings
        How much is measured, and the folder of real instances if there is one.
    progress
        Called before every task and at the end.

    Returns
    -------
    bool
        False when it was interrupted: the pictures are then not written yet.
    """
    for figure in figures:
        if figure not in FIGURES:
            raise InputError(f"there is no figure {figure!r}: there is {', '.join(FIGURES)}")
    from powersum.app.reproduce.instances import check_folder
    from powersum.app.reproduce.plan import tasks
    from powersum.app.reproduce.store import FigureStore
    from powersum.app.reproduce.write import write_all
    from powersum.core.interrupt import interruptible

    settings = settings or Settings()
    check_folder(settings.data)
    store = FigureStore(Path(out) / "data", settings.fingerprint())
    wanted = tuple(f for f in FIGURES if f in figures)
    with interruptible() as interrupt:
        todo = tasks(settings, wanted)
        for number, task in enumerate(todo):
            if progress is not None:
                progress(number, len(todo), f"figure {task.figure}: {task.title}")
            if store.load(task.figure, task.key) is None:
                record = task.run(None)
                # Half a measurement is none.
                if interrupt.cause is None:
                    store.save(task.figure, task.key, record)
            if interrupt.cause is not None:
                return False
        write_all(Path(out), todo, store, settings)
    if progress is not None:
        progress(len(todo), len(todo), "done")
    return True
