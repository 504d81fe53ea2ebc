"""Who may ask, and how much: the token of the page's address, its own host, and bodies that end."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from powersum.core.errors import InputError

T = TypeVar("T")

MOST_BYTES = 1 << 20
"""Of a request: a question about 100 000 variables, by numbers, fits."""
BODY_SECONDS = 10.0
"""For a request to arrive."""
MOST_WORKING = 8
"""Requests that compute something at the same time."""

REFUSED = "This page opens with the address that powersum explore printed: it ends with a token."

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
}
"""Of every answer; nothing is loaded from elsewhere, and no other page may look inside."""


class Refusal(Exception):
    """A request that is answered with an error: the status of HTTP, and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Guard:
    """Lets through what comes to this host with the token; pages and data have it, code and style need none.

    Parameters
    ----------
    app
        What is guarded.
    token
        The token.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        refused = self._refused(request)
        if refused is not None:
            await _with_headers(refused, scope, receive, send)
            return
        await _with_headers(self._app, scope, receive, send)

    def _refused(self, request: Request) -> Response | None:
        # A name that somebody else's server points here would let their page ask.
        if (request.url.hostname or "") not in ("127.0.0.1", "localhost", "::1"):
            return PlainTextResponse("this server answers to its own address only", 421)
        origin = request.headers.get("origin")
        if origin is not None and origin != f"{request.url.scheme}://{request.headers.get('host')}":
            return PlainTextResponse("another page may not ask", 403)
        if request.url.path.startswith("/assets/"):
            return None
        given = request.headers.get("x-powersum-token") or request.query_params.get("token", "")
        if secrets.compare_digest(given.encode(), self._token.encode()):
            return None
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": REFUSED}, 403)
        return PlainTextResponse(REFUSED, 403)


async def _with_headers(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name.lower() for name, _ in message["headers"]}
            own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message["headers"], *(pair for pair in own if pair[0] not in known)]}
        await send(message)

    await app(scope, receive, sending)


async def json_of(request: Request) -> dict[str, Any]:
    """The body of a request as a dictionary: not larger than it may be, and not longer on its way."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = b""
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise Refusal(413, f"a request has at most {MOST_BYTES} bytes")
    except TimeoutError:
        raise Refusal(408, "the request did not arrive in time") from None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "the request is no JSON") from None
    if not isinstance(data, dict):
        raise Refusal(400, "the request must be a JSON object")
    return data


def tell(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *given: object) -> None:
    """From another thread: have the loop call a function; a server that has ended needs no answer."""
    # It may end at any moment, also after one has looked whether it has.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *given)


class Threads:
    """Work in threads of its own: so many at a time, each with a time after which nobody waits for it any more."""

    def __init__(self, most: int = MOST_WORKING) -> None:
        self._free = threading.BoundedSemaphore(most)

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """The value of a function; its :class:`InputError` becomes a refusal."""
        if not self._free.acquire(blocking=False):
            raise Refusal(503, "too much is being computed already: try again in a moment")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(value: T | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(value)  # type: ignore[arg-type]
            else:
                done.set_exception(error)

        def working() -> None:
            value, error = None, None
            try:
                value = work()
            except BaseException as raised:
                error = raised
            finally:
                self._free.release()
            tell(loop, settle, value, error)

        # Not those of an executor, which the process would wait for at its end.
        threading.Thread(target=working, daemon=True).start()
        try:
            async with asyncio.timeout(seconds):
                return await done
        except TimeoutError:
            raise Refusal(503, f"this takes longer than {seconds:g} s") from None
        except InputError as error:
            raise Refusal(400, str(error)) from None
