"""The sections of the report page as HTML. Every number carries its exact value: ``<data value="…">``."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from powersum.api.distribution import Distribution
from powersum.app.report.layout import MOST_DRAWN
from powersum.app.report.page_graph import WORDS, graph_svg, legend_of
from powersum.app.report.units import bytes_text, log_text
from powersum.model.interval import Interval
from powersum.model.result import Result, Status

if TYPE_CHECKING:
    from powersum.app.report.html import ReportPage

MOST_ROWS = 2000
"""Longer tables are cut; the JSON inside the page has every state."""
MOST_BELIEFS = 10_000
"""Beliefs of larger models would take longer to prepare than anybody waits for a page."""
MOST_SHORT = 10
"""Rows of a table that stands there whole; longer ones scroll, and can be filtered."""
MOST_LARGE = 8
"""States in the largest type; the table has the others."""
TASKS = {"PR": "log partition function", "MAP": "most probable state", "MMAP": "marginal MAP", "power-sum": "power sum"}
SIZES = {
    "variables": "variables",
    "factors": "factors",
    "max_variables": "maximised variables",
    "evidence": "observed variables",
    "reduced_variables": "variables after simplification",
    "reduced_max_variables": "maximised variables after simplification",
    "reduced_factors": "factors after simplification",
    "reduced_entries": "table entries after simplification",
    "components": "independent parts",
    "constrained_width": "constrained width",
    "ibound": "i-bound: a region has at most one variable more",
    "regions": "regions",
    "clusters": "clusters",
    "separators": "separators",
    "mini_buckets": "regions (mini-buckets)",
    "split_variables": "variables split between regions",
    "largest_mini_bucket": "entries of the largest region",
    "entries": "table entries",
    "table_entries": "table entries of all regions",
    "parameters": "shifts and weights",
    "bytes": "bytes of arrays",
    "temperature": "last temperature of the max variables",
}

NOTHING_POSSIBLE = "Nothing is possible"
OPTIONS = {
    "time_limit": "time limit",
    "work": "limit of work",
    "memory": "memory",
    "gap": "gap to stop at",
    "k": "best answers asked for",
    "distinct": "states in which they differ",
    "target": "bound to stop at",
    "change": "change to stop at",
}
"""What options are called on the page; others by their own names."""

CHART = """<section id="bounds" aria-labelledby="bounds-title">
<h2 id="bounds-title">Bounds over time</h2>
<div class="tools" role="group" aria-label="View of the chart">
<button type="button" data-zoom="in" aria-label="Zoom in">+</button>
<button type="button" data-zoom="out" aria-label="Zoom out">−</button>
<button type="button" data-zoom="all">All</button>
<button type="button" data-zoom="log" aria-pressed="false">Log time</button>
</div>
<svg id="chart" tabindex="0" role="img" aria-label="Upper and lower bound over time" aria-describedby="chart-help">
</svg>
<p id="readout" role="status" aria-live="polite"></p>
<p id="chart-help" class="help">Move over the chart, or focus it and press ← and → to read values; drag to zoom in, or
use + − 0.</p>
</section>"""


def number(value: float, digits: int = 6) -> str:
    """A value as people read it, with its exact value for machines."""
    return f'<data value="{value!r}">{log_text(value, digits)}</data>'


def title(report: ReportPage) -> str:
    """The page's title."""
    return escape(report.title)


def embedded(result: Result) -> str:
    """The result's JSON, safe inside a script element."""
    return result.to_json().replace("<", "\\u003c")


def headline(report: ReportPage) -> str:
    """The answer in the largest type, what was observed beside it; then how sure it is, and its log."""
    result = report.result
    query = report.question.query
    asked = [TASKS[query.task]]
    if query.task == "MMAP":
        asked.append(f"{len(query.max_variables)} of {report.model.n_variables} variables maximised")
    value = _value(result)
    states = _states(report)
    impossible = result.status is Status.INFEASIBLE
    words = NOTHING_POSSIBLE if impossible else value
    largest = states or f'<p class="largest">{words}</p>'
    small = [f"<span>{value}</span>"] if states or impossible else []
    if math.isfinite(result.gap) and result.status is Status.BOUNDED:
        small.append(f'gap <span id="gap">{number(result.gap, 4)}</span>')
    if math.isfinite(result.log_upper):
        sign = "=" if result.status is Status.OPTIMAL else "≤"
        small.append(f"log10 {sign} {number(result.log_upper / math.log(10), 6)}")
    small.append(_duration(result.seconds))
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in result.notes)
    return (
        f'<p class="asked">{escape(", ".join(asked))}</p><div class="first">{largest}{_observed(report)}</div>'
        f'<p><span class="status {result.status.value}">{escape(result.status.value)}</span> '
        f"{escape(result.reason)}</p><p class='facts'>{' · '.join(small)}</p>{notes}"
    )


def _duration(seconds: float) -> str:
    """How long it took, as people say it."""
    shown = "less than 0.001" if seconds < 0.001 else log_text(seconds, 3)
    return f'<data value="{seconds!r}">{shown}</data> s'


def _value(result: Result) -> str:
    """The log value from both sides, as far as they are known."""
    lower, upper = result.log_lower, result.log_upper
    if result.status is Status.INFEASIBLE:
        return f"log value = {number(-math.inf)}"
    if lower == upper or result.status is Status.OPTIMAL:
        return f'log value = <span id="upper">{number(upper, 10)}</span>'
    if lower == -math.inf:
        return f'log value ≤ <span id="upper">{number(upper, 10)}</span>'
    return f'<span id="lower">{number(lower, 10)}</span> ≤ log value ≤ <span id="upper">{number(upper, 10)}</span>'


def _states(report: ReportPage) -> str:
    """The first states of the answer and how probable they are together; nothing where nothing was maximised."""
    names = [
        (name, state)
        for name, state in report.result.assignment.items()
        if report.roles[report.model.variable(name)] == "max"
    ]
    if not names:
        return ""
    shown = "".join(f"<li>{escape(name)} = <b>{escape(str(state))}</b></li>" for name, state in names[:MOST_LARGE])
    rest = len(names) - MOST_LARGE
    more = f'<li class="more"><a href="#answer">and {rest} more</a></li>' if rest > 0 else ""
    probability = report.result.probability
    share = ""
    if probability is not None:
        given = ", given what is observed" if report.roles.count("evidence") else ""
        share = f'<p class="share">probability {_interval(probability)}{given}</p>'
    return f'<div class="answer"><ul class="largest">{shown}{more}</ul>{share}</div>'


def _observed(report: ReportPage) -> str:
    """What is known, beside the answer."""
    known = [v for v, role in enumerate(report.roles) if role == "evidence"]
    if not known:
        return ""
    pairs = [(report.model.name(v), report.states.get(v, "uncertain")) for v in known[:MOST_LARGE]]
    items = "".join(f"<li>{escape(name)} = {escape(state)}</li>" for name, state in pairs)
    rest = f"<li>and {len(known) - MOST_LARGE} more</li>" if len(known) > MOST_LARGE else ""
    return f'<div class="observed"><h2>Observed</h2><ul>{items}{rest}</ul></div>'


def bounds(report: ReportPage) -> str:
    """The chart of both bounds over time; nothing where they met at once, for then there is nothing to see."""
    sides = {(snapshot.log_lower, snapshot.log_upper) for snapshot in report.result.history}
    return CHART if len(sides) > 1 else ""


def answer(report: ReportPage) -> str:
    """States of the maximised variables, and how probable each is by itself."""
    names = list(report.result.assignment.items())
    if not names:
        return f"<p>{_why_no_states(report)}</p>"
    # A column of unknowns says nothing; the section of the beliefs says why.
    apart = not isinstance(report.beliefs, str) and any(_known(report.beliefs[name]) for name, _ in names[:MOST_ROWS])
    rows = []
    for name, state in names[:MOST_ROWS]:
        variable = report.model.variable(name)
        alone = ""
        if apart and not isinstance(report.beliefs, str):
            index = report.model.state(variable, state)
            alone = _share(report.beliefs.at(variable).at(index))
        observed = " (observed)" if report.roles[variable] == "evidence" else ""
        rows.append(
            f'<tr data-variable="{variable}" tabindex="-1"><th scope="row">{escape(name)}</th>'
            f"<td>{escape(str(state))}{observed}</td><td>{alone}</td></tr>"
        )
    heads = ("variable", "state", "by itself" if apart else "")
    return _table("answer", heads, rows, len(names)) + _best(report.result)


def _why_no_states(report: ReportPage) -> str:
    if report.result.status is Status.INFEASIBLE:
        return "There is none: the zeros of the model and what is observed together exclude every state."
    if not report.question.query.answered:
        return "Nothing is maximised: the answer is the value above, the sum over all states."
    return "No states were found in the time given: there is only an upper bound on their value."


def _best(result: Result) -> str:
    """Several answers in order, where they were asked for, and what comes after them."""
    if not result.best:
        return ""
    rows = []
    for one in result.best:
        states = list(one.assignment.items())
        shown = ", ".join(f"{escape(name)} = {escape(str(state))}" for name, state in states[:MOST_LARGE])
        rest = f" and {len(states) - MOST_LARGE} more" if len(states) > MOST_LARGE else ""
        share = "" if one.probability is None else f"{escape(str(one.probability))}, "
        sure = "" if one.status is Status.OPTIMAL else ", not proven"
        rows.append(f'<li>{shown}{rest} <span class="help">{share}log value {number(one.log_lower)}{sure}</span></li>')
    after = ""
    if result.log_upper_next is not None:
        none = result.log_upper_next == -math.inf
        after = (
            "There are no more." if none else f"Any other has a log value of at most {number(result.log_upper_next)}."
        )
    return f'<h3>The {len(rows)} best</h3><ol class="best">{"".join(rows)}</ol><p class="help">{after}</p>'


def legend(report: ReportPage) -> str:
    """What the shapes of the graph mean, as far as they occur."""
    return legend_of(report.roles)


def graph(report: ReportPage) -> str:
    """The graph with the answer on it."""
    if not report.model.n_variables:
        return "<p>The model has no variables.</p>"
    total = report.model.n_variables
    cut = ""
    if total > MOST_DRAWN:
        cut = f"<p class='note'>{MOST_DRAWN} of {total} variables drawn: those nearest to what is asked.</p>"
    return cut + graph_svg(report.model, report.roles, report.states)


def below(report: ReportPage) -> tuple[str, str]:
    """What stands below the costs and below the graph, so that both columns are about as long."""
    inside = beliefs(report)
    first = (
        f'<section id="beliefs" aria-labelledby="beliefs-title">\n<h2 id="beliefs-title">Beliefs</h2>\n{inside}'
        "</section>\n"
    )
    second = (
        f'<section id="making" aria-labelledby="making-title">\n<h2 id="making-title">How this was made</h2>\n'
        f'{making(report)}\n<p><button type="button" id="save">Save the result as JSON</button></p>\n</section>\n'
    )
    return (second, first) if "<table" in inside or bounds(report) else ("", first + second)


def beliefs(report: ReportPage) -> str:
    """The distribution of each variable given the evidence."""
    if isinstance(report.beliefs, str):
        return f"<p>{escape(report.beliefs)}</p>"
    known = [v for v in range(report.model.n_variables) if _known(report.beliefs.at(v))]
    spent = f"within {report.belief_seconds:g} s"
    if not known:
        return f"<p>Not known: exact distributions do not fit, and {spent} no other could be bounded.</p>"
    kind = "Exact distributions of single variables given the evidence."
    if not report.beliefs.exact:
        kind = f"Distributions of single variables given the evidence, from both sides: exact ones do not fit {spent}."
    rest = report.model.n_variables - len(known)
    if rest:
        kind += f" Of {rest} variables nothing is known: the time did not reach them."
    rows = [
        f'<tr data-variable="{v}" tabindex="-1"><th scope="row">{escape(report.model.name(v))}</th>'
        f'<td class="role">{WORDS[report.roles[v]]}</td><td>{_distribution(report.beliefs.at(v))}</td></tr>'
        for v in known[:MOST_ROWS]
    ]
    table = _table("beliefs", ("variable", "role", "distribution"), rows, len(known))
    return f"<p>{kind} The most probable states one by one need not be the most probable together.</p>{table}"


def _known(own: Distribution) -> bool:
    """Whether anything is known of a variable: one state has other sides than 0 and 1."""
    return any(own.at(state).lower > 0.0 or own.at(state).upper < 1.0 for state in range(len(own)))


def cost(report: ReportPage) -> str:
    """Sizes of the run, and what an exact answer would take; all of it is in the result."""
    sizes = report.result.sizes
    rows = [
        f'<tr><th scope="row">{escape(SIZES.get(name, name.replace("_", " ")))}</th><td>{number(value)}</td></tr>'
        for name, value in sizes.items()
        if name != "log2_exact_bytes"
    ]
    table = f'<div class="scroll"><table>{"".join(rows)}</table></div>'
    if "log2_exact_bytes" not in sizes:
        return table
    return (
        f"{table}<p>The constrained width is {sizes['constrained_width']}: an exact answer by elimination takes "
        f"{bytes_text(sizes['log2_exact_bytes'])}.</p>"
    )


def making(report: ReportPage) -> str:
    """The command, the method with its options, and the version."""
    result = report.result
    options = "".join(
        f'<tr><th scope="row">{escape(OPTIONS.get(name, name))}</th><td>{escape(_option(name, value))}</td></tr>'
        for name, value in result.options.items()
        if value is not None
    )
    command = f"<pre><code>{escape(report.command)}</code></pre>" if report.command else ""
    return (
        f'{command}<div class="scroll"><table><tr><th scope="row">method</th><td>{escape(result.method)}</td></tr>'
        f"{options}</table></div><p>powersum {escape(result.version)}. All values are natural logarithms unless they "
        "say log10.</p>"
    )


def _option(name: str, value: object) -> str:
    """The value of an option with its unit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if name == "memory":
        return bytes_text(math.log2(value)) if 0 < value < math.inf else "all there is"
    text = log_text(value)
    return f"{text} s" if name in ("time_limit", "work") else text


def _table(name: str, heads: tuple[str, ...], rows: list[str], total: int) -> str:
    """A table with a box to filter its rows where there are many."""
    box = (
        f'<p><label>Filter <input type="search" data-filter="{name}" placeholder="name or state"></label></p>'
        if len(rows) > MOST_SHORT
        else ""
    )
    cut = f"<p>The first {len(rows)} of {total}; the JSON in this page has all states.</p>" if total > len(rows) else ""
    head = "".join(f"<th>{head}</th>" for head in heads)
    long = " long" if len(rows) > MOST_SHORT else ""
    return (
        f'{box}<div class="scroll tall{long}" tabindex="0" role="region" aria-label="{name}"><table id="table-{name}">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{cut}"
    )


def _interval(probability: Interval) -> str:
    """A probability as people read it, with its exact sides for machines."""
    sides = f"{probability.lower!r} {probability.upper!r}"
    return f'<data id="probability" value="{sides}">{escape(str(probability))}</data>'


def _share(probability: Interval) -> str:
    """A probability with a bar, as long as the lower side; the exact sides are there for machines."""
    value = repr(float(probability)) if probability.exact else f"{probability.lower!r} {probability.upper!r}"
    text = f'<data value="{value}">{escape(str(probability))}</data>'
    return f'<span class="bar"><i style="width:{100 * probability.lower:.1f}%"></i></span> {text}'


def _distribution(own: Distribution) -> str:
    """Up to six most probable states with their bars."""
    ranked = sorted(((own.at(state), label) for state, label in enumerate(own)), key=lambda pair: -pair[0].upper)
    shown = [
        f'<span class="state">{escape(str(label))} {_share(share)}</span>'
        for share, label in ranked[:6]
        if share.upper > 0.0005 or share is ranked[0][0]
    ]
    return "".join(shown)
