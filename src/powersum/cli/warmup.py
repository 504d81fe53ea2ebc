"""``powersum warmup``: compile everything beforehand, side by side, for containers, clusters and impatient people."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated

import typer

from powersum.core.errors import InputError

WAIT = 0.05
"""Seconds between two looks at the processes."""


def warmup_command(
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Processes side by side; one for each processor if not given."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Compile everything that is not compiled yet, so that no later run has to.

    It takes about a minute of two processors the first time, and some seconds where nothing is left to do; the command
    cache shows where it is kept.
    """
    waiting = list(TASKS)
    running: dict[str, subprocess.Popen[bytes]] = {}
    begun = time.monotonic()
    done = 0
    try:
        while waiting or running:
            while waiting and len(running) < (jobs or os.cpu_count() or 1):
                name = waiting.pop(0)
                command = [sys.executable, "-c", f"from powersum.cli.warmup import TASKS; TASKS[{name!r}]()"]
                running[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for name, process in list(running.items()):
                if process.poll() is None:
                    continue
                del running[name]
                _, errors = process.communicate()
                if process.returncode:
                    last = errors.decode(errors="replace").strip().splitlines()[-1:]
                    raise InputError(f"warmup: {name} failed: {''.join(last) or process.returncode}")
                done += 1
                if not quiet:
                    print(f"{done} of {len(TASKS)}: {name} ({time.monotonic() - begun:.0f} s)", flush=True)
            time.sleep(WAIT)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _solve(
    maximize: str | None, *, rows: int = 18, kind: str = "mixed", seconds: float = 2.0, threads: int = 1
) -> None:
    """Answer a question that is too wide to be settled at once: it goes through all stages."""
    import powersum as ps

    model, query = ps.generate.grid(rows, rows, kind=kind, seed=1)
    ps.solve(model, query if maximize == "some" else maximize, time_limit=seconds, threads=threads)


def _bound(*methods: str) -> None:
    """Two sweeps of each method on a small grid."""
    import powersum as ps

    model, query = ps.generate.grid(6, 6, states=3, seed=1)
    for method in methods:
        ps.bound(model, query, method=method, sweeps=2)


def _marginals() -> None:
    """Marginals, exact and not."""
    import powersum as ps

    for rows in (14, 24):
        ps.marginals(ps.generate.grid(rows, rows, seed=1)[0], time_limit=0.5)


def _paper() -> None:
    _bound("gdd", "mas", "mbe")


def _rivals() -> None:
    from powersum.bounds.rivals import BOUNDS

    _bound(*(name for name in BOUNDS if name not in ("mas", "mbe")))


TASKS: Mapping[str, Callable[[], None]] = MappingProxyType(
    {
        "marginal MAP": lambda: _solve("some"),
        "bounds of the paper": _paper,
        "MAP": lambda: _solve("all"),
        "zeros and exact answers": lambda: _solve("some", rows=12, kind="bayes"),
        "other bounds": _rivals,
        "sums": lambda: _solve(None),
        "sums too wide": lambda: _solve(None, rows=28),
        "marginals": _marginals,
    }
)
"""What the processes do, the longest first: together it needs nearly every compiled function."""
