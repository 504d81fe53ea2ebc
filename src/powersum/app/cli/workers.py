"""``--workers`` and ``--cluster``: who computes, from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from powersum.cluster.executor import ExecutorLike
from powersum.core.errors import InputError

WorkerNumber = Annotated[
    int | None, typer.Option("--workers", metavar="N", min=1, help="Processes of this machine that share the work.")
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler whose workers do it, as tcp://host:8786."),
]


def refuse_both(workers: int | None, cluster: str | None) -> None:
    """Refuse two answers to who computes."""
    if workers is not None and cluster is not None:
        raise InputError("give --workers or --cluster, not both")


@contextmanager
def executor_of(workers: int | None, cluster: str | None) -> Iterator[ExecutorLike]:
    """The executor that the options name; None for this process."""
    refuse_both(workers, cluster)
    if cluster is None:
        yield workers
        return
    from powersum.cluster.dask_workers import connected

    with connected(cluster) as client:
        yield client
