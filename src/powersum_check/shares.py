"""Intervals of a distribution from certificates of the sums with each state of one variable set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import MEMORY, WORK
from powersum_check.model import Model, Question
from powersum_check.outside import check

ROOM = 2.0**-40
"""More than all that a few sums and exponentials can be rounded by, relatively; and absolutely, of logs near 0."""


@dataclass(frozen=True)
class Share:
    """The probability of a state is at least the first and at most the second."""

    lower: float
    upper: float


def check_shares(
    model: Model,
    variable: int,
    certificates: Sequence[str | Path | bytes],
    evidence: Mapping[int, int] | None = None,
    *,
    memory: int = MEMORY,
    work: float = WORK,
    exact: bool = False,
) -> list[Share]:
    """Check a certificate for each state of a variable; returns what they prove of its distribution.

    With ``Z_s`` the sum of everything given the evidence and the state, the probability of the state is
    ``Z_s / (Z_0 + Z_1 + …)``: it grows with its own sum and falls with the others.

    Raises
    ------
    Rejected
        Where a certificate fails, or nothing has positive probability.
    """
    known = dict(evidence or {})
    if not 0 <= variable < len(model.cardinalities):
        raise BadFile(f"there is no variable {variable}")
    if variable in known:
        raise BadFile(f"variable {variable} is observed")
    if len(certificates) != model.cardinalities[variable]:
        raise BadFile(f"variable {variable} has {model.cardinalities[variable]} states: give a certificate for each")
    sides = []
    for state, certificate in enumerate(certificates):
        question = Question.of(model, (), {**known, variable: state})
        verified = check(model, question, certificate, memory=memory, work=work, exact=exact)
        sides.append((verified.log_lower, verified.log_upper))
    return shares_of(sides)


def shares_of(sides: Sequence[tuple[float, float]]) -> list[Share]:
    """The probabilities of states from bounds on logs of the sums with each of them."""
    top = max(upper for _, upper in sides)
    if top == -math.inf:
        raise Rejected("every state has probability 0")
    if top == math.inf:
        return [Share(0.0, 1.0) for _ in sides]
    # Relative to the largest; one too small for a double is counted as if it were not.
    error = ROOM * (1.0 + abs(top))
    lower = [math.exp(low - top) * (1.0 - error) for low, _ in sides]
    upper = [0.0 if high == -math.inf else math.exp(high - top) * (1.0 + error) + 1e-290 for _, high in sides]
    return [
        Share(
            0.0 if lower[s] == 0.0 else lower[s] / (lower[s] + _others(upper, s)) * (1.0 - error),
            0.0 if upper[s] == 0.0 else min(upper[s] / (upper[s] + _others(lower, s)) * (1.0 + error), 1.0),
        )
        for s in range(len(sides))
    ]


def _others(values: Sequence[float], own: int) -> float:
    return math.fsum(value for place, value in enumerate(values) if place != own)
