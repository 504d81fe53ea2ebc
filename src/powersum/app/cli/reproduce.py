"""``powersum reproduce``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from powersum.app.cli import Stopped
from powersum.app.reproduce import FIGURES, Settings, reproduce


def reproduce_command(
    figure: Annotated[
        str | None,
        typer.Argument(metavar="[FIGURE]", help=f"One of {', '.join(FIGURES)}, or several as 1,2,A; all if not given."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of real instances; generated ones if not given.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write.")] = Path("reproduction"),
    sweeps: Annotated[int, typer.Option(metavar="N", min=1, help="Sweeps of the curves.")] = 20,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of what is generated.")] = 0,
) -> None:
    """Measure every figure of the paper, draw it and judge the paper's claims.

    Writes PNG, SVG and CSV for each figure, claims.md and index.html. Ctrl-C stops it; the same command
    continues.
    """
    chosen = FIGURES if figure is None else tuple(word.strip() for word in figure.split(",") if word.strip())
    settings = Settings(data=data, seed=seed, sweeps=sweeps)
    with _progress() as show:
        complete = reproduce(out, chosen, settings, show)
    if not complete:
        raise Stopped(f"; what was measured is in {out / 'data'}, the same command goes on from there")
    print(f"wrote {out / 'index.html'} and {out / 'claims.md'}")


class _progress:
    """A bar on a terminal, a line for each task in a pipe."""

    def __enter__(self) -> _progress:
        self._bar = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                BarColumn(),
                TextColumn("{task.completed}/{task.total}"),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
                console=Console(file=sys.stderr),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("preparing", total=1)
        return self

    def __call__(self, done: int, total: int, title: str) -> None:
        if self._bar is None:
            print(f"{done}/{total} {title}", file=sys.stderr, flush=True)
        else:
            self._bar.update(self._task, completed=done, total=total, description=title)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
