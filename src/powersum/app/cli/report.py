"""The page about an answer, as the commands write it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from powersum.app.report.html import write_report
from powersum.model.explanation import Explanation
from powersum.model.question import Question
from powersum.model.result import Result


def write_page(
    path: Path,
    result: Result,
    question: Question,
    arguments: Sequence[str],
    explanation: Explanation | None = None,
) -> None:
    """Write the page, with the command line that asked for it."""
    write_report(
        result,
        question.model,
        path,
        weights=question.query,
        evidence=question.all_evidence,
        title=question.model.title,
        command=shlex.join(["powersum", *arguments]),
        explanation=explanation,
    )
