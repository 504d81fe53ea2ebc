"""The report page: one HTML file with the answer, its bounds over time, the graph and the costs; it works offline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from powersum.api.marginals import Marginals, marginals
from powersum.app.report.decision import decision_html
from powersum.app.report.explanation import explanation_section
from powersum.app.report.graph import roles_of
from powersum.app.report.page_sections import MOST_BELIEFS
from powersum.core.errors import InputError
from powersum.decisions.decision import Decision
from powersum.model.diagram import Diagram
from powersum.model.explanation import Explanation
from powersum.model.keys import Place
from powersum.model.model import Model, VariableKey
from powersum.model.question import EvidenceLike, Question, WeightsLike, asked_again
from powersum.model.result import Result

BELIEF_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class ReportPage:
    """All that the page shows; ``beliefs`` is the reason why not where there are none."""

    result: Result
    question: Question
    roles: list[str]
    states: dict[int, str]
    title: str
    command: str | None
    beliefs: Marginals | str
    belief_seconds: float = BELIEF_SECONDS

    @property
    def model(self) -> Model:
        """The model that the page is about."""
        return self.question.model


def write_report(
    result: Result | Decision,
    model: Model | Diagram,
    path: str | Path,
    *,
    maximize: Iterable[VariableKey] | str | None = None,
    evidence: EvidenceLike | None = None,
    weights: WeightsLike | None = None,
    command: str | None = None,
    title: str | None = None,
    explanation: Explanation | None = None,
) -> None:
    """Write one self-contained page about an answer.

    Parameters
    ----------
    result, model
        The answer and the model it is about; or a decision and its influence diagram.
    path
        The file to write.
    maximize, evidence, weights
        The question, where the result does not know it or it is to be shown in other words.
    command
        What made the answer, shown at the end of the page.
    title
        The page's title.
    explanation
        What ``result.explain(model)`` returned, to be shown as well.

    Examples
    --------
    >>> import powersum as ps
    >>> from tempfile import mkdtemp
    >>> coin = ps.Model.from_tables({"coin": {"heads": 0.4, "tails": 0.6}})
    >>> ps.write_report(ps.solve(coin, ["coin"]), coin, mkdtemp() + "/coin.html", title="A coin")
    """
    from powersum.core.files import saving

    if isinstance(result, Decision) or isinstance(model, Diagram):
        if not (isinstance(result, Decision) and isinstance(model, Diagram)):
            raise InputError("write_report: a decision goes with a diagram, a result with a model")
        with saving(path) as handle:
            handle.write(decision_html(result, model, command=command, title=title or "powersum").encode())
        return
    page = report_html(
        result,
        model,
        maximize=maximize,
        evidence=evidence,
        weights=weights,
        command=command,
        title=title or "powersum",
        explanation=explanation,
    )
    with saving(path) as handle:
        handle.write(page.encode())


def report_html(
    result: Result,
    model: Model,
    *,
    maximize: Iterable[VariableKey] | str | None = None,
    evidence: EvidenceLike | None = None,
    weights: WeightsLike | None = None,
    command: str | None = None,
    title: str = "powersum",
    explanation: Explanation | None = None,
) -> str:
    """The page of :func:`write_report` as text."""
    from powersum.app.report import page_sections as sections

    question = _question(result, model, maximize, evidence, weights)
    states = {model.variable(name): str(state) for name, state in result.assignment.items()}
    states.update({v: str(model.label(v, state)) for v, state in question.evidence.states.items()})
    report = ReportPage(
        result=result,
        question=question,
        roles=roles_of(question),
        states=states,
        title=title,
        command=command,
        beliefs=_beliefs(question),
    )
    under_cost, under_graph = sections.below(report)
    return Template(_part("page.html")).substitute(
        title=sections.title(report),
        style=_part("palette.css") + _part("page.css"),
        script=_part("page.js"),
        result=sections.embedded(result),
        headline=sections.headline(report),
        answer=sections.answer(report),
        bounds=sections.bounds(report),
        legend=sections.legend(report),
        graph=sections.graph(report),
        explanation="" if explanation is None else explanation_section(explanation),
        cost=sections.cost(report),
        under_cost=under_cost,
        under_graph=under_graph,
    )


def _question(
    result: Result,
    model: Model,
    maximize: Iterable[VariableKey] | str | None,
    evidence: EvidenceLike | None,
    weights: WeightsLike | None,
) -> Question:
    """The question as it is given, and where it is not, as the result remembers it."""
    again = None if result.question is None else asked_again(result.question, model)
    if maximize is None and weights is None:
        if again is not None:
            weights = again.query
        else:
            maximize = list(result.assignment)
    if evidence is None and again is not None:
        evidence = again.all_evidence
    return Question.of(model, maximize, evidence=evidence, weights=weights)


def _beliefs(question: Question) -> Marginals | str:
    """Distribution of each variable given the evidence, or why there is none."""
    if question.model.n_variables > MOST_BELIEFS:
        return f"Not computed: the model has more than {MOST_BELIEFS} variables."
    try:
        return marginals(
            question.model,
            evidence=question.all_evidence,
            of=[Place(v) for v in question.query.answered] or None,
            time_limit=BELIEF_SECONDS,
        )
    except InputError as error:
        return f"There are none: {error}."
    except MemoryError:
        return "Not computed: there is too little memory for them."


def _part(name: str) -> str:
    return files("powersum.app.report").joinpath(name).read_text(encoding="utf-8")
