"""What a pass of the covering tree costs for each table entry, by i-bound: ``python -m benchmarks.passes``.

A pass is the bound and all its gradients. Processor time of one thread, the best of several.
"""

from __future__ import annotations

import argparse

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
    options = parser.parse_args()
    print(f"{'query':20} {'i':>3} {'mini-buckets':>12} {'entries':>10} {'parameters':>10} {'ns':>6}")
    for row in MODELS:
        problem = problem_of(row)
        order = order_of(row, problem)
        for ibound in options.ibounds:
            tree = CoveringTree(problem, order, ibound=ibound)
            sizes = tree.sizes()
            print(
                f"{row.name:20} {ibound:3} {sizes['mini_buckets']:12} {sizes['table_entries']:10} "
                f"{sizes['parameters']:10} {pass_cost(tree):6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
