"""What moves in the decomposed bound, and the scratch memory of its block updates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.bounds.gdd.regions import Regions
from powersum.core.arrays import FloatArray, IntArray

LOG_OF_NOTHING = -200.0
"""Stands in for log 0 in the matching direction of wide separators, and bounds it elsewhere."""

UNDERFLOW = 1e-80
"""Beliefs below this are too small for their logarithm to be trusted."""


class DescentState(NamedTuple):
    """Everything that moves: one flat array each."""

    tables: FloatArray  # theta minus shifts in the clusters, the sum of shifts in the separators
    delta: FloatArray  # shifts of every separator-cluster pair
    weights: FloatArray  # one for each axis of each region
    log_values: FloatArray  # power sum of each region; they add up to the bound
    shift_step: FloatArray  # step size remembered for each block
    weight_step: FloatArray


class Workspace(NamedTuple):
    """Scratch memory of one thread, large enough for the largest block."""

    base: FloatArray  # remaining tables of all members
    table: FloatArray  # the same at a trial point, followed by its partial power sums
    belief: FloatArray  # conditional beliefs, then joint ones, in the layout of ``table``
    at: IntArray  # where each member starts in ``base``
    table_at: IntArray  # where each member starts in ``table`` and ``belief``
    entries: IntArray  # number of remaining entries of each member
    marginal: FloatArray  # beliefs on the separator, member by member
    scaled: FloatArray  # weight times log belief on a one-variable separator, exact also where beliefs underflow
    direction: FloatArray
    move: FloatArray  # accumulated change of each member's table
    entropy: FloatArray
    value: FloatArray
    trial_value: FloatArray
    weight: FloatArray
    trial_weight: FloatArray


class Rules(NamedTuple):
    """Numbers that steer the local descent."""

    inner_steps: int
    backtracks: int
    armijo: float
    gradient: int  # 1: the plain gradient of the paper; 0: the matching direction
    least_share: float  # no weight falls below this share of tau, so that it can come back


def new_workspace(regions: Regions) -> Workspace:
    """Scratch memory that suffices for every block."""
    members = _largest_sum(regions, np.ones_like(regions.member_region))
    # Eliminating the axes before a block's own passes through tables of at most half a region's size.
    whole = np.diff(regions.table_start)[regions.member_region]
    base = _largest_sum(regions, np.maximum(regions.member_entries, whole // 2))
    # A table with all its partial power sums is less than twice the table.
    table = 2 * _largest_sum(regions, regions.member_entries)
    shifts = _largest_sum(regions, np.repeat(regions.block_size, np.diff(regions.block_start)))
    return Workspace(
        base=np.empty(base),
        table=np.empty(table),
        belief=np.empty(table),
        at=np.empty(members, dtype=np.int64),
        table_at=np.empty(members, dtype=np.int64),
        entries=np.empty(members, dtype=np.int64),
        marginal=np.empty(shifts),
        scaled=np.empty(shifts),
        direction=np.empty(shifts),
        move=np.empty(shifts),
        entropy=np.empty(members),
        value=np.empty(members),
        trial_value=np.empty(members),
        weight=np.empty(members),
        trial_weight=np.empty(members),
    )


def _largest_sum(regions: Regions, of_members: IntArray) -> int:
    """The largest sum over the members of a block."""
    if len(of_members) == 0:
        return 1
    return int(np.add.reduceat(of_members, regions.block_start[:-1]).max())
