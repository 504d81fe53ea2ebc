"""Ways in which covering trees grow: ``python -m benchmarks.growth [pedigree19.Q0.5.I4 …] [--seeds 0 1]``.

For each question and seed one order; the tree along it begins small and grows by 1.75 at a time, with as many rounds of
descent in between as in a run: by merges alone, or by merges and extensions in turn. A line for each, with its bound
when it first has so many entries. The last line is a tree that is made with 1.8 million entries and then merged.
"""

from __future__ import annotations

import argparse
import math
import time

from benchmarks.solve import load, rows
from powersum.bounds.tree.building import Builder
from powersum.bounds.tree.covering_tree import GROWN_ROUNDS, GROWTH, SMALL_ENTRIES
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.growth import Turns
from powersum.bounds.tree.orders import Orders
from powersum.bounds.tree.race import MOST_ENTRIES
from powersum.model.query import Query
from powersum.prepare.simplify import simplify

SIZES = (SMALL_ENTRIES, 5e5, 1e6, 2e6, 5e6)
MEMORY = 1 << 31

INSTANCES = ("pedigree13.Q0.5.I1", "pedigree19.Q0.5.I4", "pedigree9.Q0.5.I3", "pedigree7.Q0.5.I2", "Grids_22")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*", default=INSTANCES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    options = parser.parse_args()
    columns = " | ".join(f"{1e-6 * size:g} million entries" for size in SIZES)
    print(f"| question | seed | grows by | {columns} | processor seconds |")
    print("|---" * (len(SIZES) + 4) + "|", flush=True)
    for name in options.instances:
        model, maximize, evidence = load(next(r for r in rows() if r.instance == name and r.task == "MMAP"))
        problem = simplify(model, Query.of(model, maximize), evidence)
        for seed in options.seeds:
            order = Orders(problem, seed).draw()
            builder = Builder(problem, threads=1, memory=MEMORY)
            for way, extends, entries in (
                ("merges", False, SMALL_ENTRIES),
                ("both", True, SMALL_ENTRIES),
                ("merges", False, MOST_ENTRIES),
            ):
                begun = time.process_time()
                tree = builder.within(order, entries)
                tree._turns = Turns(extends=extends)
                cells = " | ".join(
                    f"{problem.log_constant + bound:.2f}" if bound < math.inf else "" for bound in grown(tree)
                )
                print(f"| {name} | {seed} | {way} | {cells} | {time.process_time() - begun:.1f} |", flush=True)


def grown(tree: FixedTree) -> list[float]:
    """The bound with each of the sizes; infinity for those that it began with more than."""
    bounds = [math.inf] * len(SIZES)
    larger: FixedTree | None = tree
    while larger is not None:
        tree = larger
        for _ in range(GROWN_ROUNDS):
            tree.step(math.inf)
        passed = sum(tree.layout.n_entries >= 0.8 * size for size in SIZES)
        if passed:
            bounds[passed - 1] = tree.log_upper
        if tree.layout.n_entries >= 0.8 * SIZES[-1]:
            break
        larger = tree.grown(min(GROWTH, SIZES[-1] / tree.layout.n_entries), MEMORY, seed=0)
    return bounds


if __name__ == "__main__":
    main()
