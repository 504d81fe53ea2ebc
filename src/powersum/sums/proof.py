"""The contexts of a pass of partial sums as a certificate has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powersum.core.arrays import starts_of
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


def variational_step(bound: Variational, problem: Problem, ground: Ground, easy: Sequence[Forest]) -> Step | None:
    """A variational bound at its best distributions; None where barren leaves hang on variables that have one.

    What has no distribution is eliminated as part of the core: also ``easy``, the components taken out before, and
    variables that simplification took out. Leaves that were barren need the joint distribution of their parents.
    """
    spread = np.zeros(ground.model.n_variables, dtype=np.bool_)
    spread[problem.variables[~bound.core]] = True
    if any(spread[scope].any() for scope in ground.problem.fates.barren):
        return None
    own = bound.core_forest(problem)
    step = ground.tree([*([] if own is None else [own]), *easy], box=True)
    arrays = dict(step.arrays)
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
    arrays["q"] = q[ground.problem.possible]
    return Step("mean-field", arrays)
