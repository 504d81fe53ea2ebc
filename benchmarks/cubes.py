"""One hard question, by one process and by cubes: ``python -m benchmarks.cubes pedigree1.Q0.5.I3 [--workers 0 2]``.

Prints, for each number of workers (0: no cubes at all), seconds, processor seconds of all processes together, both
bounds, the gap, and the cubes.

On a busy machine the seconds of the clock say nothing. With ``--simulate`` processor seconds take their place: slices
are computed one after another in this process, and each ends on the clock of its own imaginary worker when its
processor seconds are over. Incumbents, bounds and splits come in the order in which real workers would bring them.
"""

from __future__ import annotations

import argparse
import gc
import resource
import time
from contextlib import nullcontext
from typing import Any

import powersum.answer.cubes as cubes
from benchmarks.solve import load, rows
from powersum.answer.solver import solve
from powersum.cluster.executor import Shared, Workers
from powersum.model.result import Snapshot


def processor_seconds() -> float:
    """Processor seconds of this process and of all that it started and that have ended."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


class Imaginary(Workers):
    """Workers whose tasks are computed here, when they are handed in; their results come when they would have come."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._results: list[tuple[float, Any, Any]] = []
        self.now = 0.0

    @property
    def size(self) -> int:
        """How many there are."""
        return self._size

    @property
    def pending(self) -> int:
        """Tasks whose results have not been taken."""
        return len(self._results)

    def share(self, value: Any) -> Shared:
        """Nothing has to travel."""
        return Shared("", value)

    def submit(self, tag: Any, function: Any, shared: Shared, *arguments: Any) -> None:
        """Compute a task."""
        begun = time.process_time()
        result = function(shared.value, *arguments)
        self._results.append((self.now + time.process_time() - begun, tag, result))

    def finished(self, timeout: float = 0.0) -> list[tuple[Any, Any]]:
        """The result that comes first."""
        self._results.sort(key=lambda entry: entry[0])
        self.now, tag, result = self._results.pop(0)
        return [(tag, result)]

    def close(self) -> None:
        """Nothing has to end."""


def main() -> None:
    """Solve each question with each number of workers, ``--repeats`` times in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="+")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--time", type=float, default=120.0)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--curve", action="store_true")
    options = parser.parse_args()
    if options.simulate:
        time.monotonic = time.process_time
    for name in options.instances:
        model, maximize, evidence = load(next(row for row in rows() if row.instance == name))
        for workers in [w for _ in range(options.repeats) for w in options.workers]:
            print(name, _line(model, maximize, evidence, workers, options), flush=True)


def _line(model: Any, maximize: Any, evidence: Any, workers: int, options: argparse.Namespace) -> str:
    """Solve a question, and say how it went."""
    crew = Imaginary(workers)
    if options.simulate and workers:
        vars(cubes).update(working_time=lambda: crew.now, workers_of=lambda executor: nullcontext(crew))

    def curve(snapshot: Snapshot) -> None:
        if options.curve:
            print(f"    {snapshot.seconds:7.2f} s  {snapshot.log_lower:.6f} … {snapshot.log_upper:.6f}", flush=True)

    wall, cpu = time.monotonic(), processor_seconds()
    result = solve(model, maximize, evidence, time_limit=options.time, executor=workers or None, callback=curve)
    wall = crew.now if options.simulate and workers else time.monotonic() - wall
    if workers and not options.simulate:
        # Processes of our own end, and are waited for, a moment later.
        gc.collect()
        time.sleep(2.0)
    return (
        f"workers {workers}: {result.status.value} seconds {wall:.1f} processor {processor_seconds() - cpu:.1f}"
        f" {result.log_lower:.6f} … {result.log_upper:.6f} gap {result.log_upper - result.log_lower:.4f}"
        f" cubes {result.sizes.get('cubes', 0)}"
    )


if __name__ == "__main__":
    main()
