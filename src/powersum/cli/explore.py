"""``powersum explore``."""

from __future__ import annotations

from typing import Annotated

import typer

from powersum.cli.files import (
    EvidenceFile,
    EvidencePairs,
    MaxNames,
    ModelFile,
    QueryFile,
    limits_of,
    print_notes,
    read_question,
)
from powersum.cli.progress import announce_compilation
from powersum.core.errors import InputError


def explore_command(
    model: ModelFile,
    query: QueryFile = None,
    max_names: MaxNames = None,
    evid: EvidenceFile = None,
    evidence: EvidencePairs = None,
    time_limit: Annotated[
        float, typer.Option("--time", metavar="S", help="Seconds to look for an answer; the page can change it.")
    ] = 20.0,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port of the page's address; 0 takes a free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Open a page to explore a model: click on what is observed and maximised, and see beliefs and answers change.

    The page is served from this machine to this machine only, and to nobody without the token in its address. Options
    give the question to begin with. Ctrl-C ends it.
    """
    limits_of(time_limit=time_limit)
    try:
        # An extra: the page's server is not installed with everything else.
        from powersum.explore.serve import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise InputError(
            f"explore needs {error.name}, which is not installed: pip install 'powersum[explore]'"
        ) from None
    from powersum.explore.questions import Words

    announce_compilation(quiet=False)
    question, hints = read_question(model, query=query, max_names=max_names, evid=evid, evidence=evidence)
    print_notes(hints)
    serve(
        question.model,
        str(model),
        fragment=Words(question, str(model)).link(),
        port=port,
        browser=browser,
        seconds=time_limit,
        # The address on a line of its own, and whole, however narrow the terminal is.
        announce=lambda address: print(f"exploring {model} (Ctrl-C ends it):\n{address}", flush=True),
    )
