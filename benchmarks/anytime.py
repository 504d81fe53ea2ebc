"""How good answers are on the way: ``python -m benchmarks.anytime [--against REV] [--beside 2] [--match pedigree7]``.

The *primal integral* of a run is the mean distance of the value from the best value known, the *dual integral* that of
the upper bound, over the logarithm of time from 10 ms to the limit. A distance is a share of the best value, at most 1;
without a value or a bound it is 1. Integrals are printed in percent, beside value and bound at the end.

    --against REV   run REV as well, by turns; lines begin with the name of the version
    --beside N      run beside N busy processes
    --time 20       seconds of each run
    --match NAME    only rows whose family/instance contains this; may be given several times
    --task MAP      only this task

The best value known is that of ``reference.csv`` or of any run here. Each run is a process of its own, and machine code
is compiled or loaded outside its time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.load import Load
from benchmarks.solve import Row, rows

FIRST = 0.01
"""Seconds at which the integrals begin."""

Moment = tuple[float, float, float]
"""Seconds, value and upper bound from then on."""

WORKER = """
import json, math, sys
from benchmarks.solve import Row, load
import powersum
row, seconds, seed = Row(*json.loads(sys.argv[1])), float(sys.argv[2]), int(sys.argv[3])
model, maximize, evidence = load(row)
result = powersum.solve(model, maximize, evidence=evidence, time_limit=seconds, seed=seed)
end = (float(result.seconds), float(result.log_lower), float(result.log_upper))
print(json.dumps([*((float(s.seconds), float(s.log_lower), float(s.log_upper)) for s in result.history), end]))
"""


def integral(distances: Sequence[tuple[float, float]], seconds: float) -> float:
    """Mean over log time of a step function, 1 before its first step: from :data:`FIRST` to ``seconds``."""
    total, now, height = 0.0, FIRST, 1.0
    for moment, distance in [*distances, (seconds, 0.0)]:
        until = min(max(moment, now), seconds)
        total += height * math.log(until / now)
        now, height = until, distance
    return total / math.log(seconds / FIRST)


def distance(number: float, best: float) -> float:
    """How far a value or a bound is from the best value, as a share of that; at most 1."""
    if not math.isfinite(number) or not math.isfinite(best):
        return float(number != best)
    return min(1.0, abs(number - best) / max(abs(best), 1.0))


def primal_and_dual(moments: Sequence[Moment], best: float, seconds: float) -> tuple[float, float]:
    """Both integrals of a run."""
    return (
        integral([(at, distance(lower, best)) for at, lower, _ in moments], seconds),
        integral([(at, distance(upper, best)) for at, _, upper in moments], seconds),
    )


def run(source: Path, row: Row, seconds: float, seed: int) -> list[Moment]:
    """What a version knows of a row at each moment; it is asked in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", WORKER, json.dumps(row), str(seconds), str(seed)],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parents[1],
        env={**os.environ, "PYTHONPATH": str(source / "src")},
    )
    return [(float(at), float(lower), float(upper)) for at, lower, upper in json.loads(done.stdout.splitlines()[-1])]


@contextmanager
def checkout(revision: str | None) -> Iterator[dict[str, Path]]:
    """The versions to run, by name; an earlier one is checked out for as long as the block lasts."""
    here = Path(__file__).resolve().parents[1]
    if revision is None:
        yield {"now": here}
        return
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "-C", str(here), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", f"{folder}/then", revision], check=True)
        try:
            yield {"now": here, "then": Path(folder) / "then"}
        finally:
            subprocess.run([*git, "remove", "--force", f"{folder}/then"], check=True)


def main() -> None:
    """Print a line for each row and version, and the mean of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REV", help="run this version, too")
    parser.add_argument("--beside", type=int, default=0, metavar="N", help="run beside so many busy processes")
    parser.add_argument("--time", type=float, default=20.0, help="seconds of each run")
    parser.add_argument("--match", action="append", help="run the rows whose family/instance contains this")
    parser.add_argument("--task", default="", help="run this task alone")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = {
        (row.family, row.instance, row.task): row
        for row in rows()
        if (options.task or row.task) == row.task
        and any(part in f"{row.family}/{row.instance}" for part in options.match or [""])
    }
    print(
        f"{'version':7} {'question':44} {'task':4} {'primal %':>9} {'dual %':>9} {'value':>14} {'bound':>14}",
        flush=True,
    )
    sums: dict[str, list[tuple[float, float]]] = {}
    with checkout(options.against) as versions, Load(options.beside, 0, 0.0):
        for row in chosen.values():
            found = {name: run(source, row, options.time, options.seed) for name, source in versions.items()}
            values = [moments[-1][1] for moments in found.values()]
            best = max([*values, *([] if math.isnan(row.ln) else [min(row.ln, found["now"][-1][2])])])
            for name, moments in found.items():
                primal, dual = primal_and_dual(moments, best, options.time)
                sums.setdefault(name, []).append((primal, dual))
                print(
                    f"{name:7} {row.family + '/' + row.instance:44} {row.task:4} {100.0 * primal:9.3f} "
                    f"{100.0 * dual:9.3f} {moments[-1][1]:14.4f} {moments[-1][2]:14.4f}",
                    flush=True,
                )
    for name, pairs in sums.items():
        primal, dual = (100.0 * sum(pair[side] for pair in pairs) / len(pairs) for side in (0, 1))
        print(f"{name:7} {'mean of ' + str(len(pairs)):49} {primal:9.3f} {dual:9.3f}")


if __name__ == "__main__":
    main()
