"""``powersum solve``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from powersum.app.cli.answer import (
    model_beside,
    print_assignment,
    print_best,
    print_probability,
    print_status,
    print_written,
    write_answer,
    write_model_beside,
)
from powersum.app.cli.asking import CommandQuestion, asking
from powersum.app.cli.files import (
    CertificateOutput,
    JsonOutput,
    Memory,
    PlotOutput,
    ReportOutput,
    Seed,
    Work,
    check_outputs,
    limits_of,
    print_notes,
    print_question,
)
from powersum.app.cli.fresh import older_answers_aside
from powersum.app.cli.progress import announce_compilation, output_stream, progress, two_sided_line
from powersum.app.cli.result_file import AnswerWriter
from powersum.app.cli.terminal import console_on, log10_text, value_text
from powersum.app.cli.workers import WorkersOption
from powersum.core.errors import InputError
from powersum.core.interrupt import interruptible
from powersum.core.work_time import counted_by
from powersum.formats import is_formula
from powersum.model.defaults import EVERY
from powersum.model.limits import NOT_GIVEN
from powersum.model.result import Result, Snapshot, Status
from powersum.run.solver import Run


@asking
def solve_command(
    context: typer.Context,
    asked: CommandQuestion,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time",
            metavar="S",
            help="Return the best answer after S seconds, 60 unless given; reading does not count.",
        ),
    ] = None,
    work: Work = None,
    memory: Memory = None,
    gap: Annotated[float, typer.Option(metavar="X", help="Stop once upper and lower bound are this close.")] = 0.0,
    best: Annotated[
        int, typer.Option(metavar="K", min=1, help="Find the K best assignments in order, and a bound on the next.")
    ] = 1,
    distinct: Annotated[
        int,
        typer.Option(metavar="D", min=1, help="With --best: each differs in at least D variables from those before."),
    ] = 1,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what the answer rests on; takes up to --time once more.")
    ] = False,
    threads: Annotated[
        int, typer.Option(metavar="N", min=1, help="Threads: from two on, local search has one of its own.")
    ] = 1,
    seed: Seed = 0,
    json: JsonOutput = None,
    uai: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write the competition's result file, each improvement at once.")
    ] = None,
    competition: Annotated[
        bool, typer.Option("--competition", help="Of a formula: print the answer as model counting competitions do.")
    ] = False,
    plot: PlotOutput = None,
    report: ReportOutput = None,
    certificate: CertificateOutput = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN.zip", help="Save what is known to RUN.zip while solving; --resume continues a killed run."
        ),
    ] = None,
    every: Annotated[float, typer.Option(metavar="S", help="With --checkpoint: seconds between two of them.")] = EVERY,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN.zip", help="Continue from a checkpoint, of this or of another question on the model."
        ),
    ] = None,
    workers: WorkersOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the two bounds.")] = False,
) -> None:
    """Find the best states of the query variables with their certified value, and an upper bound on every other.

    Without a query it gives log Z from both sides, with --max all the MAP state. Values are natural logarithms. Ctrl-C
    ends the run early and keeps the best answer so far; the exit code is then 130.
    """
    # What is wrong with the options is told before a large model is read.
    limits = limits_of(
        time_limit=NOT_GIVEN if time_limit is None else time_limit,
        memory=memory,
        gap=gap,
        threads=threads,
        seed=seed,
        work=work,
    )
    if best > 1 and uai is not None:
        raise InputError("give --best or --uai, not both: the competition's file has one answer")
    if competition and not is_formula(asked.model):
        raise InputError(f"--competition: {asked.model} is not a formula (.cnf, .sdimacs)")
    if competition and (json == "-" or best > 1):
        raise InputError(f"give --competition or {'--best' if best > 1 else '--json -'}, not both")
    if uai is not None and workers is not None:
        raise InputError("give --uai or --workers, not both: improvements are written by one process")
    # A run may go on in the file that it resumes.
    beside = model_beside(asked.model, certificate)
    outputs = [json, uai, plot, report, certificate, beside]
    check_outputs([*outputs, checkpoint], asked.files, picture=plot)
    check_outputs(outputs, [resume], picture=plot)
    announce_compilation(quiet=quiet)
    with older_answers_aside(outputs):
        question, hints = asked.read(limits=limits)
        solver = Run(
            question,
            certificate=certificate is not None,
            checkpoint=checkpoint,
            every=every,
            resume=resume,
        )
    stream = output_stream(json)
    if competition:
        from powersum.formats.formulas import kind_of

        if not quiet:
            print_notes(hints)
        quiet, kind = True, kind_of(asked.model)
    if not quiet:
        print_notes(hints)
        print_question(question, stream)
    # The flag stays up while files are written: a signal that comes then must not cost the answer.
    with interruptible() as interrupt:
        solver.watch(interrupt)
        result = _answered(
            solver,
            uai,
            quiet=quiet,
            stream=stream,
            workers=workers,
            k=best,
            distinct=distinct,
            memory_given=memory is not None,
        )
        write_answer(result, json, plot, certificate)
        write_model_beside(question.model, beside, certificate, None if quiet else stream)
        told = None
        if not quiet:
            _print_answer(result, stream, hints)
        if explain and result.assignment and (report is not None or not quiet):
            with counted_by(limits.meter()):
                told = result.explain(
                    question.model, time_limit=limits.seconds, memory=limits.bytes, threads=threads, seed=seed
                )
        if report is not None:
            from powersum.app.cli.report import write_page

            write_page(report, result, question, context.obj, told)
        if not quiet:
            if told is not None:
                print(f"\n{told}", file=stream)
            print_written((json, uai, plot, report, certificate), stream)
        elif competition:
            from powersum.formats.formula_answers import answer_lines

            interrupted = result.status is Status.INTERRUPTED
            lines = answer_lines(kind, result.log_lower, result.log_upper, result.assignment, interrupted=interrupted)
            print("\n".join(lines))
        elif json != "-":
            # Adding zero takes the sign from a zero.
            print(result.log_lower + 0.0, result.log_upper + 0.0)


def _answered(run: Run, uai: Path | None, *, quiet: bool, stream: TextIO, **options: Any) -> Result:
    """The answer of a run, with every improvement on the screen and in the competition's file."""
    question = run.question
    with ExitStack() as open_things:
        line, seconds = two_sided_line, question.limits.seconds
        show = open_things.enter_context(progress(quiet=quiet, stream=stream, line=line, seconds=seconds))
        writer = None if uai is None else open_things.enter_context(AnswerWriter(uai, question.query))

        def told(snapshot: Snapshot) -> None:
            # First to the file: what a person has seen must survive a kill.
            if writer is not None:
                writer.improved(run)
            if show is not None:
                show(snapshot)

        return run.answer(callback=told, **options)


def _print_answer(result: Result, stream: TextIO, told: Sequence[str]) -> None:
    """The answer in a few lines."""
    console = console_on(stream)
    print_probability(console, result, first=True)
    lower, upper = value_text(result.log_lower), value_text(result.log_upper)
    if result.status in (Status.OPTIMAL, Status.INFEASIBLE):
        console.print(f"[bold]log value = {lower}[/bold]{log10_text(result.log_lower, '=')}")
    else:
        console.print(f"[bold]{lower} ≤ log value ≤ {upper}[/bold]   gap {result.gap:.4g}")
    print_status(console, result, told)
    print_probability(console, result, first=False)
    print_assignment(console, result, "best states" if result.status is not Status.OPTIMAL else "optimal states")
    print_best(console, result)
