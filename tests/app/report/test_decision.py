"""The report page of a decision: its trees say what the rules say, and nothing on it is cut."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum.app.report import decision as page
from tests.browser import CHROMIUM, browsing
from tests.decisions.drawn import random_diagram


def followed(tree: Any, seen: dict[str, Any]) -> Any:
    while isinstance(tree, tuple):
        name, branches = tree
        (tree,) = [below for labels, below in branches if seen[name] in labels]
    return tree


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_says_what_the_rule_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    diagram = random_diagram(rng, n=7, decisions=3, recall=bool(seed % 2))
    for rule in ps.decide(diagram, time_limit=2).policy:
        tree = rule.tree()
        for seen, do in rule.rows():
            assert followed(tree, dict(zip(rule.sees, seen, strict=True))) == do


def oil() -> ps.Diagram:
    seismic = np.zeros((3, 2, 4))
    seismic[:, 0, 3] = 1.0
    seismic[:, 1, :3] = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.4, 0.5]]
    return ps.Diagram.from_tables(
        {"oil": {"dry": 0.5, "wet": 0.3, "soaking": 0.2}, ("oil", "test", "seismic"): seismic},
        decisions={"test": (["no", "<yes>"], []), "drill": (["no", "yes"], ["seismic"])},
        utilities={"test": [0, -10], ("oil", "drill"): [[0, -70], [0, 50], [0, 200]]},
        states={"seismic": ["none", "open", "closed", "nothing"]},
    )


def test_the_page_has_the_answer_the_policy_and_the_diagram(tmp_path: Path) -> None:
    path = tmp_path / "oil.html"
    decision = ps.decide(oil(), value_of_information=True)
    ps.write_report(decision, oil(), path, title="Oil & gas", command="powersum decide oil.uai")
    text = path.read_text()
    assert "test = <b>&lt;yes&gt;</b>" in text
    assert "<yes>" not in text
    assert f'value="{decision.utility_lower!r} {decision.utility_upper!r}"' in text
    assert "seismic = open, closed, nothing: <b>yes</b>" in text
    assert "32.5" in text
    assert [text.count(f'class="variable {role}"') for role in ("decision", "chance", "utility")] == [2, 2, 2]
    assert "Oil &amp; gas" in text


def test_long_rules_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_LEAVES", 0)
    assert "the JSON has all cases" in page.decision_html(ps.decide(oil()), oil())


def test_a_decision_goes_with_a_diagram(tmp_path: Path) -> None:
    coin = ps.Model.from_factors([2], [((0,), [0.4, 0.6])])
    with pytest.raises(ps.InputError, match="a decision goes with a diagram"):
        ps.write_report(ps.decide(oil()), coin, tmp_path / "page.html")
    with pytest.raises(ps.InputError, match="a decision goes with a diagram"):
        ps.write_report(ps.solve(coin), oil(), tmp_path / "page.html")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page with")
def test_the_page_fits_phones_and_screens(tmp_path: Path) -> None:
    path = tmp_path / "oil.html"
    ps.write_report(ps.decide(oil()), oil(), path)
    with browsing(tmp_path) as browser:
        for width, dark in itertools.product((390, 1400), (False, True)):
            tab = browser.open(path.as_uri(), width=width, dark=dark)
            tab.wait("document.readyState === 'complete' && document.querySelector('#graph svg')")
            assert tab.value("document.documentElement.scrollWidth <= innerWidth")
            assert tab.complaints() == []
            assert all(re.match("file:", address) for address in tab.addresses())
