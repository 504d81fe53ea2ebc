"""The result of a run, made of its board: the one place where bounds, status and notes of an answer come together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from powersum.model.certificate import Certificate
from powersum.model.interval import Interval
from powersum.model.limits import Limits
from powersum.model.question import Question
from powersum.model.result import Result
from powersum.run.board import Board
from powersum.run.verdict import verdict


def options_of(limits: Limits) -> dict[str, Any]:
    """Limits as a result tells them."""
    return {name: getattr(limits, name) for name in ("time_limit", "work", "memory", "gap", "threads", "seed")}


def answer_of(
    question: Question,
    board: Board,
    *,
    options: Mapping[str, Any],
    sizes: Mapping[str, int | float],
    reason: str | None = None,
    interrupted: str | None = None,
    exhausted: str | None = None,
    certificate: Certificate | None = None,
    probability: Interval | None = None,
) -> Result:
    """The answer as it stands on a board.

    Parameters
    ----------
    question, board
        What was asked, with its limits, and what is known.
    options, sizes
        What the result tells of them.
    reason, exhausted
        What proves the answer, and why nothing more could be done, where the board does not say.
    interrupted
        What has ended the work early.
    certificate, probability
        What comes with the answer.
    """
    from powersum import __version__

    notes = question.model.notes + board.last_notes
    if certificate is not None:
        from powersum.proof.certificate import shortfall

        notes += shortfall(certificate, board.log_lower, board.log_upper)
    status, reason = verdict(
        board.log_lower,
        board.log_upper,
        limits=question.limits,
        reason=reason or board.reason,
        proven=board.proven,
        interrupted=interrupted,
        exhausted=board.reason if board.exhausted else exhausted,
    )
    return Result(
        log_upper=board.log_upper,
        log_lower=board.log_lower,
        assignment={} if board.log_lower == -math.inf else question.answer(board.states),
        status=status,
        reason=reason,
        history=tuple(board.history),
        method="solve",
        options=options,
        sizes=dict(sizes),
        version=__version__,
        notes=notes,
        question=question.asked(),
        certificate=certificate,
        probability=probability,
    )
