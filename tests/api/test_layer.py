"""What the layers for JAX and PyTorch share, without either of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import powersum as ps
from powersum.api.layer import bounds_and_slopes, check_gradient, check_numbers

COIN = ps.Model.from_tables({"side": [1.0, 3.0]})


def test_rows_and_a_row_alone() -> None:
    gradient = ps.BoundFunction(COIN)
    rows = np.log([[1.0, 3.0], [1.0, 1.0]])
    values, slopes = bounds_and_slopes(gradient, rows, "float32")
    assert (values.dtype, slopes.dtype) == (np.float32, np.float32)
    np.testing.assert_allclose(np.exp(values), [4.0, 2.0], rtol=1e-6)
    # Rounded up: never below the truth, to the last digit.
    assert all(float(value) >= truth for value, truth in zip(values, (math.log(4.0), math.log(2.0)), strict=True))
    np.testing.assert_allclose(slopes, [[0.25, 0.75], [0.5, 0.5]], rtol=1e-6)
    alone, own = bounds_and_slopes(gradient, rows[0], "float64")
    assert (alone.shape, own.shape) == ((), (2,))
    assert float(alone) == pytest.approx(math.log(4.0))


def test_what_is_no_number_makes_its_row_none() -> None:
    values, slopes = bounds_and_slopes(ps.BoundFunction(COIN), [[np.nan, 0.0], [0.0, 0.0], [np.inf, 0.0]], "float64")
    assert np.isnan(values).tolist() == [True, False, True]
    assert np.isnan(slopes).all(axis=1).tolist() == [True, False, True]
    np.testing.assert_allclose(slopes[1], 0.5)


def test_other_shapes_and_types_are_refused() -> None:
    gradient = ps.BoundFunction(COIN)
    check_numbers(gradient, (2,), "float32")
    with pytest.raises(ps.InputError, match=r"log_values has shape \(3,\)"):
        check_numbers(gradient, (3,), "float64")
    with pytest.raises(ps.InputError, match="log_values are of type int64: give single or double precision"):
        check_numbers(gradient, (2,), "int64")


@pytest.mark.parametrize("given", [3, None, COIN])
def test_what_is_no_gradient_is_refused_at_once(given: object) -> None:
    with pytest.raises(ps.InputError, match=r"gradient is .*: give a powersum.BoundFunction"):
        check_gradient(given)
    check_gradient(ps.BoundFunction(COIN))
