"""The contexts of a pass of partial sums as a certificate has them."""

from __future__ import annotations

import numpy as np

from powersum.prepare.problem import Problem
from powersum.prepare.proof import Array, small
from powersum.sums.partial_sum import Recorded


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
