"""Graph helpers against plain Python on random models and on a large grid."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from powersum.model.graph import adjacency, colour_classes, components, incidence
from powersum.model.model import Model
from tests.strategies import random_model

many = settings(deadline=None, max_examples=150)


@st.composite
def sparse_models(draw: st.DrawFn) -> Model:
    """Models of up to 40 variables, some of them isolated."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_model(
        rng, n_variables=draw(st.integers(1, 40)), n_factors=draw(st.integers(0, 40)), max_states=2, max_scope=4
    )


def neighbour_sets(model: Model) -> list[set[int]]:
    """The primal graph as sets."""
    sets: list[set[int]] = [set() for _ in range(model.n_variables)]
    for scope, _ in model.factors():
        for a, b in itertools.permutations(scope, 2):
            sets[a].add(b)
    return sets


@many
@given(sparse_models())
def test_incidence(model: Model) -> None:
    places = incidence(model.n_variables, model.scope_starts, model.scope_variables)
    found = [
        (v, int(places.factors[at]), int(places.positions[at]))
        for v in range(model.n_variables)
        for at in range(places.starts[v], places.starts[v + 1])
    ]
    assert found == sorted((v, k, axis) for k, f in enumerate(model.factors()) for axis, v in enumerate(f.scope))


@many
@given(sparse_models())
def test_incidence_follows_the_order_of_factors(model: Model) -> None:
    backwards = np.arange(model.n_factors)[::-1]
    places = incidence(model.n_variables, model.scope_starts, model.scope_variables, backwards)
    for v in range(model.n_variables):
        assert (np.diff(places.factors[places.starts[v] : places.starts[v + 1]]) < 0).all()


@many
@given(sparse_models())
def test_adjacency(model: Model) -> None:
    graph = adjacency(model.n_variables, model.scope_starts, model.scope_variables)
    rows = [graph.neighbours[graph.starts[v] : graph.starts[v + 1]].tolist() for v in range(model.n_variables)]
    assert rows == [sorted(s) for s in neighbour_sets(model)]


@many
@given(sparse_models())
def test_components(model: Model) -> None:
    label = components(model.n_variables, model.scope_starts, model.scope_variables)
    sets = neighbour_sets(model)
    expected = [-1] * model.n_variables
    count = 0
    for v in range(model.n_variables):
        if expected[v] >= 0:
            continue
        stack = [v]
        while stack:
            u = stack.pop()
            if expected[u] < 0:
                expected[u] = count
                stack.extend(sets[u])
        count += 1
    assert label.tolist() == expected


@many
@given(sparse_models())
def test_colouring_is_proper(model: Model) -> None:
    classes = colour_classes(model.n_variables, model.scope_starts, model.scope_variables)
    sets = neighbour_sets(model)
    assert sorted(classes.variables.tolist()) == list(range(model.n_variables))
    assert (np.diff(classes.starts) > 0).all()
    for c in range(len(classes.starts) - 1):
        members = classes.variables[classes.starts[c] : classes.starts[c + 1]].tolist()
        assert members == sorted(members)
        assert all(sets[v].isdisjoint(members) for v in members)
    assert len(classes.starts) - 1 <= max(len(s) for s in sets) + 1


def test_grid_needs_two_colours() -> None:
    n = 300
    cells = np.arange(n * n).reshape(n, n)
    across = np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], axis=1)
    down = np.stack([cells[:-1].ravel(), cells[1:].ravel()], axis=1)
    pairs = np.concatenate([across, down])
    classes = colour_classes(n * n, np.arange(0, 2 * len(pairs) + 1, 2), pairs.ravel())
    assert len(classes.starts) == 3
    colour = np.empty(n * n, dtype=np.int64)
    colour[classes.variables] = np.repeat(np.arange(2), np.diff(classes.starts))
    assert (colour[pairs[:, 0]] != colour[pairs[:, 1]]).all()


def test_no_variables() -> None:
    starts, none = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    assert colour_classes(0, starts, none).starts.tolist() == [0]
    assert components(0, starts, none).tolist() == []
    assert adjacency(0, starts, none).starts.tolist() == [0]
