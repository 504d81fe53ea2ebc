"""Order: constrained elimination orders, what they cost, and a check of those that users bring."""

from __future__ import annotations

import math

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray, frozen
from powersum.core.errors import InputError
from powersum.core.speed import DEGREE_STEP, ORDERING_STEP
from powersum.model.graph import adjacency
from powersum.model.model import Model
from powersum.model.query import weight_ranks
from powersum.prepare.ordering.cost import OrderCost, induced_width, order_cost
from powersum.prepare.ordering.degree import min_degree
from powersum.prepare.ordering.fill import min_fill

__all__ = ["OrderCost", "check_order", "elimination_order", "induced_width", "order_cost"]

MIN_FILL_VARIABLES = 10_000
"""Most variables for which min-fill is tried: its bit matrix takes 12 MB then."""

MIN_FILL_WORK = 150_000_000
"""Steps of min-fill that all tries together may take unless told otherwise: about a third of a second."""

MIN_FILL_TRIES = 300
"""Most tries unless told otherwise: small models gain nothing from more."""

MIN_DEGREE_WORK = 500_000
"""The same for minimum degree, in variables and edges."""


def elimination_order(
    model: Model,
    tau: FloatArray,
    *,
    rank: IntArray | None = None,
    seed: int = 0,
    restarts: int | None = None,
    time_limit: float | None = None,
) -> IntArray:
    """An elimination order of small width that takes larger weights first and max variables last.

    Parameters
    ----------
    model, tau
        The model and the weight of each variable.
    rank
        The number of each variable's block, 0 is eliminated first; without it larger weights come first.
    seed
        Chooses among equally good variables; the same seed gives the same order.
    restarts
        How often to try; the number is chosen by the size of the model unless given.
    time_limit
        Seconds after which no further try starts. With a limit that binds, the order depends on the machine.

    Returns
    -------
    IntArray
        The variables, first eliminated first. Of all tries the one of least width wins, and among these the one with
        the fewest table entries.
    """
    if not model.n_variables:
        return np.zeros(0, dtype=np.int64)
    seed %= 2**62  # any integer will do
    end = np.inf if time_limit is None else time.monotonic() + time_limit
    group = weight_ranks(tau) if rank is None else rank
    best = np.zeros(0, dtype=np.int64)
    if model.n_variables <= MIN_FILL_VARIABLES:
        best = _by_min_fill(model, group, seed, restarts, end)
    return best if len(best) else _by_min_degree(model, group, seed, restarts, end)


def _by_min_fill(model: Model, group: IntArray, seed: int, restarts: int | None, end: float) -> IntArray:
    """The best of several orders by min-fill, edges counted and weighted by turns; empty if one try costs too much."""
    graph = adjacency(model.n_variables, model.scope_starts, model.scope_variables)
    # All writable, as where other kernels call min-fill: read-only arrays would be compiled for separately.
    arrays = (graph.starts, graph.neighbours, group.astype(np.int64), np.argsort(group, kind="stable"))
    log2_cardinalities = np.log2(model.cardinalities)
    weights = (np.ones(model.n_variables, dtype=np.int64), model.cardinalities.copy())
    best = np.zeros(0, dtype=np.int64)
    width, log2_total, work, tries = model.n_variables, np.inf, 0, 0
    while True:
        order, width_now, log2_now, work_now = min_fill(
            *arrays, weights[tries % 2], log2_cardinalities, seed, tries, width, log2_total, 2 * MIN_FILL_WORK
        )
        if len(order):
            best, width, log2_total = order, width_now, log2_now
        work += work_now
        time.spend(ORDERING_STEP * work_now)
        tries += 1
        # The number of tries follows from counted steps, not from a clock: the same seed gives the same order.
        if restarts is None and work + work // tries > MIN_FILL_WORK:
            return best
        if not len(best) or tries >= (MIN_FILL_TRIES if restarts is None else restarts) or time.monotonic() >= end:
            return best


def _by_min_degree(model: Model, group: IntArray, seed: int, restarts: int | None, end: float) -> IntArray:
    """The best of several orders by approximate minimum degree; large graphs get one."""
    graph = adjacency(model.n_variables, model.scope_starts, model.scope_variables)
    weight = np.maximum(np.rint(np.log2(model.cardinalities)), 1)
    dense = max(64, 2 * math.isqrt(model.n_variables))
    if restarts is None:
        restarts = MIN_DEGREE_WORK // (model.n_variables + len(graph.neighbours) + 1)
    generator = np.random.default_rng(seed)
    # Neighbours in the file are mostly neighbours in memory: the first try keeps the order of the file.
    shuffled = np.arange(model.n_variables)
    best = np.zeros(0, dtype=np.int64)
    least, tries = (model.n_variables, np.inf), 0
    while not len(best) or (tries < restarts and time.monotonic() < end):
        order = min_degree(
            frozen(graph.starts, np.int64),
            frozen(graph.neighbours, np.int64),
            frozen(group, np.int64),
            frozen(shuffled[np.argsort(group[shuffled], kind="stable")], np.int64),
            frozen(weight, np.int64),
            dense,
        )
        tries += 1
        time.spend(DEGREE_STEP * (model.n_variables + len(graph.neighbours)))
        if restarts <= 1:
            return order
        cost = order_cost(model, order)
        if not len(best) or (cost.width, cost.log2_total) < least:
            best, least = order, (cost.width, cost.log2_total)
        shuffled = generator.permutation(model.n_variables)
    return best


def check_order(order: IntArray, tau: FloatArray, n_variables: int, blocks: IntArray | None = None) -> None:
    """Refuse an order that leaves out or repeats a variable, or that is against the blocks or the maxima of a query.

    Raises
    ------
    InputError
        With one line that names the variable.
    """
    order = np.asarray(order)
    if len(order) != n_variables:
        raise InputError(f"the order has {len(order)} variables, the model {n_variables}")
    outside = (order < 0) | (order >= n_variables)
    if outside.any():
        raise InputError(f"the order names variable {order[outside][0]}: the model has 0 to {n_variables - 1}")
    repeated = np.bincount(order, minlength=n_variables) > 1
    if repeated.any():
        raise InputError(f"the order names variable {int(np.argmax(repeated))} twice")
    if blocks is not None:
        early = np.flatnonzero(np.diff(blocks[order]) < 0)
        if early.size:
            late, soon = order[early[0]], order[early[0] + 1]
            raise InputError(
                f"the order eliminates variable {late} before variable {soon}, which is in an earlier block"
            )
        return
    is_max = np.asarray(tau)[order] == 0.0
    if is_max.any():
        late = np.flatnonzero(~is_max)
        first = int(np.argmax(is_max))
        if late.size and late[-1] > first:
            raise InputError(
                f"the order eliminates the max variable {order[first]} before variable {order[late[-1]]}, which is not "
                f"maximised: max variables must come last"
            )
