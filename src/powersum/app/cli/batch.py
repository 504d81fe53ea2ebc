"""``powersum batch``: one row a case, one line an answer."""

from __future__ import annotations

import csv
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from powersum.api.cases import Columns, Writing, columns_of, lines_of, parted
from powersum.api.stream import Stream
from powersum.app.cli import Stopped
from powersum.app.cli.batch_output import Answers
from powersum.app.cli.batch_progress import Counter
from powersum.app.cli.files import (
    MaxNames,
    Memory,
    ModelFile,
    QueryFile,
    Seed,
    check_outputs,
    limits_of,
    names_of,
    print_notes,
    print_question,
    read_question,
)
from powersum.app.cli.workers import WorkersOption
from powersum.cluster.errors import ClusterError
from powersum.core.errors import InputError
from powersum.core.interrupt import interruptible
from powersum.model.defaults import TIME

JSON_ENDINGS = (".jsonl", ".ndjson")

SOME_WRONG = 1
"""Exit code where every row has its line, and some of them say what is wrong with the row."""


def batch_command(
    model: ModelFile,
    cases: Annotated[
        Path,
        typer.Argument(
            metavar="CASES",
            help="A table (.csv) with columns named like variables, or variable:state for likelihoods, empty where"
            " unknown; or JSON lines (.jsonl) of variables and states.",
        ),
    ],
    query: QueryFile = None,
    max_names: MaxNames = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT", help="Where answers go: .csv, .jsonl, or - for stdout.")
    ] = "-",
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Columns of the cases to copy to the answers, as id,date. Repeatable."),
    ] = None,
    workers: WorkersOption = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue after the last whole line of OUT; model and cases must be the same."),
    ] = False,
    time_limit: Annotated[float, typer.Option("--time", metavar="S", help="Seconds for each row.")] = TIME,
    memory: Memory = None,
    seed: Seed = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but what is wrong.")] = False,
) -> None:
    """Answer the same question for every case of a table, in order, a line each as they come.

    A wrong row gets a line with its error, the others are answered, and the exit code is 1. After a crash or Ctrl-C the
    same command with --resume continues.
    """
    limits = limits_of(time_limit=time_limit, memory=memory, seed=seed)
    check_outputs([output], [model, cases, query])
    if resume and output == "-":
        raise InputError("--resume needs -o with the file to go on with")
    question, hints = read_question(
        model, query=query, max_names=max_names, evid=None, evidence=None, usable=("--query",)
    )
    question.only_sums_and_maxima("batch")
    kept = tuple(dict.fromkeys(names_of(keep) or ()))
    names = tuple(question.model.name(v) for v in question.query.answered)
    writing = Writing(names, kept, Path(output).suffix in JSON_ENDINGS)
    if not quiet:
        print_notes(hints)
    wrong = 0
    with ExitStack() as opened:
        table = opened.enter_context(_open(cases))
        columns, rows = _rows(cases, table, question.model, kept)
        out = opened.enter_context(Answers(output, writing, resume=resume))
        if not quiet:
            print_question(question, sys.stderr)
        interrupt = opened.enter_context(interruptible())
        counter = opened.enter_context(Counter(cases, done=out.done, quiet=quiet))
        passed = sum(1 for _ in islice(rows, out.done))
        if passed < out.done:
            raise InputError(f"{output}: has {out.done} answers, {cases} only {passed} rows")
        beside: deque[str] = deque()
        lines = Stream(question.model, limits, workers, memory_given=memory is not None).answered(
            lines_of,
            _items(rows, beside, columns, writing),
            question.query,
            columns,
            writing,
            stopped=lambda: interrupt.cause is not None,
        )
        try:
            for line, error in lines:
                # An answer that was broken off is no answer.
                if interrupt.cause is not None:
                    break
                out.write(beside.popleft() + line)
                counter.advance()
                if error is not None:
                    wrong += 1
                    if wrong <= FEW:
                        print_notes([f"row {out.done}: {error}"])
        except ClusterError as error:
            rest = "" if output == "-" else f"; {out.done} rows are done, the same command with --resume goes on"
            raise InputError(f"{error}{rest}") from None
    if interrupt.cause is not None:
        rest = "" if output == "-" else "; the same command with --resume goes on"
        raise Stopped(f" after {out.done} rows{rest}")
    if wrong > FEW:
        print_notes([f"{wrong} of {out.done} rows are wrong; their lines say why"])
    if wrong:
        raise typer.Exit(SOME_WRONG)


FEW = 10
"""Wrong rows that are told one by one."""


def _items(
    rows: Iterator[Any], beside: deque[str], columns: Columns | None, writing: Writing
) -> Iterator[tuple[Any, Any]]:
    """Cases, and what tells them apart; what is kept of them is left beside, in their order."""
    for row in rows:
        kept, case = parted(row, columns, writing)
        beside.append(kept)
        yield case, case


def _open(path: Path) -> IO[str]:
    try:
        return path.open(encoding="utf-8-sig", newline="", errors="strict")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _rows(path: Path, table: IO[str], model: Any, kept: tuple[str, ...]) -> tuple[Columns | None, Iterator[Any]]:
    """What the columns mean, None for JSON lines, and the rows after them."""
    try:
        if path.suffix in JSON_ENDINGS:
            return None, _readable(path, (line for line in table if line.strip()))
        reader = csv.reader(table)
        header = next(reader, None)
        if header is None:
            raise InputError("is empty: its first line names the columns")
        # An empty line is no case; neither does it shift the numbers of those after it.
        return columns_of(model, header, kept), _readable(path, (row for row in reader if row))
    except (UnicodeDecodeError, csv.Error, InputError) as error:
        raise InputError(f"{path}: {_said(error)}") from None


def _readable(path: Path, rows: Iterator[Any]) -> Iterator[Any]:
    """The rows; what cannot be read at all ends them with a line that names the file."""
    number = 0
    try:
        for row in rows:
            number += 1
            yield row
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: after row {number}: {_said(error)}") from None


def _said(error: Exception) -> str:
    return "is no text in UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
