"""Extending mini-buckets of a covering tree by variables that shifts between them should depend on.

Mini-buckets of one variable exchange shifts over the variables that they share, and once these are at their best, the
two agree about those. What they may still disagree about is how these go together with another variable v that is
eliminated later. So v is taken into both, and into all that is on the ways of their messages to where v is eliminated.
No table depends on v but through shifts: at the old shifts the bound is what it was, and then shifts can depend on v.
It is like splitting the whole problem into boxes by the states of v, but only where that matters: the table entries of
some mini-buckets are multiplied, not those of all.

What that promises is told by how much the two disagree about v together with one of the variables that they share: the
distance of the two joint distributions (total variation), from a sample of states drawn down the tree.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from powersum.bounds.buckets.partition import Partition
from powersum.bounds.buckets.sweeps import Sweeps
from powersum.bounds.tree.forest import GrowingForest
from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.core.random import following, seeded, share_of_one
from powersum.core.speed import DRAWN_STATE, SAMPLED_PAIR
from powersum.core.work_time import spend

SAMPLES, FEWEST_SAMPLES = 1000, 200
"""States drawn of each variable of each mini-bucket; fewer where there are many pairs to look at."""

LOOKS = 60.0
"""Pairs of states that are counted for each table entry of the tree, at most: that takes about as long as the passes
between two growths."""

NOISE = 0.4
"""Two samples of one distribution are about this times the root of cells per sample apart."""

MOST_CELLS = 0.25
"""Pairs of variables with more pairs of states than this share of the sample tell nothing."""

TINY = 1e-30

States = npt.NDArray[np.int32]


def extend(
    forest: GrowingForest, parts: Partition, passes: Sweeps, cardinalities: IntArray, *, room: float, seed: int
) -> None:
    """Extend where the disagreement is largest for each entry added, as long as there is room for more entries.

    The beliefs of the latest pass must be there.
    """
    # Where there are too many to look at all of them, chance chooses.
    edges = np.random.default_rng(seed).permutation(parts.edges)
    looks = LOOKS * passes.layout.n_entries
    ways = Ways(parts.bucket, parts.starts, parts.positions, parts.parent)
    n_variables, n_pairs = _numbers(ways, edges, len(cardinalities))
    n_samples = int(min(max(looks / max(float(n_pairs.sum()), 1.0), FEWEST_SAMPLES), SAMPLES))
    n_edges = int(np.searchsorted(np.cumsum(n_pairs), looks / n_samples, side="right"))
    origins = _origins(ways)
    states = _drawn(ways, origins, cardinalities, passes.layout.wiring.table, passes.beliefs(), n_samples, seed)
    spend(DRAWN_STATE * states.size + SAMPLED_PAIR * n_samples * float(n_pairs[:n_edges].sum()))
    found = np.empty(int(n_variables[:n_edges].sum())), np.empty((int(n_variables[:n_edges].sum()), 3), np.int64)
    count = _disagreements(ways, origins, edges[:n_edges], cardinalities, states, *found)
    scores, candidates = found[0][:count], found[1][:count]
    variables, rows = np.unique(candidates[:, 2], return_inverse=True)
    knows = np.empty((len(variables), len(forest.scope)), dtype=np.bool_)
    for row, position in zip(knows, variables.tolist(), strict=True):
        row[:] = [scope >> position & 1 for scope in forest.scope]
    before = knows.copy()
    sizes = np.array(forest.size, dtype=np.float64)
    _choose(ways, scores, candidates, rows, cardinalities, knows, sizes, room)
    for number, node in np.argwhere(knows & ~before).tolist():
        forest.take_in(node, int(variables[number]))


class Ways(NamedTuple):
    """Mini-buckets, their scopes and where their messages go: fields of a partition."""

    bucket: IntArray
    starts: IntArray
    positions: IntArray
    parent: IntArray


@compiled
def _numbers(ways: Ways, edges: IntArray, n_variables: int) -> tuple[IntArray, IntArray]:
    """How many variables both messages of each edge come by, and pairs of these with such as its two ends share."""
    bucket, starts, positions, parent = ways
    passed, shared = np.zeros(edges.shape[0], np.int64), np.zeros(edges.shape[0], np.int64)
    seen, known = np.full(n_variables, -1, np.int64), np.full(n_variables, -1, np.int64)
    for e in range(edges.shape[0]):
        one, two = edges[e, 0], edges[e, 1]
        for i in range(starts[one], starts[one + 1]):
            known[positions[i]] = e
        for i in range(starts[two], starts[two + 1]):
            shared[e] += known[positions[i]] == e
        node = parent[one]
        while node >= 0:
            seen[bucket[node]] = e
            node = parent[node]
        node = parent[two]
        while node >= 0:
            passed[e] += seen[bucket[node]] == e
            node = parent[node]
    return passed, passed * shared


@compiled
def _origins(ways: Ways) -> IntArray:
    """For each variable of each mini-bucket's scope the one that eliminates it on the way of its message, or itself."""
    starts, positions, parent = ways.starts, ways.positions, ways.parent
    origins = np.empty(positions.size, np.int64)
    for node in range(starts.size - 2, -1, -1):
        origins[starts[node]] = node
        for i in range(starts[node] + 1, starts[node + 1]):
            # Whoever receives the message knows all of its variables.
            j = starts[parent[node]]
            while positions[j] != positions[i]:
                j += 1
            origins[i] = origins[j]
    return origins


@compiled
def _drawn(
    ways: Ways,
    origins: IntArray,
    cardinalities: IntArray,
    table: IntArray,
    tables: FloatArray,
    n_samples: int,
    seed: int,
) -> States:
    """States of each mini-bucket's own variable, drawn given those of its others, which were drawn before."""
    bucket, starts, positions, _ = ways
    states = np.zeros((bucket.size, n_samples), np.int32)
    for node in range(bucket.size - 1, -1, -1):
        card, columns = cardinalities[bucket[node]], 1
        for i in range(starts[node] + 1, starts[node + 1]):
            columns *= cardinalities[positions[i]]
        random = seeded(seed, node)
        for sample in range(n_samples):
            column = 0
            for i in range(starts[node] + 1, starts[node + 1]):
                column = column * cardinalities[positions[i]] + states[origins[i], sample]
            at, total = table[node] + column, 0.0
            for a in range(card):
                total += tables[at + a * columns]
            random = following(random)
            share, state = share_of_one(random), 0
            if total > TINY:
                share *= total
                while state < card - 1 and share >= tables[at + state * columns]:
                    share -= tables[at + state * columns]
                    state += 1
            else:
                # Nothing is believed of such states, as far as single precision can tell.
                state = int(share * card)
            states[node, sample] = state
    return states


@inner
def _distance(
    states: States, one: tuple[int, int], two: tuple[int, int], cards: tuple[int, int], cells: FloatArray
) -> float:
    """Total variation between what two pairs of mini-buckets believe of one pair of variables, beyond chance."""
    n_cells, n_samples = cards[0] * cards[1], states.shape[1]
    for cell in range(n_cells):
        cells[cell] = 0.0
    for sample in range(n_samples):
        cells[states[one[0], sample] * cards[1] + states[one[1], sample]] += 1.0
        cells[states[two[0], sample] * cards[1] + states[two[1], sample]] -= 1.0
    total = 0.0
    for cell in range(n_cells):
        total += abs(cells[cell])
    return float(0.5 * total / n_samples - NOISE * math.sqrt(n_cells / n_samples))


@compiled
def _disagreements(
    ways: Ways,
    origins: IntArray,
    edges: IntArray,
    cardinalities: IntArray,
    states: States,
    scores: FloatArray,
    candidates: IntArray,
) -> int:
    """How much the ends of edges disagree about variables that both of their messages come by and they do not share.

    Writes what is beyond chance, and for each the two ends and the variable; returns how many there are.
    """
    bucket, starts, positions, parent = ways
    n_variables = cardinalities.size
    most_cells, count = int(MOST_CELLS * states.shape[1]), 0
    cells = np.empty(most_cells)
    seen, above = np.full(n_variables, -1, np.int64), np.empty(n_variables, np.int64)
    known, place = np.full(n_variables, -1, np.int64), np.empty(n_variables, np.int64)
    shared = np.full(n_variables, -1, np.int64)
    places = np.empty((n_variables, 2), np.int64)
    for e in range(edges.shape[0]):
        one, two, n_shared = edges[e, 0], edges[e, 1], 0
        for i in range(starts[one], starts[one + 1]):
            known[positions[i]], place[positions[i]] = e, i
        for i in range(starts[two], starts[two + 1]):
            if known[positions[i]] == e:
                shared[positions[i]] = e
                places[n_shared, 0], places[n_shared, 1] = place[positions[i]], i
                n_shared += 1
        node = parent[one]
        while node >= 0:
            seen[bucket[node]], above[bucket[node]] = e, node
            node = parent[node]
        node = parent[two]
        while node >= 0:
            v, farthest = bucket[node], 0.0
            if seen[v] == e and shared[v] != e:
                for k in range(n_shared):
                    i, j = places[k]
                    cards = cardinalities[positions[i]], cardinalities[v]
                    alike = origins[i] == origins[j] and above[v] == node
                    if cards[0] * cards[1] <= most_cells and not alike:
                        apart = _distance(states, (origins[i], above[v]), (origins[j], node), cards, cells)
                        farthest = max(farthest, apart)
            if farthest > 0.0:
                scores[count] = farthest
                candidates[count, 0], candidates[count, 1], candidates[count, 2] = one, two, v
                count += 1
            node = parent[node]
    return count


@inner
def _told(
    ways: Ways, ends: IntArray, card: int, knows: BoolArray, sizes: FloatArray, way: IntArray, keep: bool
) -> float:
    """Entries that it takes to tell both ends of an edge, and all on the ways of their messages, of a variable.

    Who knows it already is told by ``knows``; where this is to be kept, so are those who come to know it.
    """
    added, count = 0.0, 0
    for end in range(2):
        node = ends[end]
        while not knows[node]:
            added += sizes[node] * (card - 1)
            knows[node], way[count] = True, node
            count += 1
            node = ways.parent[node]
    for i in range(count):
        if keep:
            sizes[way[i]] *= card
        else:
            knows[way[i]] = False
    return added


@compiled
def _choose(
    ways: Ways,
    scores: FloatArray,
    candidates: IntArray,
    rows: IntArray,
    cardinalities: IntArray,
    knows: BoolArray,
    sizes: FloatArray,
    room: float,
) -> None:
    """Take the candidates with the largest score for each entry added, the best first, as long as there is room.

    A row of ``knows`` tells for each mini-bucket whether it knows a variable; who comes to know it is noted there, and
    in the sizes. What one candidate has paid for, others about the same variable have for nothing.
    """
    way = np.empty(ways.bucket.size, np.int64)
    worth = np.empty(scores.size)
    for c in range(scores.size):
        card = cardinalities[candidates[c, 2]]
        worth[c] = scores[c] / max(_told(ways, candidates[c], card, knows[rows[c]], sizes, way, False), 1.0)
    while scores.size:
        best = int(np.argmax(worth))
        if worth[best] <= 0.0:
            break
        card = cardinalities[candidates[best, 2]]
        added = _told(ways, candidates[best], card, knows[rows[best]], sizes, way, False)
        now = scores[best] / max(added, 1.0)
        if added > room:
            worth[best] = 0.0
        elif now < worth[best]:
            # Others have made its mini-buckets larger.
            worth[best] = now
        else:
            _told(ways, candidates[best], card, knows[rows[best]], sizes, way, True)
            room -= added
            worth[best] = 0.0
            for c in range(scores.size):
                if rows[c] == rows[best] and worth[c] > 0.0:
                    worth[c] = scores[c] / max(_told(ways, candidates[c], card, knows[rows[c]], sizes, way, False), 1.0)
