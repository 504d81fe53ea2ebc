"""``powersum bound``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TextIO

import typer

from powersum.api.bounding import bound
from powersum.app.cli.answer import (
    model_beside,
    print_assignment,
    print_status,
    print_written,
    write_answer,
    write_model_beside,
)
from powersum.app.cli.asking import CommandQuestion, asking
from powersum.app.cli.completion import complete_method
from powersum.app.cli.files import (
    CertificateOutput,
    JsonOutput,
    Memory,
    OrderFile,
    PlotOutput,
    ReportOutput,
    Seed,
    Threads,
    Work,
    check_outputs,
    limits_of,
    print_notes,
    print_question,
)
from powersum.app.cli.fresh import older_answers_aside
from powersum.app.cli.progress import announce_compilation, output_stream, progress, upper_line
from powersum.app.cli.terminal import console_on, log10_text, say, value_text
from powersum.app.cli.workers import WorkersOption
from powersum.bounds.registry import (
    DEFAULT_METHOD,
    METHODS,
    check_counted,
    check_options,
    check_provable,
    method_named,
)
from powersum.core.interrupt import interruptible
from powersum.model.result import Result, Status


@asking
def bound_command(
    context: typer.Context,
    asked: CommandQuestion,
    order: OrderFile = None,
    method: Annotated[
        str, typer.Option(help=f"How to tighten: auto, {', '.join(METHODS)}.", autocompletion=complete_method)
    ] = DEFAULT_METHOD,
    sweeps: Annotated[
        int | None, typer.Option(metavar="N", help="Stop after N sweeps; 500 if there is no --time.")
    ] = None,
    time_limit: Annotated[float | None, typer.Option("--time", metavar="S", help="Stop after S seconds.")] = None,
    work: Work = None,
    target: Annotated[float | None, typer.Option(metavar="X", help="Stop at a bound of X or less.")] = None,
    change: Annotated[
        float | None, typer.Option(metavar="X", help="Stop when ten sweeps gain less than X * max(1, |bound|).")
    ] = None,
    start: Annotated[str | None, typer.Option(metavar="NAME", help="First weights: share, wmb or uniform.")] = None,
    direction: Annotated[
        str | None, typer.Option(metavar="NAME", help="Steps: matching, or the plain gradient of the paper.")
    ] = None,
    ibound: Annotated[
        int | None, typer.Option(metavar="K", min=0, help="Regions of at most K + 1 variables (method tree).")
    ] = None,
    memory: Memory = None,
    threads: Threads = 1,
    seed: Seed = 0,
    workers: WorkersOption = None,
    json: JsonOutput = None,
    plot: PlotOutput = None,
    report: ReportOutput = None,
    certificate: CertificateOutput = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the bound.")] = False,
) -> None:
    """Bound a model's marginal MAP value, its partition function (no query) or its MAP value (--max all) from above.

    Values are natural logarithms. Ctrl-C ends the run early and keeps the best bound so far; the exit code is then 130.
    """
    options: dict[str, Any] = {
        name: value
        for name, value in (
            ("start", start),
            ("direction", direction),
            ("ibound", ibound),
            ("memory", memory),
        )
        if value is not None
    }
    # What is wrong with the options is told before a large model is read.
    limits = limits_of(
        sweeps=sweeps,
        time_limit=time_limit,
        target=target,
        change=change,
        memory=memory,
        threads=threads,
        seed=seed,
        work=work,
    )
    if work is not None:
        check_counted(method_named(method))
    check_options(method_named(method), options)
    if certificate is not None:
        check_provable(method_named(method))
    beside = model_beside(asked.model, certificate)
    outputs = [json, plot, report, certificate, beside]
    check_outputs(outputs, [*asked.files, order], picture=plot)
    announce_compilation(quiet=quiet)
    with older_answers_aside(outputs):
        question, hints = asked.read(order=order, limits=limits)
    stream = output_stream(json)
    if not quiet:
        print_notes(hints)
        say(f"{asked.model}: {_described(question.model.n_variables, question.model.n_factors)}", stream)
        print_question(question, stream)

    # The flag stays up while files are written: a signal that comes then must not cost the answer.
    with interruptible():
        with progress(quiet=quiet, stream=stream, line=upper_line, seconds=limits.seconds) as callback:
            result = bound(
                question.model,
                evidence=question.all_evidence,
                weights=question.query,
                order=question.order,
                method=method,
                sweeps=sweeps,
                time_limit=time_limit,
                target=target,
                change=change,
                threads=threads,
                seed=seed,
                work=work,
                certificate=certificate is not None,
                callback=callback,
                workers=workers,
                **options,
            )
        write_answer(result, json, plot, certificate)
        write_model_beside(question.model, beside, certificate, None if quiet else stream)
        if report is not None:
            from powersum.app.cli.report import write_page

            write_page(report, result, question, context.obj)
        if not quiet:
            _print_answer(result, stream, hints)
            print_written((json, plot, report, certificate), stream)
        elif json != "-":
            # Adding zero takes the sign from a zero.
            print(result.log_upper + 0.0)


def _described(variables: int, factors: int) -> str:
    return f"{variables} variable{'' if variables == 1 else 's'}, {factors} factor{'' if factors == 1 else 's'}"


def _print_answer(result: Result, stream: TextIO, told: Sequence[str]) -> None:
    """The answer in a few lines."""
    console = console_on(stream)
    sign = "=" if result.status in (Status.OPTIMAL, Status.INFEASIBLE) else "≤"
    value, log10 = value_text(result.log_upper), log10_text(result.log_upper, sign)
    console.print(f"[bold]log value {sign} {value}[/bold]{log10}")
    print_status(console, result, told)
    print_assignment(console, result, "decoded")
