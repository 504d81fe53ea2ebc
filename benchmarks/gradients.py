"""What value and gradient by every table entry take: ``python -m benchmarks.gradients``.

A *pass* is what a step of descent takes in double precision: the bound and the gradient of all shifts and weights.
Processor time of one thread, warm, shifts held, the least of many calls, both by turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import powersum as ps
from powersum.api.warm_tree import WarmTree

SIZE, IBOUNDS, SWEEPS = 100, (4, None), 20
STEPS, SMALL = 1000, 12


def main() -> None:
    """Print a line for each question and size of the tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=40, help="calls of which the quickest counts (40)")
    calls = parser.parse_args().calls
    print(f"{'grid':10} {'question':14} {'ibound':>6} {'a pass, ms':>11} {'a call, ms':>11} {'passes':>7}")
    for name, share in (("log Z", 0.0), ("MAP", 1.0), ("marginal MAP", 0.5)):
        model, maximize = _grid(SIZE, share)
        for ibound in IBOUNDS:
            gradient = ps.BoundFunction(model, maximize, ibound=ibound, sweeps=SWEEPS, steps=0)
            one_pass, call = _by_turns(calls, _pass_of(gradient), gradient)
            print(
                f"{SIZE}×{SIZE:<6} {name:14} {ibound or '-':>6} {1e3 * one_pass:11.2f} {1e3 * call:11.2f} "
                f"{call / one_pass:7.2f}",
                flush=True,
            )
    print(f"\n{'grid':10} {'question':14} {'ibound':>6} {f'{STEPS} calls with a step, s':>28}")
    for name, share in (("log Z", 0.0), ("MAP", 1.0), ("marginal MAP", 0.5)):
        model, maximize = _grid(SMALL, share)
        for ibound in (5, None):
            gradient = ps.BoundFunction(model, maximize, ibound=ibound, sweeps=SWEEPS, steps=1)
            gradient()
            begun = time.process_time()
            for _ in range(STEPS):
                gradient()
            print(f"{SMALL}×{SMALL:<7} {name:14} {ibound or '-':>6} {time.process_time() - begun:28.2f}", flush=True)


def _grid(size: int, share: float) -> tuple[ps.Model, list[int] | None]:
    """A grid, and the variables to maximise."""
    model, query = ps.generate.grid(size, size, share=share or 0.5, seed=0)
    if share in (0.0, 1.0):
        return model, list(range(model.n_variables)) if share else None
    return model, list(query)


def _pass_of(gradient: ps.BoundFunction) -> Callable[[], object]:
    """A pass of descent on the same tree."""
    tree = gradient._tree
    assert isinstance(tree, WarmTree)
    return lambda: tree._passes.value_and_gradient(tree._guide)


def _by_turns(calls: int, *functions: Callable[[], object]) -> list[float]:
    """The least processor time of each function, called by turns so that a busy machine disturbs all alike."""
    least = [float("inf")] * len(functions)
    for _ in range(calls):
        for at, function in enumerate(functions):
            begun = time.process_time()
            function()
            least[at] = min(least[at], time.process_time() - begun)
    return least


if __name__ == "__main__":
    main()
