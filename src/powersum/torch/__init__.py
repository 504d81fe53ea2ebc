"""powersum inside PyTorch: upper bounds as functions that ``backward`` goes through.

Needs PyTorch (``pip install 'powersum[torch]'``), which is imported with this module and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from powersum.api.gradient import BoundFunction
from powersum.api.layer import bounds_and_slopes, check_gradient, check_numbers

__all__ = ["differentiable"]


class _Bound(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, log_values: Any, gradient: BoundFunction) -> Any:
        dtype = str(log_values.dtype).removeprefix("torch.")
        check_numbers(gradient, tuple(log_values.shape[-1:]), dtype)
        values, slopes = bounds_and_slopes(gradient, log_values.detach().to("cpu", torch.float64).numpy(), dtype)
        kind = {"dtype": log_values.dtype, "device": log_values.device}
        ctx.save_for_backward(torch.as_tensor(slopes, **kind))
        return torch.as_tensor(values, **kind)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        (slopes,) = ctx.saved_tensors
        return cotangents[0][..., None] * slopes, None


def differentiable(gradient: BoundFunction) -> Callable[[Any], Any]:
    """The bound of a :class:`powersum.BoundFunction` as a function of the log values of all tables.

    Parameters
    ----------
    gradient
        The question, as :func:`powersum.jax.differentiable` takes it.

    Returns
    -------
    function
        From a tensor laid out like ``model.log_values`` to the bound, or from one with a row for each set of numbers to
        as many bounds; in its precision, rounded up, and on its device. NaN or +inf among the log values make NaN.

    Examples
    --------
    ::

        log_sum = powersum.torch.differentiable(ps.BoundFunction(model))
        theta = torch.tensor(model.log_values, requires_grad=True)
        log_sum(theta).backward()
    """
    check_gradient(gradient)

    def function(log_values: Any) -> Any:
        return _Bound.apply(torch.as_tensor(log_values), gradient)

    return function
