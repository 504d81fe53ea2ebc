"""The short road: small questions are answered in plain NumPy, and what is compiled is not even loaded."""

from __future__ import annotations

import math
from collections.abc import Iterator

from powersum.answer.board import State
from powersum.exact.small import SmallElimination
from powersum.model.question import Question
from powersum.prepare.problem import Problem
from powersum.prepare.sizes import order_sizes, question_sizes


def small_stages(elimination: SmallElimination, question: Question) -> Iterator[State]:
    """The answer as the stages of the long road would give it."""
    tau = question.query.weights
    problem = Problem.whole(question.observed.model, tau, question.observed.states)
    answer = elimination.run()
    reduced = elimination.tables
    sizes = question_sizes(question, problem)
    sizes |= {
        "reduced_variables": len(reduced.free),
        "reduced_max_variables": sum(tau[v] == 0.0 for v in reduced.free),
        "reduced_factors": len(reduced.tables),
        "reduced_entries": sum(table.size for _, table in reduced.tables),
        "components": answer.components,
        **order_sizes(elimination.width, math.log2(elimination.entries) if elimination.entries else -math.inf),
    }
    state = State(sizes=sizes)
    if answer.log_value == -math.inf:
        state.impossible()
    else:
        state.offer_upper(problem, answer.log_value, answer.log_error)
        state.offer_lower(problem, answer.log_value, answer.log_error, answer.states)
        state.settled, state.reason = True, f"Exact elimination, of constrained width {elimination.width}."
    yield state
