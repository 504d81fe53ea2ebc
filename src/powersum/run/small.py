"""The short road: small questions are answered in plain NumPy, and what is compiled is not even loaded."""

from __future__ import annotations

import math
from collections.abc import Generator

from powersum.bounds.quick import quick_bounds
from powersum.exact.small import SmallElimination
from powersum.model.question import Question
from powersum.prepare.problem import Problem
from powersum.prepare.sizes import order_sizes, question_sizes
from powersum.run.board import Board

CLOSED = 1e-3
"""Bounds nearer than this are left to the work, which proves that they meet."""


def small_work(elimination: SmallElimination, question: Question, board: Board) -> Generator[None]:
    """The answer on the board, as the work of the long road would leave it there."""
    tau = question.query.weights
    problem = Problem.whole(question.observed.model, tau, question.observed.states)
    answer = elimination.run()
    reduced = elimination.tables
    board.sizes = question_sizes(question, problem) | {
        "reduced_variables": len(reduced.free),
        "reduced_max_variables": sum(tau[v] == 0.0 for v in reduced.free),
        "reduced_factors": len(reduced.tables),
        "reduced_entries": sum(table.size for _, table in reduced.tables),
        "components": answer.components,
        **order_sizes(elimination.width, math.log2(elimination.entries) if elimination.entries else -math.inf),
    }
    reason = f"Exact elimination, of constrained width {elimination.width}."
    board.offer_exact(problem, answer.log_value, answer.log_error, answer.states, reason)
    yield


def first_bounds(question: Question, board: Board) -> None:
    """Bounds in plain NumPy, while compiled code is still to be loaded: loose, but there at once.

    They have no proof: where they meet, nobody shall take them for the answer, and there is no lower one.
    """
    model, evidence = question.observed
    quick = quick_bounds(model, evidence, question.query.weights)
    problem = Problem.whole(model, question.query.weights, evidence)
    if quick.log_upper == -math.inf:
        board.sizes = question_sizes(question, problem)
        board.impossible()
        return
    board.offer_upper(problem, quick.log_upper, quick.log_error)
    if quick.log_upper - quick.log_lower > CLOSED:
        board.offer_first(problem, quick.log_lower, quick.log_error, quick.states)
