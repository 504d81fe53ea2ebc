"""The short road: small questions are answered in plain NumPy, and what is compiled is not even loaded."""

from __future__ import annotations

import math
from collections.abc import Iterator

from powersum.answer.board import State
from powersum.exact.small import SmallElimination
from powersum.model.evidence import Observed
from powersum.model.query import Query
from powersum.prepare.problem import Problem


def small_stages(elimination: SmallElimination, observed: Observed, query: Query) -> Iterator[State]:
    """The answer as the stages of the long road would give it."""
    model = observed.model
    state = State(
        sizes={
            "variables": model.n_variables,
            "max_variables": len(query.max_variables),
            "reduced_variables": elimination.n_variables,
            "constrained_width": elimination.width,
        }
    )
    answer = elimination.run()
    if answer.log_value == -math.inf:
        state.impossible()
    else:
        problem = Problem.whole(model, query.weights, observed.states)
        state.offer_upper(problem, answer.log_value, answer.log_error)
        state.offer_lower(problem, answer.log_value, answer.log_error, answer.states)
        state.settled, state.reason = True, f"Exact elimination, of constrained width {elimination.width}."
    yield state
