"""Widths of our elimination orders against those shipped with the instances: ``python -m benchmarks.orders``.

Both are measured on the simplified problem. The folder of the instances is the environment variable ``POWERSUM_DATA``,
else ``../shared/data``.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.instances import DATA
from powersum.formats import read, read_order, read_query
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order, order_cost
from powersum.prepare.simplify import simplify


def main() -> None:
    """Print one line for each instance that comes with an order, and how often ours is narrower or wider."""
    wins = np.zeros(3, dtype=np.int64)
    print(
        f"{'instance':44} {'vars':>6} {'left':>6} {'.vo':>5} {'ours':>5} {'log2 .vo':>9} {'log2 ours':>9}"
        f" {'simplify s':>10} {'order s':>8}"
    )
    for file in sorted(DATA.glob("*/*.vo")):
        stem = file.name.removesuffix(".vo")
        models = [p for p in file.parent.glob("*.uai") if stem.startswith(p.name.removesuffix(".uai"))]
        model = read(max(models, key=lambda p: len(p.name)))
        query = Query.of(model, read_query(file.with_name(stem + ".map")))
        theirs = read_order(file)
        simplify(model, query, {})
        begin = time.perf_counter()
        problem = simplify(model, query, {})
        simplified = time.perf_counter()
        ours = elimination_order(problem.model, problem.tau)
        ordered = time.perf_counter()
        cost = order_cost(problem.model, ours)
        given = order_cost(problem.model, problem.reduced_order(theirs))
        wins[np.sign(cost.width - given.width) + 1] += 1
        print(
            f"{file.parent.name + '/' + stem:44} {model.n_variables:6} {problem.model.n_variables:6} {given.width:5}"
            f" {cost.width:5} {given.log2_total:9.1f} {cost.log2_total:9.1f} {simplified - begin:10.3f}"
            f" {ordered - simplified:8.3f}"
        )
    print(f"narrower {wins[0]}, equal {wins[1]}, wider {wins[2]}")


if __name__ == "__main__":
    main()
