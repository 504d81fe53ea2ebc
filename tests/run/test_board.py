"""The board: numbers become bounds in one place, and nothing that is none gets through."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powersum.core.arrays import IntArray
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from powersum.run.board import ONE_TERM, Board
from powersum.run.verdict import proven_text

MODEL = Model.from_factors([2, 2, 2], [((0, 1), [[1.0, 2.0], [3.0, 4.0]]), ((1, 2), [[1.0, 2.0], [3.0, 5.0]])])
QUERY = Query.of(MODEL, [0])


def problem_with(log_constant: float = 0.0, log_error: float = 0.0) -> Problem:
    """The largest sum of a small model, with a constant and a rounding of its preparation."""
    return replace(simplify(MODEL, QUERY, {}), log_constant=log_constant, log_error=log_error)


PLAIN = problem_with()
STATES: IntArray = np.zeros(PLAIN.model.n_variables, dtype=np.int64)
NAN = math.nan


def board_with(lower: float, upper: float) -> Board:
    board = Board(3)
    board.offer_upper(PLAIN, upper, 0.0)
    board.offer_lower(PLAIN, lower, 0.0, STATES)
    return board


def test_the_constant_and_the_rounding_of_the_preparation_count_once() -> None:
    board, problem = Board(3), problem_with(100.0, 1e-7)
    assert board.offer_upper(problem, 5.0, 2e-7)
    assert board.offer_lower(problem, 4.0, 2e-7, STATES)
    assert board.log_upper == pytest.approx(105.0 + 3e-7, abs=1e-12)
    assert board.log_lower == pytest.approx(104.0 - 3e-7, abs=1e-12)
    assert board.incumbent is not None
    assert board.incumbent.log_value == 4.0


def test_the_check_at_the_point_leaves_them_out() -> None:
    board, problem = Board(3), problem_with(100.0, 1e-7)
    board.offer_upper(problem, 5.0, 1e-8, lambda: 5.0)
    board.confirm()
    assert board.log_upper == pytest.approx(105.0 + 1.1e-7, abs=1e-12)
    board.offer_upper(problem, 4.0, 0.0, lambda: 5.0)
    with pytest.raises(RuntimeError, match="computed again"):
        board.confirm()


@pytest.mark.parametrize(("value", "error"), [(NAN, 0.0), (0.0, NAN), (0.0, math.inf), (0.0, 1.0), (math.inf, 0.0)])
def test_what_is_no_upper_bound_is_refused(value: float, error: float) -> None:
    board = board_with(-3.0, -1.0)
    assert not board.offer_upper(PLAIN, value, error)
    assert (board.log_lower, board.log_upper) == (-3.0, -1.0)
    empty = Board(3)
    assert not empty.offer_upper(PLAIN, value, error)
    assert empty.log_upper == math.inf


@pytest.mark.parametrize(("value", "error"), [(NAN, 0.0), (-2.0, NAN), (-2.0, math.inf), (math.inf, 0.0)])
def test_what_is_no_lower_bound_is_refused(value: float, error: float) -> None:
    board = board_with(-3.0, -1.0)
    assert not board.offer_lower(PLAIN, value, error, STATES + 1)
    assert (board.log_lower, board.log_upper) == (-3.0, -1.0)
    assert board.states[0] == 0
    assert not Board(3).offer_lower(PLAIN, value, error, STATES)


def test_too_wide_is_no_value_even_where_the_upper_bound_is_not_known() -> None:
    board = Board(3)
    assert not board.offer_lower(PLAIN, math.inf, 0.0, STATES)
    assert board.log_lower == -math.inf
    assert board.incumbent is None


CONTRADICTIONS: list[Callable[[Board], object]] = [
    lambda board: board.offer_lower(PLAIN, -0.5, 0.0, STATES),
    lambda board: board.offer_upper(PLAIN, -4.0, 0.0),
    Board.impossible,
]


@pytest.mark.parametrize("contradict", CONTRADICTIONS)
def test_a_contradiction_is_no_answer_from_then_on(contradict: Callable[[Board], object]) -> None:
    board = board_with(-3.0, -1.0)
    with pytest.raises(RuntimeError, match="contradict"):
        contradict(board)
    assert board.contradicted
    # Neither of the two is taken for the truth.
    assert (board.log_lower, board.log_upper) == (-3.0, -1.0)
    with pytest.raises(RuntimeError, match="contradict"):
        board.refuse()
    with pytest.raises(RuntimeError, match="contradict"):
        board.snapshot(1.0)


def test_what_rounding_explains_is_no_contradiction() -> None:
    board = Board(3)
    board.offer_upper(PLAIN, -1.0, 1e-9)
    board.offer_lower(PLAIN, -1.0 + 1e-9, 1e-9, STATES)
    assert board.log_lower <= board.log_upper


def test_nothing_possible() -> None:
    board = Board(3)
    board.offer_upper(PLAIN, -1.0, 0.0)
    board.impossible()
    assert board.proven
    assert (board.log_lower, board.log_upper) == (-math.inf, -math.inf)
    other = Board(3)
    other.offer_exact(PLAIN, -math.inf, 0.0, STATES, "Summed.")
    assert other.proven
    assert other.log_upper == -math.inf


def test_an_exact_answer_always_has_an_upper_bound() -> None:
    """The rounding of a very large model is beyond what a point of a bound may have, yet elimination is a proof."""
    board = Board(3)
    board.offer_exact(problem_with(-1e4, 2e-6), 0.0, 2e-6, STATES, "Eliminated.")
    assert board.proven
    assert (board.log_lower, board.log_upper) == pytest.approx((-1e4 - 4e-6, -1e4 + 4e-6), abs=1e-11)
    told = proven_text(board.reason, board.log_lower, board.log_upper)
    assert told == "Eliminated. Proven to 8e-06, 8e-10 of the log value: rounding keeps the bounds apart."


@pytest.mark.parametrize("log_value", [math.inf, NAN])
def test_no_value_proves_nothing(log_value: float) -> None:
    board = Board(3)
    board.offer_exact(PLAIN, log_value, 0.0, STATES, "Eliminated.")
    assert not board.proven
    assert (board.log_lower, board.log_upper) == (-math.inf, math.inf)


@pytest.mark.parametrize(("log_value", "log_error"), [(-1.0, 0.5), (-1.0, 1e-4), (-1e5, 1e-3)])
def test_a_value_that_rounding_may_have_moved_far_proves_nothing(log_value: float, log_error: float) -> None:
    board = Board(3)
    board.offer_exact(PLAIN, log_value, log_error, STATES, "Eliminated.")
    assert not board.proven
    assert (board.log_lower, board.log_upper) == (log_value - log_error, log_value + log_error)
    assert board.exhausted
    assert re.fullmatch(r"Eliminated\. Rounding keeps the bounds .* apart: nothing is proven\.", board.reason)


def test_an_exact_answer_takes_back_notes() -> None:
    board = board_with(-3.0, -1.0)
    board.notes = ("Summing is too wide.", "Yes.")
    board.offer_exact(PLAIN, -2.0, 1e-12, STATES, "Summed.")
    assert (board.proven, board.reason, len(board.notes)) == (True, "Summed.", 0)
    assert board.log_lower <= -2.0 <= board.log_upper


def test_only_max_variables_have_states() -> None:
    board = Board(3)
    board.offer_lower(PLAIN, -2.0, 0.0, STATES)
    assert board.states.tolist() == [0, -1, -1]
    assert board.incumbent is not None
    np.testing.assert_array_equal(board.incumbent.states, STATES)


def test_a_better_bound_has_its_own_point() -> None:
    board = Board(3)
    board.offer_upper(PLAIN, -1.0, 0.0, lambda: 7.0)
    # Worse: the point stays that of the better one.
    board.offer_upper(PLAIN, 0.0, 0.0, lambda: 8.0)
    board.offer_upper(PLAIN, -2.0, 0.0)
    board.confirm()
    assert board.log_upper == -2.0


@pytest.mark.parametrize("again", [-2.0, -1.0 + 1e-12, math.inf])
def test_what_was_shown_is_not_revised(again: float) -> None:
    board = Board(3)
    board.offer_upper(PLAIN, 3.0, 0.0)
    board.snapshot(0.0)
    board.offer_upper(PLAIN, -1.0, 0.0, lambda: again)
    board.snapshot(1.0)
    shown = list(board.history)
    board.confirm()
    board.confirm()
    assert board.log_upper == -1.0
    assert board.history == shown


def test_a_bound_that_is_not_confirmed_is_no_answer_from_then_on() -> None:
    board = Board(3)
    board.offer_upper(PLAIN, -1.0, 0.0, lambda: -0.5)
    for refused in (board.confirm, board.refuse):
        with pytest.raises(RuntimeError, match="computed again"):
            refused()
    assert board.contradicted


def test_notes_about_the_lower_bound_are_left_out_where_bounds_meet() -> None:
    board = Board(3)
    board.log_lower, board.notes = -1.0, (ONE_TERM,)
    board.offer_upper(PLAIN, -0.5, 0.0)
    assert ONE_TERM in board.last_notes
    board.offer_upper(PLAIN, -1.0, 0.0)
    assert not board.last_notes


def test_snapshots_are_made_when_bounds_move() -> None:
    board = board_with(-3.0, -1.0)
    assert board.snapshot(1.0) is not None
    assert board.snapshot(2.0) is None
    assert board.snapshot(3.0, always=True) is not None
    assert [(past.seconds, past.sweep) for past in board.history] == [(1.0, 0), (3.0, 1)]


VALUES = st.floats(-1e6, 1e6) | st.sampled_from([NAN, math.inf, -math.inf])


@given(st.lists(st.tuples(st.booleans(), VALUES, st.floats(0.0, 1e-3) | st.just(NAN))), st.floats(-50.0, 50.0))
def test_history_is_monotone_whatever_is_offered(offers: list[tuple[bool, float, float]], constant: float) -> None:
    board, problem = Board(3), problem_with(constant, 1e-9)
    for number, (is_upper, value, error) in enumerate(offers):
        try:
            if is_upper:
                board.offer_upper(problem, value, error)
            else:
                board.offer_lower(problem, value, error, STATES)
        except RuntimeError:
            assert board.contradicted
            break
        board.snapshot(float(number))
    uppers = [past.log_upper for past in board.history]
    lowers = [past.log_lower for past in board.history]
    assert uppers == sorted(uppers, reverse=True)
    assert lowers == sorted(lowers)
    assert not any(map(math.isnan, uppers + lowers))
    assert all(lower <= upper for lower, upper in zip(lowers, uppers, strict=True))
    assert math.inf not in lowers
