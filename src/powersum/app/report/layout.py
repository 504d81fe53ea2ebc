"""Where the variables of a model stand in a picture: layers for small Bayesian networks, distances for all else."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.model.model import Model

MOST_DRAWN = 300
"""More variables than this make no picture that anybody could read."""
WIDEST_ROW = 9
"""A wider row would not fit a phone; a wider layer of a Bayesian network takes several rows."""
MOST_IN_LAYERS = 60
"""Layers of more variables become so many rows that nobody sees the layers."""
STEPS = 120
"""Steps of stress majorisation; pictures hardly change after half of them."""
POWERS = 20
"""Steps of subspace iteration for its start, which need not be exact."""
SWEEPS = 12
"""Sweeps that order layers by the places of their neighbours."""


class Drawing(NamedTuple):
    """A picture's skeleton: the variables drawn, where each stands, and the pairs of them that are joined.

    Places are between 0 and 1, and y grows downwards. An edge joins two rows of ``variables``; in a Bayesian network it
    goes from parent to child. ``rows`` is the number of rows of a layered picture, 0 for any other.
    """

    variables: IntArray
    places: FloatArray
    edges: IntArray
    directed: bool
    rows: int = 0


def links(model: Model) -> IntArray:
    """All pairs of variables that a picture joins, each once; in a Bayesian network (parent, child)."""
    return _parents(model) if model.directed else _neighbours(model)


def draw(
    model: Model,
    important: IntArray,
    *,
    widest: int = WIDEST_ROW,
    most: int = MOST_DRAWN,
    pairs: IntArray | None = None,
) -> Drawing:
    """Choose and place variables; a large model is cut to what is nearest to the ``important`` ones.

    A row of a layered picture has at most ``widest`` variables, the whole picture at most ``most``. ``pairs`` are the
    :func:`links` of the model, for whoever draws it more than once.
    """
    pairs = links(model) if pairs is None else pairs
    chosen = _nearest(model.n_variables, pairs, important, most)
    row = np.full(model.n_variables, -1, dtype=np.int64)
    row[chosen] = np.arange(len(chosen))
    edges = row[pairs]
    edges = edges[(edges >= 0).all(axis=1)]
    layers = _layers(len(chosen), edges) if model.directed else None
    if layers is not None and len(chosen) <= MOST_IN_LAYERS:
        places = _in_layers(layers, edges, widest)
        return Drawing(chosen, places, edges, model.directed, len(np.unique(places[:, 1])))
    return Drawing(chosen, _by_distance(len(chosen), edges), edges, model.directed)


def _neighbours(model: Model) -> IntArray:
    """Pairs of variables that share a factor, each once."""
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    lengths = np.diff(model.scope_starts)
    for length in np.unique(lengths[lengths > 1]).tolist():
        factors = np.flatnonzero(lengths == length)
        scopes = model.scope_variables[model.scope_starts[factors][:, None] + np.arange(length)]
        one, other = np.triu_indices(length, 1)
        pairs.append(np.sort(np.stack([scopes[:, one].ravel(), scopes[:, other].ravel()], axis=1), axis=1))
    return np.unique(np.concatenate(pairs), axis=0)


def _parents(model: Model) -> IntArray:
    """Pairs (parent, child) of a Bayesian network, each once."""
    lengths = np.diff(model.scope_starts)
    last = np.repeat(model.scope_starts[1:] - 1, lengths)
    child = model.scope_variables[last]
    is_parent = np.arange(len(last)) != last
    return np.unique(np.stack([model.scope_variables[is_parent], child[is_parent]], axis=1), axis=0)


def _nearest(n_variables: int, pairs: IntArray, important: IntArray, most: int) -> IntArray:
    """All variables of a small model; of a large one those nearest to the important ones, ascending."""
    if n_variables <= most:
        return np.arange(n_variables)
    chosen = np.zeros(n_variables, dtype=np.bool_)
    # Half the room is for what lies around: a heap of variables without a link says nothing.
    chosen[important[: max(most // 2, 1)] if important.size else np.array([0])] = True
    while True:
        touched = chosen[pairs]
        fresh = np.unique(pairs[touched.any(axis=1) & ~touched.all(axis=1)])
        fresh = fresh[~chosen[fresh]]
        room = most - int(chosen.sum())
        if not len(fresh) or room <= 0:
            return np.flatnonzero(chosen)
        chosen[fresh[:room]] = True


def _layers(count: int, edges: IntArray) -> IntArray | None:
    """Length of the longest path to each variable; None where the edges close a circle."""
    layer = np.zeros(count, dtype=np.int64)
    for _ in range(count):
        below = layer.copy()
        np.maximum.at(below, edges[:, 1], layer[edges[:, 0]] + 1)
        if np.array_equal(below, layer):
            return layer
        layer = below
    return None


def _in_layers(layers: IntArray, edges: IntArray, widest: int) -> FloatArray:
    """Layers from top to bottom, each ordered by the mean place of its neighbours in the others.

    Neighbours in a wide layer stand in its rows by turns, so that each row has the room of all of them.
    """
    count = len(layers)
    x = np.zeros(count)
    both = np.concatenate([edges, edges[:, ::-1]])
    degree = np.maximum(np.bincount(both[:, 0], minlength=count), 1)
    rows = [np.flatnonzero(layers == depth) for depth in range(int(layers.max(initial=-1)) + 1)]
    for row in rows:
        x[row] = (np.arange(len(row)) + 0.5) / len(row)
    for _ in range(SWEEPS):
        mean = np.bincount(both[:, 0], weights=x[both[:, 1]], minlength=count) / degree
        for row in rows:
            order = row[np.argsort(np.where(degree[row] > 0, mean[row], x[row]), kind="stable")]
            x[order] = (np.arange(len(row)) + 0.5) / len(row)
    height, y = 0, np.zeros(count)
    for row in rows:
        order = row[np.argsort(x[row])]
        turns = -(-len(row) // widest)
        y[order] = height + np.arange(len(row)) % turns
        height += turns
    return np.stack([x, (y + 0.5) / max(height, 1)], axis=1)


def apart(places: FloatArray, width: FloatArray, height: float) -> FloatArray:
    """Places moved, as little as a few rounds of pushing do it, until no two boxes around them overlap.

    A place is the middle of its box. Where pushing does not end, the whole picture grows.
    """
    places = places + np.random.default_rng(0).normal(scale=1e-3, size=places.shape)
    needed = (width[:, None] + width[None]) / 2
    for round_ in range(1000):
        step = places[:, None] - places[None]
        over_x = needed - np.abs(step[..., 0])
        over_y = height - np.abs(step[..., 1])
        clash = (over_x > 0) & (over_y > 0)
        np.fill_diagonal(clash, False)
        if not clash.any():
            break
        sideways = over_x * height < over_y * needed
        push = np.stack(
            [
                np.where(clash & sideways, np.sign(step[..., 0]) * over_x, 0.0).sum(axis=1),
                np.where(clash & ~sideways, np.sign(step[..., 1]) * over_y, 0.0).sum(axis=1),
            ],
            axis=1,
        )
        places = places + 0.3 * push
        if round_ % 20 == 19:
            places = places * 1.05
    return places


def _by_distance(count: int, edges: IntArray) -> FloatArray:
    """Distances in the picture like those in the graph: stress majorisation (SMACOF) from a spectral start."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    if count <= 1:
        return np.full((count, 2), 0.5)
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(count, count))
    distance = shortest_path(graph.tocsr(), directed=False, unweighted=True)
    finite = distance[np.isfinite(distance)]
    distance[np.isinf(distance)] = finite.max() + 1.0
    weight = np.divide(1.0, distance**2, out=np.zeros_like(distance), where=distance > 0)
    centred = -0.5 * distance**2
    centred = centred - centred.mean(axis=0) - centred.mean(axis=1)[:, None] + centred.mean()
    places: FloatArray = np.random.default_rng(0).normal(size=(count, 2))
    noise = 0.05 * places
    for _ in range(POWERS):
        places = np.linalg.qr(centred @ places).Q
    places *= np.sqrt(np.maximum((places * (centred @ places)).sum(axis=0), 1e-9))
    # Variables in the same situation would start, and stay, in one place.
    places += noise
    total = weight.sum(axis=1, keepdims=True)
    for _ in range(STEPS):
        apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=-1))
        pull = weight * np.divide(distance, apart, out=np.zeros_like(apart), where=apart > 1e-9)
        places = (pull.sum(axis=1, keepdims=True) * places - pull @ places + weight @ places) / total
    low, high = places.min(axis=0), places.max(axis=0)
    # A long narrow picture is stretched, up to twice, to use the room that there is.
    extent = np.maximum(high - low, 0.5 * (high - low).max())
    return np.asarray((places - (low + high) / 2) / np.maximum(extent, 1e-9) + 0.5)
