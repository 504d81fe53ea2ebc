"""powersum inside JAX: upper bounds as functions that ``jax.grad``, ``jax.jit`` and ``jax.vmap`` understand.

Needs JAX (``pip install 'powersum[jax]'``), which is imported with this module and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from powersum.api.gradient import BoundFunction
from powersum.api.layer import bounds_and_slopes, check_gradient, check_numbers

__all__ = ["differentiable"]


def differentiable(gradient: BoundFunction) -> Callable[[Any], Any]:
    """The bound of a :class:`powersum.BoundFunction` as a function of the log values of all tables.

    Parameters
    ----------
    gradient
        The question. Its shifts stay from call to call, those of each row of a batch apart: what is returned is a bound
        every time, and it may be tighter the next time. For a function that never changes take one with ``steps=0``.

    Returns
    -------
    function
        From an array laid out like ``model.log_values`` to the bound, in its precision, rounded up. Under ``vmap`` it
        takes a batch in one call; NaN or +inf among the log values make NaN, as everywhere in JAX.

    Examples
    --------
    >>> import jax, powersum as ps, powersum.jax
    >>> coin = ps.Model.from_tables({("side", "call"): [[1.0, 2.0], [3.0, 2.0]]})
    >>> log_sum = powersum.jax.differentiable(ps.BoundFunction(coin))
    >>> value, slopes = jax.jit(jax.value_and_grad(log_sum))(coin.log_values)
    >>> [round(float(s), 3) for s in slopes]
    [0.125, 0.25, 0.375, 0.25]
    """
    check_gradient(gradient)

    def forward(numbers: Any) -> tuple[Any, Any]:
        shapes = (
            jax.ShapeDtypeStruct(numbers.shape[:-1], numbers.dtype),
            jax.ShapeDtypeStruct(numbers.shape, numbers.dtype),
        )
        value, slopes = jax.pure_callback(call, shapes, numbers, vmap_method="expand_dims")
        return value, slopes

    def call(log_values: Any) -> tuple[Any, Any]:
        """All rows at once; an exception must not leave here."""
        return bounds_and_slopes(gradient, log_values, np.asarray(log_values).dtype.name)

    def backward(slopes: Any, cotangent: Any) -> tuple[Any]:
        return (cotangent[..., None] * slopes,)

    bound = jax.custom_vjp(lambda numbers: forward(numbers)[0])
    bound.defvjp(forward, backward)

    def function(log_values: Any) -> Any:
        # Checked while JAX traces, for in the call it would be too late.
        numbers = jnp.asarray(log_values)
        check_numbers(gradient, numbers.shape, numbers.dtype.name)
        return bound(numbers)

    return function
