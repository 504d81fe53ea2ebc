"""The report page: complete by itself, its numbers those of the JSON, and in a browser without a complaint."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum import Model, Result
from powersum.app.cli.app import run_app
from powersum.app.report.html import report_html
from tests.browser import CHROMIUM, browsing
from tests.interop.networks import CLINIC

EVIDENCE = {"dyspnoea": "much", "xray": "shadow"}


class Elements(HTMLParser):
    """All elements with their attributes, and the text by the innermost id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def embedded(page: str) -> Any:
    match = re.search(r'<script type="application/json" id="result">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    return json.loads(match.group(1))


def value_of(page: str, element: str) -> float:
    match = re.search(rf'id="{element}"><data value="([^"]+)"', page)
    assert match is not None
    return float(match.group(1))


@pytest.fixture(scope="module")
def answer() -> Result:
    return ps.solve(CLINIC, ["cancer", "bronchitis"], evidence=EVIDENCE)


@pytest.fixture(scope="module")
def page(answer: Result) -> str:
    return report_html(answer, CLINIC, evidence=EVIDENCE, command="powersum solve 'a b.bif'", title="A <clinic>")


def bounded() -> tuple[Result, Model, list[int]]:
    model, query = ps.generate.grid(8, 8, strength=2.0, seed=1)
    return ps.bound(model, query, method="gdd", sweeps=30), model, query


CLOSING = Result(
    log_upper=-4.0,
    log_lower=-4.5,
    assignment={"cancer": "yes"},
    status=ps.Status.BOUNDED,
    reason="The time limit was reached.",
    history=(ps.Snapshot(0.1, 0, -3.0, -6.0), ps.Snapshot(0.2, 1, -4.0, -4.5)),
    method="solve",
    options={},
    sizes={},
    version="0",
)


def test_the_answer_comes_first(page: str, answer: Result) -> None:
    header = page[page.index("<header>") : page.index("</header>")]
    assert "<li>cancer = <b>yes</b></li>" in header
    assert header.index("cancer = ") < header.index(f"probability {'<data'}") < header.index("Observed")
    assert header.index("xray = shadow") < header.index("log value")
    assert answer.probability is not None
    assert f"{answer.probability}</data>, given what is observed" in header


def test_without_states_the_value_comes_first() -> None:
    page = report_html(ps.solve(CLINIC), CLINIC)
    assert '<p class="largest">log value = ' in page
    # Simplification alone answers it: no table is left.
    assert "takes 0 bytes" in page or "constrained width" not in page


def test_an_answer_found_at_once_has_no_chart(page: str) -> None:
    assert 'id="chart"' not in page
    assert 'id="chart"' in report_html(CLOSING, CLINIC)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page with")
def test_names_and_variables_of_the_graph_do_not_collide(tmp_path: Path) -> None:
    """As the browser draws them, with room between names; capitals are wide, and bold ones wider still."""
    names = [f"{'HYPOVOLEMIA' if v % 2 else 'co'}{v}" for v in range(30)]
    tables: dict[Any, Any] = {name: {"FALSE": 0.3, "TRUE": 0.7} for name in names[:24]}
    tables |= {(names[v - 8], names[v]): [[0.9, 0.1], [0.4, 0.6]] for v in range(24, 30)}
    model = Model.from_tables(tables, directed=True)
    asked, evidence = names[1:16:2], {names[20]: 1}
    page = tmp_path / "page.html"
    page.write_text(report_html(ps.solve(model, asked, evidence=evidence), model), encoding="utf-8")
    with browsing(tmp_path) as browser:
        tab = browser.open(page.as_uri())
        tab.wait("document.querySelectorAll('.graph text').length === 30")
        assert tab.value(OVERLAPPING) == []


OVERLAPPING = """(() => {
  const all = [...document.querySelectorAll('.graph text, .graph circle, .graph rect')].map((e) => [e, e.getBBox()]);
  return all.flatMap(([one, p], i) => all.slice(0, i).filter(([, q]) =>
    p.x < q.x + q.width + 4 && q.x < p.x + p.width + 4 && p.y < q.y + q.height - 2 && q.y < p.y + p.height - 2)
    .map(([other]) => one.textContent + ' / ' + other.textContent));
})()"""


def test_long_answers_are_cut_in_the_headline() -> None:
    result, model, query = bounded()
    page = report_html(result, model, maximize=query)
    assert f'<a href="#answer">and {len(query) - 8} more</a>' in page
    assert page.count('<tr data-variable="') >= len(query)


def test_a_cut_graph_says_so() -> None:
    model, query = ps.generate.grid(20, 20)
    page = report_html(ps.bound(model, query, method="gdd", sweeps=1), model)
    assert "300 of 400 variables drawn" in page
    assert "variables drawn" not in report_html(CLOSING, CLINIC)


def test_a_state_stands_before_its_probability(page: str) -> None:
    assert re.search(r'<span class="state">yes <span class="bar">', page)


def test_numbers_are_those_of_the_json(page: str, answer: Result) -> None:
    data = embedded(page)
    assert data == json.loads(answer.to_json())
    assert value_of(page, "upper") == data["log_upper"] == answer.log_upper
    assert ">cancer</th><td>yes</td>" in page
    assert f">bronchitis</th><td>{answer.assignment['bronchitis']}</td>" in page


def test_both_bounds_and_the_gap() -> None:
    result, model, query = bounded()
    page = report_html(result, model, maximize=query)
    assert value_of(page, "upper") == embedded(page)["log_upper"] == result.log_upper
    sided = ps.Result(
        **{
            **{name: getattr(result, name) for name in ps.Result.__dataclass_fields__},
            "log_lower": result.log_upper - 1.5,
        }
    )
    page = report_html(sided, model, maximize=query)
    assert value_of(page, "lower") == sided.log_lower
    assert value_of(page, "gap") == pytest.approx(1.5)
    assert embedded(page)["gap"] == value_of(page, "gap")


def test_beliefs_are_marginals(page: str) -> None:
    beliefs = ps.marginals(CLINIC, evidence=EVIDENCE).beliefs[CLINIC.variable("smoker")]
    for belief in beliefs.tolist():
        assert f'<data value="{belief!r}">' in page


def test_nothing_comes_from_elsewhere(page: str) -> None:
    for tag, attributes in Elements(page).found:
        for name in ("src", "href", "data", "action"):
            link = attributes.get(name) or ""
            assert tag in ("a", "link") or not link
            assert link.startswith(("#", "data:")) or not link
    assert "@import" not in page
    assert "url(http" not in page
    assert page.count("http") == page.count("http://www.w3.org/2000/svg")


def test_several_answers_are_all_there() -> None:
    result = ps.solve(CLINIC, ["cancer", "bronchitis"], evidence=EVIDENCE, k=3)
    page = report_html(result, CLINIC)
    listed = page[page.index('<ol class="best">') : page.index("</ol>")]
    assert listed.count("<li>") == 3
    for one in result.best:
        assert f"cancer = {one.assignment['cancer']}, bronchitis = {one.assignment['bronchitis']}" in listed
        assert f'<data value="{one.log_lower!r}">' in listed
    assert "Any other has a log value of at most" in page
    assert "There are no more." in report_html(ps.solve(CLINIC, ["cancer"], k=5), CLINIC)
    assert '<ol class="best">' not in report_html(ps.solve(CLINIC, ["cancer"]), CLINIC)


def test_why_there_are_no_beliefs() -> None:
    model = Model.from_tables({"a": {"x": 0.0, "y": 1.0}})
    page = report_html(ps.solve(model, evidence={"a": "x"}), model)
    assert "There are none: the evidence has probability 0: there are no marginals." in page
    large = Model.from_factors([2] * 10_001, [])
    assert "more than 10000 variables" in report_html(ps.solve(large), large)


def test_beliefs_that_the_time_did_not_reach_are_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page full of "unknown" says less than the reason."""
    result, model, query = bounded()
    exact = ps.marginals(model)

    def shown(known: list[int]) -> str:
        count = range(model.n_variables)
        lower = tuple(exact.log_lower[v] if v in known else np.full(2, -np.inf) for v in count)
        upper = tuple(exact.log_upper[v] if v in known else np.zeros(2) for v in count)
        some = replace(exact, log_lower=lower, log_upper=upper, exact=False)
        monkeypatch.setattr("powersum.app.report.html._beliefs", lambda _: some)
        return report_html(result, model, maximize=query)

    none = shown([])
    assert "within 3 s no other could be bounded" in none
    assert "unknown" not in none
    assert 'id="table-beliefs"' not in none
    assert "by itself" not in none
    some = shown([query[0]])
    assert f"Of {model.n_variables - 1} variables nothing is known" in some
    assert "by itself" in some


def test_an_impossible_question_is_answered_in_words() -> None:
    model = Model.from_tables({"a": {"x": 0.0, "y": 1.0}, ("a", "b"): [[0.5, 0.5], [0.5, 0.5]]})
    page = report_html(ps.solve(model, ["b"], evidence={"a": "x"}), model)
    assert '<p class="largest">Nothing is possible</p>' in page
    assert "exclude every state" in page
    assert "gap" not in page[page.index("<header>") : page.index("</header>")]


def test_options_are_in_the_readers_words() -> None:
    page = report_html(ps.solve(CLINIC, ["cancer"], time_limit=20, memory="2G"), CLINIC)
    making = page[page.index('id="making"') :]
    assert "<td>20 s</td>" in making
    assert "<td>1.86 GiB</td>" in making
    assert "—" not in making[: making.index("</section>")]


def test_the_legend_has_what_is_drawn() -> None:
    page = report_html(ps.solve(CLINIC, ["cancer"]), CLINIC)
    legend = page[page.index('class="legend"') :].split("</p>")[0]
    assert "maximised" in legend
    assert "observed" not in legend


def test_text_from_outside_is_text(page: str) -> None:
    assert "<clinic>" not in page
    assert "powersum solve &#x27;a b.bif&#x27;" in page
    odd = Model.from_tables({"</script><b>": {"<i>": 0.3, "]]>": 0.7}})
    shown = report_html(ps.solve(odd, "all"), odd, maximize="all")
    assert shown.count("</script>") == 2
    assert embedded(shown)["assignment"] == {"</script><b>": "]]>"}


def test_the_result_knows_its_question(answer: Result) -> None:
    page = report_html(answer, CLINIC)
    assert page == report_html(answer, CLINIC, maximize=["cancer", "bronchitis"], evidence=EVIDENCE)
    weighted = ps.bound(CLINIC, weights=ps.Query(np.linspace(0.0, 1.0, CLINIC.n_variables)), sweeps=1)
    assert "power sum" in report_html(Result.from_dict(weighted.to_dict()), CLINIC)
    with pytest.raises(ps.InputError, match="the result is about another model"):
        report_html(answer, Model.from_factors([2], []))


def test_the_page_computes_no_sizes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    result, model, query = bounded()
    monkeypatch.setattr("powersum.app.report.html._beliefs", lambda _: "Not computed.")
    for work in ("simplify.simplified", "simplify.simplify", "ordering.elimination_order", "ordering.order_cost"):
        monkeypatch.setattr(f"powersum.prepare.{work}", None)
    page = report_html(result, model)
    assert f"The constrained width is {result.sizes['constrained_width']}: an exact answer" in page
    assert result.sizes["log2_exact_bytes"] > 3 + result.sizes["constrained_width"]
    assert result.sizes["max_variables"] == len(query)


@pytest.mark.parametrize("evidence", [{}, {"a": "x"}, {"a": [0.0, 0.0]}])
def test_every_kind_of_answer_has_a_page(evidence: dict[str, Any]) -> None:
    model = Model.from_tables({"a": {"x": 0.0, "y": 1.0}})
    shown = report_html(ps.solve(model, evidence=evidence), model, evidence=evidence)
    assert "log value = " in shown
    assert ('<data value="-inf">' in shown) == bool(evidence)
    empty = Model.from_factors([], [((), [2.0])])
    assert "no variables" in report_html(ps.solve(empty), empty)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "clinic.uai"
    ps.write(CLINIC, model)
    for command in ("solve", "bound"):
        page, answer = tmp_path / f"{command}.html", tmp_path / f"{command}.json"
        words = [command, str(model), "--max", "1,2", "--report", str(page), "--json", str(answer)]
        assert run_app(words) == 0
        assert f"wrote {page}" in capsys.readouterr().out
        text = page.read_text(encoding="utf-8")
        assert embedded(text) == json.loads(answer.read_text())
        assert f"powersum {command} {model} --max 1,2" in text
    assert run_app(["solve", str(model), "--report", str(model)]) == 2
    assert "would be overwritten" in capsys.readouterr().err


def browse(page: str, folder: Path, *options: str) -> tuple[str, str]:
    """The page as a browser has it after its scripts ran, and what the browser had to say."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr", "--virtual-time-budget=2000", *options,
        "--dump-dom", (folder / "page.html").as_uri(),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return ran.stdout, ran.stderr


def pressing(page: str, script: str) -> str:
    """The page with a script of the test's own at its end."""
    return page.replace("</body>", f"<script>{script}</script></body>")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page with")
class TestInABrowser:
    """What scripts do: chart, keys, zoom, filter, and the light that joins rows and graph."""

    @pytest.mark.parametrize("width", [390, 1280])
    def test_no_complaints_and_no_sideways_scrolling(self, page: str, tmp_path: Path, width: int) -> None:
        script = "document.body.dataset.wide = document.documentElement.scrollWidth > window.innerWidth"
        shown, said = browse(pressing(page, script), tmp_path, f"--window-size={width},900")
        assert "CONSOLE" not in said
        assert 'data-wide="false"' in shown

    def test_both_curves_are_drawn(self, tmp_path: Path) -> None:
        shown, said = browse(report_html(CLOSING, CLINIC), tmp_path)
        assert "CONSOLE" not in said
        assert shown.count('class="curve') == 2

    def test_no_names_collide(self, tmp_path: Path) -> None:
        model, query = ps.generate.diagnosis(40, states=3, observed=0.0, seed=0)
        script = """
            const shapes = document.querySelectorAll(".graph text, .graph circle");
            const boxes = Array.from(shapes, (e) => e.getBoundingClientRect());
            let clashes = 0;
            boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
              if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
                && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) clashes += 1;
            }));
            document.body.dataset.clashes = boxes.length + " boxes, " + clashes + " clashes";
        """
        page = report_html(ps.bound(model, query, sweeps=1), model)
        shown, _ = browse(pressing(page, script), tmp_path, "--window-size=1280,900")
        assert 'data-clashes="80 boxes, 0 clashes"' in shown

    def test_chart_reads_and_zooms_by_keyboard(self, tmp_path: Path) -> None:
        # A bound that falls: `gdd` would end above the corner bound, and a bound that stays has no chart.
        model, query = ps.generate.grid(8, 8, strength=0.3, seed=1)
        result = ps.bound(model, query, method="tree", ibound=3, sweeps=30)
        assert result.history[-1].log_upper < result.history[0].log_upper
        script = """
            const chart = document.getElementById("chart");
            const press = (key) => chart.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
            const ticks = () => Array.from(chart.querySelectorAll("text")).map((t) => t.textContent).join(" ");
            const before = ticks();
            chart.focus(); press("Home"); press("ArrowRight");
            document.body.dataset.second = document.getElementById("readout").textContent;
            press("End");
            document.body.dataset.last = document.getElementById("readout").textContent;
            press("+"); press("+");
            document.body.dataset.zoomed = ticks() !== before;
            press("0");
            document.body.dataset.back = ticks() === before;
            press("l"); press("l");
            document.body.dataset.same = ticks() === before;
        """
        shown, said = browse(pressing(report_html(result, model, maximize=query), script), tmp_path)
        assert "CONSOLE" not in said
        assert 'data-zoomed="true" data-back="true" data-same="true"' in shown
        for name, snapshot in (("second", result.history[1]), ("last", result.history[-1])):
            match = re.search(rf'data-{name}="([^"]*)"', shown)
            assert match is not None
            upper = float(match.group(1).rpartition("≤")[2].replace("−", "-"))
            assert upper == pytest.approx(snapshot.log_upper, rel=1e-9)

    def test_filter_and_light(self, tmp_path: Path) -> None:
        result, model, query = bounded()
        script = f"""
            const box = document.querySelector("[data-filter=answer]");
            box.value = "{query[3]}"; box.dispatchEvent(new Event("input"));
            const rows = Array.from(document.querySelectorAll("#table-answer tbody tr"));
            document.body.dataset.rows = rows.filter((r) => !r.hidden).length;
            rows[3].focus();
            document.body.dataset.lit = document.querySelector(".graph .lit").dataset.variable;
            document.querySelector("[data-graph=in]").click();
            document.body.dataset.graph = document.querySelector(".graph").getAttribute("viewBox");
        """
        shown, said = browse(pressing(report_html(result, model, maximize=query), script), tmp_path)
        assert "CONSOLE" not in said
        matching = sum(str(query[3]) in f"{v}" for v in query)
        found = re.search(r'data-rows="(\d+)" data-lit="(\d+)" data-graph="([^"]+)"', shown)
        assert found is not None
        assert matching <= int(found.group(1)) < len(query)
        assert found.group(2) == str(query[3])
        assert not found.group(3).startswith("0 0 ")
