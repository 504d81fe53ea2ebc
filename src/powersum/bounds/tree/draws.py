"""Assignments drawn from a covering tree: near the best that its tables promise, and each time others.

Max variables are set one after the other, as in a search, and a few partial assignments are followed side by side.
What a state costs (:mod:`powersum.bounds.tree.losses`) is read off the tree's messages and changed by a little noise
of the extreme-value kind, so that states which cost about the same are drawn about as often. What is found is a start
for local search, nothing more: nothing here is a bound.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from powersum.bounds.buckets.decoding import add_column
from powersum.bounds.buckets.passes import Passes
from powersum.bounds.buckets.tree_wiring import MESSAGE, TreeWiring
from powersum.core.arrays import BoolArray, FloatArray, IntArray, positions_of, starts_of
from powersum.core.jit import compiled, inner
from powersum.core.random import following, seeded, share_of_one
from powersum.core.speed import DRAWING
from powersum.core.work_time import spend
from powersum.exact.wiring import wire
from powersum.model.factors import factors_of
from powersum.prepare.problem import Problem

WIDTH = 30
"""Partial assignments that are followed side by side: with one alone ends of local search are 1 to 2 nats worse."""

IMPOSSIBLE = 1e6
"""What costs more than this has a zero in it."""


class DrawSteps(NamedTuple):
    """In which order max variables are set along an elimination order, and which of them matter how long."""

    order: IntArray
    positions: IntArray
    """Position in the elimination order of the variable that each step sets: parts of the problem one by one."""
    step_of: IntArray
    """The step that sets the variable at each position; -1 for sum variables."""
    leaving_starts: IntArray
    leaving: IntArray
    """Steps whose states nothing later depends on, by the step after which that is so."""
    key_starts: IntArray
    keys: IntArray
    """A random word for each state of each step: partial assignments with equal futures have equal keys."""


def steps_of(problem: Problem, order: IntArray) -> DrawSteps:
    """The steps along an order of all variables, max variables last."""
    model = problem.model
    position = positions_of(order)
    is_max = problem.tau[order] == 0.0
    wiring, _ = wire(order, position, np.arange(model.n_factors), factors_of(model))
    positions = _depth_first(wiring.parents, is_max)
    step_of = positions_of(positions, len(order))
    last = _last_steps(wiring.axis_starts, position[wiring.axes], wiring.parents, step_of, len(positions))
    cardinalities = model.cardinalities[order[positions]]
    limits = np.iinfo(np.int64)
    keys = np.random.default_rng(0).integers(limits.min, limits.max, int(cardinalities.sum()), dtype=np.int64)
    return DrawSteps(
        order,
        positions,
        step_of,
        starts_of(np.bincount(last, minlength=len(positions))),
        np.argsort(last, kind="stable"),
        starts_of(cardinalities),
        keys,
    )


@compiled
def _depth_first(parents: IntArray, is_max: BoolArray) -> IntArray:
    """Positions of max variables, each after its parent, and all below one before its next sibling."""
    n = len(parents)
    first = np.full(n + 1, -1, np.int64)
    following_one = np.full(n, -1, np.int64)
    for p in range(n):
        if is_max[p]:
            # Parents come later in the order, and are max variables as well.
            parent = parents[p] if parents[p] >= 0 else n
            following_one[p] = first[parent]
            first[parent] = p
    listed = np.empty(n, np.int64)
    stack = np.empty(n + 1, np.int64)
    stack[0] = n
    height, count = 1, 0
    while height > 0:
        height -= 1
        node = stack[height]
        if node < n:
            listed[count] = node
            count += 1
        child = first[node]
        while child >= 0:
            stack[height] = child
            height += 1
            child = following_one[child]
    return listed[:count]


@compiled
def _last_steps(axis_starts: IntArray, axes: IntArray, parents: IntArray, step_of: IntArray, n_steps: int) -> IntArray:
    """For each step the last one in whose bucket, or in that of a sum variable below it, its variable is met."""
    last = np.arange(n_steps)
    for p in range(len(axis_starts) - 1):
        lowest = p
        while lowest >= 0 and step_of[lowest] < 0:
            lowest = parents[lowest]
        if lowest < 0:
            continue
        for a in range(axis_starts[p], axis_starts[p + 1]):
            step = step_of[axes[a]]
            if step >= 0:
                last[step] = max(last[step], step_of[lowest])
    return last


def draw_seconds(passes: Passes, problem: Problem, order: IntArray) -> float:
    """About what a draw takes: much where thousands of mini-buckets have many states."""
    layout = passes.layout
    nodes = np.flatnonzero((problem.tau[order] == 0.0)[layout.bucket])
    looks = np.diff(layout.wiring.input_starts)[nodes] * layout.wiring.states[nodes]
    return DRAWING * WIDTH * float(looks.sum())


def draw(passes: Passes, problem: Problem, steps: DrawSteps, *, noise: float, seed: int) -> IntArray | None:
    """States of max variables, -1 for all others; None where everything that was followed met a zero.

    Messages of a forward pass must be there; ``noise`` is its scale in natural logs.
    """
    layout, order = passes.layout, steps.order
    cardinalities = problem.model.cardinalities[order]
    nodes = starts_of(np.bincount(layout.bucket, minlength=len(order)))
    found = _draw(
        steps,
        layout.wiring,
        nodes,
        layout.scope_starts,
        layout.scope_positions,
        cardinalities,
        passes.pool,
        noise,
        seed,
        WIDTH,
    )
    spend(draw_seconds(passes, problem, order))
    if not len(found):
        return None
    drawn = np.full(len(order), -1, dtype=np.int64)
    drawn[order[steps.positions]] = found
    return drawn


@inner
def _insert(
    cost: float,
    key: int,
    origin: int,
    state: int,
    count: int,
    costs: FloatArray,
    keys: IntArray,
    origins: IntArray,
    states: IntArray,
) -> int:
    """Take a partial assignment into the list of the cheapest, with each key the cheapest only; how many there are."""
    if count == len(costs) and cost >= costs[count - 1]:
        return count
    end = count
    for i in range(count):
        if keys[i] == key:
            if costs[i] <= cost:
                return count
            # It makes room for the cheaper one.
            end = i
            break
    grown = count
    if end == count:
        if count < len(costs):
            grown = count + 1
        else:
            end = count - 1
    place = end
    while place > 0 and costs[place - 1] > cost:
        costs[place], keys[place] = costs[place - 1], keys[place - 1]
        origins[place], states[place] = origins[place - 1], states[place - 1]
        place -= 1
    costs[place], keys[place], origins[place], states[place] = cost, key, origin, state
    return grown


@compiled
def _draw(
    steps: DrawSteps,
    wiring: TreeWiring,
    nodes: IntArray,
    scope_starts: IntArray,
    scope_positions: IntArray,
    cardinalities: IntArray,
    pool: FloatArray,
    noise: float,
    seed: int,
    width: int,
) -> IntArray:
    """States by steps of the cheapest that was followed to its end; none at all where all had to be given up."""
    n = len(steps.positions)
    widest: Any = np.int64(1)
    for step in range(n):
        widest = max(widest, cardinalities[steps.positions[step]])
    random = seeded(seed, np.int64(0))
    states, next_states = np.zeros((width, n), np.int32), np.zeros((width, n), np.int32)
    costs, next_costs = np.zeros(width), np.zeros(width)
    keys, next_keys = np.zeros(width, np.int64), np.zeros(width, np.int64)
    origins, chosen = np.zeros(width, np.int64), np.zeros(width, np.int64)
    score, disliked = np.zeros(widest), np.zeros(widest)
    live = 1
    for step in range(n):
        position = steps.positions[step]
        card = cardinalities[position]
        for s in range(card):
            random = following(random)
            disliked[s] = noise * math.log(-math.log(max(share_of_one(random), 1e-300)))
        count = 0
        for k in range(live):
            for s in range(card):
                score[s] = 0.0
            message = 0.0
            for node in range(nodes[position], nodes[position + 1]):
                column: Any = np.int64(0)
                for i in range(scope_starts[node] + 1, scope_starts[node + 1]):
                    other = scope_positions[i]
                    column = column * cardinalities[other] + states[k, steps.step_of[other]]
                message += pool[wiring.nodes[node, MESSAGE] + column]
                add_column(wiring, node, column, pool, score)
            key = keys[k]
            own = False
            for i in range(steps.leaving_starts[step], steps.leaving_starts[step + 1]):
                gone = steps.leaving[i]
                if gone == step:
                    own = True
                else:
                    key ^= steps.keys[steps.key_starts[gone] + states[k, gone]]
            for s in range(card):
                # Below 0 by rounding only.
                cost = costs[k] + max(0.0, message - score[s])
                if not cost < IMPOSSIBLE:
                    continue
                cost += disliked[s]
                here = key if own else key ^ steps.keys[steps.key_starts[step] + s]
                count = _insert(cost, here, k, s, count, next_costs, next_keys, origins, chosen)
        if count == 0:
            return np.empty(0, np.int64)
        for k in range(count):
            for i in range(step):
                next_states[k, i] = states[origins[k], i]
            next_states[k, step] = chosen[k]
        states, next_states = next_states, states
        costs, next_costs = next_costs, costs
        keys, next_keys = next_keys, keys
        live = count
    best = np.empty(n, np.int64)
    for i in range(n):
        best[i] = states[0, i]
    return best
