"""The decomposed bound as a whole: values, rounding, gradients and max-marginals at the present point."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.bounds.gdd.batch import arrange, eliminate_leading, load
from powersum.bounds.gdd.blocks import begin
from powersum.bounds.gdd.regions import Regions
from powersum.bounds.gdd.shapes import Shapes
from powersum.bounds.gdd.state import DescentState, Workspace
from powersum.core.arrays import FloatArray, Int32Array, IntArray
from powersum.core.jit import compiled
from powersum.model.rounding import EXPONENTIAL, IMPOSSIBLE

MOVES = 4.0
"""Changes of a table by one of its separators in one sweep, at most."""


@compiled
def apply_shifts(regions: Regions, shapes: Shapes, state: DescentState) -> None:
    """Take all shifts off the model's own numbers: tables from scratch, without the rounding of many small updates."""
    for b in range(len(regions.block_size)):
        n_shifts = regions.block_size[b]
        if n_shifts == 0:
            continue
        separator = regions.table_start[regions.member_region[regions.block_start[b]]]
        delta = regions.block_delta[b]
        for m in range(regions.block_start[b] + 1, regions.block_start[b + 1]):
            region, kind = regions.member_region[m], regions.member_kind[m]
            size = shapes.entries[shapes.kind_left[kind]]
            mapped = shapes.kind_map[kind]
            rest = size // n_shifts
            for state_of in range(n_shifts):
                state.tables[separator + state_of] += state.delta[delta + state_of]
            for start in range(regions.table_start[region], regions.table_start[region + 1], size):
                for j in range(size):
                    x: Any = j // rest if mapped < 0 else np.int64(shapes.separator_map[mapped + j])
                    state.tables[start + j] -= state.delta[delta + x]
            delta += n_shifts


@compiled
def evaluate_regions(regions: Regions, shapes: Shapes, state: DescentState, work: Workspace) -> None:
    """Power sum of every region from its current table and weights, those of one shape side by side."""
    n_regions = len(regions.shape)
    chosen = np.empty(len(work.lane_weight), np.int64)
    first = 0
    while first < n_regions:
        # A run of neighbours of one shape, or a single region: clusters of a kind often follow each other.
        shape = np.int64(regions.shape[first])
        entries = shapes.entries[shape]
        most = min(len(chosen), max(1, len(work.raw) // entries))
        n = 0
        while n < most and first + n < n_regions and regions.shape[first + n] == shape:
            chosen[n] = first + n
            n += 1
        for lane in range(n):
            start = regions.table_start[first + lane]
            for e in range(entries):
                work.raw[e * n + lane] = state.tables[start + e]
        eliminate_leading(shape, np.int64(0), n, chosen, regions.axis_start, state.weights, shapes, work)
        for lane in range(n):
            state.log_values[first + lane] = work.raw[lane]
        first += n


@compiled
def _largest(values: FloatArray, first: int, last: int) -> float:
    """Largest magnitude of the entries that are not impossible."""
    largest = 0.0
    for j in range(first, last):
        if values[j] > IMPOSSIBLE:
            largest = max(largest, abs(values[j]))
    return largest


@compiled
def rounding_units(n_variables: int, regions: Regions, shapes: Shapes, state: DescentState, sweeps: float) -> float:
    """How far rounding can have moved the sum of the regions' values, in units of one operation.

    Each table is the sum of the model's own and of its shifts, to which every one of the ``sweeps`` since it was built
    adds a move for each separator; :mod:`powersum.model.rounding` says why errors add up.
    """
    n_regions = len(regions.shape)
    shifts = np.zeros(n_regions)
    number = np.zeros(n_regions)
    for b in range(len(regions.block_size)):
        first, last = regions.block_start[b], regions.block_start[b + 1]
        separator = regions.member_region[first]
        number[separator] += last - first
        n_shifts = np.int64(regions.block_size[b])
        for m in range(first, last):
            number[regions.member_region[m]] += 1.0
            if n_shifts > 0 and m > first:
                delta = regions.block_delta[b] + (m - first - 1) * n_shifts
                size = _largest(state.delta, delta, delta + n_shifts)
                shifts[regions.member_region[m]] += size
                shifts[separator] += size
    parts = np.zeros(n_variables)
    for a in range(len(regions.axis_variable)):
        parts[regions.axis_variable[a]] += 1.0
    units = 0.0
    values = 0.0
    for region in range(n_regions):
        largest = _largest(state.tables, regions.table_start[region], regions.table_start[region + 1]) + shifts[region]
        node = np.int64(regions.shape[region])
        units += (number[region] * (2.0 + MOVES * sweeps) + shapes.depth[node] * 3.0 + 4.0) * largest
        for a in range(regions.axis_start[region], regions.axis_start[region + 1]):
            of_variable = (parts[regions.axis_variable[a]] + 8.0) * shapes.log_card[node]
            units += max(state.weights[a], 1e-3) * (2.0 * shapes.card[node] + EXPONENTIAL + of_variable)
            node = shapes.rest[node]
        if np.isfinite(state.log_values[region]):
            values += abs(state.log_values[region])
    return units + n_regions * values


@compiled
def gradients(
    batch_start: IntArray, sweep: Int32Array, regions: Regions, shapes: Shapes, state: DescentState, work: Workspace,
    of_delta: FloatArray, of_weights: FloatArray,
) -> None:  # fmt: skip
    """Derivatives of the bound with respect to every shift (eq. 8) and every weight (eq. 9).

    Weights of a variable that lies in a single region have no choice; their derivative is left as it is.
    """
    for batch in range(len(batch_start) - 1):
        blocks = sweep[batch_start[batch] : batch_start[batch + 1]]
        n_groups = arrange(blocks, regions, shapes, work)
        load(n_groups, regions, shapes, state, work)
        begin(n_groups, len(blocks), shapes, work)
        for t in range(len(blocks)):
            b = blocks[t]
            n_shifts = regions.block_size[b]
            first = work.block_slots[work.block_at[t]]
            for i in range(work.block_at[t + 1] - work.block_at[t]):
                slot = work.block_slots[work.block_at[t] + i]
                m = work.slot_member[slot]
                if regions.block_variable[b] >= 0:
                    kind = regions.member_kind[m]
                    leading = shapes.depth[shapes.kind_whole[kind]] - shapes.depth[shapes.kind_left[kind]]
                    of_weights[regions.axis_start[regions.member_region[m]] + leading] = work.entropy[slot]
                if i > 0:
                    delta = regions.block_delta[b] + (i - 1) * n_shifts
                    for x in range(n_shifts):
                        own = work.marginal[work.slot_shift[first] + x * work.slot_stride[first]]
                        other = work.marginal[work.slot_shift[slot] + x * work.slot_stride[slot]]
                        of_delta[delta + x] = own - other


@compiled
def max_marginals(
    value_start: IntArray, tau: FloatArray, regions: Regions, shapes: Shapes, state: DescentState, work: Workspace
) -> FloatArray:
    """For every max variable the sum over its regions of their max-marginals: what decoding rounds."""
    scores = np.zeros(value_start[-1])
    chosen = np.zeros(1, np.int64)
    for region in range(len(regions.shape)):
        whole = np.int64(regions.shape[region])
        left = whole
        n_sum = 0
        for a in range(regions.axis_start[region], regions.axis_start[region + 1]):
            if tau[regions.axis_variable[a]] > 0.0:
                n_sum += 1
                left = shapes.rest[left]
        if left == 0:
            continue
        start = regions.table_start[region]
        for e in range(shapes.entries[whole]):
            work.raw[e] = state.tables[start + e]
        chosen[0] = region
        eliminate_leading(whole, left, np.int64(1), chosen, regions.axis_start, state.weights, shapes, work)
        size = shapes.entries[left]
        for a in range(regions.axis_start[region] + n_sum, regions.axis_start[region + 1]):
            card, rest = shapes.card[left], shapes.entries[shapes.rest[left]]
            for x in range(card):
                top = -np.inf
                # Entries with this state: runs of ``rest``, one in each block of all states.
                for begin_at in range(x * rest, size, card * rest):
                    for j in range(begin_at, begin_at + rest):
                        top = max(top, work.raw[j])
                scores[value_start[regions.axis_variable[a]] + x] += top
            left = shapes.rest[left]
    return scores
