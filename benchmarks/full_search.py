"""MAP beside toulbar2: value and bound after 1, 5 and 20 seconds. ``python -m benchmarks.full_search [--match wcsp]``.

Every model with a MAP row in ``reference.csv``, and all of ``uai2014-mmap``. toulbar2 is asked by way of
``pytoulbar2``, if that is installed (``pip install pytoulbar2``); it is given the simplified problem, each time anew
with the limit as its time, for it cannot be looked at on the way. Costs are handed over with six decimals.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.instances import DATA
from benchmarks.solve import Row, load, rows
from powersum.answer.solver import solve
from powersum.model.question import Question
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplified

SECONDS = (1.0, 5.0, 20.0)
FORBIDDEN = 1e5
"""Cost of a zero for toulbar2."""


def questions() -> Iterator[Row]:
    """All MAP rows, each question once."""
    seen = set()
    listed = [row for row in rows() if row.task == "MAP"]
    names = sorted(path.name.split(".uai")[0] for path in (DATA / "uai2014-mmap").glob("*.uai.query"))
    for row in [*listed, *(Row("uai2014-mmap", name, "MAP", "open", math.nan) for name in names)]:
        if (row.family, row.instance) not in seen:
            seen.add((row.family, row.instance))
            yield row


def ours(row: Row, seconds: float, seed: int) -> list[tuple[float, float, float]]:
    """Value, bound and time at each of the moments, from one run of ``solve``."""
    model, query, evidence = load(row)
    result = solve(model, query, evidence, time_limit=seconds, seed=seed)
    found = []
    for limit in SECONDS:
        past = [moment for moment in result.history if moment.seconds <= limit]
        last = past[-1] if past else None
        found.append((math.nan,) * 3 if last is None else (last.log_lower, last.log_upper, last.seconds))
    return found


def theirs(problem: Problem, seconds: float) -> tuple[float, float, float]:
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


def main() -> None:
    """Print one line for each question and moment."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--match", default="", help="only questions whose family or name contains this")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with_theirs = importlib.util.find_spec("pytoulbar2") is not None
    if not with_theirs:
        print("toulbar2 is left out: pytoulbar2 is not installed")
    print(f"{'question':32s} {'after':>5s}  {'powersum: value, bound, last change':>40s}  toulbar2: value, bound, time")
    for row in questions():
        if arguments.match not in f"{row.family}/{row.instance}":
            continue
        found = ours(row, SECONDS[-1], arguments.seed)
        problem = simplified(Question.of(*load(row)))
        for limit, (value, bound, moment) in zip(SECONDS, found, strict=True):
            line = f"{row.instance:32s} {limit:5.0f}  {value:14.4f} {bound:14.4f} {moment:8.2f} s"
            if with_theirs:
                value, bound, taken = theirs(problem, limit)
                line += f"  {value:14.4f} {bound:14.4f} {taken:8.2f} s"
            print(line, flush=True)


if __name__ == "__main__":
    main()
