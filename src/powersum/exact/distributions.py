"""The distributions of all variables by one way up and one way back along an elimination, for an engine.

What lay below a bucket the last time lies there still, unless a state was changed there: such messages are kept.
"""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.fastmath import LOWEST, exp_of
from powersum.core.jit import compiled, inner
from powersum.exact.kernels import ChoiceArray, Domains, Scratch, lay_block, reduce_bucket, split_axes
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
        # What lies above each bucket, as the distribution of the message's variables; a root has nothing above.
        for i in range(len(above)):
            above[i] = 0.0
        for b in range(n):
            if wiring.parents[b] < 0:
                above[places[b]] = 1.0
        for b in range(n - 1, -1, -1):
            _spread(b, wiring, domains, bases, factors.log_values, messages, places, scratch, above, beliefs)
    return value


@inner
def _spread(
    b: int,
    wiring: EliminationWiring,
    domains: Domains,
    bases: IntArray,
    log_values: FloatArray,
    messages: FloatArray,
    places: IntArray,
    scratch: Scratch,
    above: FloatArray,
    beliefs: FloatArray,
) -> None:
    """Divide what lies above a bucket among its variable's states, and hand it on to the buckets below."""
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
    # Each entry is asked for by itself, so that there are no stretches.
    lay_block(b, wiring, domains, bases, places, split, block, offset, start, stretch, follows, gather, block + 1)
    counter = np.zeros(n_axes, np.int64)
    base = np.empty(n_inputs, np.int64)
    alive = np.empty(block, np.int64)
    out = places[b]
    for _ in range(outer):
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
                where = k * block
                if inputs[first_input + k] >= 0:
                    here = base[k] + offset[k, 0] * state
                    for j in range(block):
                        rows[j] += log_values[here + gather[where + j]]
                else:
                    here = base[k] + offset[k, 0] * s
                    for j in range(block):
                        rows[j] += messages[here + gather[where + j]]
            for j in range(block):
                share = above[out + j]
                gap = rows[j] - messages[out + j] if share > 0.0 else -np.inf
                # Less than that is taken for nothing, so that no probability comes out too large.
                rows[j] = share * exp_of(max(gap, LOWEST)) if gap >= LOWEST else 0.0
            # Where many states are impossible, most of a block is 0.
            n_alive = 0
            part = 0.0
            for j in range(block):
                alive[n_alive] = j
                n_alive += rows[j] > 0.0
                part += rows[j]
            beliefs[own_begin + state] += part
            for k in range(n_inputs):
                if inputs[first_input + k] < 0:
                    where = k * block
                    here = base[k] + offset[k, 0] * s
                    for i in range(n_alive):
                        above[here + gather[where + alive[i]]] += rows[alive[i]]
        out += block
        for a in range(split - 1, 0, -1):
            counter[a] += 1
            if counter[a] < sizes[axes[first + a]]:
                break
            counter[a] = 0
