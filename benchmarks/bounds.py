"""How tight a bound the covering tree gives, and how fast: ``python -m benchmarks.bounds``.

Prints for each query the bound reached in its time, the time after which the wanted bound was reached, and what a
pass (bound and all gradients) costs for each table entry. Without options: every row of the table, about 8 minutes.

    --fixed            only rows with a fixed i-bound: half a minute
    --only pedigree7   only rows whose name contains this
    --log-z            log Z of all pedigrees and UAI 2014 PR models, 10 s each
    --time-to-bound    how long the tree takes to what 100 passes of plain weighted mini-bucket reach
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.instances import DATA, model_file, model_files
from powersum.bounds.rivals.wmb import WMB
from powersum.bounds.tree import CoveringTree
from powersum.core.arrays import IntArray
from powersum.core.memory import memory_left
from powersum.formats import read, read_evidence, read_order, read_query
from powersum.generate import grid
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify

DEFAULT_MEMORY = 2**30
GENERATED = "generated"
"""The family of grids that are made here; the model's name is its side."""


@dataclass(frozen=True, slots=True)
class Row:
    """One query with the bound wanted and the seconds allowed; ``ibound`` None is the default with its memory."""

    family: str
    model: str
    query: str | None
    ibound: int | None
    wanted: float | None
    seconds: float
    memory: int = DEFAULT_MEMORY

    @property
    def name(self) -> str:
        """Model and query."""
        return self.model if self.query is None else f"{self.model}.{self.query}"

    @property
    def region(self) -> str:
        """The limit on regions; mini-buckets of one factor and what fits into it are i=0."""
        return f"i={self.ibound}" if self.ibound is not None else f"{self.memory / 2**30:g} GB"


ROWS = (
    Row("grid", "50-12-5", "Q0.5.I1", 6, -14.25, 0.5),
    Row("grid", "50-12-5", "Q0.5.I1", 10, -15.45, 2.0),
    Row("promedas", "or_chain_10.fg", "Q0.5.I1", 10, -21.39, 2.0),
    Row("pedigree", "pedigree1", "Q0.5.I3", 0, -67.5, 2.0),
    Row("pedigree", "pedigree1", "Q0.5.I3", 6, -78.4, 1.0),
    Row("pedigree", "pedigree1", "Q0.5.I3", 10, -79.7, 3.0),
    Row("pedigree", "pedigree7", "Q0.5.I1", 6, -217.0, 3.0),
    Row("pedigree", "pedigree7", "Q0.5.I1", 10, -221.3, 10.0),
    Row("pedigree", "pedigree7", None, 10, -138.0, 5.0),
    Row("pedigree", "pedigree9", None, 10, -169.0, 5.0),
    Row("pedigree", "pedigree7", "Q0.5.I1", None, -222.0, 30.0),
    Row("pedigree", "pedigree1", "Q0.5.I3", None, None, 10.0),
    Row("pedigree", "pedigree7", "Q0.5.I2", None, None, 60.0),
    Row("pedigree", "pedigree9", "Q0.5.I3", None, None, 60.0),
    Row("pedigree", "pedigree30", "Q0.5.I2", None, None, 60.0),
    Row("grid", "90-42-5", "Q0.5.I4", None, None, 60.0, 4 * DEFAULT_MEMORY),
    Row(GENERATED, "1000x1000", None, None, None, 60.0, 4 * DEFAULT_MEMORY),
)

RACES = (
    Row("pedigree", "pedigree1", "Q0.5.I3", None, None, 0.0),
    Row("pedigree", "pedigree7", "Q0.5.I1", None, None, 0.0),
    Row("pedigree", "pedigree9", "Q0.5.I3", None, None, 0.0),
    Row("grid", "50-12-5", "Q0.5.I1", None, None, 0.0),
    Row("grid", "90-42-5", "Q0.5.I4", None, None, 0.0),
)
RACE_IBOUNDS = (2, 6, 10)
RACE_PASSES = 100
DAMPINGS = (0.05, 0.2, 0.5)
"""Plain weighted mini-bucket is given the best of these."""


def partition_function_rows(seconds: float) -> Iterator[Row]:
    """Rows for log Z of every pedigree and every model of the UAI 2014 PR track."""
    for family in ("pedigree", "uai2014-pr"):
        for path in model_files(family):
            yield Row(family, path.name.partition(".uai")[0], None, None, None, seconds)


def best_known(row: Row) -> float | None:
    """The reference value of a row, in natural logs."""
    path = DATA / "reference.csv"
    task = "PR" if row.query is None else "MMAP"
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        family, instance, kind, _, _, natural = line.split(",")[:6]
        if family == row.family and instance == row.name and kind == task:
            return float(natural)
    return None


def problem_of(row: Row) -> Problem:
    """The simplified problem of a row."""
    if row.family == GENERATED:
        rows, columns = (int(side) for side in row.model.split("x"))
        model, query = grid(rows, columns)
        return simplify(model, Query.of(model, query), {})
    folder = DATA / row.family
    model = read(model_file(row.family, row.model))
    evidence_path = folder / f"{row.model}.uai.evid"
    evidence = model.evidence(read_evidence(evidence_path, model)) if evidence_path.is_file() else {}
    maximize = None if row.query is None else read_query(folder / f"{row.name}.map", model)
    return simplify(model, Query.of(model, maximize), evidence)


def order_of(row: Row, problem: Problem, *, auto: bool = False) -> IntArray:
    """The order that comes with the query, or one of ours."""
    path = DATA / row.family / f"{row.name}.vo"
    if auto or not path.is_file():
        return elimination_order(problem.model, problem.tau)
    return problem.reduced_order(np.asarray(read_order(path, read(model_file(row.family, row.model)))))


def run(row: Row, *, threads: int, auto: bool) -> str:
    """Tighten one row's bound for its time and describe the outcome in one line."""
    problem = problem_of(row)
    begun, cpu = time.monotonic(), time.process_time()
    order = order_of(row, problem, auto=auto)
    memory = None if row.ibound is not None else int(memory_left(row.memory))
    tree = CoveringTree(problem, order, threads=threads, ibound=row.ibound, memory=memory)
    reached = None
    deadline = begun + row.seconds
    while True:
        upper = tree.log_upper + problem.log_constant
        if reached is None and row.wanted is not None and upper <= row.wanted:
            reached = time.monotonic() - begun
        if not tree.step(deadline) or time.monotonic() >= deadline:
            break
    upper = tree.log_upper + problem.log_constant
    seconds, cpu = time.monotonic() - begun, time.process_time() - cpu
    known = best_known(row)
    # An exact tree needs one pass without gradients; its tables may be far larger than memory.
    per_entry = "" if tree.exact else f"{pass_cost(tree):.1f}"
    wanted = "" if row.wanted is None else f"{row.wanted:.2f}"
    when = "" if reached is None else f"{reached:.2f}"
    distance, gap, reference = "", "", ""
    if known is not None:
        reference, distance = f"{known:.2f}", f"{upper - known:.3f}"
        gap = f"{100 * (upper - known) / abs(known):.2f} %"
    return (
        f"{row.name:24} {row.region:>6} {upper:13.3f} {wanted:>9} {when:>6} {seconds:6.1f} {cpu:6.1f} "
        f"{reference:>10} {distance:>9} {gap:>8} {tree.sizes()['table_entries']:>10} {per_entry:>6}"
        f"{'  exact' if tree.exact else ''}"
    )


def pass_cost(tree: CoveringTree, repeats: int = 3, clock: Callable[[], float] = time.process_time) -> float:
    """Processor time of one pass, or that of another clock, in nanoseconds for each table entry; the best of a few."""
    entries = max(int(tree.sizes()["table_entries"]), 1)
    best = np.inf
    for _ in range(repeats):
        rounds = max(1, int(2e6) // entries)
        start = clock()
        for _ in range(rounds):
            tree.one_pass()
        best = min(best, (clock() - start) / rounds)
    return 1e9 * best / entries


def race(row: Row, most_seconds: float) -> str:
    """Time to the bound: plain weighted mini-bucket against the tree at the same i-bound, and without one."""
    problem = problem_of(row)
    order = order_of(row, problem)
    wanted, best_damping, rival_seconds = np.inf, 0.0, 0.0
    for damping in DAMPINGS:
        begun = time.monotonic()
        rival = WMB(problem, order, ibound=row.ibound or 0, damping=damping)
        for _ in range(RACE_PASSES):
            if not rival.step(np.inf):
                break
        if rival.log_upper < wanted:
            wanted, best_damping, rival_seconds = rival.log_upper, damping, time.monotonic() - begun
    times = [_seconds_to(wanted, problem, order, ibound, most_seconds) for ibound in (row.ibound, None)]
    return (
        f"{row.name:24} {row.region:>6} {wanted + problem.log_constant:11.3f} {best_damping:8.2f} "
        f"{rival_seconds:8.2f} {times[0]:>8} {times[1]:>8}"
    )


def _seconds_to(wanted: float, problem: Problem, order: IntArray, ibound: int | None, most_seconds: float) -> str:
    begun = time.monotonic()
    tree = CoveringTree(problem, order, ibound=ibound)
    deadline = begun + most_seconds
    while tree.log_upper > wanted:
        if not tree.step(deadline) or time.monotonic() >= deadline:
            return f"> {most_seconds:g}"
    return f"{time.monotonic() - begun:.2f}"


def main() -> None:
    """Run the rows asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="run the rows whose name contains this")
    parser.add_argument("--fixed", action="store_true", help="only rows with a fixed i-bound")
    parser.add_argument("--free", action="store_true", help="only rows without one")
    parser.add_argument("--log-z", action="store_true", help="log Z of all pedigrees and UAI 2014 PR models instead")
    parser.add_argument("--time-to-bound", action="store_true", help="the race with plain weighted mini-bucket instead")
    parser.add_argument("--seconds", type=float, help="seconds for each row, whatever the table says")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--auto", action="store_true", help="our own orders, not those of the .vo files")
    options = parser.parse_args()
    # Compile before the clock runs.
    run(Row("grid", "50-12-5", "Q0.5.I1", 2, None, 0.5), threads=options.threads, auto=options.auto)
    if options.time_to_bound:
        print(f"{'query':24} {'at':>6} {'bound':>11} {'damping':>8} {'rival s':>8} {'tree s':>8} {'free s':>8}")
        for row in RACES:
            for ibound in RACE_IBOUNDS if options.only in row.name else ():
                print(race(replace(row, ibound=ibound), options.seconds or 20.0), flush=True)
        return
    rows = list(partition_function_rows(10.0)) if options.log_z else list(ROWS)
    print(
        f"{'query':24} {'at':>6} {'bound':>13} {'wanted':>9} {'after':>6} {'s':>6} {'cpu s':>6} "
        f"{'known':>10} {'distance':>9} {'gap':>8} {'entries':>10} {'ns':>6}"
    )
    for row in rows:
        skipped = options.free if row.ibound is not None else options.fixed
        if options.only in row.name and not skipped:
            row = replace(row, seconds=options.seconds or row.seconds)
            print(run(row, threads=options.threads, auto=options.auto), flush=True)


if __name__ == "__main__":
    main()
