"""Questions from the command line as Python values, and outputs that are checked before anything long starts."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from powersum.app.cli.completion import complete_evidence, complete_names
from powersum.app.cli.terminal import say
from powersum.core.errors import InputError
from powersum.model.keys import Place
from powersum.model.limits import Limits
from powersum.model.model import Model, VariableKey
from powersum.model.question import Question

ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="The model (.uai, .bif, .xmlbif, .net, .dsl, .xdsl, .psm) or formula (.cnf, .sdimacs); also .gz, .xz.",
    ),
]
QueryFile = Annotated[
    Path | None, typer.Option("--query", metavar="FILE", help="Variables to maximise (.query, .map).")
]
MaxNames = Annotated[
    list[str] | None,
    typer.Option(
        "--max",
        metavar="NAMES",
        help="Variables to maximise, as a,b,c; 'all' for MAP. None: log Z. Repeatable.",
        autocompletion=complete_names,
    ),
]
EvidenceFile = Annotated[Path | None, typer.Option("--evid", metavar="FILE", help="Observed states (.evid).")]
EvidencePairs = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        metavar="PAIRS",
        help="Observed states, as a=1,b=0; a=#0 is the first state. Repeatable.",
        autocompletion=complete_evidence,
    ),
]
Likelihoods = Annotated[
    list[str] | None,
    typer.Option(
        "--likelihood",
        metavar="NAME=L,L,...",
        help="Uncertain evidence: a likelihood for each state of a variable, in their order or as STATE:L. Repeatable.",
    ),
]
NamesFile = Annotated[
    Path | None,
    typer.Option("--names", metavar="FILE", help="Names of the variables, one a line, with labels of their states."),
]
OrderFile = Annotated[
    Path | None, typer.Option("--order", metavar="FILE", help="Elimination order (.vo); chosen if not given.")
]
PlotOutput = Annotated[Path | None, typer.Option("--plot", metavar="OUT.png", help="Draw the bounds against time.")]
ReportOutput = Annotated[
    Path | None, typer.Option("--report", metavar="OUT.html", help="Write a page about the answer; it works offline.")
]
CertificateOutput = Annotated[
    Path | None,
    typer.Option("--certificate", metavar="OUT.zip", help="Write a proof of the bounds that powersum-check verifies."),
]
Threads = Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads; they do not change the result.")]
Work = Annotated[
    float | None,
    typer.Option(
        "--work",
        metavar="S",
        help="In place of --time: work that takes S seconds on a usual machine; the same digits on every run.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of what is drawn at random.")]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="Memory that may be used, as 500M, 2G or bytes.")
]
JsonOutput = Annotated[str | None, typer.Option("--json", metavar="OUT", help="Write JSON; '-' for stdout.")]

OPTIONS = {"time_limit": "time"}
"""Arguments in Python that have another name on the command line."""


def read_question(
    model_file: Path,
    *,
    query: Path | None,
    max_names: list[str] | None,
    evid: Path | None,
    evidence: list[str] | None,
    order: Path | None = None,
    likelihoods: list[str] | None = None,
    limits: Limits | None = None,
    names: Path | None = None,
    usable: tuple[str, ...] = ("--evid", "--query"),
) -> tuple[Question, tuple[str, ...]]:
    """The question that options and files ask, and what there is to say about the files.

    ``usable`` are the options of the command for files that lie beside a model.
    """
    from powersum import formats

    if query is not None and max_names:
        raise InputError("give --query or --max, not both")
    if evid is not None and evidence:
        raise InputError("give --evid or --evidence, not both")
    # The file of a formula has its question, which options replace.
    formula = formats.read_formula(model_file) if formats.is_formula(model_file) else None
    model = formats.read(model_file) if formula is None else formula.model
    if names is not None:
        model = formats.read_names(names, model)
    maximize: list[VariableKey] | str | None = None
    if query is not None:
        maximize = list(formats.read_query(query, model))
    elif max_names:
        maximize = _maximized(max_names)
    known: list[tuple[VariableKey, Any]] = []
    if evid is not None:
        known += formats.read_evidence(evid, model).items()
    for text in evidence or ():
        known += evidence_pairs(text)
    known += _likelihoods(likelihoods or [])
    eliminated = None if order is None else formats.read_order(order, model)
    asked = None if formula is None or maximize is not None else formula.query
    question = Question.of(model, maximize, evidence=known, weights=asked, order=eliminated, limits=limits)

    beside = formats.companions(model_file)
    hints = list(model.notes)
    if "--evid" in usable and beside.evidence is not None and evid is None and not evidence:
        hints.append(f"{beside.evidence} is not used; to use it: --evid {beside.evidence}")
    if "--query" in usable and beside.query is not None and maximize is None:
        hints.append(f"{beside.query} is not used; to use it: --query {beside.query}")
    if beside.names is not None and names is None:
        hints.append(f"{beside.names} is not used; to use it: --names {beside.names}")
    return question, tuple(hints)


def limits_of(**options: Any) -> Limits:
    """Limits from options; what is wrong with them is said under the options' names."""
    try:
        return Limits.given(**options)
    except InputError as error:
        name, _, rest = str(error).partition(" ")
        raise InputError(f"--{OPTIONS.get(name, name)} {rest}") from None


def names_of(options: list[str] | None) -> list[str] | None:
    """Names from an option as ``a,b,c`` that may be given several times; None where it was not given."""
    if not options:
        return None
    return [name.strip() for text in options for name in text.split(",") if name.strip()]


def places_of(model: Model, options: list[str] | None, argument: str) -> list[Place] | None:
    """The variables that an option names; None where it was not given."""
    given = names_of(options)
    return None if given is None else [Place(model.variable(name, argument=argument)) for name in given]


def _maximized(options: list[str]) -> list[VariableKey] | str:
    """What ``--max`` names: variables, or all of them."""
    if "all" not in options:
        return [*(names_of(options) or ())]
    if len(options) > 1:
        raise InputError("--max: 'all' names every variable: give it alone")
    return "all"


def print_question(question: object, stream: TextIO) -> None:
    """Say which question is answered, in one line: a question, or its text."""
    say(f"question: {question}", stream, indent=10)


def print_notes(notes: Iterable[str]) -> None:
    """Say something on stderr, a line each."""
    for note in notes:
        say(f"powersum: note: {note}", sys.stderr)


def evidence_pairs(text: str) -> list[tuple[VariableKey, Any]]:
    """Names and states from ``a=1,b=0``."""
    pairs: list[tuple[VariableKey, Any]] = []
    for pair in filter(str.strip, text.split(",")):
        name, equals, state = (part.strip() for part in pair.rpartition("="))
        if not equals or not name or not state:
            raise InputError(f"--evidence: {pair.strip()!r} is not of the form name=state")
        pairs.append((name, state))
    return pairs


def _likelihoods(options: list[str]) -> list[tuple[VariableKey, Any]]:
    """Names and likelihoods from ``name=0.2,0.8`` or ``name=no:0.2,yes:0.8``, one option for each variable."""
    pairs: list[tuple[VariableKey, Any]] = []
    for option in options:
        name, equals, text = (part.strip() for part in option.rpartition("="))
        words = [word.strip() for word in text.split(",") if word.strip()]
        if not equals or not name or not words:
            raise InputError(f"--likelihood: {option.strip()!r} is not of the form name=0.2,0.8")
        labels = [word.rpartition(":")[0].strip() for word in words]
        try:
            numbers = [float(word.rpartition(":")[2]) for word in words]
        except ValueError:
            raise InputError(f"--likelihood: {text!r} is not a list of numbers such as 0.2,0.8") from None
        if any(labels) and len(set(labels)) < len(labels):
            raise InputError(f"--likelihood: {text!r} must name each state of {name} once, or none")
        pairs.append((name, dict(zip(labels, numbers, strict=True)) if any(labels) else numbers))
    return pairs


def check_outputs(
    outputs: Iterable[str | Path | None], inputs: Iterable[Path | None], *, picture: Path | None = None
) -> None:
    """Refuse outputs that could not be written at the end, or would overwrite an input or each other.

    ``picture`` is the one among them that must have the ending of a picture.
    """
    if picture is not None:
        from powersum.app.report.curves import check_picture

        check_picture(picture)
    taken = {path.resolve(): "an input" for path in inputs if path is not None}
    for output in outputs:
        if output is None or str(output) == "-":
            continue
        path = Path(output)
        _check_writable(path)
        place = path.resolve()
        if place in taken and not _is_special(path):
            raise InputError(f"{path}: is {taken[place]} already, and would be overwritten")
        taken[place] = "another output"


def _check_writable(path: Path) -> None:
    try:
        if path.is_dir():
            raise InputError(f"{path}: cannot be written: it is a directory")
        if _is_special(path):
            if not os.access(path, os.W_OK):
                raise InputError(f"{path}: cannot be written")
            return
        # Asks the system about the name itself: it may be too long, or in a place that does not exist.
        path.parent.stat()
        path.exists()
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{path}: cannot be written ({reason})") from None


def _is_special(path: Path) -> bool:
    """A device or a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()
