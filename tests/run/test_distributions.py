"""Shares of parts hold against decimals of many digits, however small a part is; estimates lie within intervals."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from powersum.run.distributions import shares_of_parts


@pytest.mark.parametrize("seed", range(200))
def test_shares_hold_for_parts_of_any_size(seed: int) -> None:
    """Also where a share is a subnormal number, or less than any number."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    logs = rng.normal(0.0, 1.0, n) - rng.choice([0.0, 600.0, 670.0, 720.0, 729.8, 740.0, 900.0], n)
    logs += float(rng.choice([0.0, 500.0, -500.0]))
    with localcontext() as context:
        context.prec = 60
        parts = [Decimal(float(x)).exp() for x in logs]
        whole = sum(parts, Decimal(0))
        truth = [float((part / whole).ln()) for part in parts]
        log_whole = float(whole.ln())
    slack = float(rng.choice([0.0, 1e-9, 1.0]))
    sides = log_whole - slack - 1e-12 * (1.0 + abs(log_whole)), log_whole + slack + 1e-12 * (1.0 + abs(log_whole))
    lower, upper = shares_of_parts(logs - slack, logs + slack, sides, np.array([n]))
    near = 4e-16 * np.abs(truth)
    assert (lower <= truth + near).all()
    assert (upper >= truth - near).all()
    if slack == 0.0:
        large = np.array(truth) > -600.0
        assert (upper - lower)[large].max() < 1e-8 * (1.0 + abs(log_whole))


def test_a_subnormal_share_has_no_lower_bound_with_wrong_digits() -> None:
    """exp(-729.8139639) has three digits as a double: its logarithm was above the upper side from elsewhere."""
    logs = np.array([-729.8139639634504, 0.0])
    lower, upper = shares_of_parts(logs, logs, (0.0, math.ulp(1.0)), np.array([2]))
    assert lower[0] <= logs[0] <= upper[0]
