"""What a table of questions costs: ``python -m benchmarks.batch [alarm.bif] [--questions 100000] [--workers 0 1 2]``.

The same questions by the bare engine, and by ``ps.solve_each`` and ``powersum batch`` in this process (0) and on so
many workers. Every question has other evidence on three drawn variables and asks for the best states of three others
that are the same for all; ``batch`` has its rows from a file. Seconds of the clock, processor seconds of this process,
which hands out and writes, and of its workers; then milliseconds of each for a question. On a busy machine only
processor seconds mean anything.

What is wanted: processor milliseconds of a question at most 0.2 over the bare engine's, and the time at most 1.3 times
that of the bare engine divided by the useful cores: what as many engines side by side, each in a process of its own,
get done in the time of one.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import powersum as ps
from benchmarks.instances import DATA
from benchmarks.latency import sample

WARM = 50
"""Questions before the engine is measured."""

SIDE_BY_SIDE = 20_000
"""Questions for each engine where several run side by side."""

DRAWN = 2000
"""Configurations that are drawn from the network; evidence is cut out of them."""


def used() -> tuple[float, float, float]:
    """Seconds of the clock, of this process, and of all that it started and that have ended."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return time.monotonic(), own.ru_utime + own.ru_stime, others.ru_utime + others.ru_stime


def names_of(model: ps.Model) -> list[str]:
    """The names of all variables."""
    return [model.name(v) for v in range(model.n_variables)]


def questions(model: ps.Model, number: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Best states of three variables, given drawn states of three others."""
    rng = np.random.default_rng(seed)
    names = names_of(model)
    maximize, rest = names[:3], names[3:]
    drawn = [sample(model, rng) for _ in range(min(number, DRAWN))]
    for _ in range(number):
        states = drawn[rng.integers(len(drawn))]
        chosen = [rest[v] for v in rng.choice(len(rest), 3, replace=False)]
        yield {"maximize": maximize, "evidence": {name: states[name] for name in chosen}}


class Bare(NamedTuple):
    """Seconds of the clock and of the processor for all questions by the engine, and what cores are worth."""

    wall: float
    processor: float
    cores: dict[int, float]

    def verdict(self, number: int, workers: int, wall: float, processor: float) -> str:
        """How a run compares with what is wanted of it."""
        more = (processor - self.processor) * 1e3 / number
        ratio = wall / (self.wall / self.cores[workers])
        return f"; over the engine {more:+.3f} ms (target 0.2), time {ratio:.2f} of its share (target 1.3)"


def line(what: str, number: int, work: Callable[[], None], bare: Bare | None = None, workers: int = 0) -> Bare:
    """Do something, and print what it took."""
    before = used()
    work()
    # Workers are ended with the call, and counted once they have been waited for.
    time.sleep(1.0)
    for child in multiprocessing.active_children():
        child.join()
    wall, own, others = (b - a for a, b in zip(before, used(), strict=True))
    wall -= 1.0
    each = 1e3 / number
    print(
        f"{what:24} {number} questions: {wall:7.2f} s, processor {own:7.2f} + {others:7.2f} s;"
        f" each {wall * each:.3f} ms, {own * each:.3f} + {others * each:.3f}"
        + (bare.verdict(number, workers, wall, own + others) if bare is not None else ""),
        flush=True,
    )
    return Bare(wall, own + others, {})


def _engine_alone(model: ps.Model, asked: list[dict[str, Any]], begin: Any, times: Any) -> None:
    """In a process of its own: the bare engine, once all others are as far."""
    engine = ps.Engine(model)
    for question in asked[:WARM]:
        engine.solve(**question)
    begin.wait()
    begun = time.monotonic()
    for question in asked:
        engine.solve(**question)
    times.put(time.monotonic() - begun)


def useful_cores(model: ps.Model, asked: list[dict[str, Any]], processes: int) -> float:
    """How many times as much so many engines side by side get done as one: cores may share their units."""
    context = multiprocessing.get_context("spawn")

    def seconds(side_by_side: int) -> float:
        begin, times = context.Barrier(side_by_side), context.Queue()
        jobs = [context.Process(target=_engine_alone, args=(model, asked, begin, times)) for _ in range(side_by_side)]
        for job in jobs:
            job.start()
        longest = max(times.get() for _ in jobs)
        for job in jobs:
            job.join()
        return float(longest)

    return processes * seconds(1) / seconds(processes) if processes > 1 else 1.0


def main() -> None:
    """Measure all of it once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, nargs="?", default=DATA / "bayes" / "alarm.uai")
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 1, 2])
    options = parser.parse_args()
    model = ps.read(options.model)
    asked = list(questions(model, options.questions))
    engine = ps.Engine(model)
    for question in asked[:WARM]:
        engine.solve(**question)

    def alone() -> None:
        for question in asked:
            engine.solve(**question)

    bare = line("engine", len(asked), alone)
    bare.cores.update({workers: useful_cores(model, asked[:SIDE_BY_SIDE], workers) for workers in options.workers})
    print("useful cores of so many processes:", {w: round(cores, 2) for w, cores in bare.cores.items()}, flush=True)
    for workers in options.workers:

        def stream(workers: int = workers) -> None:
            for _ in ps.solve_each(model, asked, workers=workers or None):
                pass

        line(f"solve_each, {workers} workers", len(asked), stream, bare, workers)
    with TemporaryDirectory() as folder:
        table = Path(folder) / "cases.csv"
        names = names_of(model)
        with table.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names[3:])
            writer.writerows([question["evidence"].get(name, "") for name in names[3:]] for question in asked)
        for workers in options.workers:
            command = [sys.executable, "-m", "powersum", "batch", str(options.model), str(table), "--quiet"]
            command += ["--max", ",".join(names[:3]), "-o", str(Path(folder) / f"{workers}.csv")]
            command += ["--workers", str(workers)] if workers else []
            line(f"batch, {workers} workers", len(asked), lambda: _run(command), bare, workers)  # noqa: B023


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, env=os.environ)


if __name__ == "__main__":
    main()
