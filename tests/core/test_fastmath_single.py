"""Exponential and logarithms in single precision against those of NumPy in double."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.core.fastmath_single import LOWEST_SINGLE, exp_single, log1p_single, log_single

UNIT = 2.0**-24


def test_exponential() -> None:
    x = np.append(np.linspace(LOWEST_SINGLE, 80.0, 4001), np.linspace(-1.0, 1.0, 2001)).astype(np.float32)
    found = np.array([exp_single(v) for v in x])
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=4 * UNIT)


def test_logarithm_of_one_and_more() -> None:
    x = np.append(np.exp(np.linspace(-20.0, 30.0, 4001)), 1.0).astype(np.float32)
    found = np.array([log_single(v) for v in x])
    np.testing.assert_allclose(found, np.log(x.astype(np.float64)), rtol=4 * UNIT, atol=2 * UNIT)
    assert found[-1] == 0.0


def test_logarithm_of_one_and_little() -> None:
    x = np.append(np.exp(np.linspace(-80.0, 0.0, 4001)), 0.0).astype(np.float32)
    found = np.array([log1p_single(v) for v in x])
    np.testing.assert_allclose(found, np.log1p(x.astype(np.float64)), rtol=6 * UNIT)
    assert found[-1] == 0.0


@pytest.mark.parametrize("function", [exp_single, log_single, log1p_single])
def test_they_stay_in_single_precision(function: object) -> None:
    assert callable(function)
    function(np.float32(0.5))
    (signature,) = function.nopython_signatures  # type: ignore[attr-defined]
    assert str(signature.return_type) == "float32"
