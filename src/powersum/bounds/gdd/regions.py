"""Wiring of a decomposed bound: which tables there are, how their axes lie, which of them share what.

A bound of the paper's kind (eq. 5, and eq. 14 for junction graphs) is a sum of power sums over *regions*: clusters,
which carry the model's factors, and separators, which start empty. A separator and a cluster around it are joined by a
cost shift. Everything here is built once and never changes; numbers that move live in the methods.

The factor graph of the paper's main text is the junction graph whose clusters are the factors and whose separators are
the single variables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.bounds.buckets.statics import add_factors
from powersum.bounds.gdd.region_kernels import cut_batches, remove_impossible_tuples
from powersum.bounds.gdd.shapes import Shapes, shapes_of
from powersum.core.arrays import FloatArray, Int32Array, IntArray, positions_of, starts_of
from powersum.core.errors import InputError
from powersum.model.graph import colour_classes, incidence
from powersum.model.model import Model
from powersum.prepare.problem import Problem

BATCH_ENTRIES = 16384
"""Table entries of blocks that are updated side by side: they and their scratch memory stay in a core's own cache."""


class Regions(NamedTuple):
    """Regions (clusters first, then separators), and the blocks in which a method updates them.

    A *block* is what one step of a method may change together: the shifts between one separator and its clusters, the
    weights of one variable, or both. Its *members* are the regions it touches; in a block with shifts the first member
    is the separator. Axes of every table are in elimination order, the first eliminated outermost.
    """

    axis_start: Int32Array  # per region; axes of region r are axis_start[r]:axis_start[r + 1]
    axis_variable: Int32Array
    table_start: IntArray  # per region, into a flat array of all tables
    shape: Int32Array  # per region
    block_start: Int32Array  # per block, into the member arrays
    member_region: Int32Array
    member_kind: Int32Array
    block_delta: IntArray  # where the shifts of the block's clusters start, one after another
    block_size: Int32Array  # number of entries of the block's separator; 0 for a block that has no shifts
    block_variable: Int32Array  # the variable whose weights the block holds; -1 for none
    block_closed: NDArray[np.int8]  # 1 where every variable of the separator is maximised: eq. 11 solves the block
    n_clusters: int


class JunctionGraph(NamedTuple):
    """Regions together with the order in which blocks are swept."""

    regions: Regions
    shapes: Shapes
    n_shifts: int
    colour_start: IntArray  # batches colour_start[k]:colour_start[k + 1] touch no region in common
    batch_start: IntArray  # blocks sweep[batch_start[i]:batch_start[i + 1]] are updated side by side
    sweep: Int32Array
    batch_sizes: IntArray  # most members, blocks, remaining entries, whole entries, shifts and axes of a batch
    factor_cluster: Int32Array  # the cluster of each factor
    theta: FloatArray | None  # the clusters' tables where they are not the model's: impossible tuples are out of them


def factor_graph(problem: Problem, order: IntArray, *, at_seam: IntArray | None = None) -> JunctionGraph:
    """Clusters are the factors, separators the variables that at least two factors share (paper, eq. 5).

    A variable of a single factor needs no separator: giving all its weight to that factor is never worse. Variables
    ``at_seam`` have one in any case: other parts of the model share them.
    """
    model = problem.model
    degree = np.bincount(model.scope_variables, minlength=model.n_variables)
    if at_seam is not None:
        degree[at_seam] = np.maximum(degree[at_seam], 2)
    shared = np.flatnonzero(degree > 1)
    separator_of = positions_of(shared, model.n_variables)
    return junction_graph(
        problem,
        order,
        cluster_starts=model.scope_starts,
        cluster_variables=model.scope_variables,
        factor_cluster=np.arange(model.n_factors),
        separator_starts=np.arange(len(shared) + 1),
        separator_variables=shared,
        # Nobody here holds on to them: of a model with millions of variables each of such arrays counts.
        **_edges(model, separator_of),
    )


def _edges(model: Model, separator_of: IntArray) -> dict[str, IntArray]:
    """Each place of a shared variable in a scope: its separator, and the factor."""
    separator = separator_of[model.scope_variables]
    linked = separator >= 0
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    return {"edge_separator": separator[linked], "edge_cluster": owner[linked]}


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
    del owner
    entries = np.ones(len(sizes), dtype=np.int64)
    if len(axis_variable):
        entries = np.multiply.reduceat(np.append(model.cardinalities[axis_variable], 1), axis_start[:-1])
        entries[sizes == 0] = 1
    table_start = starts_of(entries)

    blocks = _shift_blocks(n_clusters, n_separators, np.asarray(edge_separator), np.asarray(edge_cluster))
    del edge_separator, edge_cluster
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
    del blocks, weight_blocks, entries, separator_entries, is_max, n_sum_axes

    shapes, region_shape, member_kind = shapes_of(
        model.cardinalities, axis_start, axis_variable, block_start, member_region, block_size, block_variable
    )
    sequence = _sweep_sequence(position, axis_start, axis_variable, n_clusters, n_separators, block_variable)
    colours, sweep = _coloured(sequence, block_start, member_region, len(sizes))
    in_block = np.diff(block_start)
    regions = Regions(
        axis_start=narrow(axis_start),
        axis_variable=narrow(axis_variable),
        table_start=table_start,
        shape=region_shape,
        block_start=narrow(block_start),
        member_region=narrow(member_region),
        member_kind=member_kind,
        block_delta=starts_of(block_size * np.maximum(in_block - 1, 0)),
        block_size=narrow(block_size),
        block_variable=narrow(block_variable),
        block_closed=block_closed.astype(np.int8),
        n_clusters=n_clusters,
    )
    # Within a colour the order means nothing: batches are of one sort, closed or not, of neighbours in memory.
    colour = np.repeat(np.arange(len(colours) - 1), np.diff(colours))
    swept = narrow(sweep[np.lexsort((sweep, block_closed[sweep], colour))])
    batch_start, colour_start, batch_sizes = cut_batches(colours, swept, regions, shapes, BATCH_ENTRIES)
    graph = JunctionGraph(
        regions, shapes, int(regions.block_delta[-1]), colour_start, batch_start, swept, batch_sizes,
        narrow(factor_cluster), None,
    )  # fmt: skip
    return _without_impossible_tuples(model, graph)


def _without_impossible_tuples(model: Model, graph: JunctionGraph) -> JunctionGraph:
    """The same with tables of its own, where tuples of wide separators may be impossible."""
    if not graph.shapes.separator_map.size or not np.isneginf(model.log_values).any():
        return graph
    theta = own_tables(model, graph)
    remove_impossible_tuples(graph.regions, graph.shapes, theta)
    return graph._replace(theta=theta)


def own_tables(model: Model, graph: JunctionGraph, target: FloatArray | None = None) -> FloatArray:
    """The model's factors in their clusters, 0 in the separators, without what was excluded since."""
    regions = graph.regions
    theta = np.empty(regions.table_start[-1]) if target is None else target
    theta[:] = 0.0
    add_factors(
        model.scope_starts, model.scope_variables, model.table_starts, model.log_values, model.cardinalities,
        graph.factor_cluster.astype(np.int64), regions.axis_start.astype(np.int64),
        regions.axis_variable.astype(np.int64), regions.table_start, theta,
    )  # fmt: skip
    return theta


def narrow(numbers: Any) -> Int32Array:
    """Numbers of regions, axes, members or blocks in four bytes: there are many of them."""
    numbers = np.asarray(numbers)
    if numbers.size and numbers.max() > np.iinfo(np.int32).max:
        raise InputError("gdd: more than 2 billion table axes are too many for one process; give workers")
    return np.asarray(numbers, dtype=np.int32)


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
    starts, blocks = incidence(n_regions, block_start, member_region)[:2]
    blocks = positions_of(sequence)[blocks]
    classes = colour_classes(len(sequence), starts, blocks)
    return classes.starts, sequence[classes.variables]
