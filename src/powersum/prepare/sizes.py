"""A question in numbers: how large it is, what simplification left of it, and what its order costs."""

from __future__ import annotations

from powersum.model.question import Question
from powersum.prepare.problem import Problem

LOG2_BYTES_PER_ENTRY = 3.0


def question_sizes(question: Question, problem: Problem) -> dict[str, int | float]:
    """Sizes before and after simplification."""
    model = question.model
    return {
        "variables": model.n_variables,
        "factors": model.n_factors,
        "entries": model.log_values.size,
        "max_variables": len(question.query.max_variables),
        "evidence": len(question.evidence.states),
        "reduced_variables": problem.model.n_variables,
        "reduced_max_variables": int((problem.tau == 0.0).sum()),
        "reduced_factors": problem.model.n_factors,
        "reduced_entries": problem.model.log_values.size,
        "components": problem.n_components,
    }


def order_sizes(width: int, log2_entries: float) -> dict[str, int | float]:
    """Width of an order, and the memory of exact elimination along it, from the entries of all its tables.

    The memory is a logarithm to base 2, for it may be beyond any number of bytes.
    """
    return {"constrained_width": width, "log2_exact_bytes": log2_entries + LOG2_BYTES_PER_ENTRY}
