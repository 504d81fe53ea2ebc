"""``powersum compare``."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from powersum.api.comparison import (
    DEFAULT_METHODS,
    RUNNABLE,
    Comparison,
    Point,
    Trace,
    compare,
    parse_methods,
)
from powersum.app.cli.answer import print_written
from powersum.app.cli.asking import CommandQuestion, asking
from powersum.app.cli.completion import complete_methods
from powersum.app.cli.files import (
    OrderFile,
    check_outputs,
    limits_of,
    print_notes,
    print_question,
)
from powersum.app.cli.fresh import older_answers_aside
from powersum.app.cli.progress import announce_compilation
from powersum.app.cli.terminal import columns, say, wrapped
from powersum.core.interrupt import interruptible
from powersum.model.defaults import COMPARED_SWEEPS
from powersum.model.limits import Limits


@asking
def compare_command(
    asked: CommandQuestion,
    order: OrderFile = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help=f"Methods, as a,b:VALUE,c: {', '.join(RUNNABLE)}. The value is the damping of wmb and trw, the "
            "i-bound of tree, mbe, reorder and mas, the first weights of gdd, or gdd:paper.",
            autocompletion=complete_methods,
        ),
    ] = ",".join(DEFAULT_METHODS),
    sweeps: Annotated[
        int | None, typer.Option(metavar="N", help=f"Sweeps of each method; {COMPARED_SWEEPS} if there is no --time.")
    ] = None,
    time_limit: Annotated[float | None, typer.Option("--time", metavar="S", help="Seconds of each method.")] = None,
    decode: Annotated[bool, typer.Option(help="Decode after each sweep and evaluate it exactly.")] = True,
    threads: Annotated[int, typer.Option(metavar="N", min=1, help="Threads of each method.")] = 1,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of what is drawn at random.")] = 0,
    plot: Annotated[Path | None, typer.Option(metavar="OUT.png", help="Draw bounds against sweeps and time.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="OUT.csv", help="Write every point as a line.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the last table.")] = False,
) -> None:
    """Run several methods side by side on one question.

    Shows the bound of each against sweeps and seconds, and the exact value Q(x_B) of its latest decoding. Values are
    natural logarithms. Ctrl-C ends it early, with exit code 130; what was measured is shown and written.
    """
    choices = parse_methods(methods)
    if sweeps is None and time_limit is None:
        sweeps = COMPARED_SWEEPS
    limits = limits_of(sweeps=sweeps, time_limit=time_limit, threads=threads, seed=seed)
    check_outputs([plot, csv], [*asked.files, order], picture=plot)
    announce_compilation(quiet=quiet)
    with older_answers_aside([plot, csv]):
        question, hints = asked.read(order=order, limits=limits)
    if not quiet:
        print_notes(hints)
        print_question(question, sys.stdout)
    with interruptible():
        with _compare_progress(quiet, [c.label for c in choices], limits) as callback:
            comparison = compare(
                question.model,
                evidence=question.all_evidence,
                weights=question.query,
                methods=[choice.label for choice in choices],
                order=question.order,
                sweeps=sweeps,
                time_limit=time_limit,
                decode=decode,
                threads=threads,
                seed=seed,
                callback=callback,
            )
        print(table_of(comparison, columns(sys.stdout)))
        for note in comparison.notes:
            say(f"note: {note}", sys.stdout)
        if csv is not None:
            from powersum.core.files import saving

            with saving(csv) as handle:
                handle.write(comparison.to_csv().encode())
        if plot is not None:
            from powersum.app.report.compare import save_comparison

            save_comparison(comparison, plot, title=asked.model.name)
        if not quiet:
            print_written((csv, plot), sys.stdout)


def table_of(comparison: Comparison, width: int | None = None) -> str:
    """A line for each method: sweeps, seconds, best bound, last value and last decoding; words if it is too wide."""
    lines = [f"{'method':<12}{'sweeps':>7}{'seconds':>9}{'log value ≤':>14}{'last value':>14}{'decoded':>14}"]
    for trace in comparison.traces:
        last = trace.points[-1]
        bound = f"{last.log_upper:z.6f}" if trace.guaranteed else "no bound"
        decoded = "" if last.log_decoded is None else f"{last.log_decoded:z.6f}"
        lines.append(
            f"{trace.label:<12}{last.sweep:>7}{last.seconds:>9.2f}{bound:>14}{last.value:>z14.6f}{decoded:>14}".rstrip()
        )
    if width is not None and width < max(map(len, lines)):
        return "\n".join(wrapped(_in_words(trace), width, indent=2) for trace in comparison.traces)
    return "\n".join(lines)


def _in_words(trace: Trace) -> str:
    last = trace.points[-1]
    bound = f"log value ≤ {last.log_upper:z.6f}" if trace.guaranteed else "no bound"
    decoded = "" if last.log_decoded is None else f", decoded {last.log_decoded:z.6f}"
    return (
        f"{trace.label}: {bound} after {last.sweep} sweeps in {last.seconds:.2f} s, "
        f"last value {last.value:z.6f}{decoded}"
    )


class _compare_progress:
    """A bar over methods and their limits on a terminal, nothing in a pipe: the table at the end says it all."""

    def __init__(self, quiet: bool, labels: list[str], limits: Limits) -> None:
        self._stream: TextIO = sys.stderr
        self._shown = not quiet and self._stream.isatty()
        self._labels, self._limits = labels, limits

    def __enter__(self) -> _compare_progress:
        if self._shown:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(file=self._stream), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("preparing", total=len(self._labels))
        return self

    def __call__(self, label: str, point: Point) -> None:
        if self._shown:
            done = self._labels.index(label) + min(self._share(point), 1.0)
            value = f"{point.log_upper:.3f}" if math.isfinite(point.log_upper) else f"{point.value:.3f}"
            self._bar.update(self._task, completed=done, description=f"{label} {value}")

    def _share(self, point: Point) -> float:
        """How much of the nearest limit a method has used."""
        sweeps = self._limits.sweeps
        of_sweeps = 0.0 if sweeps is None else point.sweep / max(sweeps, 1)
        return max(of_sweeps, point.seconds / self._limits.seconds)

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._bar.stop()
