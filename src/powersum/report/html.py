"""The report page: one HTML file with the answer, its bounds over time, the graph and the costs; it works offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from powersum.answer.marginals import Marginals, marginals
from powersum.core.errors import InputError
from powersum.model.evidence import Observed, observe
from powersum.model.model import Model, VariableKey
from powersum.model.query import Query
from powersum.model.result import Result
from powersum.report.facts import Facts, describe
from powersum.report.graph import roles_of

MOST_BELIEFS = 1000
"""Beliefs of larger models would take longer than anybody waits for a page."""
BELIEF_SECONDS = 3.0
BELIEF_MEMORY = 2e8
MOST_DESCRIBED = 20_000
"""The same for widths and costs."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that the page shows; ``facts`` and ``beliefs`` are None where they would take too long or do not exist."""

    result: Result
    model: Model
    query: Query
    observed: Observed
    roles: list[str]
    states: dict[int, str]
    title: str
    command: str | None
    facts: Facts | None
    beliefs: Marginals | None


def write_report(
    result: Result,
    model: Model,
    path: str | Path,
    *,
    maximize: Iterable[VariableKey] | str | None = None,
    evidence: Mapping[Any, Any] | None = None,
    query: Query | None = None,
    command: str | None = None,
    title: str | None = None,
) -> None:
    """Write one self-contained page about an answer.

    Parameters
    ----------
    result, model
        The answer and the model it is about.
    path
        The file to write.
    maximize, evidence, query
        The question, as it was asked; without ``maximize`` and ``query`` the variables that the answer names.
    command
        What made the answer, shown at the end of the page.
    title
        The page's title.

    Examples
    --------
    >>> import powersum as ps
    >>> from tempfile import mkdtemp
    >>> coin = ps.Model.from_tables({"coin": {"heads": 0.4, "tails": 0.6}})
    >>> ps.write_report(ps.solve(coin, ["coin"]), coin, mkdtemp() + "/coin.html", title="A coin")
    """
    from powersum.formats.files import saving

    page = report_html(
        result, model, maximize=maximize, evidence=evidence, query=query, command=command, title=title or "powersum"
    )
    with saving(path) as handle:
        handle.write(page.encode())


def report_html(
    result: Result,
    model: Model,
    *,
    maximize: Iterable[VariableKey] | str | None = None,
    evidence: Mapping[Any, Any] | None = None,
    query: Query | None = None,
    command: str | None = None,
    title: str = "powersum",
) -> str:
    """The page of :func:`write_report` as text."""
    from powersum.report import page_sections as sections

    if query is None and maximize is None:
        maximize = list(result.assignment)
    query = Query.asked(model, maximize, query)
    observed = observe(model, evidence)
    states = {model.variable(name): str(state) for name, state in result.assignment.items()}
    states.update({v: str(model.label(v, state)) for v, state in observed.states.items()})
    report = Report(
        result=result,
        model=model,
        query=query,
        observed=observed,
        roles=roles_of(model, query, evidence),
        states=states,
        title=title,
        command=command,
        facts=describe(observed.model, query, observed.states) if model.n_variables <= MOST_DESCRIBED else None,
        beliefs=_beliefs(observed),
    )
    return Template(_part("page.html")).substitute(
        title=sections.title(report),
        style=_part("page.css"),
        script=_part("page.js"),
        result=sections.embedded(result),
        headline=sections.headline(report),
        answer=sections.answer(report),
        graph=sections.graph(report),
        beliefs=sections.beliefs(report),
        cost=sections.cost(report),
        making=sections.making(report),
    )


def _beliefs(observed: Observed) -> Marginals | None:
    """Distribution of each variable given the evidence."""
    if observed.model.n_variables > MOST_BELIEFS:
        return None
    try:
        return marginals(observed.model, observed.states, time_limit=BELIEF_SECONDS, memory=BELIEF_MEMORY)
    except InputError:
        # The evidence has probability zero: there are no beliefs given it.
        return None


def _part(name: str) -> str:
    return files("powersum.report").joinpath(name).read_text(encoding="utf-8")
