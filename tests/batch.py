"""All answers of ``solve_each`` as a list of results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import powersum as ps


def results_of(model: Any, questions: Iterable[Any], **options: Any) -> list[ps.Result]:
    """The results; the error of the first wrong question is raised."""
    found: list[ps.Result] = []
    for item in ps.solve_each(model, questions, **options):
        if item.result is None:
            raise ps.InputError(item.error)
        found.append(item.result)
    return found
