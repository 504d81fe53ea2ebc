"""``batch``: one question for each row of a data frame, and the answers as a frame of the same library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from powersum.api.cases import NUMBERS, Columns, columns_of, record_of
from powersum.api.stream import solve_each
from powersum.core.errors import InputError
from powersum.interop.frames import Frame, is_frame
from powersum.model.keys import Place, as_text, listed
from powersum.model.model import Model, VariableKey
from powersum.model.question import ModelLike, Question, WeightsLike, model_of


def batch(
    model: ModelLike,
    cases: Any,
    maximize: Iterable[VariableKey] | str | None = None,
    *,
    weights: WeightsLike | None = None,
    keep: Sequence[str] = (),
    **options: Any,
) -> Any:
    """Answer one question for each row of a data frame, as a frame of the same library.

    Parameters
    ----------
    model
        The model, or the path of its file.
    cases
        A data frame as :func:`solve_each` takes it.
    maximize, weights
        The question about each row, as in :func:`powersum.solve`.
    keep
        Columns to copy to the answers.
    **options
        As :func:`solve_each` has them: ``workers``, ``threads``, ``time_limit``, ``memory``, ``gap``, ``seed``,
        ``checkpoint``.

    Returns
    -------
    data frame
        Columns: the kept ones, ``status``, the states of the maximised variables, ``log_value``, ``log_upper``, both
        sides of the probability, and ``message``. A wrong row has the status ``error``; ``message`` names the error.

    Examples
    --------
    With pandas::

        answers = ps.batch(model, pandas.DataFrame({"cough": ["yes", None]}), ["cancer"])
    """
    if not is_frame(cases):
        raise InputError(f"cases is {as_text(cases)}: give a data frame")
    model = model_of(model)
    frame, kept = Frame(cases, "cases"), [str(name) for name in listed(keep, "keep", "a list of columns")]
    query = Question.of(model, maximize, weights=weights).query
    items = solve_each(model, questions_of(model, frame, kept), weights=query, **options)
    return answers_as(frame, kept, [model.name(v) for v in query.answered], items)


def questions_of(model: Model, frame: Frame, keep: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """A question about the evidence of each row; the columns are checked at once."""
    columns = columns_of(model, frame.columns, keep)
    return ({"evidence": _evidence(columns, row)} for row in frame.rows())


def _evidence(columns: Columns, row: Sequence[Any]) -> dict[Any, Any]:
    """The evidence of a row: cells are text, as in files, so that ``1.0`` is the label or the place 1."""
    known: dict[Any, Any] = {}
    for place, variable in columns.states:
        cell = row[place]
        if cell is not None and str(cell).strip():
            known[Place(variable)] = str(cell).strip()
    for variable, places in columns.likelihoods:
        cells = [row[place] for place in places]
        if any(cell is not None for cell in cells):
            known[Place(variable)] = cells
    return known


def answers_as(frame: Frame, keep: Sequence[str], answered: Sequence[str], items: Iterable[Any]) -> Any:
    """The answers as a frame like the one of the cases, a row for each: what is kept, states, values, status."""
    places = [frame.columns.index(name) for name in keep]
    columns: dict[str, list[Any]] = {name: [] for name in (*keep, "status", *answered, *NUMBERS)}
    for row, item in zip(frame.rows(), items, strict=True):
        states = {} if item.result is None else item.result.assignment
        found = {
            **{name: row[place] for name, place in zip(keep, places, strict=True)},
            **{name: states.get(name) for name in answered},
            **record_of(item.error if item.result is None else item.result),
        }
        for name, column in columns.items():
            column.append(found[name])
    return frame.like(columns)
