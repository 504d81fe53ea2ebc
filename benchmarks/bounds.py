"""How tight a bound the covering tree gives, and how fast: ``python -m benchmarks.bounds``.

Prints for each query the bound reached in its time, the time after which the wanted bound was reached, and what a
pass (bound and all gradients) costs for each table entry. ``--only pedigree7`` runs the rows whose name has that word.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.data import DATA

from powersum.formats import read, read_order, read_query
from powersum.ordering import elimination_order
from powersum.query import Query
from powersum.simplify import simplify
from powersum.tighten.tree import CoveringTree

DEFAULT_MEMORY = 2**30


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


ROWS = (
    Row("grid", "50-12-5", "Q0.5.I1", 6, -14.25, 0.5),
    Row("grid", "50-12-5", "Q0.5.I1", 10, -15.45, 2.0),
    Row("promedas", "or_chain_10.fg", "Q0.5.I1", 10, -21.39, 2.0),
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
)


def partition_function_rows(seconds: float) -> Iterator[Row]:
    """Rows for log Z of every pedigree and every model of the UAI 2014 PR track."""
    for family in ("pedigree", "uai2014-pr"):
        for path in sorted((DATA / family).glob("*.uai")):
            yield Row(family, path.stem, None, None, None, seconds)


def best_known(row: Row) -> float | None:
    """The reference value of a row, in natural logs."""
    path = DATA / "reference.csv"
    task = "PR" if row.query is None else "MMAP"
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        family, instance, kind, _, _, natural = line.split(",")[:6]
        if family == row.family and instance == row.name and kind == task:
            return float(natural)
    return None


def run(row: Row, *, threads: int, auto: bool) -> str:
    """Tighten one row's bound for its time and describe the outcome in one line."""
    folder = Path(DATA) / row.family
    model = read(folder / f"{row.model}.uai")
    evidence_path = folder / f"{row.model}.uai.evid"
    evidence: dict[int, int] = {}
    if evidence_path.is_file():
        from powersum.formats import read_evidence

        evidence = model.evidence(read_evidence(evidence_path, model))
    maximize = None if row.query is None else read_query(folder / f"{row.name}.map", model)
    problem = simplify(model, Query.of(model, maximize), evidence)
    begun = time.monotonic()
    cpu = time.process_time()
    if row.query is None or auto:
        order = elimination_order(problem.model, problem.tau)
    else:
        order = problem.reduced_order(np.asarray(read_order(folder / f"{row.name}.vo", model)))
    memory = None if row.ibound is not None else row.memory
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
    sizes = tree.sizes()
    # An exact tree needs one pass without gradients; its tables may be far larger than memory.
    per_entry = np.nan if tree.exact else pass_cost(tree)
    region = f"i={row.ibound}" if row.ibound is not None else f"{row.memory / 2**30:g} GB"
    wanted = "" if row.wanted is None else f"{row.wanted:.2f}"
    when = "" if reached is None else f"{reached:.2f}"
    gap = "" if known is None else f"{100 * (upper - known) / abs(known):.2f} %"
    return (
        f"{row.name:24} {region:>6} {upper:11.3f} {wanted:>9} {when:>6} {seconds:6.1f} {cpu:6.1f} "
        f"{'' if known is None else f'{known:.2f}':>9} {gap:>8} {sizes['entries']:>10} {per_entry:6.1f}"
        f"{'  exact' if tree.exact else ''}"
    )


def pass_cost(tree: CoveringTree, repeats: int = 3) -> float:
    """Processor time of one pass, in nanoseconds for each table entry; the best of a few."""
    entries = max(int(tree.sizes()["entries"]), 1)
    best = np.inf
    for _ in range(repeats):
        rounds = max(1, int(2e6) // entries)
        start = time.process_time()
        for _ in range(rounds):
            tree.one_pass()
        best = min(best, (time.process_time() - start) / rounds)
    return 1e9 * best / entries


def main() -> None:
    """Run the rows asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run the rows whose name contains this")
    parser.add_argument("--fixed", action="store_true", help="only rows with a fixed i-bound")
    parser.add_argument("--log-z", action="store_true", help="log Z of all pedigrees and UAI 2014 PR models instead")
    parser.add_argument("--seconds", type=float, help="seconds for each row, whatever the table says")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--auto", action="store_true", help="our own orders, not those of the .vo files")
    options = parser.parse_args()
    rows = list(partition_function_rows(options.seconds or 10.0)) if options.log_z else list(ROWS)
    rows = [row for row in rows if options.only in row.name and (row.ibound is not None or not options.fixed)]
    # Compile before the clock runs.
    run(Row("grid", "50-12-5", "Q0.5.I1", 2, None, 0.5), threads=options.threads, auto=options.auto)
    print(
        f"{'query':24} {'at':>6} {'bound':>11} {'wanted':>9} {'after':>6} {'s':>6} {'cpu s':>6} "
        f"{'known':>9} {'gap':>8} {'entries':>10} {'ns':>6}"
    )
    for row in rows:
        if options.seconds:
            row = Row(row.family, row.model, row.query, row.ibound, row.wanted, options.seconds, row.memory)
        print(run(row, threads=options.threads, auto=options.auto), flush=True)


if __name__ == "__main__":
    main()
