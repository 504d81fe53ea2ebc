"""A server of the page in a thread, for as long as a test needs it; no time of its own ends before a test's does."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("starlette")
uvicorn = pytest.importorskip("uvicorn")

from powersum.app.explore.server import Explorer  # noqa: E402
from powersum.model.model import Model  # noqa: E402
from tests.browser import PATIENCE  # noqa: E402

TOKEN = "a-token-of-the-tests"
SECONDS = 3000
"""What an answer may take: one that is looked for never ends by time while a test looks elsewhere."""


class Served:
    """A running server, and requests to it."""

    def __init__(self, explorer: Explorer, port: int) -> None:
        self.explorer, self.port = explorer, port
        self.origin = f"http://127.0.0.1:{port}"
        self.address = f"{self.origin}/?token={TOKEN}"

    def ask(
        self, path: str, data: Any = None, *, token: str | None = TOKEN, body: bytes | None = None, **headers: str
    ) -> tuple[int, str]:
        """Status and text of an answer; with data it is a POST."""
        sent = json.dumps(data).encode() if data is not None else body
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            own["X-Powersum-Token"] = token
        request = urllib.request.Request(self.origin + path, data=sent, headers=own)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def json(self, path: str, data: Any = None) -> Any:
        """The JSON of an answer, which must be one."""
        status, text = self.ask(path, data)
        assert status == 200, text
        return json.loads(text)

    def events(self, data: Any) -> list[tuple[str, Any]]:
        """All that is said while a question is answered."""
        status, text = self.ask("/api/solve", data)
        assert status == 200, text
        found = []
        for event in text.split("\n\n"):
            lines = dict(line.split(": ", 1) for line in event.splitlines())
            if "event" in lines:
                found.append((lines["event"], json.loads(lines["data"])))
        return found


def ended(thread: threading.Thread) -> None:
    """Wait for the end of a thread."""
    thread.join(PATIENCE)
    assert not thread.is_alive()


@contextmanager
def serving(model: Model, file: str = "model.bif") -> Iterator[Served]:
    """A server about a model."""
    explorer = Explorer(model, file, TOKEN, seconds=SECONDS)
    with socket.socket() as listener, pytest.MonkeyPatch.context() as patch:
        # On a machine that stands still everything is late, and nobody is to blame.
        patch.setattr("powersum.app.explore.guard.BODY_SECONDS", PATIENCE)
        patch.setattr("powersum.app.explore.server.WAIT", PATIENCE)
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(explorer.app(), log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield Served(explorer, listener.getsockname()[1])
        finally:
            explorer.runs.stop_all()
            server.should_exit = True
            ended(thread)
            # A run that went on would do so into the next test.
            explorer.runs.stop_all()
            for run in explorer.runs._runs.values():
                ended(run.thread)
