"""How large trees may grow whose boxes are to be split."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from powersum.answer.board import Board
from powersum.answer.workers.splits import DOUBLING, Splits
from powersum.answer.workers.tightening import Tightening
from powersum.core.clock import Clock
from tests.answer.workers.test_workers import task_of
from tests.cases import hard_case


def grown(*trees: tuple[int, float]) -> Tightening:
    """Tightening after stages whose trees had so many entries and these bounds."""
    tightening = Tightening(task_of(hard_case(1).problem(), Board(11)), cast(Any, None))
    tightening._grown = list(trees)
    return tightening


def test_nobody_knows_what_growing_is_worth_before_there_are_two_trees() -> None:
    assert grown().useful_entries(1.0) == math.inf
    assert grown((1000, -1.0)).useful_entries(1.0) == math.inf


def test_growing_pays_as_long_as_a_doubling_is_worth_it() -> None:
    """Two nats a doubling between 1000 and 4000 entries: one nat at four times as many as in the middle."""
    assert grown((10, 9.0), (1000, 0.0), (4000, -4.0)).useful_entries(1.0) == pytest.approx(8000.0)
    assert grown((1000, 0.0), (4000, 0.0)).useful_entries(1.0) == 0.0
    # A tree that has not grown may be lower by luck, or by more time.
    assert grown((1000, 0.0), (1000, -2.0)).useful_entries(1.0) == pytest.approx(4000.0)


@pytest.mark.parametrize("seconds", [1e-4, 30.0, 1e4, math.inf])
@pytest.mark.parametrize("gain", [0.0, 1.0, 5.0, 50.0])
def test_boxes_fit_the_time_or_trees_grow_as_they_like(seconds: float, gain: float) -> None:
    task = replace(task_of(hard_case(1).problem(), Board(11)), clock=Clock(seconds))
    layout = SimpleNamespace(n_entries=5000, n_nodes=10)
    tightening = grown((10_000, 0.0), (40_000, -2.0 * gain))
    tree = SimpleNamespace(layout=layout, seconds_per_entry=1e-8)
    tightening._tree = cast(Any, SimpleNamespace(best_tree=tree))
    most = Splits(task, cast(Any, None), tightening, cast(Any, None)).most_entries()
    if seconds == math.inf:
        assert most == math.inf
        return
    assert most >= layout.n_entries
    if math.isfinite(most):
        assert 40 * most * 1e-8 * 10 <= max(seconds, 1.0)
    else:
        assert gain > DOUBLING or seconds < 1.0
