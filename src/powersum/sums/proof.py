"""The contexts of a pass of partial sums as a certificate has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powersum.core.arrays import IntArray, starts_of
from powersum.prepare.problem import Problem
from powersum.proof.format import Array, Forest, Ground, Step, small
from powersum.sums.partial_sum import Recorded
from powersum.sums.variational import Variational

LEAST_SHARE = 1e-20
"""Smaller shares of a distribution are 0 in a certificate."""


def sum_contexts(recorded: Recorded, problem: Problem) -> dict[str, Array]:
    """The arrays of all contexts that were kept: everything else is dropped, or counts with the tree's bound.

    Where nothing was dropped, the first ones are settled: the checker finds all others by itself.
    """
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
        "context_settled": np.full(sum(counts), recorded.settled, dtype="u1"),
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
    arrays = dict(ground.tree([*([] if own is None else [own]), *easy], box=True).arrays)
    held = (ground.weights == 0.0) & (states >= 0)
    order = np.asarray(arrays["order"], dtype=np.int64)
    order = order[~spread[order]]
    arrays["order"] = small(order)
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
    # What is eliminated has no distribution.
    box &= np.repeat(~np.isin(np.arange(ground.model.n_variables), order), ground.model.cardinalities)
    arrays["q"] = q[box]
    return Step("mean-field", arrays)
