"""MAP beside toulbar2: value and bound after 1, 5 and 20 seconds. ``python -m benchmarks.full_search [--match wcsp]``.

Every model with a MAP row in ``reference.csv``, and all of ``uai2014-mmap``. toulbar2 is asked by way of
``pytoulbar2``, if that is installed (``pip install pytoulbar2``); it is given the simplified problem, each time anew
with the limit as its time, for it cannot be looked at on the way. Costs are handed over with six decimals. It runs in a
process of its own, which is ended where it takes much longer than its limit, and is not asked again once it is done.

With ``--kept FILE`` lines are added to a file, and a run that was ended goes on where it was. All 23 questions take at
most 20 minutes.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.instances import DATA
from benchmarks.solve import Row, load, rows
from powersum.model.question import Question
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplified
from powersum.run.solver import solve

SECONDS = (1.0, 5.0, 20.0)
FORBIDDEN = 1e5
"""Cost of a zero for toulbar2."""

OVERRUN, STARTING = 1.5, 20.0
"""toulbar2 is ended after so many times its limit, and so many seconds for reading and building."""

Moment = tuple[float, float, float]
"""Value, bound and seconds."""


def questions() -> Iterator[Row]:
    """All MAP rows, each question once."""
    seen = set()
    listed = [row for row in rows() if row.task == "MAP"]
    names = sorted(path.name.split(".uai")[0] for path in (DATA / "uai2014-mmap").glob("*.uai.query"))
    for row in [*listed, *(Row("uai2014-mmap", name, "MAP", "open", math.nan) for name in names)]:
        if (row.family, row.instance) not in seen:
            seen.add((row.family, row.instance))
            yield row


def ours(row: Row, seconds: float, seed: int) -> list[Moment]:
    """Value, bound and time at each of the moments, from one run of ``solve``."""
    model, query, evidence = load(row)
    result = solve(model, query, evidence=evidence, time_limit=seconds, seed=seed)
    found = []
    for limit in SECONDS:
        past = [moment for moment in result.history if moment.seconds <= limit]
        last = past[-1] if past else None
        found.append((math.nan,) * 3 if last is None else (last.log_lower, last.log_upper, last.seconds))
    return found


def theirs(problem: Problem, seconds: float) -> Moment:
    """The same of toulbar2, with its default options."""
    pytoulbar2 = importlib.import_module("pytoulbar2")
    model = problem.model
    network = pytoulbar2.CFN(1e7, resolution=6)
    network.Option.verbose = -1
    for v in range(model.n_variables):
        network.AddVariable(f"x{v}", [f"s{s}" for s in range(model.cardinalities[v])])
    for f in range(model.n_factors):
        scope = model.scope_variables[model.scope_starts[f] : model.scope_starts[f + 1]].tolist()
        costs = np.minimum(-model.log_values[model.table_starts[f] : model.table_starts[f + 1]], FORBIDDEN)
        network.AddFunction(scope, costs.tolist())
    begun = time.monotonic()
    solution = network.Solve(showSolutions=0, timeLimit=max(1, int(seconds)))
    taken = time.monotonic() - begun
    value = -math.inf if not solution else problem.log_constant - solution[1]
    return value, problem.log_constant - network.GetDDualBound(), taken


def theirs_apart(row: Row, seconds: float) -> Moment:
    """The same in a process of its own; no numbers where it does not end in time or fails."""
    nothing = (math.nan, math.nan, math.nan)
    command = [sys.executable, "-m", "benchmarks.full_search", "--child", f"{row.family}/{row.instance}", str(seconds)]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=OVERRUN * seconds + STARTING, check=True
        )
        value, bound, taken = json.loads(ended.stdout.strip().splitlines()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError):
        return nothing
    return float(value), float(bound), float(taken)


def child(name: str, seconds: float) -> None:
    """Ask toulbar2 one question, and print what it says as JSON."""
    row = next(row for row in questions() if f"{row.family}/{row.instance}" == name)
    print(json.dumps(theirs(simplified(_question(row)), seconds)))


def _question(row: Row) -> Question:
    """The question of a row."""
    model, maximize, evidence = load(row)
    return Question.of(model, maximize, evidence=evidence)


def lines_of(row: Row, seed: int, *, with_theirs: bool) -> Iterator[str]:
    """A line of the table for each moment."""
    rival: Moment | None = None
    for limit, (value, bound, moment) in zip(SECONDS, ours(row, SECONDS[-1], seed), strict=True):
        line = f"{row.instance:32s} {limit:5.0f}  {value:14.4f} {bound:14.4f} {moment:8.2f} s"
        if with_theirs:
            # What it has proven within a shorter limit it would only find once more.
            if rival is None or not rival[1] - rival[0] < 1e-4:
                rival = theirs_apart(row, limit)
            line += f"  {rival[0]:14.4f} {rival[1]:14.4f} {rival[2]:8.2f} s"
        yield line


def main() -> None:
    """Print one line for each question and moment."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--match", default="", help="only questions whose family or name contains this")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, help="add lines to this file, and leave out what it has already")
    parser.add_argument("--child", nargs=2, metavar=("QUESTION", "SECONDS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        child(arguments.child[0], float(arguments.child[1]))
        return
    with_theirs = importlib.util.find_spec("pytoulbar2") is not None
    if not with_theirs:
        print("toulbar2 is left out: pytoulbar2 is not installed")
    kept: Path | None = arguments.kept
    known = kept.read_text().splitlines() if kept is not None and kept.exists() else []
    print(f"{'question':32s} {'after':>5s}  {'powersum: value, bound, last change':>40s}  toulbar2: value, bound, time")
    for row in questions():
        if arguments.match not in f"{row.family}/{row.instance}":
            continue
        before = [line for line in known if line.split()[0] == row.instance]
        found = []
        for line in before or lines_of(row, arguments.seed, with_theirs=with_theirs):
            print(line, flush=True)
            found.append(f"{line}\n")
        if kept is not None and not before:
            # All lines of a question at once: one that was ended is asked again.
            with kept.open("a") as file:
                file.writelines(found)


if __name__ == "__main__":
    main()
