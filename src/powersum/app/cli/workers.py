"""``--workers``: who computes, from the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from powersum.cluster.executor import WorkersLike, check_workers


def _workers(text: str) -> WorkersLike:
    """A number of processes, or the address of a scheduler."""
    found = int(text) if text.strip().lstrip("+-").isdigit() else text
    check_workers(found, "--workers")
    return found


WorkersOption = Annotated[
    WorkersLike,
    typer.Option(
        "--workers",
        metavar="N",
        parser=_workers,
        help="Share the work among N processes of this machine, or a Dask scheduler's workers: tcp://host:8786.",
    ),
]
