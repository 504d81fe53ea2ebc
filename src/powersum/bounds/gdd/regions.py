"""Wiring of a decomposed bound: which tables there are, how their axes lie, which of them share what.

A bound of the paper's kind (eq. 5, and eq. 14 for junction graphs) is a sum of power sums over *regions*: clusters,
which carry the model's factors, and separators, which start empty. A separator and a cluster around it are joined by a
cost shift. Everything here is built once and never changes; numbers that move live in the methods.

The factor graph of the paper's main text is the junction graph whose clusters are the factors and whose separators are
the single variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.bounds.buckets.statics import add_factors
from powersum.bounds.gdd.region_kernels import fill_separator_maps, remove_impossible_tuples
from powersum.core.arrays import FloatArray, IntArray, positions_of, starts_of
from powersum.model.graph import colour_classes, incidence
from powersum.model.model import Model
from powersum.prepare.problem import Problem

NO_MAP = -1
"""In ``member_map``: the separator is the leading axis of the remaining table, no index map is needed."""


class Regions(NamedTuple):
    """Regions (clusters first, then separators), and the blocks in which a method updates them.

    A *block* is what one step of a method may change together: the shifts between one separator and its clusters, the
    weights of one variable, or both. Its *members* are the regions it touches; in a block with shifts the first member
    is the separator. Axes of every table are in elimination order, the first eliminated outermost.
    """

    axis_start: IntArray  # per region; axes of region r are axis_start[r]:axis_start[r + 1]
    axis_variable: IntArray
    axis_card: IntArray
    table_start: IntArray  # per region, into a flat array of all tables
    block_start: IntArray  # per block, into the member arrays
    member_region: IntArray
    member_first: IntArray  # first axis of the region that the block touches; earlier ones can be eliminated once
    member_entries: IntArray  # entries of the region's table that remain after those eliminations
    member_map: IntArray  # where the map from remaining entries to separator entries starts, or NO_MAP
    member_delta: IntArray  # where the member's shifts start in the flat array of shifts; -1 for the separator
    separator_map: IntArray
    block_size: IntArray  # number of entries of the block's separator; 0 for a block that has no shifts
    block_variable: IntArray  # the variable whose weights the block holds; -1 for none
    block_closed: IntArray  # 1 where every variable of the separator is maximised: eq. 11 solves the block
    n_clusters: int


class JunctionGraph(NamedTuple):
    """Regions together with the clusters' own tables and the order in which blocks are swept."""

    regions: Regions
    theta: FloatArray  # flat tables of all regions: the model's factors in the clusters, 0 in the separators
    n_shifts: int
    colour_start: IntArray  # blocks sweep[colour_start[k]:colour_start[k + 1]] touch no region in common
    sweep: IntArray
    factor_cluster: IntArray  # the cluster of each factor
    excluded: bool  # whether tuples that no cluster around a separator supports were made impossible in all of them


def factor_graph(problem: Problem, order: IntArray) -> JunctionGraph:
    """Clusters are the factors, separators the variables that at least two factors share (paper, eq. 5).

    A variable of a single factor needs no separator: giving all its weight to that factor is never worse.
    """
    model = problem.model
    degree = np.bincount(model.scope_variables, minlength=model.n_variables)
    shared = np.flatnonzero(degree > 1)
    separator_of = positions_of(shared, model.n_variables)
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    linked = separator_of[model.scope_variables] >= 0
    return junction_graph(
        problem,
        order,
        cluster_starts=model.scope_starts,
        cluster_variables=model.scope_variables,
        factor_cluster=np.arange(model.n_factors),
        separator_starts=np.arange(len(shared) + 1),
        separator_variables=shared,
        edge_separator=separator_of[model.scope_variables][linked],
        edge_cluster=owner[linked],
    )


def junction_graph(
    problem: Problem,
    order: IntArray,
    *,
    cluster_starts: IntArray,
    cluster_variables: IntArray,
    factor_cluster: IntArray,
    separator_starts: IntArray,
    separator_variables: IntArray,
    edge_separator: IntArray,
    edge_cluster: IntArray,
) -> JunctionGraph:
    """Clusters and separators of any size (supplement D), wired for block updates.

    Parameters
    ----------
    problem, order
        The model, its weights, and an elimination order of its variables.
    cluster_starts, cluster_variables
        Scopes of the clusters, in any order of their variables.
    factor_cluster
        The cluster that takes each factor of the model; it must contain the factor's scope.
    separator_starts, separator_variables
        Scopes of the separators.
    edge_separator, edge_cluster
        The pairs between which costs are shifted; the cluster must contain the separator.
    """
    model = problem.model
    position = positions_of(order)
    n_clusters, n_separators = len(cluster_starts) - 1, len(separator_starts) - 1
    sizes = np.concatenate([np.diff(cluster_starts), np.diff(separator_starts)])
    axis_start = starts_of(sizes)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    axis_variable = np.concatenate([cluster_variables, separator_variables]).astype(np.int64)
    axis_variable = axis_variable[np.lexsort((position[axis_variable], owner))]
    axis_card = model.cardinalities[axis_variable]
    entries = np.ones(len(sizes), dtype=np.int64)
    if len(axis_card):
        entries = np.multiply.reduceat(np.append(axis_card, 1), axis_start[:-1])
        entries[sizes == 0] = 1
    table_start = starts_of(entries)

    theta = _own_tables(model, np.asarray(factor_cluster), axis_start, axis_variable, table_start)

    blocks = _shift_blocks(n_clusters, n_separators, np.asarray(edge_separator), np.asarray(edge_cluster))
    separator_entries = entries[n_clusters:]
    block_variable, weight_blocks = _weight_blocks(
        problem.tau, axis_start, axis_variable, n_clusters, separator_variables, separator_starts, blocks
    )
    block_start = np.concatenate([blocks.start, blocks.start[-1] + weight_blocks.start[1:]])
    member_region = np.concatenate([blocks.region, weight_blocks.region])
    block_size = np.concatenate([separator_entries, np.zeros(len(weight_blocks.start) - 1, dtype=np.int64)])
    is_max = problem.tau[axis_variable] == 0
    n_sum_axes = np.add.reduceat(np.append(~is_max, False).astype(np.int64), axis_start[:-1])
    block_closed = np.zeros(len(block_size), dtype=np.int64)
    block_closed[:n_separators] = n_sum_axes[n_clusters:] == 0

    member_first, member_entries, member_map, separator_map = fill_separator_maps(
        block_start, member_region, block_size, block_variable, model.cardinalities,
        axis_start, axis_variable, axis_card,
    )  # fmt: skip
    excluded = bool(separator_map.size and np.isneginf(theta).any())
    if excluded:
        remove_impossible_tuples(
            block_start, block_size, member_region, member_entries, member_map, separator_map, table_start, theta
        )
    shifted = np.repeat(block_size, np.diff(block_start))
    shifted[member_region >= n_clusters] = 0
    delta_start = starts_of(shifted)
    member_delta = np.where(shifted > 0, delta_start[:-1], -1)
    sequence = _sweep_sequence(position, axis_start, axis_variable, n_clusters, n_separators, block_variable)
    colour_start, sweep = _coloured(sequence, block_start, member_region, len(sizes))
    regions = Regions(
        axis_start, axis_variable, axis_card, table_start, block_start, member_region, member_first,
        member_entries, member_map, member_delta, separator_map, block_size, block_variable, block_closed, n_clusters,
    )  # fmt: skip
    return JunctionGraph(
        regions, theta, int(delta_start[-1]), colour_start, sweep, np.asarray(factor_cluster, dtype=np.int64), excluded
    )


def own_tables(model: Model, graph: JunctionGraph) -> FloatArray:
    """The model's factors in their clusters, without what was excluded since."""
    regions = graph.regions
    return _own_tables(model, graph.factor_cluster, regions.axis_start, regions.axis_variable, regions.table_start)


def _own_tables(
    model: Model, factor_cluster: IntArray, axis_start: IntArray, axis_variable: IntArray, table_start: IntArray
) -> FloatArray:
    theta = np.zeros(table_start[-1])
    add_factors(
        model.scope_starts, model.scope_variables, model.table_starts, model.log_values, model.cardinalities,
        factor_cluster.astype(np.int64), axis_start, axis_variable, table_start, theta,
    )  # fmt: skip
    return theta


class _Blocks(NamedTuple):
    start: IntArray
    region: IntArray


def _shift_blocks(n_clusters: int, n_separators: int, edge_separator: IntArray, edge_cluster: IntArray) -> _Blocks:
    """One block for each separator: the separator itself, then its clusters."""
    block = np.concatenate([np.arange(n_separators), edge_separator]).astype(np.int64)
    region = np.concatenate([n_clusters + np.arange(n_separators), edge_cluster]).astype(np.int64)
    by_block = np.argsort(block, kind="stable")
    return _Blocks(starts_of(np.bincount(block, minlength=n_separators)), region[by_block])


def _weight_blocks(
    tau: FloatArray,
    axis_start: IntArray,
    axis_variable: IntArray,
    n_clusters: int,
    separator_variables: IntArray,
    separator_starts: IntArray,
    shift_blocks: _Blocks,
) -> tuple[IntArray, _Blocks]:
    """Find a place for the weights of every variable that has some to divide.

    Where a one-variable separator's block already holds every region of its variable, the weights move together with
    the shifts; elsewhere the variable gets a block of its own. Returns the variable of every block, and the new blocks.
    """
    n_separators = len(separator_starts) - 1
    n_regions_of = np.bincount(axis_variable, minlength=len(tau))
    single = np.diff(separator_starts) == 1
    variable_of = np.full(n_separators, -1, dtype=np.int64)
    variable_of[single] = separator_variables[separator_starts[:-1][single]]
    complete = single & (np.diff(shift_blocks.start) == n_regions_of[variable_of])
    complete &= tau[variable_of] > 0
    variable_of[~complete] = -1
    held = np.zeros(len(tau), dtype=bool)
    held[variable_of[complete]] = True
    needs_own = (tau > 0) & (n_regions_of > 1) & ~held
    owner = np.repeat(np.arange(len(axis_start) - 1), np.diff(axis_start))
    chosen = needs_own[axis_variable]
    by_variable = np.argsort(axis_variable[chosen], kind="stable")
    own = np.flatnonzero(needs_own)
    return np.concatenate([variable_of, own]), _Blocks(starts_of(n_regions_of[own]), owner[chosen][by_variable])


def _sweep_sequence(
    position: IntArray,
    axis_start: IntArray,
    axis_variable: IntArray,
    n_clusters: int,
    n_separators: int,
    block_variable: IntArray,
) -> IntArray:
    """Blocks in the elimination order of their first variables, shifts before weights where both begin alike."""
    first = axis_variable[axis_start[n_clusters : n_clusters + n_separators]]
    variable = np.concatenate([first, block_variable[n_separators:]])
    return np.argsort(position[variable], kind="stable")


def _coloured(
    sequence: IntArray, block_start: IntArray, member_region: IntArray, n_regions: int
) -> tuple[IntArray, IntArray]:
    """Starts of the colours, and the blocks sorted by them: no two blocks of one colour touch the same region."""
    rank = positions_of(sequence)
    blocks_of = incidence(n_regions, block_start, member_region)
    classes = colour_classes(len(sequence), blocks_of.starts, rank[blocks_of.factors])
    return classes.starts, sequence[classes.variables]
