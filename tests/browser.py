"""A headless Chromium, driven over a pipe by the DevTools protocol: real clicks and keys, and what it complains of."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 300.0
"""Seconds until a page that does not become what it should is a failure; a busy machine may have to compile first."""


class Browser:
    """A running browser; ``open`` gives its tabs."""

    def __init__(self, folder: Path) -> None:
        command_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()

        def pipes() -> None:
            # The protocol is spoken on 3 and 4; what lies there already may be one of ours.
            spare = os.dup(command_read), os.dup(answer_write)
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)

        self._process = subprocess.Popen(
            [
                str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}", "about:blank",
            ],
            preexec_fn=pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(command_read)
        os.close(answer_write)
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        """End the browser."""
        self._process.kill()
        self._process.wait(30)
        os.close(self._write)
        os.close(self._read)

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come meanwhile are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._hear()
            if heard.get("id") == self._number:
                assert "error" not in heard, f"{method}: {heard['error']}"
                found: dict[str, Any] = heard["result"]
                return found
            self.events.append(heard)

    def _hear(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "the browser has ended"
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        heard: dict[str, Any] = json.loads(message)
        return heard

    def open(self, address: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> Tab:
        """A new tab of this size."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.ask(f"{domain}.enable")
        tab.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.ask("Emulation.setEmulatedMedia", features=[scheme])
        tab.ask("Page.navigate", url=address)
        return tab


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command about this page."""
        return self._browser.ask(method, self._session, **parameters)

    def value(self, script: str) -> Any:
        """The value of an expression."""
        said = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def wait(self, script: str) -> None:
        """Until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.value(f"document.body !== null && Boolean({script})"):
            assert time.monotonic() < end, f"never true: {script}\n{self.complaints()}\n{self.text('body')[:2000]}"
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        """The text of an element as it is seen."""
        return str(self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def click(self, selector: str) -> None:
        """Move the mouse to the middle of an element, and press."""
        self.wait(f"document.querySelector({json.dumps(selector)})")
        place = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def press(self, key: str, *, control: bool = False) -> None:
        """A key, as on a keyboard."""
        text = {} if len(key) > 1 or control else {"text": key}
        code = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9}
        number = code.get(key, ord(key.upper()[0]))
        if key == "Enter":
            text = {"text": "\r"}
        for kind in ("keyDown", "keyUp"):
            sent = text if kind == "keyDown" else {}
            self.ask(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                modifiers=2 * control,
                windowsVirtualKeyCode=number,
                **sent,
            )

    def type(self, text: str) -> None:
        """Letters into what has the focus."""
        self.ask("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, and requests that failed or went elsewhere."""
        self.ask("Runtime.evaluate", expression="0")
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            said = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(said["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
                found.append(str(said["args"]))
            elif event["method"] == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
                found.append(str(said["entry"]))
        return found

    def addresses(self) -> list[str]:
        """All that the page asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event.get("sessionId") == self._session and event["method"] == "Network.requestWillBeSent"
        ]


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser for as long as the block runs."""
    browser = Browser(folder)
    try:
        yield browser
    finally:
        browser.close()
