"""The distributions of all variables by one way up and one way back along an elimination.

An engine asks again and again: what lay below a bucket the last time lies there still, unless a state was changed
there, so that such messages are kept. ``spread_some`` goes back once, some table entries at a time.
"""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.core.lanes import LANES
from powersum.exact.kernels import ChoiceArray, Domains, Scratch, lay_block, reduce_bucket, split_axes
from powersum.exact.reductions import add_input, divide, give_input
from powersum.exact.wiring import EliminationWiring
from powersum.model.factors import Factors


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
    wiring: EliminationWiring,
    factors: Factors,
    table_starts: IntArray,
    tau: FloatArray,
    domains: Domains,
    scratch: Scratch,
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
    variable after variable, as ``domains.starts`` says.
    """
    n = len(places)
    bases = table_starts[:-1].copy()
    again = touched(wiring, changed)
    # No choices are kept, and each message is made from its first block on.
    plain = np.array([-1, 0])
    value = 0.0
    for b in range(n):
        if again[b]:
            weight = tau[wiring.axes[wiring.axis_starts[b]]]
            reduce_bucket(
                b,
                weight,
                wiring,
                domains,
                bases,
                factors.log_values,
                messages,
                places,
                choices,
                plain[0],
                scratch,
                plain[1],
                np.inf,
            )
        if wiring.parents[b] < 0:
            value += messages[places[b]]
    if value > -np.inf:
        spread_some(
            wiring,
            domains,
            bases,
            factors.log_values,
            messages,
            places,
            scratch,
            above,
            places,
            beliefs,
            np.array([n - 1, 0]),
            0,
            np.inf,
        )
    return value


@compiled
def spread_some(
    wiring: EliminationWiring,
    domains: Domains,
    bases: IntArray,
    log_values: FloatArray,
    messages: FloatArray,
    places: IntArray,
    scratch: Scratch,
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
        if wiring.parents[b] < 0:
            above[above_places[b]] = 1.0
        reached[1], done = spread_bucket(
            b,
            wiring,
            domains,
            bases,
            log_values,
            messages,
            places,
            scratch,
            above,
            above_places,
            beliefs,
            reached[1],
            work,
        )
        work -= done
        if reached[1] == 0:
            reached[0] -= 1


@inner
def spread_bucket(
    b: int,
    wiring: EliminationWiring,
    domains: Domains,
    bases: IntArray,
    log_values: FloatArray,
    messages: FloatArray,
    places: IntArray,
    scratch: Scratch,
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
    axes, first_input, inputs = wiring.axes, wiring.input_starts[b], wiring.inputs
    sizes, state_starts, states = domains.sizes, domains.starts, domains.states
    rows = scratch.rows
    first = wiring.axis_starts[b]
    n_axes = wiring.axis_starts[b + 1] - first
    n_inputs = wiring.input_starts[b + 1] - first_input
    own = axes[first]
    own_begin = state_starts[own]
    split, block, outer = split_axes(b, wiring, sizes)
    gather = scratch.gather if n_inputs * block <= len(scratch.gather) else np.empty(n_inputs * block, np.int64)
    offset = np.empty((n_inputs, n_axes), np.int64)
    start = np.empty(n_inputs, np.int64)
    stretch = np.empty(n_inputs, np.int64)
    follows = np.empty(n_inputs, np.bool_)
    lay_block(b, wiring, domains, bases, places, split, block, offset, start, stretch, follows, gather, LANES)
    moved = np.zeros(n_inputs, np.int64)
    for k in range(n_inputs):
        if inputs[first_input + k] < 0:
            c = -1 - inputs[first_input + k]
            moved[k] = above_places[c] - places[c]
            if first_block == 0:
                size = 1
                for a in range(wiring.axis_starts[c] + 1, wiring.axis_starts[c + 1]):
                    size *= sizes[axes[a]]
                for i in range(above_places[c], above_places[c] + size):
                    above[i] = 0.0
    counter = np.zeros(n_axes, np.int64)
    number = first_block
    for a in range(split - 1, 0, -1):
        counter[a] = number % sizes[axes[first + a]]
        number //= sizes[axes[first + a]]
    last_block = outer
    if work < float(outer - first_block) * block * sizes[own]:
        last_block = first_block + max(1, int(work / (block * sizes[own])))
    base = np.empty(n_inputs, np.int64)
    out = first_block * block
    for _ in range(first_block, last_block):
        for k in range(n_inputs):
            base[k] = start[k]
            for a in range(1, split):
                if inputs[first_input + k] >= 0:
                    base[k] += offset[k, a] * states[state_starts[axes[first + a]] + counter[a]]
                else:
                    base[k] += offset[k, a] * counter[a]
        for s in range(sizes[own]):
            state = states[own_begin + s]
            for j in range(block):
                rows[j] = 0.0
            for k in range(n_inputs):
                if inputs[first_input + k] >= 0:
                    here = base[k] + offset[k, 0] * state
                    add_input(rows, 0, block, log_values, here, gather, k * block, stretch[k], follows[k])
                else:
                    here = base[k] + offset[k, 0] * s
                    add_input(rows, 0, block, messages, here, gather, k * block, stretch[k], follows[k])
            part = divide(rows, 0, block, messages, places[b] + out, above, above_places[b] + out)
            if part == 0.0:
                continue
            beliefs[own_begin + state] += part
            for k in range(n_inputs):
                if inputs[first_input + k] < 0:
                    here = base[k] + offset[k, 0] * s + moved[k]
                    give_input(rows, 0, block, above, here, gather, k * block, stretch[k], follows[k])
        out += block
        for a in range(split - 1, 0, -1):
            counter[a] += 1
            if counter[a] < sizes[axes[first + a]]:
                break
            counter[a] = 0
    return last_block if last_block < outer else 0, float(last_block - first_block) * block * sizes[own]
