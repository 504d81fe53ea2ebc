"""Shares of the memory add up, whoever is there at the same time."""

from __future__ import annotations

import pytest

import powersum as ps
from powersum.run.memory_shares import MemoryShares
from powersum.run.tuning import Schedule


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


@pytest.mark.parametrize(("size", "told"), [(1e6, True), (1e10, False)])
def test_an_answer_says_when_memory_was_the_reason(size: float, told: bool) -> None:
    model = ps.generate.grid(13, 13, strength=2.0, seed=1).model
    schedule = Schedule(quick=0.0, most_bytes=size, early_conditioning=0.0)
    result = ps.solve(model, work=0.6, memory="2G", schedule=schedule)
    notes = [note for note in result.notes if note.startswith("Memory was the limit: exact elimination takes ")]
    assert len(notes) == told
    assert (result.status is ps.Status.OPTIMAL) is not told
    if told:
        assert notes[0].endswith("; 1 MB were left for it.")


def test_an_answer_that_lacked_time_does_not_blame_memory() -> None:
    model = ps.generate.grid(30, 30, seed=1).model
    result = ps.solve(model, work=0.1, memory="500M")
    assert result.status is ps.Status.BOUNDED
    assert not any("Memory" in note for note in result.notes)
