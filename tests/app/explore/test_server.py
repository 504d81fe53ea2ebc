"""What the server answers: the same as Python, to those who have the token, and nothing without end."""

from __future__ import annotations

import asyncio
import http.client
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from powersum import Model
from powersum.app.cli.app import run_app
from powersum.app.explore.guard import MOST_BYTES, Threads, tell
from powersum.app.explore.picture import MOST_STATES, Pictures
from powersum.app.explore.runs import ExplorerRuns
from tests.app.explore.conftest import TOKEN, Served, ended, serving
from tests.browser import PATIENCE
from tests.interop.networks import CLINIC

EVIDENCE = {"dyspnoea": "much", "xray": "shadow"}
QUESTION = {"max": ["cancer", "bronchitis"], "evidence": [list(pair) for pair in EVIDENCE.items()]}
UNSOLVED = ps.generate.grid(60, 60, strength=3.0, seed=5)
"""A question that no time is enough for, however long a test looks elsewhere."""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(CLINIC) as found:
        yield found


def test_beliefs_are_marginals(served: Served) -> None:
    every = list(range(CLINIC.n_variables))
    said = served.json("/api/beliefs", {"question": {"evidence": QUESTION["evidence"]}, "of": every})
    expected = ps.marginals(CLINIC, evidence=EVIDENCE)
    assert said["exact"]
    for v in every:
        assert [pair[0] for pair in said["beliefs"][str(v)]] == pytest.approx(expected.beliefs[v], abs=1e-12)


def test_impossible_evidence_is_said(served: Served) -> None:
    model = Model.from_tables({"a": {"x": 0.0, "y": 1.0}})
    with serving(model) as other:
        question = {"evidence": [["a", "x"]]}
        assert "probability 0" in other.json("/api/beliefs", {"question": question, "of": [0]})["impossible"]
        assert other.events({"question": question})[-1][1]["status"] == "infeasible"


def test_the_answer_is_that_of_solve(served: Served) -> None:
    events = served.events({"question": QUESTION})
    assert events[0][0] == "run"
    kind, said = events[-1]
    expected = ps.solve(CLINIC, ["cancer", "bronchitis"], evidence=EVIDENCE)
    assert kind == "result"
    assert {one["name"]: one["label"] for one in said["assignment"]} == expected.assignment
    assert said["log_upper"] == pytest.approx(expected.log_upper, abs=1e-9)
    assert said["log_lower"] <= said["log_upper"]
    assert said["probability"]["text"] == str(expected.probability)
    assert said["status"] == "optimal"


def test_the_best_are_those_of_solve(served: Served) -> None:
    _, said = served.events({"question": QUESTION, "best": 3})[-1]
    expected = ps.solve(CLINIC, ["cancer", "bronchitis"], evidence=EVIDENCE, k=3)
    found = [{one["name"]: one["label"] for one in best["assignment"]} for best in said["best"]]
    assert found == [one.assignment for one in expected.best]
    assert float(said["log_upper_next"]) == pytest.approx(expected.log_upper_next, abs=1e-9)


def test_the_report_is_about_the_answer(served: Served) -> None:
    events = served.events({"question": QUESTION})
    status, page = served.ask(f"/api/report/{events[0][1]['id']}?token={TOKEN}", token=None)
    assert status == 200
    assert "<li>cancer = <b>" in page
    assert "powersum solve model.bif --max cancer,bronchitis" in page
    assert served.ask("/api/report/none")[0] == 404


def test_hard_answers_come_live_and_stop() -> None:
    model, query = UNSOLVED
    with serving(model) as hard:
        connection = http.client.HTTPConnection("127.0.0.1", hard.port, timeout=PATIENCE)
        body = ps.model.strict_json.strict_json({"question": {"max": query}})
        connection.request("POST", "/api/solve", body, {"X-Powersum-Token": TOKEN})
        stream = connection.getresponse()
        name, seen = None, []
        for line in stream:
            found = re.search(rb'"id": "([0-9a-f]{16})"', line)
            if name is None and found:
                name = found.group(1).decode()
            if line.startswith(b"event: "):
                seen.append(line[7:].strip().decode())
            if seen.count("snapshot") == 2 and seen[-1] == "snapshot":
                assert hard.json("/api/stop", {"run": name}) == {"stopped": name}
        connection.close()
        assert seen[-1] == "result"
        assert name is not None
        run = hard.explorer.runs.get(name)
        assert run is not None
        assert run.result is not None
        assert run.result.status is ps.Status.INTERRUPTED
        assert "the stop button" in run.result.reason
        assert run.result.log_lower <= run.result.log_upper < math.inf


def test_whoever_goes_stops_the_run() -> None:
    model, query = UNSOLVED
    with serving(model) as hard:
        connection = http.client.HTTPConnection("127.0.0.1", hard.port, timeout=PATIENCE)
        body = ps.model.strict_json.strict_json({"question": {"max": query}})
        connection.request("POST", "/api/solve", body, {"X-Powersum-Token": TOKEN})
        first = connection.getresponse()
        line = b""
        while b'"id"' not in line:
            line = first.readline()
        found = re.search(rb'"id": "([0-9a-f]{16})"', line)
        assert found is not None
        run = hard.explorer.runs.get(found.group(1).decode())
        assert run is not None
        assert run.thread.is_alive()
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
        ended(run.thread)


@pytest.mark.parametrize("path", ["/", "/api/model", "/api/search?text=a", "/api/report/x"])
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1]])
def test_nothing_without_the_token(served: Served, path: str, token: str | None) -> None:
    status, text = served.ask(path, token=token)
    assert status == 403
    assert "token" in text
    assert "cancer" not in text


def test_nothing_for_other_pages_and_hosts(served: Served) -> None:
    assert served.ask("/api/model", Origin="http://evil.example")[0] == 403
    assert served.ask("/api/model", Origin=served.origin)[0] == 200
    assert served.ask("/api/model", Host="evil.example")[0] == 421


def test_no_files(served: Served) -> None:
    for path in (
        "/assets/..%2f..%2fserver.py",
        "/assets/../server.py",
        "/etc/passwd",
        "/assets/index.html",
        "/api/none",
    ):
        assert served.ask(path)[0] == 404


def test_headers_keep_others_out(served: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    connection.request("GET", f"/?token={TOKEN}")
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    connection.close()
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers or "uvicorn" in headers["server"]


def test_bodies_are_bounded(served: Served) -> None:
    assert served.ask("/api/beliefs", body=b"x" * (MOST_BYTES + 1))[0] == 413
    assert served.ask("/api/beliefs", body=b"no json")[0] == 400
    assert served.ask("/api/beliefs", body=b"[" * 100_000)[0] == 400
    assert served.ask("/api/beliefs", [1])[0] == 400


def test_a_body_that_does_not_arrive_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.app.explore.guard.BODY_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as slow:
        head = (
            f"POST /api/beliefs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Powersum-Token: {TOKEN}\r\nContent-Length: 9\r\n\r\n"
        )
        slow.sendall(head.encode())
        assert b" 408 " in slow.recv(100)


def test_work_that_does_not_end_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    monkeypatch.setattr("powersum.app.explore.server.WAIT", 0.2)
    monkeypatch.setattr(served.explorer._beliefs, "of", lambda *_: done.wait())
    try:
        status, text = served.ask("/api/beliefs", {"question": {}, "of": [0]})
    finally:
        done.set()
    assert status == 503
    assert "longer than 0.2 s" in text


def test_only_so_much_at_a_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.explorer, "runs", ExplorerRuns(0))
    monkeypatch.setattr(served.explorer, "_threads", Threads(1))
    assert served.ask("/api/solve", {"question": QUESTION})[0] == 503
    begun, done = threading.Event(), threading.Event()

    def long(*_: object) -> dict[str, object]:
        begun.set()
        done.wait()
        return {}

    monkeypatch.setattr(served.explorer._beliefs, "of", long)
    first = threading.Thread(target=served.ask, args=("/api/beliefs", {"question": {}, "of": [0]}))
    first.start()
    try:
        # Nothing is asked before: it would be at work when the first comes.
        assert begun.wait(PATIENCE)
        assert served.ask("/api/search?text=a")[0] == 503
    finally:
        done.set()
        ended(first)
    assert served.ask("/api/search?text=a")[0] == 200


def test_a_server_that_has_ended_needs_no_answer() -> None:
    """Not even if it ended after whoever has found one had looked: a thread that raised made some later test fail."""
    loop = asyncio.new_event_loop()
    loop.close()
    tell(loop, print)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/api/solve", {"question": {"max": ["nobody"]}}),
        ("/api/solve", {"question": {}, "time": 1e9}),
        ("/api/solve", {"question": {}, "time": "long"}),
        ("/api/solve", {"question": {}, "best": 1.5}),
        ("/api/solve", {}),
        ("/api/beliefs", {"question": {}, "of": [99]}),
        ("/api/beliefs", {"question": {}, "of": list(range(1000))}),
        ("/api/picture", {"centre": [99]}),
        ("/api/picture", {"centre": ["a"]}),
        ("/api/picture", {"most": 0}),
        ("/api/variable/99", None),
    ],
)
def test_wrong_requests_are_told_so(served: Served, path: str, data: object) -> None:
    status, text = served.ask(path, data)
    assert status == 400
    assert '"error"' in text


def test_a_hundred_thousand_variables() -> None:
    count = 100_000
    tables = [((0,), [0.3, 0.7]), *(((v // 2, v), [[0.9, 0.1], [0.4, 0.6]]) for v in range(1, count))]
    model = Model.from_factors([2] * count, tables, directed=True, names=[f"node {v}" for v in range(count)])
    with serving(model) as large:
        found = large.json("/api/search?text=node%2077777")
        assert [one["id"] for one in found] == [77777]
        picture = large.json("/api/picture", {"centre": [77777], "most": 20})
        ids = [box["id"] for box in picture["boxes"]]
        assert len(ids) == 20
        assert {77777, 77777 // 2} <= set(ids)
        assert picture["total"] == count
        said = large.json("/api/beliefs", {"question": {"evidence": [[0, 1]]}, "of": ids})
        assert len(said["beliefs"]) == 20
        _, answer = large.events({"question": {"max": [1], "evidence": [[0, 1]]}})[-1]
        assert answer["assignment"][0]["state"] == 1
        assert answer["log_lower"] <= math.log(0.7 * 0.6) <= answer["log_upper"]


@pytest.mark.parametrize("directed", [True, False])
def test_no_box_covers_another(directed: bool) -> None:
    model, _ = ps.generate.diagnosis(40, states=7, observed=0.0, seed=1) if directed else ps.generate.grid(9, 9)
    picture = Pictures(model).around([3], most=60, widest=4)
    boxes = picture["boxes"]
    assert picture["layered"] == directed
    for one in boxes:
        assert one["x"] >= 0
        assert one["y"] >= 0
        assert one["x"] + one["width"] <= picture["width"]
        assert one["y"] + one["height"] <= picture["height"]
        assert len(one["states"]) <= MOST_STATES
        for other in boxes:
            if other["id"] > one["id"]:
                assert (
                    abs(one["x"] - other["x"]) >= one["width"]
                    or one["y"] + one["height"] <= other["y"]
                    or other["y"] + other["height"] <= one["y"]
                )


def test_hidden_neighbours_are_counted() -> None:
    model, _ = ps.generate.grid(9, 9)
    for box in Pictures(model).around([40], most=5)["boxes"]:
        links = sum(box["id"] in scope for scope, _ in model.factors() if len(scope) > 1)
        drawn = [other["id"] for other in Pictures(model).around([40], most=5)["boxes"]]
        inside = sum(box["id"] in scope and set(scope) <= set(drawn) for scope, _ in model.factors() if len(scope) > 1)
        assert box["hidden"] == links - inside


def test_an_empty_model_has_an_empty_picture() -> None:
    empty = Model.from_factors([], [((), [2.0])])
    with serving(empty) as served:
        assert served.json("/api/picture", {})["boxes"] == []
        assert served.events({"question": {}})[-1][1]["log_upper"] == pytest.approx(np.log(2.0), abs=1e-9)


class TestAsAProgram:
    """``powersum explore`` from its start to Ctrl-C."""

    @staticmethod
    def started(folder: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
        ps.write(CLINIC, folder / "clinic.bif")
        command = [sys.executable, "-m", "powersum", "explore", str(folder / "clinic.bif"), "--no-browser", *options]
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "20"}
        )
        assert running.stdout is not None
        running.stdout.readline()
        return running, running.stdout.readline().strip()

    def test_prints_its_address_and_ends_with_ctrl_c(self, tmp_path: Path) -> None:
        running, address = self.started(tmp_path, "--max", "cancer", "--evidence", "dyspnoea=much")
        try:
            found = re.fullmatch(
                r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{20,})#max=cancer&see=dyspnoea:much", address
            )
            assert found is not None, address
            connection = http.client.HTTPConnection("127.0.0.1", int(found.group(1)), timeout=PATIENCE)
            # The address is printed when somebody listens there, not before.
            connection.request("GET", "/api/model", headers={"X-Powersum-Token": found.group(2)})
            assert connection.getresponse().status == 200
            connection.close()
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=PATIENCE)
            assert running.returncode == 130
            assert said == "powersum: stopped by Ctrl-C\n"
        finally:
            running.kill()
            running.communicate()

    def test_a_port_in_use_is_one_line(self, tmp_path: Path) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            running, _ = self.started(tmp_path, "--port", str(taken.getsockname()[1]))
            _, said = running.communicate(timeout=PATIENCE)
        assert running.returncode == 2
        assert "cannot be used" in said
        assert said.count("\n") == 1

    def test_without_the_extra_it_is_one_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ps.write(CLINIC, tmp_path / "clinic.bif")
        monkeypatch.setitem(sys.modules, "uvicorn", None)
        monkeypatch.delitem(sys.modules, "powersum.app.explore.serve", raising=False)
        assert run_app(["explore", str(tmp_path / "clinic.bif")]) == 2
        assert capsys.readouterr().err.strip().endswith("pip install 'powersum[explore]', in a clone '.[explore]'")


def test_notes_of_the_model_come_with_the_answer() -> None:
    odd = replace(CLINIC, notes=("The distribution of variable a sums to 0.75, not to 1.",))
    with serving(odd) as served:
        assert served.json("/api/model")["notes"] == list(odd.notes)
        name, said = served.events({"question": QUESTION})[-1]
        assert name == "result"
        assert said["notes"] == list(odd.notes)
