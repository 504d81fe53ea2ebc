"""``powersum decide``."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from powersum.app.cli.answer import impossible_is_an_answer, print_written, write_json
from powersum.app.cli.files import (
    EvidencePairs,
    JsonOutput,
    Memory,
    NamesFile,
    ReportOutput,
    Seed,
    Threads,
    Work,
    check_outputs,
    evidence_pairs,
    limits_of,
    print_question,
)
from powersum.app.cli.fresh import older_answers_aside
from powersum.app.cli.progress import announce_compilation, output_stream
from powersum.app.cli.terminal import say
from powersum.core.interrupt import interruptible
from powersum.model.limits import NOT_GIVEN
from powersum.model.model import VariableKey


def decide_command(
    context: typer.Context,
    diagram: Annotated[
        Path,
        typer.Argument(
            metavar="DIAGRAM", help="The diagram: .uai with .id and .pvo beside it, .xdsl, .net or .bifxml."
        ),
    ],
    evidence: EvidencePairs = None,
    names: NamesFile = None,
    time_limit: Annotated[
        float | None, typer.Option("--time", metavar="S", help="Stop after S seconds, 60 unless given.")
    ] = None,
    work: Work = None,
    value_of_information: Annotated[
        bool, typer.Option("--voi", help="Find what each unseen variable would be worth; shares the time.")
    ] = False,
    memory: Memory = None,
    threads: Threads = 1,
    seed: Seed = 0,
    json: JsonOutput = None,
    report: ReportOutput = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the two bounds.")] = False,
) -> None:
    """Find what to do when what is seen: a policy with its certified expected utility, and a bound on all policies.

    Utilities are in the units of the diagram. Ctrl-C ends the run early with what is known; the exit code is then 130.
    """
    limits = limits_of(
        time_limit=NOT_GIVEN if time_limit is None else time_limit, memory=memory, threads=threads, seed=seed, work=work
    )
    check_outputs([json, report], [diagram, names])
    announce_compilation(quiet=quiet)
    from powersum.decisions.deciding import decide
    from powersum.formats import read_names
    from powersum.formats.diagrams import read_diagram

    with older_answers_aside([json, report]):
        read = read_diagram(diagram)
        if names is not None:
            read = replace(read, model=read_names(names, read.model))
        pairs: list[tuple[VariableKey, Any]] = [pair for text in evidence or () for pair in evidence_pairs(text)]
        known = read.model.evidence(pairs)
    stream = output_stream(json)
    if not quiet:
        given = ", ".join(f"{read.model.name(v)} = {read.model.label(v, state)}" for v, state in known.items())
        say(f"{diagram}: {repr(read)[len('<powersum.Diagram: ') : -1]}", stream)
        print_question(f"best policy given {given}" if given else "best policy", stream)
    with interruptible(), impossible_is_an_answer(json, stream):
        decision = decide(
            read,
            evidence=pairs,
            time_limit=limits.time_limit,
            memory=limits.memory,
            threads=threads,
            seed=seed,
            work=work,
            value_of_information=value_of_information,
        )
        write_json(json, decision.to_json())
        if report is not None:
            from powersum.app.report.html import write_report

            write_report(decision, read, report, title=diagram.name, command=shlex.join(["powersum", *context.obj]))
        if not quiet:
            say(str(decision), stream)
            print_written((json, report), stream)
        elif json != "-":
            print(decision.utility_lower, decision.utility_upper)
