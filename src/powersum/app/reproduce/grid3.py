"""Figure 1: three relaxations of a 3×3 grid, their parameters counted and their bounds optimised."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.problem import Problem

EDGES = [(v, v + 1) for v in range(9) if v % 3 < 2] + [(v, v + 3) for v in range(6)]
"""Neighbours in the grid; the one with the smaller number is eliminated first."""


def spanning_trees() -> list[tuple[int, ...]]:
    """The trees that the covering tree stands for: every variable but the last keeps one edge to a later neighbour."""
    choices = [[e for e, (a, _) in enumerate(EDGES) if a == v] for v in range(8)]
    return list(itertools.product(*choices))


def grid_model(spread: float, seed: int) -> Model:
    """A 3×3 grid of two-state variables with normally distributed log tables on its edges."""
    rng = np.random.default_rng(seed)
    return Model.from_factors([2] * 9, [(edge, rng.normal(0.0, spread, (2, 2))) for edge in EDGES], log=True)


def measure(spread: float = 0.5, seed: int = 2, sweeps: int = 800) -> dict[str, Any]:
    """Parameters and optimised bounds of covering tree, full decomposition and primal tree-reweighting."""
    from powersum.bounds.gdd import GDD
    from powersum.bounds.rivals.lbfgs import LBFGS
    from powersum.bounds.rivals.mini_buckets import MiniBuckets
    from powersum.bounds.tree.covering_tree import CoveringTree
    from powersum.exact.elimination import Elimination
    from powersum.prepare.simplify import simplify

    model = grid_model(spread, seed)
    problem = simplify(model, Query.of(model), {})
    order = np.arange(9)
    buckets = MiniBuckets(problem, order, 1).layout
    gdd = GDD(problem, order)
    regions = gdd.sizes()
    trees = spanning_trees()
    states = 2
    rows: list[dict[str, Any]] = [
        {
            "name": "covering tree",
            "shifts": int(buckets.wiring.states[buckets.shared_nodes].sum()),
            "weights": len(buckets.shared_nodes),
            "log_upper": _minimum(CoveringTree(problem, order, ibound=1), 400),
        },
        {
            "name": "full decomposition",
            "shifts": int(regions["shifts"]),
            # The paper counts the weights of cliques; those of single variables follow from them.
            "weights": int(regions["weights"] - regions["separators"]),
            "log_upper": _minimum(LBFGS(problem, order), sweeps),
        },
        {
            "name": "primal TRW",
            "shifts": sum(len(tree) for tree in trees) * states**2,
            "weights": len(trees),
            "log_upper": tree_mixture_bound(problem, trees),
        },
    ]
    block = _minimum(gdd, sweeps)
    exact = Elimination(problem.model, order, problem.tau).run().log_value
    for row in rows:
        row["log_upper"] = float(row["log_upper"]) + problem.log_constant
    return {
        "rows": rows,
        "exact": float(exact + problem.log_constant),
        "block_descent": float(block + problem.log_constant),
        "block_sweeps": sweeps,
        "states": states,
    }


def _minimum(method: Any, steps: int) -> float:
    """The bound after many steps, or when nothing is left to gain."""
    for _ in range(steps):
        if not method.step(math.inf):
            break
    return float(method.log_upper)


def tree_mixture_bound(problem: Problem, trees: list[tuple[int, ...]]) -> float:
    """The primal tree-reweighted bound Σ p_T log Z(θ_T / p_T), minimised over parts θ_T that add up to θ, and over p.

    Every tree is summed over all states of the grid: slow in general, plain and independent of everything else here.
    With θ_T = p_T φ_T, each φ_T is θ/ρ plus shifts less their mean over the trees that have the piece, where ρ is the
    weight of these trees. Pieces are edges and single variables. The latter are 0 in the model, yet needed: without
    them, two trees that share no edge of a variable could not agree on it.
    """
    from scipy.optimize import minimize
    from scipy.sparse import csr_matrix

    shape = tuple(problem.model.cardinalities.tolist())
    cells = np.indices(shape).reshape(len(shape), -1)
    factors = list(problem.model.factors())
    width = max(table.size for _, table in factors)
    n_pieces = len(factors) + len(shape)
    theta = np.zeros((n_pieces, width))
    entry = np.zeros((n_pieces, cells.shape[1]), dtype=np.int64)
    entry[len(factors) :] = cells
    for k, (scope, table) in enumerate(factors):
        theta[k, : table.size] = table.ravel()
        entry[k] = np.ravel_multi_index(tuple(cells[list(scope)]), table.shape)
    rows = (np.arange(n_pieces)[:, None] * width + entry).ravel()
    columns = np.tile(np.arange(cells.shape[1]), n_pieces)
    meets: Any = csr_matrix((np.ones(rows.size), (rows, columns)), shape=(n_pieces * width, cells.shape[1]))
    place = {frozenset(scope): k for k, (scope, _) in enumerate(factors)}
    has = np.ones((len(trees), n_pieces, 1))
    has[:, : len(factors)] = 0.0
    for t, tree in enumerate(trees):
        has[t, [place[frozenset(EDGES[e])] for e in tree]] = 1.0

    def value_and_gradient(point: Any) -> Any:
        shifts = point[: -len(trees)].reshape(has.shape[0], n_pieces, width)
        p = np.exp(point[-len(trees) :] - point[-len(trees) :].max())
        p /= p.sum()
        share = p[:, None, None] * has
        rho = share.sum(axis=0)
        mean = (share * shifts).sum(axis=0) / rho
        phi = has * (theta / rho - mean + shifts)
        energy = (meets.T @ phi.reshape(len(trees), -1).T).T
        top = energy.max(axis=1, keepdims=True)
        weights = np.exp(energy - top)
        total = weights.sum(axis=1, keepdims=True)
        log_z = (top + np.log(total))[:, 0]
        beliefs = (meets @ (weights / total).T).T.reshape(phi.shape)
        common = (share * beliefs).sum(axis=0) / rho
        of_p = log_z + (has * common * (mean - theta / rho - shifts)).sum(axis=(1, 2))
        return float(p @ log_z), np.concatenate([(share * (beliefs - common)).ravel(), p * (of_p - p @ of_p)])

    options: Any = {"maxiter": 2000, "maxfun": 2000, "ftol": 1e-13, "gtol": 1e-7}
    start = np.zeros(has.shape[0] * n_pieces * width + len(trees))
    return float(minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options).fun)
