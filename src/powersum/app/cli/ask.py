"""``powersum ask``."""

from __future__ import annotations

from typing import Annotated

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
from powersum.model.defaults import TIME
from powersum.model.question import shortened
from powersum.model.strict_json import strict_json


@asking
def ask_command(
    asked: CommandEvidence,
    about: Annotated[
        list[str],
        typer.Option(
            metavar="NAMES", help="Variables to find out about: a,b,c. Repeatable.", autocompletion=complete_names
        ),
    ],
    among: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Variables that could be observed; by default all others. Repeatable.",
            autocompletion=complete_names,
        ),
    ] = None,
    time_limit: Annotated[float, typer.Option("--time", metavar="S", help="Seconds for all of it.")] = TIME,
    memory: Memory = None,
    threads: Threads = 1,
    seed: Seed = 0,
    json: JsonOutput = None,
) -> None:
    """Print which variable to observe next: how much each tells about others, and how likely it changes an answer.

    What is not known exactly is printed from both sides.
    """
    from powersum.api.inquiry import ask_next

    limits = limits_of(time_limit=time_limit, memory=memory, threads=threads, seed=seed)
    announce_compilation(quiet=False)
    question, hints = asked.read(limits=limits)
    check_outputs([json], asked.files)
    targets = places_of(question.model, about, "--about") or []
    stream = output_stream(json)
    print_notes(hints)
    what = shortened([question.model.name(v) for v in targets])
    print_question(f"what to observe next to find out about {what}{question.given}", stream)
    with older_answers_aside([json]), impossible_is_an_answer(json, stream):
        found = ask_next(
            question.model,
            targets,
            places_of(question.model, among, "--among"),
            evidence=question.all_evidence,
            time_limit=time_limit,
            memory=memory,
            threads=threads,
            seed=seed,
        )
        write_json(json, strict_json(found.to_dict()))
        say(found.table(), stream)
        print_written((json,), stream)
