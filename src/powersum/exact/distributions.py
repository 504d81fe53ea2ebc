"""The distributions of all variables by one way up and one way back along an elimination.

An engine asks again and again: what lay below a bucket the last time lies there still, unless a state was changed
there, so that such messages are kept. ``spread_some`` goes back once, some table entries at a time.
"""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.exact.kernels import (
    Buckets,
    ChoiceArray,
    base_of,
    begin_blocks,
    end_of_work,
    lay_block,
    next_block,
    reduce_some,
    split_axes,
)
from powersum.exact.reductions import add_input, divide, give_input
from powersum.exact.wiring import EliminationWiring


@inner
def touched(wiring: EliminationWiring, changed: BoolArray) -> BoolArray:
    """Buckets whose message depends on a variable that was changed: those that have it, and all above them."""
    n = len(wiring.parents)
    found = np.zeros(n, np.bool_)
    for b in range(n):
        for at in range(wiring.axis_starts[b], wiring.axis_starts[b + 1]):
            if changed[wiring.axes[at]]:
                found[b] = True
        if found[b] and wiring.parents[b] >= 0:
            found[wiring.parents[b]] = True
    return found


@compiled
def marginals_of(
    buckets: Buckets,
    tau: FloatArray,
    choices: ChoiceArray,
    places: IntArray,
    messages: FloatArray,
    above: FloatArray,
    changed: BoolArray,
    beliefs: FloatArray,
) -> float:
    """Sum out all variables, then go back and add up each one's distribution; returns the log of the sum.

    ``messages`` has those of an earlier call at ``places``; only those that depend on variables ``changed`` since are
    made anew. ``above`` is as long; what was in it is lost. ``beliefs`` has a place for each state of each variable,
    variable after variable, as the starts of domains say.
    """
    n = len(places)
    parents = buckets.wiring.parents
    again = touched(buckets.wiring, changed)
    reached = np.zeros(2, np.int64)
    value = 0.0
    for b in range(n):
        if again[b]:
            reached[0] = b
            reduce_some(tau, buckets, messages, places[: b + 1], choices, parents[:0], reached, np.inf)
        if parents[b] < 0:
            value += messages[places[b]]
    if value > -np.inf:
        reached[0] = n - 1
        spread_some(buckets, messages, places, above, places, beliefs, reached, 0, np.inf)
    return value


@compiled
def spread_some(
    buckets: Buckets,
    messages: FloatArray,
    places: IntArray,
    above: FloatArray,
    above_places: IntArray,
    beliefs: FloatArray,
    reached: IntArray,
    first: int,
    work: float,
) -> None:
    """Go back along buckets for about ``work`` table entries, from ``reached`` on, which is moved: bucket and block.

    It ends at bucket ``first``. ``messages`` and ``above`` may be one array.
    """
    while reached[0] >= first and work > 0.0:
        b = reached[0]
        # What lies above a bucket is the distribution of its message's variables; a root has nothing above.
        if buckets.wiring.parents[b] < 0:
            above[above_places[b]] = 1.0
        reached[1], done = spread_bucket(b, buckets, messages, places, above, above_places, beliefs, reached[1], work)
        work -= done
        if reached[1] == 0:
            reached[0] -= 1


@inner
def spread_bucket(
    b: int,
    buckets: Buckets,
    messages: FloatArray,
    places: IntArray,
    above: FloatArray,
    above_places: IntArray,
    beliefs: FloatArray,
    first_block: int,
    work: float,
) -> tuple[int, float]:
    """Divide what lies above a bucket among its variable's states, and hand it on to the buckets below.

    As :func:`~powersum.exact.kernels.reduce_bucket` from block ``first_block`` on, as many blocks as ``work`` table
    entries allow; returns the block to go on from, 0 when it is through, and the entries that it took. ``above`` has
    what lies above a bucket at ``above_places``, and gets there what lies above those below.
    """
    wiring, domains, rows = buckets.wiring, buckets.domains, buckets.scratch.rows
    first_input, inputs, sizes = wiring.input_starts[b], wiring.inputs, domains.sizes
    n_inputs = wiring.input_starts[b + 1] - first_input
    own = wiring.axes[wiring.axis_starts[b]]
    begin = domains.starts[own]
    split, block, outer = split_axes(b, wiring, sizes)
    laid = lay_block(b, buckets, places, split, block)
    moved = np.zeros(n_inputs, np.int64)
    for k in range(n_inputs):
        if inputs[first_input + k] < 0:
            c = -1 - inputs[first_input + k]
            moved[k] = above_places[c] - places[c]
            if first_block == 0:
                size = 1
                for a in range(wiring.axis_starts[c] + 1, wiring.axis_starts[c + 1]):
                    size *= sizes[wiring.axes[a]]
                for i in range(above_places[c], above_places[c] + size):
                    above[i] = 0.0
    counter = begin_blocks(b, wiring, sizes, split, first_block)
    last_block = end_of_work(first_block, outer, block * sizes[own], work)
    base = np.empty(n_inputs, np.int64)
    out = first_block * block
    for _ in range(first_block, last_block):
        for k in range(n_inputs):
            base[k] = base_of(k, b, buckets, laid, split, counter)
        for s in range(sizes[own]):
            state = domains.states[begin + s]
            for j in range(block):
                rows[j] = 0.0
            for k in range(n_inputs):
                where, even, all_of_it = k * block, laid.stretch[k], laid.follows[k]
                if inputs[first_input + k] >= 0:
                    here = base[k] + laid.offset[k, 0] * state
                    add_input(rows, 0, block, buckets.log_values, here, laid.gather, where, even, all_of_it)
                else:
                    here = base[k] + laid.offset[k, 0] * s
                    add_input(rows, 0, block, messages, here, laid.gather, where, even, all_of_it)
            part = divide(rows, 0, block, messages, places[b] + out, above, above_places[b] + out)
            if part == 0.0:
                continue
            beliefs[begin + state] += part
            for k in range(n_inputs):
                if inputs[first_input + k] < 0:
                    here = base[k] + laid.offset[k, 0] * s + moved[k]
                    give_input(rows, 0, block, above, here, laid.gather, k * block, laid.stretch[k], laid.follows[k])
        out += block
        next_block(b, wiring, sizes, split, counter)
    return last_block if last_block < outer else 0, float(last_block - first_block) * block * sizes[own]
