"""A frontier against a plain list: whatever is opened, lent, given back and closed, the heaviest open box is next."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from powersum.divide.frontier import Frontier


@dataclass(eq=False)
class Weighed:
    weight: float


class Plain:
    """What a frontier has to be, with nothing but lists."""

    def __init__(self) -> None:
        self.open: list[Weighed] = []
        self.lent: list[Weighed] = []

    def top(self) -> Weighed | None:
        self.open = [box for box in self.open if box.weight > -math.inf]
        return max(self.open, key=lambda box: box.weight, default=None)

    def weight(self) -> float:
        return max((box.weight for box in (*self.open, *self.lent)), default=-math.inf)


@pytest.mark.parametrize("seed", range(30))
def test_the_heaviest_open_box_is_next(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frontier, plain = Frontier[Weighed](lambda box: box.weight), Plain()
    opened = 0
    for _ in range(300):
        known = [*plain.open, *plain.lent]
        what = rng.choice(["open", "open", "lend", "lend any", "give back", "close", "fall", "end"])
        if what == "open":
            # Few different weights: boxes that weigh alike come in the order in which they were opened.
            box = Weighed(float(rng.integers(0, 6)))
            frontier.open(box)
            plain.open.append(box)
            opened += 1
        elif what == "lend" and (top := frontier.top()) is not None:
            frontier.lend(top)
            plain.open.remove(top)
            plain.lent.append(top)
        elif what == "lend any" and plain.open:
            box = plain.open[int(rng.integers(len(plain.open)))]
            frontier.lend(box)
            plain.open.remove(box)
            plain.lent.append(box)
        elif what == "give back" and plain.lent:
            box = plain.lent[int(rng.integers(len(plain.lent)))]
            frontier.give_back(box)
            plain.lent.remove(box)
            plain.open.append(box)
        elif what == "close" and known:
            box = known[int(rng.integers(len(known)))]
            frontier.close(box)
            (plain.open if box in plain.open else plain.lent).remove(box)
        elif what == "fall" and known:
            known[int(rng.integers(len(known)))].weight -= float(rng.integers(0, 3))
        elif what == "end" and known and rng.random() < 0.2:
            known[int(rng.integers(len(known)))].weight = -math.inf
        expected = plain.top()
        found = frontier.top()
        # A weight that falls keeps its place among those that weigh as much by then.
        assert (None if found is None else found.weight) == (None if expected is None else expected.weight)
        assert frontier.weight == plain.weight()
        assert {box for box in frontier if box.weight > -math.inf} == set(plain.open)
        assert frontier.lent == plain.lent
        assert frontier.n_opened == opened


def test_boxes_that_weigh_alike_come_in_the_order_in_which_they_were_opened() -> None:
    frontier = Frontier[Weighed](lambda box: box.weight)
    boxes = [Weighed(1.0) for _ in range(5)]
    boxes[1].weight = 2.0
    for box in boxes:
        frontier.open(box)
    boxes[1].weight = 1.0
    for box in boxes:
        assert frontier.top() is box
        frontier.lend(box)
    assert frontier.top() is None
    assert frontier.lent == boxes
    # One that is given back has its place again.
    for box in (boxes[3], boxes[0], boxes[4]):
        frontier.give_back(box)
    for box in (boxes[0], boxes[3], boxes[4]):
        assert frontier.top() is box
        frontier.close(box)
