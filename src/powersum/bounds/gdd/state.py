"""What moves in the decomposed bound, and the scratch memory of its block updates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from powersum.bounds.gdd.regions import JunctionGraph
from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.lanes import LANES, roomy

LOG_OF_NOTHING = -200.0
"""Stands in for log 0 in the matching direction of wide separators, and bounds it elsewhere."""

UNDERFLOW = 1e-80
"""Beliefs below this are too small for their logarithm to be trusted."""


class DescentState(NamedTuple):
    """Everything that moves: one flat array each."""

    tables: FloatArray  # the model's tables minus shifts in the clusters, the sum of shifts in the separators
    delta: FloatArray  # shifts of every separator-cluster pair
    weights: FloatArray  # one for each axis of each region
    log_values: FloatArray  # power sum of each region; they add up to the bound
    shift_step: FloatArray  # step size remembered for each block
    weight_step: FloatArray


class Workspace(NamedTuple):
    """Scratch memory of one thread, large enough for the largest batch of blocks.

    A batch's members are sorted by kind into *slots*; those with remaining tables of one shape are a *group*, and their
    places in it are *lanes*. Entry ``e`` of lane ``l`` in a group of ``n`` lies at ``e * n + l`` from its start,
    so that loops over lanes are over neighbours in memory. A trial works on the *active* lanes only, side by side.
    """

    kind_at: IntArray  # first slot of each kind
    slot_member: IntArray
    slot_block: IntArray  # its block, counted within the batch
    slot_group: IntArray
    slot_stride: IntArray  # number of lanes of its group
    slot_shift: IntArray  # where its first shift lies in ``marginal``, ``scaled``, ``direction`` and ``move``
    block_at: IntArray  # per block of the batch, into ``block_slots``
    block_slots: IntArray  # slots of each block's members, in their order
    group_start: IntArray  # first slot of each group
    group_kind: IntArray  # some kind of its members
    group_base: IntArray  # where it starts in ``base``
    group_table: IntArray  # where it starts in ``table`` and ``belief``
    group_shift: IntArray
    group_axis: IntArray  # where it starts in ``axis_weight``
    active: IntArray  # active lanes of each group, from its ``group_start``
    n_active: IntArray  # their number, for each group
    touched: IntArray  # groups that have some
    tries: IntArray  # blocks of the batch that take part in the present line search
    base: FloatArray  # remaining tables of all members
    table: FloatArray  # the same at a trial point, followed by its partial power sums
    belief: FloatArray  # conditional beliefs, then joint ones, in the layout of ``table``
    raw: FloatArray  # whole tables of one kind
    row_weight: FloatArray  # scratch rows
    row_inverse: FloatArray
    row_logs: FloatArray
    lane_weight: FloatArray  # scratch of one number for each lane
    lane_step: FloatArray
    lane_sum: FloatArray
    axis_weight: FloatArray  # weights of the remaining axes
    marginal: FloatArray  # beliefs on the separator
    scaled: FloatArray  # weight times log belief on a one-variable separator, exact also where beliefs underflow
    direction: FloatArray
    move: FloatArray  # accumulated change of each member's table
    entropy: FloatArray  # per slot
    value: FloatArray
    trial_value: FloatArray
    weight: FloatArray
    trial_weight: FloatArray
    going: BoolArray  # per block of the batch: still descending
    changed: BoolArray
    progress: BoolArray
    accepted: BoolArray  # has ended it with success
    block_value: FloatArray
    step: FloatArray
    slope: FloatArray


class Rules(NamedTuple):
    """Numbers that steer the local descent."""

    inner_steps: int
    backtracks: int
    armijo: float
    gradient: int  # 1: the plain gradient of the paper; 0: the matching direction
    least_share: float  # no weight falls below this share of tau, so that it can come back


def new_workspace(graph: JunctionGraph) -> Workspace:
    """Scratch memory that suffices for every batch."""
    sizes, n_kinds = graph.batch_sizes, len(graph.shapes.kind_left)
    members, blocks, entries, whole, shifts, axes = (max(1, int(size)) for size in sizes)
    # A region may belong to no block at all, and is evaluated alone.
    whole = max(whole, int(np.diff(graph.regions.table_start).max(initial=1)))

    def numbers(count: int, size: int) -> list[IntArray]:
        return [np.zeros(size, dtype=np.int64) for _ in range(count)]

    def floats(count: int, size: int) -> list[FloatArray]:
        return [roomy(size, np.float64) for _ in range(count)]

    arrays: list[Any] = [
        *numbers(1, n_kinds + 1),
        *numbers(5, members),
        *numbers(1, blocks + 1),
        *numbers(1, members),
        *numbers(7, members + 1),
        *numbers(2, members),
        *numbers(1, blocks),
        *floats(1, entries),
        # A table with all its partial power sums is less than twice the table, once it has more than one entry; behind
        # each group there is room for what is written beyond the end of its last row.
        *floats(2, 2 * entries + LANES * members),
        *floats(1, whole),
        *floats(3, max(entries, whole, shifts)),
        *floats(3, members),
        *floats(1, axes),
        *floats(4, shifts),
        *floats(5, members),
        *(np.zeros(blocks, dtype=np.bool_) for _ in range(4)),
        *floats(3, blocks),
    ]
    return Workspace(*arrays)
