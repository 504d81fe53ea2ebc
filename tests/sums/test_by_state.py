"""Sums with each state set, of one pass: they hold on both sides, and are the truth where nothing is dropped."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.sums.partial_sum import PartialSum
from tests.oracle import joint_log_table
from tests.sums.test_partial_sum import SHARES, a_sum, bounds_of_tree, one_pass


@pytest.mark.parametrize("seed", range(60))
def test_every_state_of_every_variable(seed: int) -> None:
    problem = a_sum(seed)
    if problem is None:
        return
    model = problem.model
    joint = joint_log_table(model)
    heuristic, log_upper = bounds_of_tree(problem, ibound=1 + seed % 3)
    for least_share in SHARES:
        partial = PartialSum(model, heuristic, log_upper, by_state=True)
        plain = PartialSum(model, heuristic, log_upper)
        for one in (partial, plain):
            one_pass(one, least_share)
        assert (partial.log_lower, partial.log_upper) == (plain.log_lower, plain.log_upper)
        seen = [v for sums in partial.state_sums for v in sums.variables]
        assert sorted(seen) == list(range(model.n_variables))
        # Of other components there is a factor that does not depend on the state: their sum.
        total = np.logaddexp.reduce(joint.ravel())
        for sums in partial.state_sums:
            own = np.logaddexp.reduce(joint.ravel()) if len(partial.state_sums) == 1 else None
            for v, lower, upper in zip(sums.variables, sums.log_lower, sums.log_upper, strict=True):
                axes = tuple(a for a in range(model.n_variables) if a != v)
                truth = np.logaddexp.reduce(joint, axis=axes)
                if own is None:
                    share = truth - total
                    assert (lower - sums.whole[1] <= share + 1e-9).all()
                    assert (upper - sums.whole[0] >= share - 1e-9).all()
                else:
                    assert (lower <= truth + 1e-9).all()
                    assert (upper >= truth - 1e-9).all()
                if partial.exact and len(partial.state_sums) == 1:
                    possible = truth > -np.inf
                    np.testing.assert_allclose(lower[possible], truth[possible], atol=1e-9)
                # No worse than the whole, but for ratios in single precision.
                assert (upper <= sums.whole[1] + 1e-4).all()
    assert partial.exact
