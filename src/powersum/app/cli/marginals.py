"""``powersum marginals``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from powersum.app.cli.answer import print_written
from powersum.app.cli.completion import complete_names
from powersum.app.cli.files import (
    EvidenceFile,
    EvidencePairs,
    JsonOutput,
    Likelihoods,
    Memory,
    ModelFile,
    NamesFile,
    Seed,
    Threads,
    check_outputs,
    limits_of,
    names_of,
    print_notes,
    print_question,
    read_question,
)
from powersum.app.cli.fresh import older_answers_aside
from powersum.app.cli.progress import announce_compilation, output_stream
from powersum.app.cli.terminal import print_json, say
from powersum.app.cli.workers import WorkersOption
from powersum.core.interrupt import interruptible
from powersum.model.defaults import TIME
from powersum.model.keys import Place
from powersum.model.question import shortened

if TYPE_CHECKING:
    from powersum.api.distribution import Marginals


def marginals_command(
    model: ModelFile,
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
    evid: EvidenceFile = None,
    evidence: EvidencePairs = None,
    names: NamesFile = None,
    likelihood: Likelihoods = None,
    time_limit: Annotated[float, typer.Option("--time", metavar="S", help="Seconds, where nothing is exact.")] = TIME,
    memory: Memory = None,
    threads: Threads = 1,
    seed: Seed = 0,
    workers: WorkersOption = None,
    json: JsonOutput = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write proofs of the distributions of --of, for powersum-check --share."),
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
    question, hints = read_question(
        model,
        query=None,
        max_names=None,
        evid=evid,
        evidence=evidence,
        names=names,
        likelihoods=likelihood,
        limits=limits,
        usable=("--evid",),
    )
    asked = names_of(of)
    check_outputs([json], [model, evid, names])
    shown = (
        None
        if asked is None
        else [*dict.fromkeys(Place(question.model.variable(name, argument="--of")) for name in asked)]
    )
    groups = [
        tuple(Place(question.model.variable(name, argument="--joint")) for name in names_of([text]) or ())
        for text in joint or ()
    ]
    wanted = None if shown is None and not groups else [*(shown or ()), *groups]
    stream = output_stream(json)
    print_notes(hints)
    of_what = "" if shown is None else f" of {shortened([question.model.name(v) for v in shown])}"
    print_question(f"marginals{of_what}{question.given}", stream)
    with older_answers_aside([json]), interruptible():
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
        if json == "-":
            print_json(found.to_json(listed))
        elif json is not None:
            Path(json).write_text(found.to_json(listed) + "\n", encoding="utf-8")
        say(found.table(listed), stream)
        if not found.exact:
            say(_how_far(found), stream)
        folders = [] if certificate is None else found.save_certificates(certificate)
        print_written((json, *folders), stream)


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
