"""The contexts of a pass of partial sums as a certificate has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from powersum.core.arrays import IntArray, starts_of
from powersum.prepare.problem import Problem
from powersum.prepare.proof import Array, Forest, Ground, Step, small
from powersum.sums.partial_sum import Recorded
from powersum.sums.variational import Variational

LEAST_SHARE = 1e-20
"""Smaller shares of a distribution are 0 in a certificate."""


def sum_contexts(recorded: Recorded, problem: Problem) -> dict[str, Array]:
    """The arrays of all contexts that were kept: everything else is dropped, or counts with the tree's bound."""
    variables, counts, states = [], [], []
    for bucket, keys in zip(recorded.buckets, recorded.keys, strict=True):
        variables.append(int(problem.variables[bucket.variable]))
        counts.append(len(keys))
        words, shifts, masks = bucket.key_axes
        # The last eliminated comes first in a key, and last in a certificate.
        places = ((keys[:, words] >> shifts) & masks)[:, ::-1]
        axes = bucket.key_variables[::-1]
        states.append(small(problem.kept_states[problem.kept_state_starts[axes] + places].ravel()))
    return {
        "context_variables": small(np.array(variables, dtype=np.int64)),
        "context_counts": small(np.array(counts, dtype=np.int64)),
        "context_states": np.concatenate(states),
        "context_settled": np.zeros(sum(counts), dtype="u1"),
    }


def variational_step(
    bound: Variational, problem: Problem, ground: Ground, easy: Sequence[Forest], states: IntArray
) -> Step | None:
    """A variational bound at its best distributions; None where barren leaves hang on variables that have one.

    It is one on the value of an assignment: max variables are held at their original ``states``. What else has no
    distribution is eliminated as part of the core: also ``easy``, the components taken out before, and variables that
    simplification took out. Leaves that were barren need the joint distribution of their parents.
    """
    spread = np.zeros(ground.model.n_variables, dtype=np.bool_)
    spread[problem.variables[~bound.core]] = True
    if any(spread[scope].any() for scope in ground.problem.fates.barren):
        return None
    own = bound.core_forest(problem)
    step = ground.tree([*([] if own is None else [own]), *easy], box=True)
    held = (ground.weights == 0.0) & (states >= 0)
    arrays = _held(step.arrays, held)
    order = np.asarray(arrays["order"], dtype=np.int64)
    several = np.zeros(ground.model.n_variables, dtype=np.bool_)
    several[order] = True
    arrays["order"] = small(order[~spread[order]])
    arrays["core"] = small(np.flatnonzero(several & ~spread))
    starts = starts_of(ground.model.cardinalities)
    q = np.ones(int(starts[-1]))
    for place in np.flatnonzero(~bound.core).tolist():
        low, high = problem.kept_state_starts[place : place + 2].tolist()
        # So small a share that products of some of them would vanish is none.
        row = bound.best_q[low:high]
        q[starts[problem.variables[place]] + problem.kept_states[low:high]] = np.where(row < LEAST_SHARE, 0.0, row)
    box = ground.problem.possible & ~np.repeat(held, ground.model.cardinalities)
    box[starts[:-1][held] + states[held]] = True
    chosen = np.flatnonzero(held)
    kept = [(v, s) for v, s in np.asarray(arrays["box"]).tolist() if not held[v]]
    arrays["box"] = small(np.array([*kept, *zip(chosen, states[chosen], strict=True)], dtype=np.int64).reshape(-1, 2))
    arrays["q"] = q[box]
    return Step("mean-field", arrays)


def _held(arrays: Mapping[str, Array], held: NDArray[np.bool_]) -> dict[str, Array]:
    """The arrays of a tree in which some variables have one state: what their mini-buckets had, those above take."""
    starts, variables = np.asarray(arrays["node_starts"], dtype=np.int64), np.asarray(arrays["node_variables"])
    parent = np.asarray(arrays["parent"], dtype=np.int64)
    kept = ~held[variables[starts[:-1]]]
    number = np.cumsum(kept) - 1
    # For each node, and last for none at all, the one that takes what it had.
    heir = np.full(len(parent) + 1, -1, dtype=np.int64)
    for node in range(len(parent) - 1, -1, -1):
        heir[node] = number[node] if kept[node] else heir[parent[node]]
    scopes = [scope[~held[scope]] for scope, own in zip(np.split(variables, starts[1:-1]), kept, strict=False) if own]
    order, home = np.asarray(arrays["order"]), np.asarray(arrays["home"], dtype=np.int64)
    return {
        **arrays,
        "order": small(order[~held[order]]),
        "node_starts": small(starts_of([len(scope) for scope in scopes])),
        "node_variables": small(np.concatenate([np.zeros(0, dtype=np.int64), *scopes])),
        "parent": small(heir[parent[kept]]),
        "weight": arrays["weight"][kept],
        "home": small(heir[home]),
    }
