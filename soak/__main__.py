"""``python -m soak``: random questions until the time is over; exit code 1 if any answer was wrong."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from soak.cases import Case
from soak.draw import ENTRIES, draw, seeds_of
from soak.report import Tally, write_test
from soak.shrink import kind_of, shrunk
from soak.workers import Done, Pool

BATCH = 25
"""Cases that a worker is given at once."""

ALIKE = 2
"""Cases that fail in the same way which are made smaller and written as tests; the others are counted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak, print what is wrong as it is found and a table at the end."""
    asked = _parser().parse_args(arguments)
    if asked.case:
        return _replay(asked.case)
    end = time.monotonic() + 60.0 * asked.minutes
    tally, alike = Tally(), Counter[str]()
    failures: list[Done] = []
    pool = Pool(asked.jobs, asked.only)
    try:
        for done in pool.run(_batches(asked.seed, asked.first, asked.models, end)):
            tally.add(done)
            if done.outcome.wrong:
                key = _key(done.case, done.outcome.wrong[0])
                alike[key] += 1
                print(f"{done.case.name} [{done.case.kind}] {key}: {done.outcome.wrong[0]}", flush=True)
                if alike[key] <= ALIKE:
                    failures.append(done)
        for failure in failures:
            _write(failure, pool, Path(asked.out))
    except KeyboardInterrupt:
        print("stopped by Ctrl-C")
    finally:
        pool.stop()
    for key, number in sorted(alike.items()):
        print(f"{number:>6} × {key}")
    print(tally.table())
    return 1 if tally.violations else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="when to stop (1)")
    parser.add_argument("--models", type=int, help="how many cases at most")
    parser.add_argument("--seed", type=int, default=0, help="runs of different seeds have no case in common (0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case: goes on where a run ended (0)")
    parser.add_argument("--only", choices=list(ENTRIES), help="one entry alone")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes (1)")
    parser.add_argument("--out", default="out/soak", help="folder for failing cases as tests (out/soak)")
    parser.add_argument("--case", metavar="NAME", help="ask one case again, by the name that was printed")
    return parser


def _batches(seed: int, first: int, models: int | None, end: float) -> Iterator[list[int]]:
    """Seeds of cases, in small batches, until the number or the time is reached."""
    for start in count(0, BATCH):
        left = BATCH if models is None else min(BATCH, models - start)
        if left <= 0 or time.monotonic() >= end:
            return
        yield seeds_of(seed, first + start, left)


def _key(case: Case, wrong: str) -> str:
    """Cases with the same key have most likely the same fault."""
    return f"{case.entry} {case.road} {case.options.get('method', case.suffix)} {kind_of(wrong)}"


def _write(failure: Done, pool: Pool, folder: Path) -> None:
    """Make a failing case smaller and write it as a test."""
    kind = kind_of(failure.outcome.wrong[0])

    def fails(case: Case) -> bool:
        return any(kind_of(text) == kind for text in pool.ask(case).wrong)

    # What is found again by its seed alone, but not as a case, depends on what was asked before it.
    small = shrunk(failure.case, fails, tries=30 if kind == "hang" else 600) if fails(failure.case) else failure.case
    wrong = pool.ask(small).wrong or ("not found again by itself: " + failure.outcome.wrong[0],)
    print(f"written: {write_test(folder, small, wrong[0])}: {wrong[0]}", flush=True)


def _replay(name: str) -> int:
    """Ask one case again in this process, and show all of it."""
    found = re.fullmatch(r"(\w+)-(\d+)", name)
    if not found or found[1] not in ENTRIES:
        print(f"no case is called {name!r}: names look like solve-123", file=sys.stderr)
        return 2
    from soak.entries import checked

    case = draw(int(found[2]), found[1])
    print(case)
    outcome = checked(case)
    print(outcome.ended, *outcome.wrong, sep="\n")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
