"""Cost of a sweep of Algorithm 1: ``python -m benchmarks.sweep``.

For every pedigree (half of the variables maximised at random, as in the paper) and for generated grids up to 1000×1000:
time to read, simplify, order and build, milliseconds for each sweep with one and with two threads, peak memory. Each
row runs in a process of its own, so that memory is that row's; times are warm (compiled code comes from the cache).
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from benchmarks.instances import DATA

COLUMNS = (
    "instance", "variables", "entries", "read s", "simplify s", "order s", "build s", "1 thread ms", "2 threads ms",
    "ns/entry", "bound", "peak MB",
)  # fmt: skip


def instances(folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """Model and query files of every row: the pedigrees where the data is here, then grids written to ``folder``."""
    for model in sorted((DATA / "pedigree").glob("*.uai"), key=lambda path: int(path.stem[8:])):
        queries = sorted(model.parent.glob(f"{model.stem}.Q0.5.I[1-4].map"))
        if queries:
            yield queries[0].stem, model, queries[0]
    from powersum import generate
    from powersum.formats import write, write_query

    for side in (12, 100, 1000):
        model_path, query_path = folder / f"grid{side}.uai", folder / f"grid{side}.query"
        grid = generate.grid(side, side, seed=0)
        write(grid.model, model_path)
        write_query(grid.query, query_path)
        yield f"grid {side}×{side}", model_path, query_path


def measure(name: str, model_path: Path, query_path: Path, sweeps: int) -> list[str]:
    """One row of the table."""
    from powersum.bounds.gdd import GDD
    from powersum.formats import read, read_query
    from powersum.model.query import Query
    from powersum.prepare.ordering import elimination_order
    from powersum.prepare.simplify import simplify

    marks = [time.perf_counter()]
    model = read(model_path)
    query = Query.of(model, read_query(query_path, model))
    marks.append(time.perf_counter())
    problem = simplify(model, query, {})
    marks.append(time.perf_counter())
    order = elimination_order(problem.model, problem.tau)
    marks.append(time.perf_counter())
    methods = [GDD(problem, order, threads=1)]
    marks.append(time.perf_counter())
    methods.append(GDD(problem, order, threads=2))
    milliseconds = []
    for method in methods:
        method.step(math.inf)
        start = time.perf_counter()
        for _ in range(sweeps):
            method.step(math.inf)
        milliseconds.append((time.perf_counter() - start) * 1000 / sweeps)
    assert methods[0].log_upper == methods[1].log_upper
    entries = int(methods[0].sizes()["table_entries"])
    seconds = [f"{after - before:.3f}" for before, after in pairwise(marks)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        name, str(problem.model.n_variables), str(entries), *seconds, *(f"{m:.2f}" for m in milliseconds),
        f"{milliseconds[0] * 1e6 / entries:.0f}", f"{methods[0].log_upper + problem.log_constant:.2f}", f"{peak:.0f}",
    ]  # fmt: skip


def main() -> None:
    """Print the table, a process for each row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--row", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        name, model_path, query_path = options.row
        sweeps = options.sweeps if not name.startswith("grid 1000") else max(2, options.sweeps // 10)
        print(" | ".join(measure(name, Path(model_path), Path(query_path), sweeps)))
        return
    print(" | ".join(COLUMNS))
    print(" | ".join("---" for _ in COLUMNS), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, model_path, query_path in instances(Path(folder)):
            if options.only in name:
                row = ["--sweeps", str(options.sweeps), "--row", name, str(model_path), str(query_path)]
                subprocess.run([sys.executable, "-m", "benchmarks.sweep", *row], check=True, env=os.environ)


if __name__ == "__main__":
    main()
