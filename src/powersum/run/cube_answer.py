"""The answer of many workers: bounds, assignment and status, and one certificate of all their proofs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from powersum.divide.join import JoinedProofs
from powersum.model.certificate import Certificate
from powersum.model.question import Question
from powersum.model.result import Result
from powersum.prepare.problem import Problem
from powersum.proof.boxes import BoxProof
from powersum.proof.certificate import certificate_of, ground_of, shortfall
from powersum.proof.format import Proof
from powersum.run.board import Board
from powersum.run.cube import CubeQuestion
from powersum.run.cube_tree import Cube
from powersum.run.verdict import verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the work stands at its end, or for a checkpoint.

    Parameters
    ----------
    root, whole
        The whole question, with all its cubes, and as a problem.
    best_proof
        What proves the best value, where something is maximised.
    workers
        How many there were, whoever asked among them if that worked, too.
    interrupted
        What has interrupted the work; None where nothing has.
    gone
        Why the workers are gone; None where they are there.
    out_of_time
        Whether the time limit was reached.
    """

    root: Cube
    whole: Problem
    best_proof: BoxProof
    workers: int
    interrupted: str | None
    gone: str | None
    out_of_time: bool


def answer_of(question: Question, asked: CubeQuestion, board: Board, ending: Ending) -> tuple[Result, int]:
    """The answer, as the board has it at the end; how many steps of its certificate prove the upper bound."""
    from powersum import __version__

    limits = question.limits
    cause = None
    if ending.interrupted is not None:
        cause = f"Interrupted by {ending.interrupted}: the best answer until then."
    elif ending.gone is not None:
        cause = f"Broken off, for {ending.gone}: the best answer until then."
    status, reason = verdict(
        board.log_lower,
        board.log_upper,
        limits=limits,
        reason="Every cube is closed.",
        interrupted=cause,
        exhausted=None if ending.out_of_time else "Nothing is left to split.",
    )
    options: dict[str, Any] = {name: getattr(limits, name) for name in ("time_limit", "work", "gap", "threads", "seed")}
    options["memory"] = asked.room.for_process
    known = board.log_lower > -math.inf
    certificate, n_above = certificate_of_all(question, board, ending) if asked.certificate else (None, 0)
    notes = board.last_notes
    if certificate is not None:
        notes += shortfall(certificate, board.log_lower, board.log_upper)
    result = Result(
        log_upper=board.log_upper,
        log_lower=board.log_lower,
        assignment=question.answer(board.states) if known else {},
        status=status,
        reason=reason,
        history=tuple(board.history),
        method="solve",
        options={**options, "workers": ending.workers},
        sizes={"cubes": ending.root.n_leaves},
        version=__version__,
        notes=question.model.notes + notes,
        question=question.asked(),
        certificate=certificate,
    )
    return result, n_above


def certificate_of_all(question: Question, board: Board, ending: Ending) -> tuple[Certificate, int]:
    """The proofs of all cubes as one, and how many steps of it prove the upper bound."""
    sums = question.query.task == "PR"
    joint = JoinedProofs(ending.root, sums=sums)
    n_above = len(joint.steps)
    if sums:
        log_lower = joint.lower()
    else:
        log_lower = ending.best_proof.log_lower
        joint.steps.put(ending.best_proof)
    found = not sums and log_lower > -math.inf
    certificate = certificate_of(
        question,
        ground_of(question, ending.whole),
        Proof(joint.steps, joint.log_upper),
        log_lower=min(board.log_lower, log_lower),
        log_upper=board.log_upper,
        assignment={v: int(board.states[v]) for v in question.query.max_variables.tolist()} if found else None,
    )
    return certificate, n_above
