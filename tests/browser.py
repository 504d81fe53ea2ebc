"""A headless Chromium, driven over a pipe by the DevTools protocol: real clicks and keys, and what it complains of."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 300.0
"""Seconds until a page that does not become what it should is a failure; a busy machine may have to compile first."""

BEGIN = """
import os, sys
spare = [os.dup(int(number)) for number in sys.argv[1:3]]
for number, place in zip(spare, (3, 4)):
    os.dup2(number, place)
    os.set_inheritable(place, True)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""A program in place of this one, that finds two pipes at 3 and 4, whatever lay there before."""

AIM = """
(() => {
  if (!window.aimed) {
    const aimed = (window.aimed = {});
    for (const kind of ["pointerdown", "mousedown", "click"]) addEventListener(kind, (event) => {
      if (!aimed.at) return;
      const hit = Boolean(event.target.closest?.(aimed.at));
      if (!hit) {
        event.stopImmediatePropagation();
        event.preventDefault();
      }
      if (kind !== "click") return;
      aimed.seen = hit ? "hit" : "missed";
      if (hit) aimed.at = null;
    }, true);
  }
  Object.assign(window.aimed, { at: SELECTOR, seen: null });
  const element = document.querySelector(SELECTOR);
  if (!element) return null;
  element.scrollIntoView({ block: "center" });
  const box = element.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
})()
"""
"""Where the middle of an element is; from now on the page hears of no press that misses it."""


class Refused(AssertionError):
    """What the browser cannot do now, as when one page has gone and the next has not come."""


class Browser:
    """A running browser; ``open`` gives its tabs."""

    def __init__(self, folder: Path) -> None:
        command_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()
        self._process = subprocess.Popen(
            [
                # Not between fork and exec, where a process with threads may wait for ever.
                sys.executable, "-I", "-S", "-c", BEGIN, str(command_read), str(answer_write),
                str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}", "about:blank",
            ],
            pass_fds=(command_read, answer_write),
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
        self._process.wait(PATIENCE)
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
                if "error" in heard:
                    raise Refused(f"{method}: {heard['error']}")
                found: dict[str, Any] = heard["result"]
                return found
            self.events.append(heard)

    def _hear(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._read], [], [], PATIENCE)[0], "the browser does not answer"
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
        """Until an expression is true; while what it speaks of is not there, it is not."""
        end = time.monotonic() + PATIENCE
        while (found := self._true(script)) != "true":
            assert time.monotonic() < end, (
                f"never true: {script}: {found}\n{self.complaints()}\n{self.text('body')[:2000]}"
            )
            time.sleep(0.02)

    def _true(self, script: str) -> str:
        """``true`` or ``false``, or why it cannot be told."""
        try:
            return str(
                self.value(
                    f"(() => {{ try {{ return String(Boolean({script})); }} catch (e) {{ return String(e); }} }})()"
                )
            )
        except Refused as error:
            return str(error)

    def text(self, selector: str) -> str:
        """The text of an element as it is seen."""
        return str(self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def click(self, selector: str) -> None:
        """Move the mouse to the middle of an element, and press; again where the page has moved it away meanwhile."""
        end = time.monotonic() + PATIENCE
        while self._pressed(selector) != "hit":
            assert time.monotonic() < end, f"cannot be pressed: {selector}\n{self.text('body')[:2000]}"
            time.sleep(0.02)

    def _pressed(self, selector: str) -> str | None:
        """Press once; None where there was nothing to press, or where the page heard of no press: all are disabled."""
        place = self.value(AIM.replace("SELECTOR", json.dumps(selector)))
        if place is None:
            return None
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
        seen: str | None = self.value("window.aimed.seen")
        return seen

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
