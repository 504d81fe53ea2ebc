"""Compiled bucket elimination on flat arrays: the reduction of buckets, and the way back to an argmax."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import compiled, inlined, inner
from powersum.core.lanes import LANES, roomy
from powersum.exact.reductions import add_input, maximise, sum_any, sum_two
from powersum.exact.wiring import EliminationWiring

ChoiceArray = NDArray[np.integer[Any]]
"""Numbers of states, as wide as :func:`choice_type` says."""

BLOCK = 1024
"""Entries of a message that are computed together: small enough for the first-level cache, long enough to vectorise."""

WORK = 1 << 16
"""Entries of each scratch array of :func:`reduce_bucket`, unless a variable has more states or inputs than that."""


class Domains(NamedTuple):
    """The states that are alive: those of ``v`` are ``states[starts[v]:starts[v] + sizes[v]]``."""

    sizes: IntArray
    starts: IntArray
    states: IntArray


class Scratch(NamedTuple):
    """Working memory of :func:`reduce_bucket`."""

    gather: IntArray
    rows: FloatArray
    top: FloatArray


class Buckets(NamedTuple):
    """All that eliminations read: buckets, states alive, where slices of factors begin in all numbers, and scratch."""

    wiring: EliminationWiring
    domains: Domains
    bases: IntArray
    log_values: FloatArray
    scratch: Scratch


class Inputs(NamedTuple):
    """How the inputs of a bucket lie under its blocks; for each input a row or a number. See :func:`lay_block`."""

    offset: IntArray
    start: IntArray
    stretch: IntArray
    follows: BoolArray
    gather: IntArray


@inlined
def split_axes(b: int, wiring: EliminationWiring, sizes: IntArray) -> tuple[int, int, int]:
    """The last axes of a bucket, up to a limit, form a block; the others are counted through one by one.

    Returns the first axis of a block, a block's entries, and the number of blocks.
    """
    axes, first, last = wiring.axes, wiring.axis_starts[b], wiring.axis_starts[b + 1]
    n_inputs = wiring.input_starts[b + 1] - wiring.input_starts[b]
    limit = max(1, min(BLOCK, WORK // max(sizes[axes[first]], n_inputs, 1)))
    split = last - first
    block = 1
    while split > 1 and block * sizes[axes[first + split - 1]] <= limit:
        split -= 1
        block *= sizes[axes[first + split]]
    outer = 1
    for a in range(1, split):
        outer *= sizes[axes[first + a]]
    return split, block, outer


@inlined
def lay_block(b: int, buckets: Buckets, places: IntArray, split: int, block: int) -> Inputs:
    """Where a bucket's inputs lie: the step of each along each axis, its first entry, and all entries of a block.

    The latter, in ``gather``, are relative to the block's first entry. The last axes of a block may be a stretch of
    which an input has one number, or all side by side (``follows``): then ``gather`` has only where each ``stretch``
    begins. Less than :data:`LANES` numbers are none.
    """
    wiring, domains, bases = buckets.wiring, buckets.domains, buckets.bases
    axis_starts, axes, input_starts, inputs = wiring.axis_starts, wiring.axes, wiring.input_starts, wiring.inputs
    stride_starts, strides = wiring.stride_starts, wiring.strides
    sizes, state_starts, states = domains.sizes, domains.starts, domains.states
    first, last = axis_starts[b], axis_starts[b + 1]
    n_axes = last - first
    first_input, n_inputs = input_starts[b], input_starts[b + 1] - input_starts[b]
    # A bucket may have any number of inputs; that of states is known where the scratch memory is made.
    scratch = buckets.scratch.gather
    gather = scratch if n_inputs * block <= len(scratch) else np.empty(n_inputs * block, np.int64)
    offset = np.empty((n_inputs, n_axes), np.int64)
    start = np.empty(n_inputs, np.int64)
    stretch = np.empty(n_inputs, np.int64)
    follows = np.empty(n_inputs, np.bool_)
    for k in range(n_inputs):
        source = inputs[first_input + k]
        place = stride_starts[first_input + k]
        if source >= 0:
            start[k] = bases[source]
            for a in range(n_axes):
                offset[k, a] = strides[place + a]
        else:
            start[k] = places[-1 - source]
            run = 1
            for a in range(n_axes - 1, -1, -1):
                offset[k, a] = run * strides[place + a]
                if strides[place + a]:
                    run *= sizes[axes[first + a]]
        until = n_axes
        even = 1
        follows[k] = offset[k, n_axes - 1] == 1
        while until > split:
            v = axes[first + until - 1]
            if offset[k, until - 1] != (even if follows[k] else 0):
                break
            # States of a factor's variable that are left may have others between them.
            begin, end = state_starts[v], state_starts[v] + sizes[v] - 1
            if follows[k] and source >= 0 and states[end] - states[begin] != sizes[v] - 1:
                break
            even *= sizes[v]
            until -= 1
        if even < LANES:
            until, even = n_axes, 1
        stretch[k] = even
        row = k * block
        gather[row] = 0
        length = 1
        for a in range(until - 1, split - 1, -1):
            v = axes[first + a]
            begin = state_starts[v]
            for s in range(1, sizes[v]):
                step = offset[k, a] * ((states[begin + s] - states[begin]) if source >= 0 else s)
                for j in range(length):
                    gather[row + s * length + j] = gather[row + j] + step
            length *= sizes[v]
        if source >= 0:
            for a in range(split, n_axes):
                start[k] += offset[k, a] * states[state_starts[axes[first + a]]]
    return Inputs(offset, start, stretch, follows, gather)


@inlined
def begin_blocks(b: int, wiring: EliminationWiring, sizes: IntArray, split: int, first_block: int) -> IntArray:
    """The states of the axes that are counted through, as numbers of those alive, at a block."""
    first = wiring.axis_starts[b]
    counter = np.zeros(wiring.axis_starts[b + 1] - first, np.int64)
    number = first_block
    for a in range(split - 1, 0, -1):
        size = sizes[wiring.axes[first + a]]
        counter[a] = number % size
        number //= size
    return counter


@inlined
def next_block(b: int, wiring: EliminationWiring, sizes: IntArray, split: int, counter: IntArray) -> None:
    """Count on to the next block."""
    for a in range(split - 1, 0, -1):
        counter[a] += 1
        if counter[a] < sizes[wiring.axes[wiring.axis_starts[b] + a]]:
            break
        counter[a] = 0


@inlined
def end_of_work(first_block: int, n_blocks: int, entries: int, work: float) -> int:
    """The block at which to pause: after as many as ``work`` table entries allow, at least one."""
    if work < float(n_blocks - first_block) * entries:
        return first_block + max(1, int(work / entries))
    return n_blocks


@inlined
def base_of(k: int, b: int, buckets: Buckets, laid: Inputs, split: int, counter: IntArray) -> int:
    """Where the entries of an input under the present block begin, for the first state of the bucket's variable."""
    wiring, domains = buckets.wiring, buckets.domains
    base: int = laid.start[k]
    source = wiring.inputs[wiring.input_starts[b] + k]
    for a in range(1, split):
        v = wiring.axes[wiring.axis_starts[b] + a]
        base += laid.offset[k, a] * (domains.states[domains.starts[v] + counter[a]] if source >= 0 else counter[a])
    return base


@inner
def reduce_bucket(
    b: int,
    weight: float,
    buckets: Buckets,
    buffer: FloatArray,
    places: IntArray,
    choices: ChoiceArray,
    choice_place: int,
    first_block: int,
    work: float,
) -> tuple[int, float]:
    """Power-sum one bucket over its own variable and write the message at ``places[b]`` of ``buffer``.

    Where ``choice_place`` ≥ 0 the best state of each entry, as its number among those alive, is kept from there on.
    The message is written from block ``first_block`` on, as many blocks as ``work`` table entries allow, at least one.
    Returns the block to go on from, 0 when the message is complete, and the table entries that it took.
    """
    wiring, domains = buckets.wiring, buckets.domains
    inputs, sizes = wiring.inputs, domains.sizes
    rows, top = buckets.scratch.rows, buckets.scratch.top
    first_input = wiring.input_starts[b]
    n_inputs = wiring.input_starts[b + 1] - first_input
    own = wiring.axes[wiring.axis_starts[b]]
    n_own, begin = sizes[own], domains.starts[own]
    split, block, outer = split_axes(b, wiring, sizes)
    laid = lay_block(b, buckets, places, split, block)
    counter = begin_blocks(b, wiring, sizes, split, first_block)
    last_block = end_of_work(first_block, outer, block * n_own, work)
    out = places[b] + first_block * block
    for _ in range(first_block, last_block):
        for j in range(n_own * block):
            rows[j] = 0.0
        for k in range(n_inputs):
            base = base_of(k, b, buckets, laid, split, counter)
            where, even, all_of_it = k * block, laid.stretch[k], laid.follows[k]
            for s in range(n_own):
                if inputs[first_input + k] >= 0:
                    here = base + laid.offset[k, 0] * domains.states[begin + s]
                    add_input(rows, s * block, block, buckets.log_values, here, laid.gather, where, even, all_of_it)
                else:
                    here = base + laid.offset[k, 0] * s
                    add_input(rows, s * block, block, buffer, here, laid.gather, where, even, all_of_it)
        if weight == 0.0:
            maximise(rows, n_own, block, top)
            if choice_place >= 0:
                place = choice_place + out - places[b]
                for j in range(block):
                    choices[place + j] = n_own - 1
                # The first of several equal states is the last to be written.
                for s in range(n_own - 2, -1, -1):
                    row = s * block
                    for j in range(block):
                        choices[place + j] = s if rows[row + j] >= top[j] else choices[place + j]
        elif n_own == 2:
            sum_two(rows, block, weight, top)
        else:
            sum_any(rows, n_own, block, weight, top)
        for j in range(block):
            buffer[out + j] = top[j]
        out += block
        next_block(b, wiring, sizes, split, counter)
    return last_block if last_block < outer else 0, float(last_block - first_block) * block * n_own


def new_scratch(largest: int) -> Scratch:
    """Working memory for variables of up to ``largest`` states."""
    work = max(WORK, largest)
    return Scratch(np.empty(work, np.int64), roomy(work, np.float64), np.empty(BLOCK))


def choice_type(largest: int) -> np.dtype[Any]:
    """The type of choices among up to ``largest`` states; narrow, for there may be as many of them as table entries.

    More states than two bytes hold are rare: what takes wider choices is compiled once more when they are met.
    """
    return np.dtype(np.uint16 if largest <= 1 << 16 else np.int64)


@compiled
def reduce_some(
    weights: FloatArray,
    buckets: Buckets,
    buffer: FloatArray,
    places: IntArray,
    choices: ChoiceArray,
    choice_places: IntArray,
    reached: IntArray,
    work: float,
) -> float:
    """Reduce buckets in turn for about ``work`` table entries, from ``reached`` on, which is moved: bucket and block.

    No choices are kept where ``choice_places`` is empty. Returns the sum of the messages completed that go nowhere:
    over all calls the value of the plan's part.
    """
    total = 0.0
    wiring = buckets.wiring
    while reached[0] < len(places) and work > 0.0:
        b = reached[0]
        weight = weights[wiring.axes[wiring.axis_starts[b]]]
        choice_place = choice_places[b] if len(choice_places) else -1
        reached[1], done = reduce_bucket(b, weight, buckets, buffer, places, choices, choice_place, reached[1], work)
        work -= done
        if reached[1] == 0:
            reached[0] += 1
            if wiring.parents[b] < 0:
                total += buffer[places[b]]
    return total


@compiled
def trace_back(
    wiring: EliminationWiring, domains: Domains, choices: ChoiceArray, choice_places: IntArray, assignment: IntArray
) -> None:
    """Set the best state of each bucket's variable whose choices were kept, last eliminated first."""
    axis_starts, axes, sizes = wiring.axis_starts, wiring.axes, domains.sizes
    number = np.zeros(len(assignment), np.int64)
    for b in range(len(axis_starts) - 2, -1, -1):
        if choice_places[b] < 0:
            continue
        entry = 0
        for a in range(axis_starts[b] + 1, axis_starts[b + 1]):
            entry = entry * sizes[axes[a]] + number[axes[a]]
        v = axes[axis_starts[b]]
        number[v] = choices[choice_places[b] + entry]
        assignment[v] = domains.states[domains.starts[v] + number[v]]
