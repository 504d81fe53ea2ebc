"""Where boxes are counted on, and how large trees may grow whose boxes are to be split."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from powersum.bounds.tree.growth import LEAST_MAX
from powersum.core.clock import Clock
from powersum.divide import split_tree
from powersum.divide.split_tree import STEP_WORTH, USEFUL_ENTRIES, limit_growth
from powersum.divide.tree_boxes import LEAST_BOXES, PASSES
from powersum.run.board import Board
from powersum.run.tuning import DEFAULT_SCHEDULE, Schedule
from powersum.run.workers.splits import SPLITTING, Splits
from powersum.run.workers.task import WorkerTask
from tests.cases import hard_case
from tests.run.workers.test_workers import task_of

PACE = 1e-8


def task(schedule: Schedule = DEFAULT_SCHEDULE, seconds: float = 60.0) -> WorkerTask:
    """A task with bounds that are near each other."""
    board = Board(11)
    board.log_lower, board.log_upper = -10.0, -9.0
    return replace(task_of(hard_case(1).problem(), board), schedule=schedule, clock=Clock(seconds))


def splits_of(of: WorkerTask, *, holds: bool = False, wide: bool = False) -> Splits:
    return Splits(of, cast(Any, None), cast(Any, None), cast(Any, SimpleNamespace(holds=holds, wide=wide)))


def test_boxes_are_counted_on_where_assignments_can_be_evaluated_and_gaps_closed() -> None:
    assert task().is_max.mean() >= LEAST_MAX
    assert splits_of(task()).likely()
    assert not splits_of(task(), holds=True).likely()
    assert not splits_of(task(), wide=True).likely()
    assert not splits_of(task(Schedule(tighten=False))).likely()
    assert not splits_of(task(Schedule(most_variables=1))).likely()
    hopeless = task()
    hopeless.board.log_upper = 1.0
    assert not splits_of(hopeless).likely()


def test_boxes_are_not_counted_on_where_few_variables_are_maximised() -> None:
    few = task()
    tau = np.ones(len(few.is_max))
    tau[-1] = 0.0
    few = replace(few, problem=replace(few.problem, tau=tau))
    assert 0.0 < few.is_max.mean() < LEAST_MAX
    assert not splits_of(few).likely()


class Growing:
    """What a tree shows of how it grows."""

    def __init__(self, *, alone: bool, gain: float, useful: float | None) -> None:
        layout = SimpleNamespace(n_entries=5000, n_nodes=10)
        self.best_tree = SimpleNamespace(layout=layout, seconds_per_entry=PACE, gain_of_doubling=gain)
        self.growing = self.best_tree if alone else None
        self.useful, self.most_entries, self.asked = useful, -1.0, 0

    def useful_entries(self, worth: float) -> float | None:
        assert worth == split_tree.WORTH
        return self.useful

    def grow_on(self) -> None:
        self.asked += 1


@pytest.mark.parametrize("useful", [None, 1e4, 1e9])
@pytest.mark.parametrize("gain", [0.0, 1.0, 50.0])
@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("left", [1e-9, 1.0, 1e4])
def test_boxes_fit_the_time_or_trees_grow_as_they_like(
    left: float, alone: bool, gain: float, useful: float | None
) -> None:
    tree = Growing(alone=alone, gain=gain, useful=useful if alone else None)
    limit_growth(cast(Any, tree), left, left)
    assert tree.asked == 1
    if left < 1e-3 or (alone and gain > split_tree.MUCH):
        assert tree.most_entries == math.inf
        return
    # Enough boxes of the largest tree fit, and no tree grows further than that pays.
    assert LEAST_BOXES * PASSES * PACE * tree.most_entries <= left
    if tree.useful is not None:
        assert tree.most_entries <= tree.useful
    elif not alone or gain < STEP_WORTH:
        assert tree.most_entries <= USEFUL_ENTRIES


@pytest.mark.parametrize("seconds", [30.0, math.inf])
def test_only_trees_whose_boxes_are_counted_on_are_limited(seconds: float) -> None:
    tree = Growing(alone=True, gain=1.0, useful=1e9)
    splits_of(task(seconds=seconds), wide=True).limit(cast(Any, tree))
    assert tree.asked == 0
    splits_of(task(seconds=seconds)).limit(cast(Any, tree))
    assert tree.asked == (seconds < math.inf)
    if tree.asked:
        assert LEAST_BOXES * PASSES * PACE * tree.most_entries <= SPLITTING * seconds
