"""A configuration of all variables that one question finds is known to every other: no mixed value lies below MAP's."""

from __future__ import annotations

import pytest

import powersum as ps

WORK = 1.0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("parts", "states", "share"), [(24, 10, 0.8), (40, 16, 0.9), (30, 8, 0.9)])
def test_no_mixed_value_lies_below_that_of_the_assignment_of_map(
    parts: int, states: int, share: float, seed: int
) -> None:
    """Both have the same work; the assignment of MAP is worth the exact sum over what the mixed question sums."""
    model, query = ps.generate.detection(parts, states=states, share=share, seed=seed)
    mixed = ps.solve(model, query, work=WORK, memory="1G")
    everything = ps.solve(model, "all", work=WORK, memory="1G")
    held = {v: everything.assignment[v] for v in mixed.assignment}
    total = ps.solve(model, None, evidence=held, time_limit=20.0)
    assert total.log_upper - total.log_lower <= 1e-6
    assert mixed.log_lower >= total.log_lower - 1e-6
    assert mixed.log_upper >= mixed.log_lower
