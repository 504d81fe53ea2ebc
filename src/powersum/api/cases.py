"""Cases of a table as questions, and their answers as lines: what a worker of ``powersum batch`` does.

A case is a row: columns are named like variables, or ``variable:state`` for a likelihood, and an empty cell says
nothing. In JSON lines it is an object of variables and their states or likelihoods.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from powersum.api.stream import engine_of
from powersum.core.errors import InputError
from powersum.model.keys import Place, as_text
from powersum.model.limits import Limits
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.model.result import Result, Status
from powersum.model.strict_json import strict

WRONG = "error"
"""The status of a row that is no question."""

NUMBERS = ("log_value", "log_upper", "probability", "probability_upper", "message")
"""Columns of every answer, after its states."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a table mean.

    Parameters
    ----------
    states
        For each column that names a variable: its place and the variable.
    likelihoods
        For each variable with columns of likelihoods: their places, one for each state.
    kept
        Places and names of columns that go to the answers as they are.
    """

    states: tuple[tuple[int, int], ...]
    likelihoods: tuple[tuple[int, tuple[int, ...]], ...]
    kept: tuple[tuple[int, str], ...]
    width: int


@dataclass(frozen=True, slots=True)
class Writing:
    """How answers are written: which variables, what is kept of the cases, and whether as JSON."""

    names: tuple[str, ...]
    kept: tuple[str, ...]
    as_json: bool

    @property
    def before(self) -> str:
        """What stands before the number of a row."""
        return '{"row": ' if self.as_json else ""

    def header(self) -> str | None:
        """The first line; JSON has none."""
        return None if self.as_json else _csv(["row", *self.kept, "status", *self.names, *NUMBERS])


def columns_of(model: Model, header: Sequence[str], keep: Sequence[str]) -> Columns:
    """Read the header of a table; a column that means nothing is refused, unless it is to be kept."""
    states: list[tuple[int, int]] = []
    likelihoods: dict[int, dict[int, int]] = {}
    kept: list[tuple[int, str]] = []
    seen: set[str] = set()
    for place, name in enumerate(name.strip() for name in header):
        if name in seen:
            raise InputError(f"two columns are called {name!r}")
        seen.add(name)
        if name in keep:
            kept.append((place, name))
            continue
        owner, colon, label = name.rpartition(":")
        try:
            states.append((place, model.variable(name, argument="the columns")))
        except InputError:
            if not colon:
                raise
            variable = model.variable(owner, argument="the columns")
            likelihoods.setdefault(variable, {})[model.state(variable, label, argument="the columns")] = place
    for name in keep:
        if name not in seen:
            raise InputError(f"no column is called {name!r}")
    known = {variable for _, variable in states}
    if len(known) < len(states):
        raise InputError("two columns name the same variable")
    for variable, places in likelihoods.items():
        missing = [s for s in range(int(model.cardinalities[variable])) if s not in places]
        if missing:
            raise InputError(f"no column is called '{model.name(variable)}:{model.label(variable, missing[0])}'")
        if variable in known:
            raise InputError(f"variable {model.name(variable)!r} has a column of states and columns of likelihoods")
    listed = tuple((v, tuple(place for _, place in sorted(places.items()))) for v, places in likelihoods.items())
    return Columns(tuple(states), listed, tuple(kept), len(header))


def evidence_of_row(model: Model, columns: Columns, row: Sequence[str]) -> dict[int, Any]:
    """What a row of a table says."""
    if len(row) != columns.width:
        raise InputError(f"has {len(row)} cells, the header {columns.width}")
    evidence: dict[int, Any] = {}
    for place, variable in columns.states:
        cell = row[place].strip()
        if cell:
            evidence[Place(variable)] = cell
    for variable, places in columns.likelihoods:
        cells = [row[place].strip() for place in places]
        if not any(cells):
            continue
        try:
            evidence[Place(variable)] = [float(cell) for cell in cells]
        except ValueError:
            raise InputError(
                f"the likelihoods of variable {model.name(variable)!r} are {', '.join(map(repr, cells))}:"
                " give a number for each state, or for none"
            ) from None
    return evidence


def evidence_of_line(line: str) -> dict[str, Any]:
    """What a JSON line says."""
    return {name: value for name, value in _object(line).items() if value is not None}


def _object(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"is no JSON: {as_text(line.strip())}") from None
    if not isinstance(found, dict):
        raise InputError(f"is no object of variables and states: {as_text(line.strip())}")
    return found


def parted(case: Any, columns: Columns | None, writing: Writing) -> tuple[str, Any]:
    """What is kept of a case, as it stands in the answer's line, and the case without it.

    Cases that differ only in what is kept of them are the same question.
    """
    kept: dict[str, Any] = {}
    if columns is not None:
        kept = {name: case[place] for place, name in columns.kept if place < len(case)}
        places = {place for place, _ in columns.kept}
        case = tuple("" if place in places else cell for place, cell in enumerate(case))
    elif writing.kept:
        try:
            found = _object(case)
            kept = {name: found.pop(name) for name in writing.kept if name in found}
            case = json.dumps(found)
        except InputError:
            # The worker says so, too.
            pass
    if writing.as_json:
        return (", " + _json({"case": kept})[1:-1] if writing.kept else ""), case
    return ("," + _csv([kept.get(name, "") for name in writing.kept]) if writing.kept else ""), case


def lines_of(
    model: Model, options: tuple[Limits, Query, Columns | None, Writing], chunk: list[Any]
) -> list[tuple[str, str | None]]:
    """On a worker: for each case its line after number and what is kept of it, and what is wrong with it, if anything.

    Options are the limits, the query, the columns (None for JSON lines) and how to write.
    """
    limits, query, columns, writing = options
    engine = engine_of(model, limits)
    lines: list[tuple[str, str | None]] = []
    for case in chunk:
        try:
            evidence = evidence_of_line(case) if columns is None else evidence_of_row(model, columns, case)
            lines.append((_line(writing, engine.solve(evidence=evidence, weights=query)), None))
        except InputError as error:
            lines.append((_line(writing, str(error)), str(error)))
    return lines


def record_of(found: Result | str) -> dict[str, Any]:
    """The status and :data:`NUMBERS` of an answer, or of a row with an error."""
    if isinstance(found, str):
        return {"status": WRONG, **dict.fromkeys(NUMBERS), "message": found}
    share = found.probability
    return {
        "status": found.status.value,
        "log_value": found.log_lower,
        "log_upper": found.log_upper,
        "probability": None if share is None else share.lower,
        "probability_upper": None if share is None else share.upper,
        "message": None if found.status is Status.OPTIMAL else found.reason,
    }


def _line(writing: Writing, found: Result | str) -> str:
    """One answer."""
    record = record_of(found)
    states: Mapping[str, Any] = {} if isinstance(found, str) else found.assignment
    if writing.as_json:
        if isinstance(found, str):
            record = {"status": WRONG, "message": found}
        return ", " + _json({"status": record.pop("status"), "assignment": dict(states), **record})[1:]
    cells = [record["status"], *(states.get(name, "") for name in writing.names)]
    return "," + _csv([*cells, *("" if record[name] is None else record[name] for name in NUMBERS)])


def _json(record: Mapping[str, Any]) -> str:
    return json.dumps(strict(record), allow_nan=False, ensure_ascii=False)


def _csv(cells: Sequence[Any]) -> str:
    """One line of a table, without its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()
