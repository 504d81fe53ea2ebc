"""The report page of a decision: what to do now, the policy as trees, the diagram, and the value of information."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from importlib.resources import files

import numpy as np

from powersum.app.report.page_graph import graph_svg, legend_of
from powersum.decisions.decision import Decision, PolicyRule, PolicyTree, sides_text
from powersum.model.diagram import Diagram
from powersum.model.model import Model

MOST_LEAVES = 400
"""Cases of one rule that are shown; the JSON has all."""


def decision_html(decision: Decision, diagram: Diagram, *, command: str | None = None, title: str = "powersum") -> str:
    """One page that needs nothing else: no script, and the style inside."""
    style = "".join(
        files("powersum.app.report").joinpath(name).read_text("utf-8") for name in ("palette.css", "page.css")
    )
    now = "".join(f"<li>{escape(str(d))} = <b>{escape(str(s))}</b></li>" for d, s in decision.next_action.items())
    rules = "".join(f"<h3>{escape(rule.decision)}</h3>{_rule(rule)}" for rule in decision.policy)
    worth = "".join(
        f'<tr><th scope="row">{escape(seen)}</th><td>{escape(before)}</td><td>{low:.6g}</td><td>{high:.6g}</td></tr>'
        for (before, seen), (low, high) in decision.value_of_information.items()
    )
    sections = [
        f'<section id="answer"><h2>Policy</h2>{rules or "<p>Every decision is made.</p>"}</section>',
        _graph(diagram, decision),
    ]
    if worth:
        heads = "".join(f'<th scope="col">{head}</th>' for head in ("to see", "before", "worth at least", "at most"))
        caption = "What seeing a variable before a decision would add, in units of utility"
        sections.append(
            f'<section id="worth"><h2>Value of information</h2><div class="scroll"><table><caption>{caption}</caption>'
            f"<thead><tr>{heads}</tr></thead><tbody>{worth}</tbody></table></div></section>"
        )
    if command:
        sections.append(f'<section id="making"><h2>Made by</h2><pre><code>{escape(command)}</code></pre></section>')
    largest = f'<ul class="largest">{now}</ul>' if now else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="powersum">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light '
        f'dark"><link rel="icon" href="data:,"><title>{escape(title)}</title><style>{style}</style></head>\n<body>'
        f'<header><h1>{escape(title)}</h1><p class="asked">best policy</p><div class="first">{largest}</div>'
        f'<p class="share">expected utility <data id="utility" value="{decision.utility_lower!r} '
        f'{decision.utility_upper!r}">{escape(sides_text(decision))}</data></p><p><span class="status '
        f'{decision.status.value}">{decision.status.value}</span> {escape(decision.reason)}</p>'
        f'<p class="facts">{decision.seconds:.3g} s</p></header>\n<main>{"".join(sections)}</main>\n</body></html>\n'
    )


def _rule(rule: PolicyRule) -> str:
    """A rule as nested lists: what is seen, and what is done."""
    left = MOST_LEAVES

    def shown(tree: PolicyTree) -> str:
        nonlocal left
        if not isinstance(tree, tuple):
            left -= 1
            return f"<b>{escape(str(tree))}</b>"
        if left <= 0:
            return "… (the JSON has all cases)"
        seen, branches = tree
        items = "".join(
            f"<li>{escape(seen)} = {escape(', '.join(map(str, labels)))}: {shown(below)}</li>"
            for labels, below in branches
        )
        return f'<ul class="tree">{items}</ul>'

    text = shown(rule.tree())
    return text if rule.sees else f"<p>{escape(rule.decision)} = {text}</p>"


def picture_of(diagram: Diagram) -> tuple[Model, list[str]]:
    """The links of a diagram as a model, and the role of each variable; behind the variables are the utilities.

    Arrows into a decision come from what it newly sees, and from the decision before.
    """
    model, n = diagram.model, diagram.model.n_variables
    pairs = [(parent, v) for v, above in diagram.parents.items() for parent in above]
    for number, choice in enumerate(diagram.choices):
        earlier = [] if not number else [diagram.choices[number - 1].variable]
        pairs += [(parent, choice.variable) for parent in dict.fromkeys([*earlier, *choice.sees])]
    pairs += [(v, n + number) for number, utility in enumerate(diagram.utilities) for v in utility.scope]
    cards = [*model.cardinalities.tolist(), *[1] * len(diagram.utilities)]
    names = [model.name(v) for v in range(n)]
    names += [f"utility {number + 1}" for number in range(len(diagram.utilities))]
    states = [[str(model.label(v, s)) for s in range(cards[v])] for v in range(n)] + [["added"]] * len(
        diagram.utilities
    )
    tables = [(pair, np.ones([cards[v] for v in pair])) for pair in pairs]
    picture = Model.from_factors(cards, tables, directed=True, names=_different(names), states=states)
    roles = ["chance"] * n + ["utility"] * len(diagram.utilities)
    for v in diagram.decisions:
        roles[v] = "decision"
    return replace(picture, title=model.title), roles


def _graph(diagram: Diagram, decision: Decision) -> str:
    """The diagram, with what to do now."""
    picture, roles = picture_of(diagram)
    do = {diagram.model.variable(key): str(state) for key, state in decision.next_action.items()}
    return f'<section id="graph"><h2>Diagram</h2>{legend_of(roles)}{graph_svg(picture, roles, do)}</section>'


def _different(names: list[str]) -> list[str]:
    """Names of which no two are equal."""
    found: list[str] = []
    for name in names:
        while name in found:
            name += " "
        found.append(name)
    return found
