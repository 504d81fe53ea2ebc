"""What a pass of the covering tree costs for each table entry, by i-bound: ``python -m benchmarks.passes``.

A pass is the bound and all its gradients. Processor time of one thread, the best of several; with ``--threads 2``, what
a pass takes by the clock with one thread and with two, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.bounds import Row, order_of, pass_cost, problem_of
from powersum.bounds.tree import CoveringTree

MODELS = (
    Row("pedigree", "pedigree7", "Q0.5.I1", None, None, 0.0),
    Row("pedigree", "pedigree9", "Q0.5.I3", None, None, 0.0),
    Row("grid", "50-12-5", "Q0.5.I1", None, None, 0.0),
    Row("grid", "90-42-5", "Q0.5.I4", None, None, 0.0),
)


def main() -> None:
    """Print one line for each model and i-bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ibounds", type=int, nargs="+", default=[2, 6, 10, 13])
    parser.add_argument("--threads", type=int, default=1, help="compare one thread with so many, by the clock")
    options = parser.parse_args()
    print(f"{'query':20} {'i':>3} {'mini-buckets':>12} {'entries':>10} {'parameters':>10} {'ns':>6}")
    for row in MODELS:
        problem = problem_of(row)
        order = order_of(row, problem)
        for ibound in options.ibounds:
            tree = CoveringTree(problem, order, ibound=ibound)
            sizes = tree.sizes()
            cost = f"{pass_cost(tree):6.1f}"
            if options.threads > 1:
                side_by_side = CoveringTree(problem, order, ibound=ibound, threads=options.threads)
                costs = [pass_cost(one, 9, time.perf_counter) for one in (tree, side_by_side)]
                cost = f"{costs[0]:6.1f} {costs[1]:6.1f} ({costs[0] / costs[1]:.2f} times as quick)"
            print(
                f"{row.name:20} {ibound:3} {sizes['mini_buckets']:12} {sizes['table_entries']:10} "
                f"{sizes['parameters']:10} {cost}",
                flush=True,
            )


if __name__ == "__main__":
    main()
