"""Compiled loops that build the wiring of :mod:`powersum.bounds.gdd.regions`; run once for each problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, Int32Array, IntArray
from powersum.core.jit import compiled


@compiled
def cut_batches(
    colours: IntArray, sweep: Int32Array, regions: Any, shapes: Any, most_entries: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut the colours of a sweep into batches of about ``most_entries`` table entries, all closed or none.

    Returns where batches start in ``sweep``, where colours start among the batches, and the most of everything that a
    batch needs scratch memory for.
    """
    batch_start = np.zeros(len(sweep) + 1, np.int64)
    colour_start = np.zeros(len(colours), np.int64)
    most = np.zeros(6, np.int64)
    sizes = np.zeros(6, np.int64)
    own = np.zeros(6, np.int64)
    n = 0
    for k in range(len(colours) - 1):
        for at in range(colours[k], colours[k + 1]):
            b = sweep[at]
            own[:] = 0
            for m in range(regions.block_start[b], regions.block_start[b + 1]):
                kind = regions.member_kind[m]
                own[0] += 1
                own[2] += shapes.entries[shapes.kind_left[kind]]
                own[3] += shapes.entries[shapes.kind_whole[kind]]
                own[4] += regions.block_size[b]
                own[5] += shapes.depth[shapes.kind_left[kind]]
            own[1] = 1
            begins = at == colours[k] or regions.block_closed[sweep[at - 1]] != regions.block_closed[b]
            if begins or sizes[3] + own[3] > most_entries:
                batch_start[n] = at
                n += 1
                sizes[:] = 0
            for i in range(6):
                sizes[i] += own[i]
                most[i] = max(most[i], sizes[i])
        colour_start[k + 1] = n
    batch_start[n] = len(sweep)
    return batch_start[: n + 1].copy(), colour_start, most


@compiled
def remove_impossible_tuples(regions: Any, shapes: Any, theta: FloatArray) -> None:
    """Make a separator's tuple ``-inf`` in all its regions once any of them excludes it, to a fixpoint.

    Afterwards every max-marginal and every belief of a block is either positive in all its members or in none, so
    that no shift is ever infinite. Tuples of one variable are states, which simplification has already removed.
    """
    largest = 1
    for b in range(len(regions.block_size)):
        largest = max(largest, regions.block_size[b])
    possible = np.empty(largest, dtype=np.bool_)
    supported = np.empty(largest, dtype=np.bool_)
    again = True
    while again:
        again = False
        for b in range(len(regions.block_size)):
            n_shifts = regions.block_size[b]
            if n_shifts == 0 or shapes.kind_map[regions.member_kind[regions.block_start[b]]] < 0:
                continue
            possible[:n_shifts] = True
            for m in range(regions.block_start[b], regions.block_start[b + 1]):
                supported[:n_shifts] = False
                region, kind = regions.member_region[m], regions.member_kind[m]
                start, mapped = regions.table_start[region], shapes.kind_map[kind]
                entries = shapes.entries[shapes.kind_left[kind]]
                for j in range(regions.table_start[region + 1] - start):
                    if theta[start + j] > -np.inf:
                        supported[shapes.separator_map[mapped + j % entries]] = True
                for x in range(n_shifts):
                    possible[x] &= supported[x]
            for m in range(regions.block_start[b], regions.block_start[b + 1]):
                region, kind = regions.member_region[m], regions.member_kind[m]
                start, mapped = regions.table_start[region], shapes.kind_map[kind]
                entries = shapes.entries[shapes.kind_left[kind]]
                for j in range(regions.table_start[region + 1] - start):
                    supports = possible[shapes.separator_map[mapped + j % entries]]
                    if not supports and theta[start + j] > -np.inf:
                        theta[start + j] = -np.inf
                        again = True
