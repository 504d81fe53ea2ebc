"""One hard question, by one process and by cubes: ``python -m benchmarks.cubes [pedigree1.Q0.5.I3 …] [--workers 0 2]``.

Without names: two tables, of questions that are proven and of questions that stay open, with what is wanted of them.
With names: a line for each question and number of workers (0: no cubes at all). Seconds of the wall, processor seconds
of all processes together in brackets, the gap where one is left.

On a busy machine the seconds of the clock say nothing. With ``--simulate`` processor seconds take their place: slices
are computed one after another in this process, and each ends on the clock of its own imaginary worker when its
processor seconds are over. Incumbents, bounds and splits come in the order in which real workers would bring them.
With ``--waiting`` as well, the first process only waits for the others, as it does for an executor of somebody else's.
"""

from __future__ import annotations

import argparse
import concurrent.futures as cf
import gc
import resource
import time
from contextlib import nullcontext
from typing import Any, NamedTuple

import powersum.run.cubes as cubes
import powersum.run.division as division
import powersum.run.sum_beside as sum_beside
from benchmarks.solve import load, rows
from powersum.cluster.executor import Shared, Workers
from powersum.model.result import Result, Snapshot, Status
from powersum.run.solver import solve

PROVEN = ("90-42-5.Q0.5.I4", "pedigree1.Q0.5.I3")
"""Two workers are to prove these in less time than one process."""

OPEN = ("pedigree13.Q0.5.I1", "pedigree19.Q0.5.I4", "pedigree9.Q0.5.I3", "pedigree7.Q0.5.I2")
"""Of these they are to leave a smaller gap than one process does in the same processor seconds."""


def processor_seconds() -> float:
    """Processor seconds of this process and of all that it started and that have ended."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


class Imaginary(Workers):
    """Workers whose tasks are computed here, when they are handed in; their results come when they would have come.

    The clock is this process's own, without their tasks, and with the time that it would have waited for them.
    """

    def __init__(self, size: int, *, told: bool = False) -> None:
        self._told = told
        self._free = [0.0] * size
        self._results: list[tuple[float, Any, Any]] = []
        self._begun, self._theirs, self._waited = time.process_time(), 0.0, 0.0

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return time.process_time() - self._begun - self._theirs + self._waited

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._free)

    @property
    def pending(self) -> int:
        """Tasks whose results have not been taken."""
        return len(self._results)

    def share(self, value: Any) -> Shared:
        """Nothing has to travel."""
        return Shared("", value)

    def submit(self, tag: Any, function: Any, shared: Shared, *arguments: Any) -> None:
        """Compute a task, for whoever is free first."""
        handed_in, begun = self.now, time.process_time()
        result = function(shared.value, *arguments)
        seconds = time.process_time() - begun
        self._theirs += seconds
        who = min(range(self.size), key=self._free.__getitem__)
        self._free[who] = max(self._free[who], handed_in) + seconds
        self._results.append((self._free[who], tag, result))
        if self._told:
            print(f"    {handed_in:7.2f} to {self._free[who]:7.2f} s: {function.__name__}{arguments}", flush=True)

    def finished(self, timeout: float = 0.0) -> list[tuple[Any, Any]]:
        """The result that comes first, or none where that is later than somebody wants to wait."""
        self._results.sort(key=lambda entry: entry[0])
        if not self._results:
            return []
        self._waited += max(min(self._results[0][0] - self.now, timeout), 0.0)
        if self._results[0][0] > self.now:
            return []
        _, tag, result = self._results.pop(0)
        return [(tag, result)]

    def close(self) -> None:
        """Nothing has to end."""


class Run(NamedTuple):
    """How a question went."""

    result: Result
    wall: float
    processor: float

    @property
    def gap(self) -> float:
        """Between both bounds."""
        return self.result.log_upper - self.result.log_lower

    @property
    def cell(self) -> str:
        """For a table: when it was proven, or how far it came."""
        proven = self.result.status is Status.OPTIMAL
        return f"{'proven' if proven else f'gap {self.gap:.3f}'}, {self.wall:.1f} s ({self.processor:.1f})"


def main() -> None:
    """The tables of the issue, or each question with each number of workers, ``--repeats`` times in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*")
    parser.add_argument("--workers", type=int, nargs="+")
    parser.add_argument("--time", type=float, default=120.0)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--waiting", action="store_true")
    parser.add_argument("--curve", action="store_true")
    options = parser.parse_args()
    if options.simulate:
        time.monotonic = time.process_time
    if not options.instances:
        proofs(options)
        gaps(options)
        return
    for name in options.instances:
        for workers in [w for _ in range(options.repeats) for w in options.workers or [0, 2]]:
            run = solved(name, workers, options.time, options)
            print(
                f"{name} workers {workers}: {run.cell} {run.result.log_lower:.6f} … {run.result.log_upper:.6f}"
                f" cubes {run.result.sizes.get('cubes', 0)}",
                flush=True,
            )


def proofs(options: argparse.Namespace) -> None:
    """Questions that are proven: seconds, and processor seconds of all processes in brackets."""
    numbers = options.workers or [0, 1, 2]
    print(
        "| question | " + " | ".join(f"{w} workers" if w else "no cubes" for w in numbers) + " | wall, last to first |"
    )
    print("|---" * (len(numbers) + 2) + "|", flush=True)
    for name in [name for name in PROVEN for _ in range(options.repeats)]:
        runs = [solved(name, workers, options.time, options) for workers in numbers]
        ratio = runs[-1].wall / runs[0].wall
        print(f"| {name} | {' | '.join(run.cell for run in runs)} | {ratio:.2f} (target below 1) |", flush=True)


def gaps(options: argparse.Namespace) -> None:
    """Questions that stay open: the gap of workers against that of one process that has all their processor seconds."""
    workers = (options.workers or [2])[-1]
    print(f"\n| question | one process, {workers * options.time:g} s | {workers} workers, {options.time:g} s | gaps |")
    print("|---|---|---|---|", flush=True)
    for name in [name for name in OPEN for _ in range(options.repeats)]:
        alone, many = solved(name, 0, workers * options.time, options), solved(name, workers, options.time, options)
        print(f"| {name} | {alone.cell} | {many.cell} | {many.gap / alone.gap:.2f} (target below 1) |", flush=True)


def solved(name: str, workers: int, seconds: float, options: argparse.Namespace) -> Run:
    """Solve a question."""
    model, maximize, evidence = load(next(row for row in rows() if row.instance == name))
    crew = Imaginary(workers if options.waiting else max(workers - 1, 0), told=options.curve)
    executor: Any = (cf.Executor() if options.waiting else workers) if workers else None
    if options.simulate and workers:
        vars(cubes).update(crew_of=lambda executor, interrupt: nullcontext((crew, not options.waiting)))
        for module in (division, sum_beside):
            vars(module).update(working_time=lambda: crew.now)

    def curve(snapshot: Snapshot) -> None:
        if options.curve:
            print(f"    {snapshot.seconds:7.2f} s  {snapshot.log_lower:.6f} … {snapshot.log_upper:.6f}", flush=True)

    wall, cpu = time.monotonic(), processor_seconds()
    result = solve(model, maximize, evidence=evidence, time_limit=seconds, workers=executor, callback=curve)
    wall = crew.now if options.simulate and workers else time.monotonic() - wall
    if workers and not options.simulate:
        # Processes of our own end, and are waited for, a moment later.
        gc.collect()
        time.sleep(2.0)
    return Run(result, wall, processor_seconds() - cpu)


if __name__ == "__main__":
    main()
