"""``powersum marginals``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from powersum.app.cli.answer import impossible_is_an_answer, print_written, write_json
from powersum.app.cli.asking import CommandEvidence, asking
from powersum.app.cli.completion import complete_names
from powersum.app.cli.files import (
    JsonOutput,
    Memory,
    Seed,
    Threads,
    check_outputs,
    limits_of,
    places_of,
    print_notes,
    print_question,
)
from powersum.app.cli.fresh import older_answers_aside
from powersum.app.cli.progress import announce_compilation, output_stream
from powersum.app.cli.terminal import say
from powersum.app.cli.workers import WorkersOption
from powersum.core.interrupt import interruptible
from powersum.model.defaults import TIME
from powersum.model.question import shortened

if TYPE_CHECKING:
    from powersum.api.distribution import Marginals


@asking
def marginals_command(
    asked: CommandEvidence,
    of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Variables to show, and to spend the time on where nothing is exact: a,b,c. Repeatable.",
            autocompletion=complete_names,
        ),
    ] = None,
    joint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Show the joint distribution of a,b,c, too. Repeatable.",
            autocompletion=complete_names,
        ),
    ] = None,
    time_limit: Annotated[float, typer.Option("--time", metavar="S", help="Seconds, where nothing is exact.")] = TIME,
    memory: Memory = None,
    threads: Threads = 1,
    seed: Seed = 0,
    workers: WorkersOption = None,
    json: JsonOutput = None,
    csv: Annotated[Path | None, typer.Option(metavar="OUT.csv", help="Write a line for each state.")] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write proofs for powersum-check: --marginals, with --of --share."),
    ] = None,
) -> None:
    """Print how probable each state of each variable is given the evidence.

    A probability that is not known exactly is printed from both sides: it is never below the one nor above the other.
    Ctrl-C ends the run early with what is known; the exit code is then 130.
    """
    # Imported here, for it loads what other commands do not need.
    from powersum.api.marginals import marginals

    limits = limits_of(time_limit=time_limit, memory=memory, threads=threads, seed=seed)
    announce_compilation(quiet=False)
    question, hints = asked.read(limits=limits)
    check_outputs([json, csv], asked.files)
    shown = places_of(question.model, of, "--of")
    shown = None if shown is None else [*dict.fromkeys(shown)]
    groups = [tuple(places_of(question.model, [text], "--joint") or ()) for text in joint or ()]
    wanted = None if shown is None and not groups else [*(shown or ()), *groups]
    stream = output_stream(json)
    print_notes(hints)
    of_what = "" if shown is None else f" of {shortened([question.model.name(v) for v in shown])}"
    print_question(f"marginals{of_what}{question.given}", stream)
    with older_answers_aside([json, csv]), interruptible(), impossible_is_an_answer(json, stream):
        found = marginals(
            question.model,
            evidence=question.all_evidence,
            of=wanted,
            time_limit=time_limit,
            memory=memory,
            threads=threads,
            seed=seed,
            certificate=certificate is not None,
            workers=workers,
            callback=_shown_on(sys.stderr) if sys.stderr.isatty() else None,
        )
        # Of joint distributions alone nothing else was asked.
        listed = [] if shown is None and groups else shown
        write_json(json, found.to_json(listed))
        if csv is not None:
            csv.write_text(found.to_csv(listed), encoding="utf-8")
        say(found.table(listed), stream)
        if not found.exact:
            say(_how_far(found), stream)
        folders = [] if certificate is None else found.save_certificates(certificate)
        print_written((json, csv, *folders), stream)


def _how_far(found: Marginals) -> str:
    """How many distributions are exact, and how wide the widest interval is."""
    exact = sum(found.at(v).exact for v in range(len(found)))
    place, width = found.widest
    widest = f"the widest interval is {width:.3g} ({found.model.name(place)})"
    return f"{exact} of {len(found)} distributions are exact; {widest}"


def _shown_on(stream: TextIO) -> Callable[[Marginals], None]:
    """One line that is written over and over."""

    def show(found: Marginals) -> None:
        stream.write("\r\x1b[K" + ("" if found.exact else _how_far(found)))
        stream.flush()

    return show
