"""powersum inside PyTorch: upper bounds as functions that ``backward`` goes through.

Needs PyTorch (``pip install 'powersum[torch]'``), which is imported with this module and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from powersum.answer.gradient import Gradient
from powersum.core.errors import InputError
from powersum.model.rounding import rounded_up

__all__ = ["differentiable"]


class _Bound(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, log_values: Any, gradient: Gradient) -> Any:
        if log_values.dtype not in (torch.float32, torch.float64):
            raise InputError(f"log_values are of type {log_values.dtype}: give single or double precision")
        numbers = log_values.detach().to("cpu", torch.float64).numpy()
        values, slopes = gradient(numbers) if numbers.ndim == 1 else gradient.batch(numbers)
        kind = {"dtype": log_values.dtype, "device": log_values.device}
        ctx.save_for_backward(torch.as_tensor(slopes, **kind))
        return torch.as_tensor(
            rounded_up(values, "float32" if log_values.dtype == torch.float32 else "float64"), **kind
        )

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        (slopes,) = ctx.saved_tensors
        return cotangents[0][..., None] * slopes, None


def differentiable(gradient: Gradient) -> Callable[[Any], Any]:
    """The bound of a :class:`powersum.Gradient` as a function of the log values of all tables.

    Parameters
    ----------
    gradient
        The question. Its shifts stay from call to call, those of each row of a batch apart: what is returned is a bound
        every time, and it may be tighter the next time. For a function that never changes take one with ``steps=0``.

    Returns
    -------
    function
        From a tensor laid out like ``model.log_values`` to the bound, or from one with a row for each set of numbers to
        as many bounds; in its precision, rounded up, and on its device.

    Examples
    --------
    ::

        log_sum = powersum.torch.differentiable(ps.Gradient(model))
        theta = torch.tensor(model.log_values, requires_grad=True)
        log_sum(theta).backward()
    """

    def function(log_values: Any) -> Any:
        return _Bound.apply(torch.as_tensor(log_values), gradient)

    return function
