"""What a table of questions costs: ``python -m benchmarks.batch alarm.bif [--questions 100000] [--workers 0 1 2]``.

The same questions by the bare engine, and by ``ps.solve_each`` and ``powersum batch`` in this process (0) and on so
many workers. Every question has other evidence on three drawn variables and asks for the best states of three others
that are the same for all; ``batch`` has its rows from a file. Seconds of the clock, processor seconds of this process,
which hands out and writes, and of its workers; then milliseconds of each for a question. On a busy machine only
processor seconds mean anything.
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
from typing import Any

import numpy as np

import powersum as ps
from benchmarks.latency import sample

WARM = 50
"""Questions before the engine is measured."""

DRAWN = 2000
"""Configurations that are drawn from the network; evidence is cut out of them."""


def used() -> tuple[float, float, float]:
    """Seconds of the clock, of this process, and of all that it started and that have ended."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return time.monotonic(), own.ru_utime + own.ru_stime, others.ru_utime + others.ru_stime


def questions(model: ps.Model, number: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Best states of three variables, given drawn states of three others."""
    rng = np.random.default_rng(seed)
    names = list(model.names or ())
    maximize, rest = names[:3], names[3:]
    drawn = [sample(model, rng) for _ in range(min(number, DRAWN))]
    for _ in range(number):
        states = drawn[rng.integers(len(drawn))]
        chosen = [rest[v] for v in rng.choice(len(rest), 3, replace=False)]
        yield {"maximize": maximize, "evidence": {name: states[name] for name in chosen}}


def line(what: str, number: int, work: Callable[[], None]) -> None:
    """Do something, and print what it took."""
    before = used()
    work()
    # Workers are ended with the call, and counted once they have been waited for.
    time.sleep(1.0)
    for child in multiprocessing.active_children():
        child.join()
    wall, own, others = (b - a for a, b in zip(before, used(), strict=True))
    each = 1e3 / number
    print(
        f"{what:24} {number} questions: {wall - 1.0:7.2f} s, processor {own:7.2f} + {others:7.2f} s;"
        f" each {(wall - 1.0) * each:.3f} ms, {own * each:.3f} + {others * each:.3f}",
        flush=True,
    )


def main() -> None:
    """Measure all of it once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 1, 2])
    options = parser.parse_args()
    model = ps.read(options.model)
    asked = list(questions(model, options.questions))
    engine = ps.Engine(model)
    for question in asked[:WARM]:
        engine.solve(**question)

    def bare() -> None:
        for question in asked:
            engine.solve(**question)

    line("engine", len(asked), bare)
    for workers in options.workers:

        def stream(workers: int = workers) -> None:
            for _ in ps.solve_each(model, asked, executor=workers or None):
                pass

        line(f"solve_each, {workers} workers", len(asked), stream)
    with TemporaryDirectory() as folder:
        table = Path(folder) / "cases.csv"
        names = list(model.names or ())
        with table.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names[3:])
            writer.writerows([question["evidence"].get(name, "") for name in names[3:]] for question in asked)
        for workers in options.workers:
            command = [sys.executable, "-m", "powersum", "batch", str(options.model), str(table), "--quiet"]
            command += ["--max", ",".join(names[:3]), "-o", str(Path(folder) / f"{workers}.csv")]
            command += ["--workers", str(workers)] if workers else []
            line(f"batch, {workers} workers", len(asked), lambda: _run(command))  # noqa: B023


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, env=os.environ)


if __name__ == "__main__":
    main()
