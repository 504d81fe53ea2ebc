"""``powersum marginals``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from powersum.app.cli.completion import complete_names
from powersum.app.cli.files import (
    EvidenceFile,
    EvidencePairs,
    Likelihoods,
    Memory,
    ModelFile,
    NamesFile,
    Seed,
    limits_of,
    names_of,
    print_notes,
    print_question,
    read_question,
)
from powersum.app.cli.progress import announce_compilation
from powersum.core.machine import budget_of
from powersum.model.keys import Place
from powersum.model.question import shortened


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
    evid: EvidenceFile = None,
    evidence: EvidencePairs = None,
    names: NamesFile = None,
    likelihood: Likelihoods = None,
    time_limit: Annotated[float, typer.Option("--time", metavar="S", help="Seconds, where nothing is exact.")] = 10.0,
    memory: Memory = None,
    seed: Seed = 0,
) -> None:
    """Print how probable each state of each variable is given the evidence.

    A probability that is not known exactly is printed from both sides: it is never below the one nor above the other.
    """
    # Imported here, for it loads what other commands do not need.
    from powersum.api.marginals import marginals

    limits = limits_of(time_limit=time_limit, memory=budget_of(memory), seed=seed)
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
    shown = (
        None
        if asked is None
        else [*dict.fromkeys(Place(question.model.variable(name, argument="--of")) for name in asked)]
    )
    print_notes(hints)
    of_what = "" if shown is None else f" of {shortened([question.model.name(v) for v in shown])}"
    print_question(f"marginals{of_what}{question.given}", sys.stdout)
    found = marginals(question.model, question.all_evidence, of=shown, time_limit=time_limit, memory=memory, seed=seed)
    print(found.table(shown))
