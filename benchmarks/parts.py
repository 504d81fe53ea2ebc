"""One huge model, in one process and in parts: ``python -m benchmarks.parts [--side 300] [--workers 1 2 4]``.

A grid with half of its variables maximised is bounded by ``gdd``: by one process with a thread for each core, and from
its mapped file on so many workers. For each: seconds in all, seconds of a sweep, processor seconds of all processes,
the most memory that the first process and that a worker held, and the bound after each sweep with its distance from
that of one process. Each runs in a process of its own, so that its memory is its own.

Wanted: bounds at most 0.5 % above, sweeps at most 1.15 times as long on the same cores, and of the 2000 × 2000 grid on
four workers at most 3 GB each.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def written(side: int, folder: Path) -> tuple[Path, Path]:
    """The grid as a mapped file, and the variables that are maximised."""
    from powersum import generate
    from powersum.formats import write

    model, query = generate.grid(side, side, seed=0)
    files = folder / "grid.psm", folder / "query.json"
    write(model, files[0])
    files[1].write_text(json.dumps([int(v) for v in query]))
    return files


def measure(model: str, query: str, workers: int, sweeps: int) -> dict[str, Any]:
    """Bound it once, in this process or on workers."""
    import numpy as np

    import powersum as ps

    maximize = json.loads(Path(query).read_text())
    begun = time.monotonic()
    options: dict[str, Any] = {"workers": workers}
    if not workers:
        # The order of parts of a mapped file: another one has another bound, 1 % apart on these grids.
        maximised = np.zeros(ps.read(model).n_variables, dtype=bool)
        maximised[maximize] = True
        options = {"threads": os.cpu_count() or 1, "order": np.argsort(maximised, kind="stable")}
    result = ps.bound(model, maximize, method="gdd", sweeps=sweeps, **options)
    wall = time.monotonic() - begun
    # Workers are counted once they have ended.
    time.sleep(2.0 if workers else 0.0)
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = [snapshot.seconds for snapshot in result.history]
    return {
        "bounds": [snapshot.log_upper for snapshot in result.history],
        "wall": wall,
        "sweep": (seconds[-1] - seconds[0]) / max(len(seconds) - 1, 1),
        "processor": own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime,
        "first": own.ru_maxrss * 1024,
        "worker": result.sizes.get("worker_bytes", 0),
        "seam": result.sizes.get("seam_variables", 0),
        "exchanged": result.sizes.get("bytes_exchanged", 0),
    }


def main() -> None:
    """Print the table, a process for each row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=300)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--sweeps", type=int, default=4)
    parser.add_argument("--row", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        model, query, workers = options.row
        print(json.dumps(measure(model, query, int(workers), options.sweeps)))
        return
    with TemporaryDirectory() as folder:
        begun = time.monotonic()
        files = written(options.side, Path(folder))
        size = files[0].stat().st_size / 1e9
        print(
            f"{options.side} × {options.side}, a file of {size:.2f} GB, written after {time.monotonic() - begun:.1f} s"
        )
        alone: dict[str, Any] = {}
        for workers in (0, *options.workers):
            row = ["--sweeps", str(options.sweeps), "--row", *map(str, files), str(workers)]
            command = [sys.executable, "-m", "benchmarks.parts", *row]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=os.environ).stdout)
            alone = alone or found
            print(_line(workers, found, alone, options.side**2), flush=True)


def _line(workers: int, found: dict[str, Any], alone: dict[str, Any], n_variables: int) -> str:
    who = f"{workers} workers" if workers else "one process"
    about = (
        f"{who}: {found['wall']:.1f} s, {found['sweep']:.2f} s a sweep ({found['sweep'] / alone['sweep']:.2f} of one"
        f" process), processor {found['processor']:.1f} s, first process {found['first'] / 1e9:.2f} GB"
    )
    if workers:
        about += f", a worker {found['worker'] / 1e9:.2f} GB"
        about += f", {found['seam']} variables at the seam, {found['exchanged'] / 1e6:.2f} MB a round"
    else:
        about += f" ({found['first'] / n_variables:.0f} bytes a variable)"
    pairs = zip(found["bounds"], alone["bounds"], strict=True)
    return about + "; bounds " + ", ".join(f"{own:.1f} ({100 * (own - one) / abs(one):+.2f} %)" for own, one in pairs)


if __name__ == "__main__":
    main()
