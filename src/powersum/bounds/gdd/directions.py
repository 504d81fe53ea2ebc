"""Directions of descent of a block: the plain gradient, or one that would bring its members' beliefs together."""

from __future__ import annotations

from powersum.bounds.gdd.regions import Regions
from powersum.bounds.gdd.shapes import Shapes
from powersum.bounds.gdd.state import LOG_OF_NOTHING, UNDERFLOW, Workspace
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.fastmath import log_of
from powersum.core.jit import bare

# A function that is called for every block takes the arrays it uses: handing over a whole workspace costs more.


@bare
def set_gradient(slots: IntArray, first: int, last: int, n_shifts: int, work: Workspace) -> None:
    """The plain gradient of the paper (eq. 8) as the direction of all members of a block."""
    for x in range(n_shifts):
        own = work.slot_shift[slots[first]] + x * work.slot_stride[slots[first]]
        total = 0.0
        for at in range(first + 1, last):
            place = work.slot_shift[slots[at]] + x * work.slot_stride[slots[at]]
            work.direction[place] = work.marginal[own] - work.marginal[place]
            total += work.direction[place]
        work.direction[own] = -total


@bare
def set_matching(
    slots: IntArray, first: int, last: int, n_shifts: int, weight: FloatArray, slot_shift: IntArray,
    slot_stride: IntArray, scaled: FloatArray, direction: FloatArray,
) -> None:  # fmt: skip
    """A direction that would bring the beliefs of all members of a block together.

    Each member moves by −ω (log b − log q), where log q is the ω-average of the members' log beliefs. The slope
    −Σ ω KL(b‖q) is never positive, whatever the ω ≥ 0; with ω the member's weight of the variable the full step is
    exact when that variable is the last in every member. Where ω is 0 the move is the limit: the member's whole
    dependence on the variable goes to the others, as a message would carry it.

    A separator of several variables has several weights: ω is their mean.
    """
    sum_omega = 0.0
    for at in range(first, last):
        sum_omega += weight[slots[at]]
    for x in range(n_shifts):
        total = 0.0
        for at in range(first, last):
            total += scaled[slot_shift[slots[at]] + x * slot_stride[slots[at]]]
        for at in range(first, last):
            place = slot_shift[slots[at]] + x * slot_stride[slots[at]]
            direction[place] = weight[slots[at]] / sum_omega * total - scaled[place]


@bare
def scale_wide(t: int, n_shifts: int, by_messages: bool, regions: Regions, shapes: Shapes, work: Workspace) -> None:
    """Mean weights and weighted log beliefs of the members of a separator of several variables.

    Where the weights vanish, beliefs show nothing; then ``by_messages`` takes the member's largest entries in their
    place, which is what a message carries of it.
    """
    for at in range(work.block_at[t], work.block_at[t + 1]):
        slot = work.block_slots[at]
        lanes, shift = work.slot_stride[slot], work.slot_shift[slot]
        kind = regions.member_kind[work.slot_member[slot]]
        g = work.slot_group[slot]
        lane = slot - work.group_start[g]
        total = 0.0
        count = 0
        for a in range(shapes.depth[shapes.kind_left[kind]]):
            weight = work.axis_weight[work.group_axis[g] + a * lanes + lane]
            if (shapes.kind_axes[kind] >> a) & 1 and weight > 0.0:
                total += weight
                count += 1
        omega = total / count if count > 0 else 0.0
        work.trial_weight[slot] = omega
        if by_messages:
            for x in range(n_shifts):
                work.scaled[shift + x * lanes] = LOG_OF_NOTHING
            for e in range(shapes.entries[shapes.kind_left[kind]]):
                place = shift + shapes.separator_map[shapes.kind_map[kind] + e] * lanes
                excess = work.base[work.group_base[g] + e * lanes + lane] - work.value[slot]
                work.scaled[place] = max(work.scaled[place], excess)
        else:
            for x in range(n_shifts):
                belief = work.marginal[shift + x * lanes]
                work.scaled[shift + x * lanes] = omega * (log_of(belief) if belief > UNDERFLOW else LOG_OF_NOTHING)


@bare
def slope_of(
    slots: IntArray, first: int, last: int, n_shifts: int, slot_shift: IntArray, slot_stride: IntArray,
    marginal: FloatArray, direction: FloatArray,
) -> float:  # fmt: skip
    """Derivative of a block's value along the direction."""
    slope = 0.0
    for at in range(first, last):
        place, stride = slot_shift[slots[at]], slot_stride[slots[at]]
        for _ in range(n_shifts):
            slope += marginal[place] * direction[place]
            place += stride
    return slope
