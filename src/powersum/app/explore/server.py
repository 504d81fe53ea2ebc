"""What the page asks for: the model, pictures, beliefs, answers while they are found, and their report pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from powersum._version import __version__
from powersum.app.explore.beliefs import Beliefs
from powersum.app.explore.guard import HEADERS, MOST_WORKING, Guard, Refusal, Threads, json_of, tell
from powersum.app.explore.picture import MOST_BOXES, Pictures
from powersum.app.explore.questions import Words, by_place, number_in, question_from, whole_in
from powersum.app.explore.runs import ExplorerRuns
from powersum.app.report.html import report_html
from powersum.core.errors import InputError
from powersum.model.limits import Limits
from powersum.model.model import Model

TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html"}
SCRIPTS = ("main.js", "api.js", "question.js", "graph.js", "answer.js", "leaning.js", "search.js", "text.js")
ASSETS = (*SCRIPTS, "style.css")

WAIT = 60.0
"""Seconds after which nobody waits any longer for an answer that is not a run: beliefs, a picture, a report page."""
MOST_SECONDS, MOST_BEST = 3600.0, 100
PULSE = 10.0
"""Seconds of silence after which a stream says that it still works."""

# The report page carries its style and script inside it.
REPORT_POLICY = HEADERS["Content-Security-Policy"].replace("script-src 'self'; style-src 'self'", (
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'"
))  # fmt: skip

Handler = Callable[[Request], Awaitable[Response]]


class Explorer:
    """The application about one model.

    Parameters
    ----------
    model
        The model; nothing else is read.
    file, names
        What its file, and that of its names, is called on the command line that is offered for copying.
    token
        What every request must have.
    link
        The question to begin with, as the page's links have it, where the address has none.
    seconds
        How long an answer is looked for, unless the page asks for another time.
    """

    verb = "solve"
    """The command that is offered for copying."""

    def __init__(
        self, model: Model, file: str, token: str, *, names: str | None = None, link: str = "", seconds: float = 20.0
    ) -> None:
        self.model, self._file, self._token, self._seconds = model, file, token, seconds
        self._names, self._link = names, link
        self._pictures, self._beliefs = Pictures(model), Beliefs(model)
        self.runs, self._threads = ExplorerRuns(MOST_WORKING), Threads()
        folder = files("powersum.app.explore").joinpath("page")
        self._assets = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in ASSETS}
        palette = files("powersum.app.report").joinpath("palette.css").read_text(encoding="utf-8")
        self._assets["style.css"] = palette + self._assets["style.css"]
        self._page = folder.joinpath("index.html").read_text(encoding="utf-8")

    def app(self) -> ASGIApp:
        """The ASGI application, guarded."""
        routes = [
            Route("/", self._index),
            Route("/assets/{name}", self._asset),
            Route("/api/model", self._model),
            Route("/api/search", self._search),
            Route("/api/variable/{id:int}", self._variable),
            Route("/api/picture", self._picture, methods=["POST"]),
            Route("/api/question", self._question, methods=["POST"]),
            Route("/api/beliefs", self._of_variables, methods=["POST"]),
            Route("/api/next", self._next, methods=["POST"]),
            Route("/api/solve", self._solve, methods=["POST"]),
            Route("/api/stop", self._stop, methods=["POST"]),
            Route("/api/report/{run}", self._report),
        ]
        handlers: dict[Any, Any] = {Refusal: _refused, InputError: _wrong, HTTPException: _missing}
        return Guard(Starlette(routes=routes, exception_handlers=handlers), self._token)

    async def _index(self, request: Request) -> Response:
        return HTMLResponse(self._page)

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._assets:
            raise Refusal(404, "there is no such file")
        return Response(self._assets[name], media_type=TYPES[name.rpartition(".")[2]])

    async def _model(self, request: Request) -> Response:
        return JSONResponse(self._facts())

    def _facts(self) -> dict[str, Any]:
        """What the page must know of the model."""
        model = self.model
        return {
            "title": model.title or self._file,
            "variables": model.n_variables,
            "factors": model.n_factors,
            "directed": model.directed,
            "notes": list(model.notes),
            "link": self._link,
            "seconds": self._seconds,
            "most_seconds": MOST_SECONDS,
            "most_best": MOST_BEST,
            "most_boxes": MOST_BOXES,
            "version": __version__,
        }

    async def _search(self, request: Request) -> Response:
        text = request.query_params.get("text", "")[:200]
        return JSONResponse(await self._threads.run(lambda: self._pictures.search(text), WAIT))

    async def _variable(self, request: Request) -> Response:
        return JSONResponse(self._pictures.variable(self.model.variable(by_place(request.path_params["id"]))))

    async def _picture(self, request: Request) -> Response:
        data = await json_of(request)
        centre = data.get("centre", [])
        if not isinstance(centre, list) or not all(isinstance(v, int) and not isinstance(v, bool) for v in centre):
            raise Refusal(400, "centre must be a list of numbers of variables")
        most, widest = whole_in(data, "most", 40, 1, MOST_BOXES), whole_in(data, "widest", 5, 1, 12)
        drawn = await self._threads.run(lambda: self._pictures.around(centre, most=most, widest=widest), WAIT)
        return JSONResponse(drawn)

    async def _question(self, request: Request) -> Response:
        data = await json_of(request)
        question = question_from(self.model, data.get("question"))
        best = whole_in(data, "best", 1, 1, MOST_BEST)
        words = Words(question, self._file, self.verb, names=self._names, seconds=self._time(data), best=best)
        return JSONResponse(words.to_json())

    async def _of_variables(self, request: Request) -> Response:
        data = await json_of(request)
        question = question_from(self.model, data.get("question"))
        asked = data.get("of", [])
        if not isinstance(asked, list) or len(asked) > 4 * MOST_BOXES:
            raise Refusal(400, f"of must be a list of at most {4 * MOST_BOXES} variables")
        variables = [self.model.variable(by_place(key), argument="of") for key in asked]
        return JSONResponse(await self._threads.run(lambda: self._beliefs.of(question, variables), WAIT))

    async def _next(self, request: Request) -> Response:
        data = await json_of(request)
        question = question_from(self.model, data.get("question"))
        return JSONResponse(await self._threads.run(lambda: self._beliefs.next_of(question), WAIT))

    async def _solve(self, request: Request) -> Response:
        data = await json_of(request)
        limits = Limits.given(time_limit=self._time(data))
        question = question_from(self.model, data.get("question"), limits)
        best = whole_in(data, "best", 1, 1, MOST_BEST)
        loop, events = asyncio.get_running_loop(), asyncio.Queue[tuple[str, dict[str, Any]]]()

        def deliver(kind: str, said: dict[str, Any]) -> None:
            tell(loop, events.put_nowait, (kind, said))

        run = self.runs.start(question, best, deliver)
        if run is None:
            raise Refusal(503, "too many answers are being looked for already: stop one of them")

        async def stream() -> AsyncIterator[str]:
            try:
                yield event_text("run", {"id": run.id})
                while True:
                    try:
                        kind, said = await asyncio.wait_for(events.get(), PULSE)
                    except TimeoutError:
                        yield ": still working\n\n"
                        continue
                    yield event_text(kind, said)
                    if kind in ("result", "failed"):
                        return
            finally:
                # Whoever asked has gone, or has the answer.
                run.stop()

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def _stop(self, request: Request) -> Response:
        data = await json_of(request)
        run = self.runs.get(str(data.get("run", "")))
        if run is None:
            raise Refusal(404, "there is no such run")
        run.stop()
        return JSONResponse({"stopped": run.id})

    async def _report(self, request: Request) -> Response:
        run = self.runs.get(request.path_params["run"])
        if run is None or run.result is None:
            raise Refusal(404, "there is no such answer any more: ask again")
        result, question = run.result, run.question
        best = max(len(result.best), 1)
        words = Words(question, self._file, names=self._names, seconds=question.limits.seconds, best=best)
        page = await self._threads.run(
            lambda: report_html(
                result,
                self.model,
                weights=question.query,
                evidence=question.all_evidence,
                title=self.model.title or "powersum",
                command=words.command(),
            ),
            WAIT,
        )
        return HTMLResponse(page, headers={"Content-Security-Policy": REPORT_POLICY})

    def _time(self, data: dict[str, Any]) -> float:
        return number_in(data, "time", self._seconds, 0.05, MOST_SECONDS)


def event_text(kind: str, said: dict[str, Any]) -> str:
    """A server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(said)}\n\n"


async def _refused(request: Request, error: Refusal) -> Response:
    return JSONResponse({"error": str(error)}, error.status)


async def _wrong(request: Request, error: InputError) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _missing(request: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code)
