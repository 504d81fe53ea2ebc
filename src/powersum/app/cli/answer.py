"""What every answer ends with: its files, and its last lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from powersum.app.cli.terminal import print_json, say, value_text
from powersum.core.errors import ImpossibleError
from powersum.core.files import plain_name
from powersum.model.model import Model
from powersum.model.result import Result, Status
from powersum.model.strict_json import strict_json

if TYPE_CHECKING:
    from rich.console import Console

# More states than this are not printed: the JSON has them all.
SHOWN_STATES = 12


def write_answer(result: Result, json: str | None, plot: Path | None, certificate: Path | None) -> None:
    """The answer as JSON, to a file or to stdout, as a picture, and its proof; what goes to stdout comes last."""
    if certificate is not None and result.certificate is not None:
        result.certificate.save(certificate)
    if json is not None and json != "-":
        result.save(json)
    if plot is not None:
        from powersum.app.report.curves import save_plot

        save_plot(result, plot)
    if json == "-":
        print_json(result.to_json())


def model_beside(model: Path, certificate: Path | None) -> Path | None:
    """Where the model goes that powersum-check reads with a certificate; None where it reads the model's own file."""
    if certificate is None or Path(plain_name(model)).suffix == ".uai":
        return None
    return certificate.with_suffix(".uai")


def write_model_beside(model: Model, path: Path | None, certificate: Path | None, stream: TextIO | None) -> None:
    """Write the model for powersum-check, and say how to call it."""
    if path is None:
        return
    from powersum.formats import write

    write(model, path)
    if stream is not None:
        say(f"wrote {path}; to check the proof: powersum-check {path} --as-claimed {certificate}", stream)


@contextmanager
def impossible_is_an_answer(json: str | None, stream: TextIO) -> Iterator[None]:
    """Print and write that the evidence has probability 0, where a command finds that out."""
    try:
        yield
    except ImpossibleError as error:
        text = strict_json({"status": Status.INFEASIBLE.value, "reason": str(error)})
        write_json(json, text)
        say(f"infeasible: {error}", stream)


def write_json(json: str | None, text: str) -> None:
    """Write JSON to the file, or the stream, that the option names."""
    if json == "-":
        print_json(text)
    elif json is not None:
        Path(json).write_text(text + "\n", encoding="utf-8")


def print_written(paths: Iterable[str | Path | None], stream: TextIO) -> None:
    """Name the files that were written."""
    for path in paths:
        if path is not None and str(path) != "-":
            say(f"wrote {path}", stream)


def print_probability(console: Console, result: Result, *, first: bool) -> None:
    """How probable the assignment is: the headline where it is known closely, else a line below the status."""
    share = result.probability
    if share is None or share.informative is not first:
        return
    given = " given the evidence" if result.question is not None and result.question.known else ""
    if first:
        console.print(f"[bold]probability: {share}[/bold]{given}")
    else:
        console.print(f"probability: {share}{given}; the time did not suffice for closer bounds")


def print_status(console: Console, result: Result, told: Sequence[str]) -> None:
    """Status, why, and notes but for those that were told before the run."""
    from rich.markup import escape

    console.print(f"{result.status}: {escape(result.reason)} ({result.seconds:.2f} s)")
    for note in result.notes:
        if note not in told:
            console.print(f"note: {escape(note)}")


def print_best(console: Console, result: Result) -> None:
    """One line for each of several answers, and one for what comes after them."""
    from rich.markup import escape

    for number, one in enumerate(result.best, 1):
        pairs = " ".join(f"{name}={state}" for name, state in list(one.assignment.items())[:SHOWN_STATES])
        rest = " …" if len(one.assignment) > SHOWN_STATES else ""
        share = "" if one.probability is None else f"{one.probability}  "
        sure = "" if one.status is Status.OPTIMAL else "  not proven"
        console.print(f"{number}. {share}log value {value_text(one.log_lower)}{sure}  {escape(pairs)}{rest}")
    if result.best and result.log_upper_next is not None:
        end = (
            "there are no more"
            if result.log_upper_next == -math.inf
            else f"at most {value_text(result.log_upper_next)}"
        )
        console.print(f"next: {end}")


def print_assignment(console: Console, result: Result, title: str) -> None:
    """The first states of the assignment, if there is one."""
    from rich.markup import escape

    if not result.assignment:
        return
    pairs = [f"{name}={state}" for name, state in list(result.assignment.items())[:SHOWN_STATES]]
    rest = len(result.assignment) - len(pairs)
    more = f" … and {rest} more (--json has all)" if rest else ""
    console.print(f"{title}: {escape(' '.join(pairs))}{more}")
