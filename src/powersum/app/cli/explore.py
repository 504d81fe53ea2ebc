"""``powersum explore``."""

from __future__ import annotations

from typing import Annotated

import typer

from powersum.app.cli.asking import CommandQuestion, asking
from powersum.app.cli.files import evidence_pairs, limits_of, print_notes
from powersum.app.cli.progress import announce_compilation
from powersum.core.errors import InputError
from powersum.model.defaults import PAGE_TIME
from powersum.model.diagram import Diagram
from powersum.model.model import Model
from powersum.model.question import Question


@asking
def explore_command(
    asked: CommandQuestion,
    time_limit: Annotated[
        float, typer.Option("--time", metavar="S", help="Seconds to look for an answer; the page can change it.")
    ] = PAGE_TIME,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port of the page's address; 0 takes a free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Open a page to explore a model: click on what is observed and maximised, and see beliefs and answers change.

    The page is served to this machine only, and only with the token in its address. Options give the first question.
    Ctrl-C ends it.
    """
    limits_of(time_limit=time_limit)
    try:
        # An extra: the page's server is not installed with everything else.
        from powersum.app.explore.serve import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise InputError(
            f"explore needs {error.name}, which is not installed: pip install 'powersum[explore]', "
            "in a clone '.[explore]'"
        ) from None
    announce_compilation(quiet=False)
    model, link, hints = _asked(asked)
    print_notes(hints)
    serve(
        model,
        str(asked.model),
        names=None if asked.names is None else str(asked.names),
        fragment=link,
        port=port,
        browser=browser,
        seconds=time_limit,
        # The address on a line of its own, and whole, however narrow the terminal is.
        announce=lambda address: print(f"exploring {asked.model} (Ctrl-C ends it):\n{address}", flush=True),
    )


def _asked(asked: CommandQuestion) -> tuple[Model | Diagram, str, tuple[str, ...]]:
    """The model or diagram, the question as the page's links have it, and what there is to say about the files."""
    from powersum.app.explore.questions import Words
    from powersum.formats.diagrams import is_diagram, read_diagram

    if not is_diagram(asked.model):
        question, hints = asked.read()
        return question.model, Words(question, str(asked.model)).link(), hints
    diagram = read_diagram(asked.model)
    pairs = [pair for text in asked.evidence or () for pair in evidence_pairs(text)]
    known = Question.of(diagram.model, evidence=pairs)
    return diagram, Words(known, str(asked.model)).link(), diagram.model.notes
