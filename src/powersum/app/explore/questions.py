"""Questions as the page sends them, and as people copy them: a link, a command line, Python."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from powersum.core.errors import InputError
from powersum.model.keys import Place, as_text, is_whole
from powersum.model.limits import Limits
from powersum.model.model import Model
from powersum.model.question import Question

MOST_NAMED = 200
"""Variables of a question that are sent back with their names; the page shows no more."""


def question_from(model: Model, data: Any, limits: Limits | None = None) -> Question:
    """The question ``{"max": [variable, …] or "all", "evidence": [[variable, state], …]}``, by numbers or names.

    A list of numbers in place of a state are likelihoods.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"the question is {as_text(data)}: it must be a dictionary")
    maximize = data.get("max", [])
    if maximize != "all" and not isinstance(maximize, list):
        raise InputError(f"max is {as_text(maximize)}: give a list of variables, or 'all'")
    evidence = data.get("evidence", [])
    if not isinstance(evidence, list):
        raise InputError(f"evidence is {as_text(evidence)}: give a list of pairs")
    for pair in evidence:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], int | str | list):
            raise InputError(f"evidence: {as_text(pair)} is no pair of variable and state, or likelihoods")
    # Without any the question is log Z; an empty list would be one that asks for no states, which is the same.
    asked = maximize if isinstance(maximize, str) else [by_place(key) for key in maximize]
    pairs = [[by_place(key), by_place(state)] for key, state in evidence]
    return Question.of(model, asked or None, evidence=pairs, limits=limits)


def by_place(key: Any) -> Any:
    """What the page sends: its whole numbers are places, its text names and labels."""
    return Place(key) if is_whole(key) else key


def number_in(data: Mapping[str, Any], name: str, default: float, least: float, most: float) -> float:
    """A number of a request, between two others."""
    value = data.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InputError(f"{name} is {as_text(value)}: give a number from {least:g} to {most:g}")
    return value


def whole_in(data: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    """A whole number of a request, between two others."""
    value = number_in(data, name, default, least, most)
    if not is_whole(value):
        raise InputError(f"{name} is {as_text(value)}: give a whole number")
    return int(value)


class Words:
    """A question in words, to be copied.

    Parameters
    ----------
    question
        The question.
    file, verb, names
        The model's file and that of its names, as they were given when the page was started.
    seconds, best
        How long to look for the answer, and how many of the best to find.
    """

    def __init__(
        self,
        question: Question,
        file: str,
        verb: str = "solve",
        *,
        names: str | None = None,
        seconds: float = 60.0,
        best: int = 1,
    ) -> None:
        self._verb = verb
        self._question, self._model, self._file, self._names = question, question.model, file, names
        self._seconds, self._best = seconds, best
        self._max = question.query.answered
        self._all = question.query.task == "MAP" and question.model.n_variables > 0

    def to_json(self) -> dict[str, Any]:
        """All forms, and the question by numbers with its names."""
        evidence, likelihoods = self._question.evidence
        return {
            "max": "all" if self._all else list(self._max),
            "evidence": [
                *([v, state] for v, state in evidence.items()),
                *([v, list(table)] for v, table in likelihoods.items()),
            ],
            "maximised": [{"id": v, "name": self._model.name(v)} for v in self._max[:MOST_NAMED]],
            "observed": [
                {"id": v, "name": self._model.name(v), "state": state, "label": str(self._model.label(v, state))}
                for v, state in list(evidence.items())[:MOST_NAMED]
            ],
            "leaning": [
                {"id": v, "name": self._model.name(v), "text": " : ".join(f"{number:g}" for number in table)}
                for v, table in list(likelihoods.items())[:MOST_NAMED]
            ],
            "link": self.link(),
            "command": self.command(),
            "python": self.python(),
        }

    def link(self) -> str:
        """What stands behind the # of the page's address."""
        parts = []
        if self._all:
            parts.append("all=max")
        elif self._max:
            parts.append("max=" + ",".join(quote(self._model.name(v), safe="") for v in self._max))
        if self._question.evidence.states:
            pairs = (
                f"{quote(self._model.name(v), safe='')}:{quote(str(self._model.label(v, s)), safe='')}"
                for v, s in self._question.evidence.states.items()
            )
            parts.append("see=" + ",".join(pairs))
        if self._question.evidence.likelihoods:
            pairs = (
                f"{quote(self._model.name(v), safe='')}:{';'.join(map(repr, table))}"
                for v, table in self._question.evidence.likelihoods.items()
            )
            parts.append("lean=" + ",".join(pairs))
        return "&".join(parts)

    def command(self) -> str | None:
        """The command line; None where a name has no form that a list on a command line can hold."""
        words = ["powersum", self._verb, self._file, *([] if self._names is None else ["--names", self._names])]
        names = [_plain(self._model.name(v), self._model.variable, v) for v in self._max]
        pairs = [
            (
                _plain(self._model.name(v), self._model.variable, v),
                _plain(str(self._model.label(v, s)), lambda key, v=v: self._model.state(v, key), s),
            )
            for v, s in self._question.evidence.states.items()
        ]
        if self._all:
            words += ["--max", "all"]
        elif None in names:
            return None
        elif names:
            # A single variable that is called "all" would be taken for all of them.
            written = ",".join(name for name in names if name is not None)
            words += ["--max", f"{written}," if written == "all" else written]
        if any(name is None or state is None for name, state in pairs):
            return None
        if pairs:
            words += ["--evidence", ",".join(f"{name}={state}" for name, state in pairs)]
        for v, table in self._question.evidence.likelihoods.items():
            name = _plain(self._model.name(v), self._model.variable, v)
            if name is None:
                return None
            words += ["--likelihood", f"{name}={','.join(map(repr, table))}"]
        words += ["--time", f"{self._seconds:g}"]
        if self._best > 1 and self._max:
            words += ["--best", str(self._best)]
        return shlex.join(words)

    def python(self) -> str:
        """The same in Python."""
        name = self._model.name if self._model.names is not None else int
        arguments = ["model"]
        if self._all:
            arguments.append('maximize="all"')
        elif self._max:
            arguments.append(f"maximize={[name(v) for v in self._max]!r}")
        states, likelihoods = self._question.evidence
        if states or likelihoods:
            evidence: dict[Any, Any] = {name(v): self._model.label(v, s) for v, s in states.items()}
            evidence |= {name(v): list(table) for v, table in likelihoods.items()}
            arguments.append(f"evidence={evidence!r}")
        if self._best > 1 and self._max:
            arguments.append(f"k={self._best}")
        arguments.append(f"time_limit={self._seconds:g}")
        if self._verb == "decide":
            lines = ["import powersum as ps", "", f"model = ps.read_diagram({self._file!r})"]
            return "\n".join([*lines, f"print(ps.decide({', '.join(arguments)}))"])
        shown = "result.log_lower, result.log_upper"
        read = f"ps.read({self._file!r})"
        return "\n".join(
            [
                "import powersum as ps",
                "",
                f"model = {read if self._names is None else f'ps.read_names({self._names!r}, {read})'}",
                f"result = ps.solve({', '.join(arguments)})",
                f"print({'result.assignment, result.probability, ' if self._max else ''}{shown})",
            ]
        )


def _plain(text: str, find: Any, number: int) -> str | None:
    """A name that stands for itself in a list such as ``a,b`` or ``a=x,b=y``, else its place, as ``#0``."""
    for word in (text, f"#{number}"):
        if word and word == word.strip() and not set(",=") & set(word) and not word.startswith("-"):
            try:
                if find(word) == number:
                    return word
            except InputError:
                continue
    return None
