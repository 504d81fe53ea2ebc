"""Search of two ways: whose turn it is, and that there is always somebody, or nobody is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from powersum.core.clock import Clock
from powersum.core.progress import Progress
from powersum.run.board import Board
from powersum.run.tuning import Schedule
from powersum.run.workers.search import SearchWorker
from tests.cases import hard_case
from tests.run.workers.test_workers import task_of


@dataclass
class Way:
    """Branch and bound, or splitting, that does as it is told and notes what is asked of it."""

    begins: list[bool] = field(default_factory=list)
    ends: list[Progress] = field(default_factory=list)
    worth: bool = True
    under_way: bool = False
    turns: int = 0

    def worth_while(self, ends: float) -> bool:
        return self.worth

    def begin(self, ends: float) -> bool:
        self.under_way = self.begins.pop(0) if self.begins else True
        return self.under_way

    def run(self, deadline: float) -> Progress:
        assert self.under_way
        self.turns += 1
        return self.ends.pop(0) if self.ends else Progress.MORE

    def end(self) -> None:
        self.under_way = False


def search_of(along: Way, splits: Way, *, trial: float = 0.0, gap: float = 5.0) -> SearchWorker:
    board = Board(11)
    board.log_lower, board.log_upper = 0.0, gap
    task = replace(task_of(hard_case(1).problem(), board), schedule=Schedule(search_trial=trial), clock=Clock(60.0))
    return SearchWorker(task, cast(Any, along), cast(Any, splits))


def test_boxes_are_split_where_branch_and_bound_is_hopeless() -> None:
    along, splits = Way(), Way()
    search = search_of(along, splits)
    assert search.begin(50.0)
    assert search.run(math.inf) is Progress.MORE
    assert (along.turns, along.under_way, splits.turns) == (0, False, 1)
    search.end()
    assert not splits.under_way


def test_what_is_not_worth_while_disturbs_nobody() -> None:
    along, splits = Way(begins=[True]), Way(worth=False)
    search = search_of(along, splits)
    assert search.begin(50.0)
    for _ in range(3):
        assert search.run(math.inf) is Progress.MORE
    assert (along.turns, splits.turns) == (3, 0)


def test_a_gap_that_is_nearly_closed_is_left_to_branch_and_bound() -> None:
    along, splits = Way(), Way()
    search = search_of(along, splits, gap=0.2)
    assert search.begin(50.0)
    assert search.run(math.inf) is Progress.MORE
    assert (along.turns, splits.turns) == (1, 0)


@pytest.mark.parametrize("again", [True, False])
def test_branch_and_bound_has_what_splitting_leaves_if_it_can_begin(again: bool) -> None:
    """It cannot, for example, where there is no time left for a copy of the tree's tables (found by the soak)."""
    along, splits = Way(begins=[True, again]), Way(ends=[Progress.OUT_OF_TIME])
    search = search_of(along, splits)
    assert search.begin(50.0)
    assert search.run(math.inf) is Progress.MORE
    assert search.run(math.inf) is (Progress.MORE if again else Progress.OUT_OF_TIME)
    assert along.turns == again
    search.end()


def test_nothing_begins_where_branch_and_bound_cannot() -> None:
    search = search_of(Way(begins=[False]), Way())
    assert not search.begin(50.0)
    search.end()
