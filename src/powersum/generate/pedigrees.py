"""Pedigrees as in genetic linkage analysis: who inherited which allele, given what was measured on some people."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.generate.blocks import (
    Block,
    Instance,
    assemble,
    check_count,
    check_share,
    draw_query,
    repeated,
)

# Chance to fall ill with 0, 1, 2 copies of the disease allele.
PENETRANCE = np.array([0.02, 0.2, 0.9])
# Chance that a child is born to parents who have children already.
SIBLING = 0.5


def pedigree(
    people: int = 30,
    loci: int = 4,
    *,
    founders: int | None = None,
    alleles: int = 4,
    typed: float = 0.5,
    recombination: float = 0.1,
    share: float = 0.5,
    seed: int = 0,
) -> Instance:
    """A family over several loci of one chromosome; the first locus causes a disease, the others are markers.

    Each person has at each locus an allele from the father and one from the mother; each child has for both a selector
    that says which of the parent's two alleles was handed down, and selectors of neighbouring loci agree but for
    recombination. What was measured is a variable with one state, as in the linkage instances of the UAI competitions.
    Measurements are sampled from the model, so that the instance always has a solution. Tables of inheritance and of
    measured markers are full of zeros.

    Parameters
    ----------
    people, founders
        All people, and those of them without parents in the family (a third, if not given).
    loci
        Number of loci.
    alleles
        The largest number of alleles of a marker; each marker has 2 to this many. The disease has 2.
    typed
        Share of the people whose markers and disease were looked at.
    recombination
        Chance that neighbouring loci are inherited from different grandparents.
    share
        Share of the undecided variables in the query.
    seed
        The same seed gives the same instance.

    Examples
    --------
    >>> import powersum as ps
    >>> model, query = ps.generate.pedigree(20, 3, seed=1)
    >>> bool(ps.bound(model, query, sweeps=0).log_upper > -float("inf"))
    True
    """
    check_count("people", people, 2)
    check_count("loci", loci, 1)
    check_count("alleles", alleles, 2)
    check_share("typed", typed)
    check_share("recombination", recombination)
    check_share("share", share)
    founders = min(max(2, people // 3), people) if founders is None else founders
    check_count("founders", founders, 2)
    check_count("people", people, founders)
    rng = np.random.default_rng(seed)
    family = _Family(*_parents(rng, people, founders), rng.random(people) < typed)

    # Variables locus by locus: both alleles of each person, both selectors of each child, then the disease.
    per_locus = 2 * people + 2 * family.n_children
    alleles_at = np.concatenate([[2], rng.integers(2, alleles + 1, loci - 1)])
    cardinalities = np.concatenate(
        [np.repeat([count, 2], [2 * people, 2 * family.n_children]) for count in alleles_at]
        + [np.where(family.typed, 1, 2)]
        + [np.ones(family.n_typed * (loci - 1), dtype=np.int64)]
    )
    measured = loci * per_locus + people
    blocks: list[Block] = []
    selected = rng.integers(0, 2, (family.n_children, 2))
    for locus, count in enumerate(alleles_at.tolist()):
        first = locus * per_locus
        allele = first + np.arange(2 * people).reshape(people, 2)
        selector = first + 2 * people + np.arange(2 * family.n_children).reshape(-1, 2)
        frequencies = rng.dirichlet(np.full(count, 4.0))
        if locus:
            switched = rng.random(selected.shape) < recombination
            selected = selected ^ switched
        drawn = _inherit(rng, family, frequencies, selected)
        blocks += _inheritance(family, allele, selector, frequencies, None if locus == 0 else per_locus, recombination)
        if locus == 0:
            blocks += _disease(rng, family, allele, loci * per_locus, drawn)
        else:
            clamped = measured + (locus - 1) * family.n_typed + np.arange(family.n_typed)
            blocks.append(_marker(family, allele, clamped, drawn, count))
    model = assemble(cardinalities, [block for block in blocks if len(block.scopes)])
    return Instance(model, draw_query(rng, np.flatnonzero(cardinalities > 1), share))


class _Family(NamedTuple):
    """Father and mother of each person (-1 for founders), and who was looked at; parents come before children."""

    father: IntArray
    mother: IntArray
    typed: BoolArray

    @property
    def children(self) -> IntArray:
        return np.flatnonzero(self.father >= 0)

    @property
    def n_children(self) -> int:
        return int((self.father >= 0).sum())

    @property
    def n_typed(self) -> int:
        return int(self.typed.sum())


def _parents(rng: np.random.Generator, people: int, founders: int) -> tuple[IntArray, IntArray]:
    """Fathers and mothers: even numbers are men, odd ones women. Couples are of one generation and not siblings."""
    father = np.full(people, -1)
    mother = np.full(people, -1)
    # Founders join the generation of the first person they have children with.
    generation = np.full(people, -1)
    generation[0] = 0
    couples = [(0, 1)]
    for child in range(founders, people):
        if rng.random() > SIBLING:
            one = int(rng.choice(np.flatnonzero(generation >= 0)))
            others = np.arange(1 - one % 2, child, 2)
            stranger = generation[others] < 0
            cousin = (generation[others] == generation[one]) & (father[others] != father[one])
            candidates = others[stranger if stranger.any() else cousin]
            if len(candidates):
                other = int(rng.choice(candidates))
                couples.append((one, other) if one % 2 == 0 else (other, one))
        father[child], mother[child] = couples[-1] if rng.random() < 0.5 else couples[int(rng.integers(len(couples)))]
        generation[[father[child], mother[child]]] = generation[[father[child], mother[child]]].max()
        generation[child] = generation[father[child]] + 1
    return father, mother


def _inherit(rng: np.random.Generator, family: _Family, frequencies: FloatArray, selected: IntArray) -> IntArray:
    """Both alleles of every person at one locus, sampled from parents to children."""
    drawn = rng.choice(len(frequencies), size=(len(family.father), 2), p=frequencies)
    for row, child in enumerate(family.children.tolist()):
        drawn[child, 0] = drawn[family.father[child], selected[row, 0]]
        drawn[child, 1] = drawn[family.mother[child], selected[row, 1]]
    return drawn


def _inheritance(
    family: _Family,
    allele: IntArray,
    selector: IntArray,
    frequencies: FloatArray,
    per_locus: int | None,
    recombination: float,
) -> list[Block]:
    """Alleles of founders by their frequencies, of children by selection; selectors along the chromosome."""
    count = len(frequencies)
    same = np.eye(count)
    handed_down = np.zeros((count, count, 2, count))
    handed_down[:, :, 0, :] = same[:, None, :]
    handed_down[:, :, 1, :] = same[None, :, :]
    children = family.children
    blocks = [repeated(allele[family.father < 0].reshape(-1, 1), frequencies)]
    for side, parent in enumerate((family.father[children], family.mother[children])):
        scopes = np.column_stack([allele[parent], selector[:, side], allele[children, side]])
        blocks.append(repeated(scopes, handed_down))
    flat = selector.reshape(-1, 1)
    if per_locus is None:
        return [*blocks, repeated(flat, np.array([0.5, 0.5]))]
    linked = np.array([[1 - recombination, recombination], [recombination, 1 - recombination]])
    return [*blocks, repeated(np.column_stack([flat - per_locus, flat]), linked)]


def _disease(rng: np.random.Generator, family: _Family, allele: IntArray, first: int, drawn: IntArray) -> list[Block]:
    """Healthy or ill given both alleles; for people who were looked at, only what was seen."""
    status = first + np.arange(len(family.typed)).reshape(-1, 1)
    ill = rng.random(len(family.typed)) < PENETRANCE[drawn.sum(axis=1)]
    chance = PENETRANCE[np.add.outer(np.arange(2), np.arange(2))]
    table = np.stack([1 - chance, chance], axis=-1)
    scopes = np.concatenate([allele, status], axis=1)
    seen = np.stack([table[..., int(i)].ravel() for i in (False, True)])
    return [
        repeated(scopes[~family.typed], table),
        Block(scopes[family.typed], seen[ill[family.typed].astype(np.int64)]),
    ]


def _marker(family: _Family, allele: IntArray, clamped: IntArray, drawn: IntArray, count: int) -> Block:
    """Measured markers: the two alleles are known, which came from whom is not."""
    one, other = drawn[family.typed].T
    rows = np.arange(len(clamped))
    tables = np.zeros((len(clamped), count, count))
    tables[rows, one, other] = 1.0
    tables[rows, other, one] = 1.0
    return Block(np.column_stack([allele[family.typed], clamped]), tables.reshape(len(clamped), count * count))
