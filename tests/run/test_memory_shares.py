"""Shares of the memory add up, whoever is there at the same time."""

from __future__ import annotations

import pytest

from powersum.run.memory_shares import MemoryShares


@pytest.mark.parametrize("full", [0.0, MemoryShares(1e9).full_search(1e8)])
@pytest.mark.parametrize("wide", [0.0, MemoryShares(1e9).most_wide])
@pytest.mark.parametrize("beside", [False, True])
def test_those_that_are_there_together_fit_the_whole(beside: bool, wide: float, full: float) -> None:
    shares = MemoryShares(1e9, beside, full, wide)
    evaluation = shares.evaluation + shares.local_search + full + wide
    together = {
        "tightening beside the best tree, with a try of search": evaluation + 2.0 * shares.tree + shares.search,
        "a bound that is alone": evaluation + shares.alone + shares.search,
        "tightening with a cutset held": evaluation + 2.0 * shares.tree + shares.held + shares.conditioning,
        "partial sums": evaluation + shares.tree + shares.sums(held=False) + shares.conditioning,
        "partial sums with a cutset held": evaluation
        + shares.tree
        + shares.held
        + shares.sums(held=True)
        + shares.conditioning,
        "elimination": shares.elimination,
        "components": shares.components,
    }
    assert {name: size for name, size in together.items() if size > 1e9 * (1.0 + 1e-12)} == {}
    assert shares.tree > 0.2e9 - 0.5 * (full + wide)
    assert (shares.local_search > 0.0) == beside


def test_the_search_of_full_configurations_has_its_memory_or_is_not_done() -> None:
    shares = MemoryShares(1e9)
    assert shares.full_search(1e8) == 1e8 + shares.open_nodes
    assert shares.full_search(1e9) == 0.0
