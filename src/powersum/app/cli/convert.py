"""``powersum convert``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from powersum.app.cli.files import ModelFile, check_outputs
from powersum.app.cli.terminal import say


def convert_command(
    model: ModelFile,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; its suffix tells the format.")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Write a model in another format, above all as .psm.

    A .psm file is mapped into memory, not read: workers that each take a part of a huge model look at their part only.
    """
    from powersum.formats import companions, read, write

    check_outputs([out], [model])
    found = read(model)
    write(found, out)
    if not quiet:
        size = out.stat().st_size / 1e6
        say(f"{out}: {found.n_variables} variables, {found.n_factors} factors, {size:.1f} MB", sys.stdout)
        names = companions(out).names
        if names is not None:
            say(f"{names}: names and labels, for --names", sys.stdout)
