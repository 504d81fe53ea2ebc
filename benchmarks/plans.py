"""Plans and formulas: both bounds and processor seconds. ``python -m benchmarks.plans [--seconds S] [ROW …]``.

All of ``planning`` and ``ssat``, or the rows that are named. The first row pays for compiling.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import powersum as ps
from benchmarks.instances import DATA


def asked(path: Path) -> tuple[ps.Model, ps.Query]:
    """The model and the query of a row."""
    if path.suffix == ".sdimacs":
        formula = ps.read_formula(path)
        return formula.model, formula.query
    model = ps.read(path)
    return model, ps.Query.of(model, ps.read_query(path.with_suffix(".map"), model))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    for path in sorted([*DATA.glob("planning/*.uai"), *DATA.glob("ssat/*.sdimacs")]):
        if options.rows and path.stem not in options.rows:
            continue
        model, query = asked(path)
        begun, processor = time.monotonic(), time.process_time()
        try:
            result = ps.solve(model, weights=query, time_limit=options.seconds)
        except ps.InputError as error:
            print(f"| {path.stem} | {error} |", flush=True)
            continue
        spent, wall = time.process_time() - processor, time.monotonic() - begun
        bounds = f"{result.log_lower:.6f} | {result.log_upper:.6f} | {result.log_upper - result.log_lower:.1e}"
        print(f"| {path.stem} | {bounds} | {result.status} | {spent:.2f} | {wall:.2f} |", flush=True)


if __name__ == "__main__":
    main()
