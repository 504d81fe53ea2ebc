"""Default bounds against those of an earlier version in twice the time: ``python -m benchmarks.against OLD``.

OLD is a checkout of the earlier version, as ``git worktree add /somewhere COMMIT`` makes one. Each bound is found in a
process of its own, the two versions in turn; time is that of the clock, so nothing else should be running. What is
compiled is compiled before. The earlier version has to know ``powersum.bound`` and ``powersum.formats``.

    --times 5 20       seconds for this version, in place of 5, 20 and 60; the earlier one has twice as many
    --only pedigree7   only rows whose name contains this
    --seeds 0 1 2      a line for each seed
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROWS = (
    ("pedigree", "pedigree1", "Q0.5.I3"),
    ("pedigree", "pedigree7", "Q0.5.I1"),
    ("pedigree", "pedigree7", "Q0.5.I2"),
    ("pedigree", "pedigree9", "Q0.5.I3"),
    ("pedigree", "pedigree30", "Q0.5.I2"),
    ("pedigree", "pedigree7", ""),
    ("pedigree", "pedigree19", ""),
    ("grid", "50-12-5", "Q0.5.I1"),
    ("grid", "90-42-5", "Q0.5.I4"),
)
"""Family, model and query; without a query it is log Z."""

AS_TIGHT = 1e-3
"""Nats that pass for nothing."""

WORKER = """
import sys
from pathlib import Path
import powersum
from powersum.formats import read, read_evidence, read_query
path, query, evidence, seconds, seed = sys.argv[1:]
model = read(Path(path))
given = read_evidence(Path(evidence), model) if Path(evidence).is_file() else None
maximize = read_query(Path(query), model) if query else None
for limit in (1.0, float(seconds)):
    result = powersum.bound(model, maximize, given, time_limit=limit, seed=int(seed))
print(result.log_upper)
"""


def bound_of(source: Path, row: tuple[str, str, str], seconds: float, seed: int) -> float:
    """The bound that the version in ``source`` finds, by one thread."""
    from benchmarks.instances import DATA, model_file

    family, name, query = row
    arguments = [
        str(model_file(family, name)),
        str(DATA / family / f"{name}.{query}.map") if query else "",
        str(DATA / family / f"{name}.uai.evid"),
        str(seconds),
        str(seed),
    ]
    done = subprocess.run(
        [sys.executable, "-c", WORKER, *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd=source,
        env={**os.environ, "PYTHONPATH": str(source / "src")},
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    """Print a line for each row, time and seed, and how many of them are as tight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="checkout of the earlier version")
    parser.add_argument("--times", type=float, nargs="+", default=[5.0, 20.0, 60.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", default="", help="run the rows whose name contains this")
    options = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    old = options.old.resolve()
    print(f"{'query':24} {'seed':>4} {'s':>5} {'now':>12} {'earlier, 2 s':>12} {'difference':>10}", flush=True)
    tight = total = 0
    for row in ROWS:
        name = f"{row[1]}.{row[2]}" if row[2] else f"{row[1]} log Z"
        if options.only not in name:
            continue
        for seconds in options.times:
            for seed in options.seeds:
                now, before = bound_of(here, row, seconds, seed), bound_of(old, row, 2.0 * seconds, seed)
                total += 1
                tight += now <= before + AS_TIGHT
                print(f"{name:24} {seed:4} {seconds:5g} {now:12.3f} {before:12.3f} {now - before:10.3f}", flush=True)
    print(f"as tight as the earlier version in twice the time: {tight} of {total}")


if __name__ == "__main__":
    main()
