"""How models and results show themselves: as text, and in notebooks."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from powersum.app.report.units import bytes_text, log_text

if TYPE_CHECKING:
    from powersum.api.distribution import Marginals
    from powersum.model.model import Model
    from powersum.model.result import Result

MOST_ORDERED = 100_000
"""Printing a larger model would keep people waiting for its width."""
MOST_DRAWN, MOST_ROWS, MOST_STATES = 60, 12, 60


def model_text(model: Model) -> str:
    """Size, width and cost, one line each."""
    return f"{repr(model)[1:-1].removeprefix('powersum.Model: ')}\n{_cost(model)}"


def model_html(model: Model) -> str:
    """The same for a notebook, with a picture of a small model."""
    lines = "<br>".join(escape(line) for line in model_text(model).splitlines())
    picture = ""
    if 0 < model.n_variables <= MOST_DRAWN:
        from powersum.app.report.page_graph import graph_svg

        picture = f'<div style="max-width:30em">{graph_svg(model, ["sum"] * model.n_variables, {})}</div>'
    return f"<div>{lines}{picture}</div>"


def result_html(result: Result) -> str:
    """Status, bounds, and the first states of the answer."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(str(state))}</td></tr>"
        for name, state in list(result.assignment.items())[:MOST_ROWS]
    )
    rest = len(result.assignment) - MOST_ROWS
    more = f"<tr><td>…</td><td>{rest} more</td></tr>" if rest > 0 else ""
    table = f"<table><tr><th>variable</th><th>state</th></tr>{rows}{more}</table>" if rows else ""
    others = "".join(
        f"<tr><td>{number}</td><td>{escape(str(one.probability or ''))}</td><td>{log_text(one.log_lower, 10)}</td>"
        f"<td>{escape(one.status)}</td></tr>"
        for number, one in enumerate(result.best, 1)
    )
    if others:
        table += f"<table><tr><th></th><th>probability</th><th>log value</th><th></th></tr>{others}</table>"
    probability = "" if result.probability is None else f"<b>probability {escape(str(result.probability))}</b><br>"
    return (
        f"<div>{probability}<b>{escape(result.status)}</b>: {log_text(result.log_lower, 10)} ≤ log value ≤ "
        f"{log_text(result.log_upper, 10)}<br>{escape(result.reason)} ({result.seconds:.2f} s){table}</div>"
    )


def marginals_html(found: Marginals) -> str:
    """A row for each state of the first variables, with a bar for its probability."""
    rows, shown = "", 0
    for own in map(found.at, range(len(found))):
        if shown >= MOST_STATES:
            break
        name = escape(found.model.name(own.variable))
        for state, label in enumerate(own):
            share = float(found.beliefs[own.variable][state])
            bar = f'<div style="width:{100.0 * share:.1f}%;height:0.6em;background:#4878a8"></div>'
            rows += (
                f"<tr><td>{'' if state else name}</td><td>{escape(str(label))}</td>"
                f'<td style="width:8em">{bar}</td><td>{escape(str(own.at(state)))}</td></tr>'
            )
            shown += 1
    total = int(found.model.cardinalities.sum())
    more = f"<tr><td>…</td><td>{total - shown} more states</td></tr>" if total > shown else ""
    kind = "exact" if found.exact else "bars show estimates within the intervals"
    return (
        f"<table><caption>Marginals, {kind}</caption>"
        f"<tr><th>variable</th><th>state</th><th></th><th>probability</th></tr>{rows}{more}</table>"
    )


def _cost(model: Model) -> str:
    """What exact summation over all variables takes."""
    if not model.n_variables:
        return "no variables: the value is a constant"
    if model.n_variables > MOST_ORDERED:
        return "width not computed: powersum info gives it"
    from powersum.prepare.ordering import elimination_order, order_cost

    order = elimination_order(model, np.ones(model.n_variables), time_limit=0.5)
    cost = order_cost(model, order)
    return f"width {cost.width}: summing everything out takes tables of {bytes_text(cost.log2_total + math.log2(8))}"
