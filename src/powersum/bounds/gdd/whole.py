"""The decomposed bound as a whole: values, gradients and max-marginals of all regions at the present point."""

from __future__ import annotations

import numpy as np

from powersum.bounds.gdd.members import eliminate_axes, find_beliefs, load, trial
from powersum.bounds.gdd.regions import Regions
from powersum.bounds.gdd.state import DescentState, Workspace
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled


@compiled
def rebuild_tables(regions: Regions, theta: FloatArray, state: DescentState) -> None:
    """Tables from scratch: the model's own numbers minus the shifts, without the rounding of many small updates."""
    for j in range(len(theta)):
        state.tables[j] = theta[j]
    for b in range(len(regions.block_start) - 1):
        n_shifts = regions.block_size[b]
        if n_shifts == 0:
            continue
        separator = regions.table_start[regions.member_region[regions.block_start[b]]]
        for m in range(regions.block_start[b] + 1, regions.block_start[b + 1]):
            region = regions.member_region[m]
            size = regions.member_entries[m]
            mapped = regions.member_map[m]
            rest = size // n_shifts
            delta = regions.member_delta[m]
            for x in range(n_shifts):
                state.tables[separator + x] += state.delta[delta + x]
            for start in range(regions.table_start[region], regions.table_start[region + 1], size):
                for j in range(size):
                    x = j // rest if mapped < 0 else regions.separator_map[mapped + j]
                    state.tables[start + j] -= state.delta[delta + x]


@compiled
def evaluate_regions(regions: Regions, state: DescentState, scratch: FloatArray) -> None:
    """Power sum of every region from its current table and weights."""
    at = regions.table_start[0]
    for region in range(len(regions.table_start) - 1):
        start = regions.table_start[region]
        eliminate_axes(
            state.tables, start, regions.table_start[region + 1] - start,
            regions.axis_start[region], regions.axis_start[region + 1],
            regions.axis_card, state.weights, scratch, at,
        )  # fmt: skip
        state.log_values[region] = scratch[0]


@compiled
def gradients(
    regions: Regions, state: DescentState, work: Workspace, of_delta: FloatArray, of_weights: FloatArray
) -> None:
    """Derivatives of the bound with respect to every shift (eq. 8) and every weight (eq. 9).

    Weights of a variable that lies in a single region have no choice; their derivative is left as it is.
    """
    for b in range(len(regions.block_start) - 1):
        n_members = regions.block_start[b + 1] - regions.block_start[b]
        n_shifts = regions.block_size[b]
        load(b, regions, state, work)
        trial(b, 0.0, n_members, n_shifts, work.weight, regions, state, work)
        find_beliefs(b, n_members, n_shifts, regions, work)
        for i in range(n_members):
            m = regions.block_start[b] + i
            if regions.block_variable[b] >= 0:
                of_weights[regions.axis_start[regions.member_region[m]] + regions.member_first[m]] = work.entropy[i]
            if regions.member_delta[m] >= 0:
                for x in range(n_shifts):
                    of_delta[regions.member_delta[m] + x] = work.marginal[x] - work.marginal[i * n_shifts + x]


@compiled
def max_marginals(
    n_variables: int, value_start: IntArray, tau: FloatArray, regions: Regions, state: DescentState, scratch: FloatArray
) -> FloatArray:
    """For every max variable the sum over its regions of their max-marginals: what decoding rounds."""
    scores = np.zeros(value_start[n_variables])
    at = regions.table_start[0]
    for region in range(len(regions.table_start) - 1):
        n_sum = 0
        start = regions.table_start[region]
        whole = regions.table_start[region + 1] - start
        size = whole
        for a in range(regions.axis_start[region], regions.axis_start[region + 1]):
            if tau[regions.axis_variable[a]] > 0.0:
                n_sum += 1
                size //= regions.axis_card[a]
        first = regions.axis_start[region]
        eliminate_axes(state.tables, start, whole, first, first + n_sum, regions.axis_card, state.weights, scratch, at)
        rest = size
        for a in range(regions.axis_start[region] + n_sum, regions.axis_start[region + 1]):
            variable = regions.axis_variable[a]
            card = regions.axis_card[a]
            rest //= card
            for x in range(card):
                top = -np.inf
                # Entries with this state: runs of ``rest``, one in each block of all states.
                for begin in range(x * rest, size, card * rest):
                    for j in range(begin, begin + rest):
                        top = max(top, scratch[j])
                scores[value_start[variable] + x] += top
    return scores
