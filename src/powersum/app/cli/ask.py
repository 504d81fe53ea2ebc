"""``powersum ask``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
from powersum.model.defaults import TIME
from powersum.model.keys import Place
from powersum.model.question import shortened
from powersum.model.strict_json import strict_json


def ask_command(
    model: ModelFile,
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
    evid: EvidenceFile = None,
    evidence: EvidencePairs = None,
    names: NamesFile = None,
    likelihood: Likelihoods = None,
    time_limit: Annotated[float, typer.Option("--time", metavar="S", help="Seconds for all of it.")] = TIME,
    memory: Memory = None,
    seed: Seed = 0,
    json: JsonOutput = None,
) -> None:
    """Print which variable to observe next: how much each tells about others, and how likely it changes an answer.

    What is not known exactly is printed from both sides.
    """
    from powersum.api.inquiry import ask_next

    limits = limits_of(time_limit=time_limit, memory=memory, seed=seed)
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
    check_outputs([json], [model, evid, names])

    def places(texts: list[str] | None, argument: str) -> list[Place] | None:
        given = names_of(texts)
        return None if given is None else [Place(question.model.variable(name, argument=argument)) for name in given]

    targets = places(about, "--about") or []
    stream = output_stream(json)
    print_notes(hints)
    what = shortened([question.model.name(v) for v in targets])
    print_question(f"what to observe next to find out about {what}{question.given}", stream)
    with older_answers_aside([json]):
        found = ask_next(
            question.model,
            targets,
            places(among, "--among"),
            evidence=question.all_evidence,
            time_limit=time_limit,
            memory=memory,
            seed=seed,
        )
        text = strict_json(found.to_dict())
        if json == "-":
            print_json(text)
        elif json is not None:
            Path(json).write_text(text + "\n", encoding="utf-8")
        say(found.table(), stream)
        print_written((json,), stream)
