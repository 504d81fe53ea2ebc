"""The page about an influence diagram: its numbers are those of ``decide`` and of the policy's network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
from tests.app.explore import conftest
from tests.app.explore.conftest import Served
from tests.app.report.test_decision import oil
from tests.browser import CHROMIUM, browsing
from tests.decisions.drawn import random_diagram
from tests.oracle import joint_log_table

OIL = oil()
TEST, SEISMIC, DRILL = (OIL.model.variable(name) for name in ("test", "seismic", "drill"))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    from powersum.app.explore.diagram import DiagramExplorer

    monkeypatch.setattr(conftest, "Explorer", lambda model, *args, seconds: DiagramExplorer(OIL, *args, seconds=5.0))
    with conftest.serving(OIL.model, "oil.uai") as found:
        yield found


def asked(*evidence: tuple[int, int]) -> dict[str, Any]:
    return {"question": {"max": [], "evidence": [list(pair) for pair in evidence]}}


def test_beliefs_are_those_under_the_policy(served: Served) -> None:
    for known in ({}, {TEST: 1, SEISMIC: 0}):
        network = ps.decide(OIL, evidence=known).network(OIL)
        expected = ps.marginals(network, evidence=known)
        said = served.json("/api/beliefs", asked(*known.items()) | {"of": list(range(4))})
        for v in range(4):
            assert [sides[0] for sides in said["beliefs"][str(v)]] == pytest.approx(expected.beliefs[v].tolist())


def test_the_answer_is_that_of_decide(served: Served) -> None:
    (_, first), (kind, said) = served.events(asked())
    assert (kind, said["status"], said["utility"]) == ("result", "optimal", "22.5")
    assert [(one["name"], one["label"]) for one in said["assignment"]] == [("test", "<yes>")]
    status, page = served.ask(f"/api/report/{first['id']}")
    assert status == 200
    assert "expected utility" in page
    (_, first), (_, said) = served.events(asked((TEST, 1), (SEISMIC, 0)))
    assert [(one["name"], one["label"]) for one in said["assignment"]] == [("drill", "no")]
    assert served.ask(f"/api/report/{first['id']}")[0] == 200
    assert served.ask("/api/report/nothing")[0] == 404


def test_what_cannot_be_known_is_said(served: Served) -> None:
    (_, _), (kind, said) = served.events(asked((SEISMIC, 0)))
    assert kind == "failed"
    assert "which the open decision test influences" in said["error"]


def test_what_is_copied_asks_decide(served: Served, tmp_path: Path) -> None:
    said = served.json("/api/question", asked((TEST, 1), (SEISMIC, 0)))
    assert said["command"].startswith("powersum decide oil.uai --evidence ")
    assert "ps.decide(model, evidence={" in said["python"]


@pytest.mark.parametrize("seed", range(20))
def test_the_network_of_a_policy_has_its_utility(seed: int) -> None:
    diagram = random_diagram(np.random.default_rng(seed), n=6, decisions=2)
    decision = ps.decide(diagram, time_limit=5.0)
    weight = np.exp(joint_log_table(decision.network(diagram)))
    n = diagram.model.n_variables
    utility: Any = 0.0
    for part in diagram.utilities:
        sizes = dict(zip(part.scope, part.table.shape, strict=True))
        utility = utility + np.transpose(part.table, np.argsort(part.scope)).reshape(
            [sizes.get(v, 1) for v in range(n)]
        )
    assert weight.sum() == pytest.approx(1.0)
    assert (weight * utility).sum() == pytest.approx(decision.utility_lower, rel=1e-6, abs=1e-6)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page with")
@pytest.mark.parametrize("width", [390, 1280])
def test_decide_and_observe_on_the_page(served: Served, tmp_path: Path, width: int) -> None:
    with browsing(tmp_path) as browser:
        tab = browser.open(served.address, width=width)
        tab.wait("document.body.dataset.ready && document.getElementById('now').innerText.includes('22.5')")
        kinds = {
            kind: tab.value(f"document.querySelectorAll('.box.{kind}').length") for kind in ("decision", "utility")
        }
        assert kinds == {"decision": 2, "utility": 2}
        tab.click(f'[data-id="{TEST}"] [data-state="1"]')
        tab.wait("document.getElementById('chips').innerText.includes('test')")
        tab.click(f'[data-id="{SEISMIC}"] [data-state="0"]')
        tab.wait("document.getElementById('now').innerText.includes('drill = no')")
        assert tab.value("document.documentElement.scrollWidth <= innerWidth")
        assert tab.complaints() == [], json.dumps(tab.complaints())
