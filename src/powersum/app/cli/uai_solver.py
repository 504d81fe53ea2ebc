"""``powersum uai-solver``: a drop-in entry for the UAI competitions."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from powersum.app.cli import seconds_running
from powersum.app.cli.files import ModelFile, check_outputs, print_notes
from powersum.app.cli.fresh import older_answers_aside
from powersum.app.cli.progress import announce_compilation
from powersum.app.cli.result_file import AnswerWriter
from powersum.core.clock import compilation, working_time
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt, interruptible, name_of
from powersum.core.machine import default_memory
from powersum.formats.results import TASKS, ResultWriter
from powersum.model.defaults import TIME
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.run.solver import Solver

# What to spare before a limit that kills, and what to use of it in any case: each improvement is written at once.
TIME_SHARE, TIME_MARGIN, LEAST_TIME = 0.95, 0.4, 0.3
MEMORY_SHARE = 0.85

FIRST_MARGINALS = 1.0
"""Seconds after which marginals are written for the first time, where they are not exact by then."""


def uai_solver_command(
    model: ModelFile,
    evid: Annotated[str, typer.Argument(metavar="EVID", help="Evidence file; '' for none.")],
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Query file; read for MMAP only.")],
    task: Annotated[str, typer.Argument(metavar="TASK", help=f"{', '.join(TASKS)}.")],
) -> None:
    """Solve as the competitions call it and write MODEL's name with the ending .TASK to the current folder.

    The environment variables INF_TIME (seconds) and INF_MEMORY (GB) limit it. Better solutions are appended as they
    are found, and the last one counts. SIGTERM is how a competition ends a run: the exit code is then 0, too.
    """
    if task not in TASKS:
        raise InputError(f"no task is called {task!r}: there is {', '.join(TASKS)}")
    if task == "MMAP" and not query:
        raise InputError("the task MMAP needs a query file")
    seconds = _allowance("INF_TIME", TIME / TIME_SHARE)
    memory = _allowance("INF_MEMORY", default_memory() / 1e9 / MEMORY_SHARE) * 1e9 * MEMORY_SHARE
    out = Path(f"{model.name}.{task}")
    check_outputs([out], [model])
    # The limit kills: what is compiled comes out of it.
    compilation.counted = True
    announce_compilation(quiet=False)
    from powersum import formats

    with older_answers_aside([out]):
        loaded = formats.read(model)
        print_notes(loaded.notes)
        evidence = formats.read_evidence(evid, loaded) if evid else {}
        maximize = formats.read_query(query, loaded) if task == "MMAP" else {"MAP": "all"}.get(task)
        asked = Query.of(loaded, maximize)
    # The allowance began with the process: starting and reading have taken their part.
    time_limit = max(TIME_SHARE * seconds - TIME_MARGIN - seconds_running(), LEAST_TIME * seconds)
    with interruptible() as interrupt:
        if task == "MAR":
            _write_marginals(loaded, evidence, out, time_limit, memory, interrupt)
        else:
            solver = Solver(loaded, evidence=evidence, weights=asked, time_limit=time_limit, memory=memory)
            with AnswerWriter(out, asked, task) as writer:
                solver.watch(interrupt)
                for _ in solver:
                    writer.improved(solver)
        if interrupt.cause == name_of(signal.SIGTERM):
            interrupt.cause = None


def _write_marginals(
    model: Model, evidence: dict[int, int], out: Path, seconds: float, memory: float, interrupt: Interrupt
) -> None:
    from powersum.api.marginals import MarginalSolver

    solver = MarginalSolver(model, evidence=evidence, time_limit=seconds, memory=memory)
    solver.watch(interrupt)
    begun, again = working_time(), FIRST_MARGINALS
    with ResultWriter(out, "MAR") as writer:
        # Each is as long as the model: a run that is killed has left one that had half of its time.
        for found in solver:
            if working_time() - begun >= again:
                writer.marginals(found.beliefs)
                again = 2.0 * (working_time() - begun)
        # The format has one number for each state.
        writer.marginals(solver.result().beliefs)


def _allowance(name: str, default: float) -> float:
    """A positive number from the environment."""
    text = os.environ.get(name)
    if text is None or not text.strip():
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise InputError(f"the environment variable {name} is {text!r}: it must be a positive number")
    return value
