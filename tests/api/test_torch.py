"""Bounds inside PyTorch: by finite differences, in batches, in single precision. Skipped where it is not installed."""

from __future__ import annotations

import numpy as np
import pytest

import powersum as ps
from tests.cases import hard_case
from tests.oracle import exact_value

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize("task", ["PR", "MMAP", "MAP"])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_by_finite_differences(task: str, seed: int) -> None:
    from powersum.torch import differentiable

    model, query, _ = hard_case(seed)
    asked = {"PR": None, "MMAP": [int(v) for v in query.max_variables], "MAP": "all"}[task]
    tree = ps.BoundFunction(model, asked, ibound=2, temperature=0.0 if task == "PR" else 0.2, steps=0)
    bound = differentiable(tree)
    base = torch.tensor(model.log_values)
    mixing = torch.randn(model.log_values.size, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    theta = torch.full((4,), 0.2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: 2.0 * bound(base + mixing @ t), theta, eps=1e-5, atol=1e-4)
    rows = torch.stack([base, base + 0.1]).requires_grad_()
    bound(rows).sum().backward()
    np.testing.assert_array_equal(rows.grad.numpy(), tree.batch(rows.detach().numpy())[1])


def test_single_precision_is_rounded_up_and_others_are_refused() -> None:
    from powersum.torch import differentiable

    model, query, _ = hard_case(1)
    values = torch.tensor(model.log_values, dtype=torch.float32)
    bound = differentiable(ps.BoundFunction(model, weights=query))
    found = bound(values)
    assert found.dtype == torch.float32
    assert float(found) >= exact_value(model.with_log_values(values.numpy()), query.weights)
    with pytest.raises(ps.InputError, match="log_values are of type float16"):
        bound(values.half())
