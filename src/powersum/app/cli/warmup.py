"""``powersum warmup``: compile everything beforehand, side by side, for containers, clusters and impatient people."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

import typer

from powersum.core.cache import NOT_KEPT, package_stamp, store
from powersum.core.errors import InputError

WAIT = 0.05
"""Seconds between two looks at the processes."""


def warmup_command(
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Processes side by side; one for each processor if not given."),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Compile for this task only; may be given several times."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Compile everything that is not compiled yet, so that no later run has to.

    It takes about a minute of two processors; the command cache shows where it is kept.
    """
    from powersum.core.jit import ENVIRONMENT, PLAIN, TARGET, Target, read_kept

    if PLAIN:
        raise InputError(f"warmup: the plain compiler is in use: {NOT_KEPT}")
    for one in task or ():
        if one not in TASKS:
            raise InputError(f"warmup: there is no task {one!r}; there are {', '.join(TASKS)}")
    folder = f"warmup-{ENVIRONMENT}-{package_stamp()}"

    def name(target: Target) -> str:
        return hashlib.sha256(repr(tuple(target)).encode()).hexdigest()[:24]

    if read_kept(folder, name) is not None:
        if not quiet:
            print("everything is compiled already")
        return
    _run(list(task or TASKS), workers or os.cpu_count() or 1, quiet=quiet)
    if task:
        return
    store.write(folder, name(TARGET), b"all tasks")


def _run(waiting: list[str], workers: int, *, quiet: bool) -> None:
    """One process for each task, so many at a time."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    begun, done, total = time.monotonic(), 0, len(waiting)
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                name = waiting.pop(0)
                command = [sys.executable, "-c", f"from powersum.app.cli.warmup import TASKS; TASKS[{name!r}]()"]
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
                    print(f"{done} of {total}: {name} ({time.monotonic() - begun:.0f} s)", flush=True)
            time.sleep(WAIT)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _solve(maximize: str | None, *, rows: int = 8, kind: str = "mixed", work: float = 10.0, **schedule: Any) -> None:
    """Answer a question about a grid; unless told otherwise none that is settled at once, so that all have to work.

    Limits count work: by the clock a busy machine would not come as far, and leave out what is needed late.
    """
    import powersum as ps
    from powersum.run.tuning import Schedule

    model, query = ps.generate.grid(rows, rows, kind=kind, seed=1)
    chosen = Schedule(**(schedule or {"elimination_cost": 1e3}))
    ps.solve(model, query if maximize == "some" else maximize, work=work, schedule=chosen)


def _pedigree() -> None:
    """A question full of zeros, whose search is split into boxes."""
    import powersum as ps

    model, query = ps.generate.pedigree(60, 6, seed=1)
    ps.solve(model, query, work=4.0)


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


def _engine() -> None:
    """An engine's questions."""
    import powersum as ps

    engine = ps.Engine(ps.generate.random(20, seed=1)[0])
    engine.solve([0, 1], evidence={2: 0})
    engine.marginals(evidence={2: 0})


def _large() -> None:
    """The order of a model too large for the usual ones."""
    import numpy as np

    import powersum as ps
    from powersum.prepare.ordering import elimination_order

    model = ps.generate.grid(101, 101, seed=1)[0]
    elimination_order(model, np.ones(model.n_variables))


def _wide_sums() -> None:
    """Conditioning and kept messages, called by themselves: in a run, time decides whether they have a turn."""
    import numpy as np

    import powersum as ps
    from powersum.assign.sum_tree import SumTree
    from powersum.core.progress import Progress
    from powersum.exact.counting import Counting
    from powersum.model.query import Query
    from powersum.prepare.ordering import elimination_order
    from powersum.prepare.simplify import simplify

    # Large enough for more than one rule to be tried.
    model, query = ps.generate.grid(30, 30, kind="bayes", seed=1)
    weights = np.ones(model.n_variables)
    counting = Counting(model, weights, elimination_order(model, weights), memory=1e8)
    while counting.step() is Progress.MORE and counting.on_trial:
        pass
    model, query = ps.generate.grid(4, 4, seed=1)
    problem = simplify(model, Query.of(model, query))
    tree = SumTree(problem)
    free = np.flatnonzero(problem.tau == 0.0)[:2]
    tree.start(np.zeros(len(problem.tau), dtype=np.int64))
    tree.joint(free, 1e6)
    tree.move(free, np.ones(len(free), dtype=np.int64))


def _paper() -> None:
    import powersum as ps

    _bound("gdd", "mas", "mbe")
    ps.bound(*ps.generate.grid(6, 6, kind="bayes", seed=1), method="gdd", sweeps=2)


def _rivals() -> None:
    from powersum.bounds.rivals import BOUNDS

    _bound(*(name for name in BOUNDS if name not in ("mas", "mbe")))


TASKS: Mapping[str, Callable[[], None]] = MappingProxyType(
    {
        "marginal MAP": lambda: _solve("some"),
        "bounds of the paper": _paper,
        "MAP": lambda: _solve("all"),
        "pedigree": _pedigree,
        "zeros": lambda: _solve("some", kind="bayes"),
        "a hard question": lambda: _solve("some", rows=18, work=3.0),
        "engine": _engine,
        "other bounds": _rivals,
        "sums too wide": lambda: _solve(None, work=2.0),
        "wide sums by conditioning": _wide_sums,
        "sums too wide to hold": lambda: _solve("some", work=2.0, elimination_cost=1e3, evaluation_cost=math.inf),
        "exact sums": lambda: _solve(None, rows=14, elimination_cost=1e-9),
        "marginals": _marginals,
        "large models": _large,
    }
)
"""What the processes do, the longest first: together it needs nearly every compiled function."""
