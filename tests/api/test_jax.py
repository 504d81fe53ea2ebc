"""Bounds inside JAX: by finite differences, under jit and vmap, in single precision, and what is no number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import powersum as ps
import powersum.jax
from tests.cases import hard_case
from tests.oracle import exact_value

STEP = 1e-5


@pytest.fixture
def double() -> Iterator[None]:
    """Double precision, which JAX has switched off by default."""
    before = bool(jax.config.jax_enable_x64)
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("task", ["PR", "MMAP", "MAP"])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_by_finite_differences(task: str, seed: int) -> None:
    model, query, _ = hard_case(seed)
    asked = {"PR": None, "MMAP": [int(v) for v in query.max_variables], "MAP": "all"}[task]
    tree = ps.BoundFunction(model, asked, ibound=2, temperature=0.0 if task == "PR" else 0.2, steps=0)
    bound = powersum.jax.differentiable(tree)
    random = np.random.default_rng(seed)
    mixing = random.normal(size=(model.log_values.size, 4))
    base = np.asarray(model.log_values)

    def loss(theta: Any) -> Any:
        return 2.0 * bound(base + mixing @ theta) - (theta**2).sum()

    theta = 0.3 * random.normal(size=4)
    value, slopes = jax.jit(jax.value_and_grad(loss))(theta)
    assert value == loss(theta)
    for number in range(4):
        step = STEP * np.eye(4)[number]
        difference = (loss(theta + step) - loss(theta - step)) / (2.0 * STEP)
        assert slopes[number] == pytest.approx(float(difference), abs=1e-4)


@pytest.mark.usefixtures("double")
def test_batches_under_vmap() -> None:
    model, query, _ = hard_case(4)
    tree = ps.BoundFunction(model, weights=query, ibound=2, temperature=0.1, steps=0)
    bound = powersum.jax.differentiable(tree)
    rows = model.log_values + 0.1 * np.random.default_rng(0).normal(size=(3, model.log_values.size))
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(bound)))(rows)
    found = tree.batch(rows)
    np.testing.assert_array_equal(values, found[0])
    # XLA takes the smallest numbers for 0.
    np.testing.assert_allclose(slopes, found[1], rtol=0.0, atol=1e-300)
    twice = jax.vmap(jax.vmap(bound))(np.stack([rows, rows]))
    np.testing.assert_array_equal(twice, [found[0], found[0]])
    # Shifts of each row stay, and tighten what it asks for the next time.
    warm = powersum.jax.differentiable(
        ps.BoundFunction(model, weights=query, ibound=2, sweeps=0, temperature=0.1, steps=3)
    )
    first = jax.vmap(warm)(rows)
    assert (jax.vmap(warm)(rows) < first).all()


@pytest.mark.parametrize("seed", range(5))
def test_single_precision_is_rounded_up(seed: int) -> None:
    model, query, _ = hard_case(seed)
    values = np.asarray(model.log_values, dtype=np.float32)
    truth = exact_value(model.with_log_values(values), query.weights)
    found = powersum.jax.differentiable(ps.BoundFunction(model, weights=query))(values)
    assert found.dtype == np.float32
    assert float(found) >= truth
    assert float(found) == pytest.approx(truth, abs=1e-4)


def test_zeros_and_what_is_no_number() -> None:
    model = ps.Model.from_tables({"a": [0.5, 0.5], ("a", "b"): [[1.0, 0.0], [0.0, 1.0]]})
    bound = powersum.jax.differentiable(ps.BoundFunction(model))
    value, slopes = jax.value_and_grad(bound)(model.log_values)
    assert value == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(slopes, [0.5, 0.5, 0.5, 0.0, 0.0, 0.5], atol=1e-6)
    rows = np.stack([model.log_values, np.full(6, math.nan)])
    values = jax.vmap(bound)(rows)
    assert values[0] == value
    assert math.isnan(values[1])


def test_another_shape_or_type_is_one_line() -> None:
    bound = powersum.jax.differentiable(ps.BoundFunction(ps.Model.from_tables({"a": [0.5, 0.5]})))
    with pytest.raises(ps.InputError, match=r"log_values has shape \(3,\)"):
        bound(np.zeros(3))
    with pytest.raises(ps.InputError, match="log_values are of type float16"):
        bound(np.zeros(2, dtype=np.float16))
