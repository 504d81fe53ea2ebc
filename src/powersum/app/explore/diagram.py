"""The page about an influence diagram: states are observed or decided; the answer is what to do now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from powersum.api.marginals import marginals
from powersum.app.explore.beliefs import SECONDS, beliefs_json
from powersum.app.explore.guard import Refusal, json_of
from powersum.app.explore.questions import question_from
from powersum.app.explore.server import REPORT_POLICY, WAIT, Explorer, event_text
from powersum.app.report.decision import decision_html, picture_of
from powersum.decisions.deciding import decide
from powersum.decisions.decision import Decision, sides_text
from powersum.model.diagram import Diagram
from powersum.model.strict_json import strict

MOST_KEPT = 64
"""Policies that are kept, each for what is observed and decided."""

Known = tuple[tuple[int, int], ...]
"""Variables and their states, by numbers."""


class DiagramExplorer(Explorer):
    """The application about one diagram. Beliefs are those under the best policy that was found.

    Parameters
    ----------
    diagram
        The diagram.
    file, token, link, seconds
        As :class:`Explorer` has them.
    """

    verb = "decide"

    def __init__(self, diagram: Diagram, file: str, token: str, *, link: str = "", seconds: float = 20.0) -> None:
        picture, roles = picture_of(diagram)
        super().__init__(picture, file, token, link=link, seconds=seconds)
        self._diagram = diagram
        self._kinds = {v: role for v, role in enumerate(roles) if role != "chance"}
        self._decided = lru_cache(MOST_KEPT)(self._decide)

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {"kinds": self._kinds}

    def _decide(self, known: Known, seconds: float) -> Decision:
        return decide(self._diagram, evidence=dict(known), time_limit=seconds)

    def _known(self, data: dict[str, Any]) -> Known:
        return tuple(sorted(question_from(self.model, data.get("question")).evidence.states.items()))

    async def _of_variables(self, request: Request) -> Response:
        data = await json_of(request)
        known = self._known(data)
        asked = [v for v in data.get("of", []) if isinstance(v, int) and 0 <= v < self._diagram.model.n_variables]

        def found() -> dict[str, Any]:
            network = self._decided(known, min(SECONDS, self._seconds)).network(self._diagram)
            return beliefs_json(marginals(network, evidence=dict(known), time_limit=SECONDS), asked)

        return JSONResponse(await self._threads.run(found, WAIT))

    async def _solve(self, request: Request) -> Response:
        data = await json_of(request)
        known, seconds = self._known(data), self._time(data)

        async def stream() -> AsyncIterator[str]:
            yield event_text("run", {"id": "+".join(f"{v}.{s}" for v, s in known) or "none"})
            try:
                decision = await self._threads.run(lambda: self._decided(known, seconds), WAIT + seconds)
            except Exception as error:
                yield event_text("failed", {"error": str(error)})
                return
            yield event_text("result", strict(self._said(decision)))

        return StreamingResponse(stream(), media_type="text/event-stream")

    def _said(self, decision: Decision) -> dict[str, Any]:
        model = self._diagram.model
        actions = [(model.variable(name), label) for name, label in decision.next_action.items()]
        return {
            "status": decision.status.value,
            "reason": decision.reason,
            "seconds": decision.seconds,
            "utility": sides_text(decision),
            "log_lower": -np.inf,
            "log_upper": np.inf,
            "assignment": [
                {"id": v, "name": model.name(v), "state": model.state(v, label), "label": str(label)}
                for v, label in actions
            ],
        }

    async def _report(self, request: Request) -> Response:
        name = request.path_params["run"]
        try:
            pairs = [] if name == "none" else [part.split(".") for part in name.split("+")]
            known = tuple((int(v), int(s)) for v, s in pairs)
        except ValueError:
            raise Refusal(404, "there is no such answer: ask again") from None
        decision = await self._threads.run(lambda: self._decided(known, self._seconds), WAIT)
        page = decision_html(decision, self._diagram, title=self.model.title or "powersum")
        return HTMLResponse(page, headers={"Content-Security-Policy": REPORT_POLICY})
