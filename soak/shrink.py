"""Make a failing case as small as it goes while it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace

import numpy as np

from soak.cases import Case, Question, Trouble

Fails = Callable[[Case], bool]


def shrunk(case: Case, fails: Fails, *, tries: int = 600) -> Case:
    """The smallest failing case found; each candidate is asked once, up to a number of tries."""
    asked: set[str] = {repr(case)}
    progress = True
    while progress and len(asked) < tries:
        progress = False
        for candidate in _smaller(case):
            if len(asked) >= tries:
                break
            text = repr(candidate)
            if text in asked:
                continue
            asked.add(text)
            if fails(candidate):
                case, progress = candidate, True
                break
    return case


def kind_of(wrong: str) -> str:
    """What stays the same of a complaint while a case is made smaller: its text up to the first colon."""
    return wrong.split(":")[0]


def _smaller(case: Case) -> Iterator[Case]:
    """Candidates, the greatest simplifications first."""
    if case.entry == "file":
        yield from (replace(case, data=data) for data in _less_data(case.data))
        return
    if len(case.questions) > 1:
        for at in range(len(case.questions)):
            yield replace(case, questions=case.questions[:at] + case.questions[at + 1 :])
    for a, b in _chunks(len(case.factors)):
        yield replace(case, factors=case.factors[:a] + case.factors[b:])
    yield from (_without_variable(case, v) for v in range(len(case.cards)))
    for at, question in enumerate(case.questions):
        for other in _simpler_questions(question):
            yield replace(case, questions=(*case.questions[:at], other, *case.questions[at + 1 :]))
    yield from _simpler_runs(case)
    for v, card in enumerate(case.cards):
        if card > 1:
            yield from (_without_state(case, v, state) for state in range(card))
    yield from _simpler_tables(case)


def _less_data(data: bytes) -> Iterator[bytes]:
    for separator in (b"\n", b" ", b""):
        parts = data.split(separator) if separator else [bytes([b]) for b in data]
        for a, b in _chunks(len(parts)):
            yield separator.join(parts[:a] + parts[b:])


def _chunks(n: int) -> Iterator[tuple[int, int]]:
    """Pieces of a list to leave out: halves, quarters, down to single entries."""
    size = n
    while size >= 1:
        yield from ((a, min(a + size, n)) for a in range(0, n, size))
        size //= 2


def _simpler_questions(question: Question) -> Iterator[Question]:
    for v, seen in question.evidence.items():
        yield replace(question, evidence={u: s for u, s in question.evidence.items() if u != v})
        if not isinstance(seen, int):
            for table in _simpler_values(seen):
                yield replace(question, evidence={**question.evidence, v: table})
    if question.order is not None:
        yield replace(question, order=None)
    for v, weight in enumerate(question.weights):
        for simple in (1.0, 0.0, 0.5):
            if weight not in (0.0, 1.0, simple) or (weight == 0.0 and simple == 1.0):
                weights = (*question.weights[:v], simple, *question.weights[v + 1 :])
                yield replace(question, weights=weights, order=None)


def _simpler_runs(case: Case) -> Iterator[Case]:
    if case.road != "plain":
        yield replace(case, road="plain")
        yield replace(case, road="anytime")
    trouble = asdict(case.trouble)
    for name, value in trouble.items():
        if value:
            yield replace(case, trouble=Trouble(**{**trouble, name: 0}))
            if name != "step":
                yield replace(case, trouble=Trouble(**{**trouble, name: value // 2}))
    for name, plain in (("threads", 1), ("seed", 0), ("gap", 0.0)):
        if case.options.get(name, plain) != plain:
            yield replace(case, options={**case.options, name: plain})
    executor = case.options.get("executor", {})
    for name, least in (("threaded", False), ("lost", 0.0), ("forgotten", 0.0), ("workers", 1)):
        if executor.get(name, least) != least:
            yield replace(case, options={**case.options, "executor": {**executor, name: least}})
    for name, least in (("calls", 1), ("steps", 0), ("k", 2), ("distinct", 1)):
        if case.options.get(name, least) != least:
            yield replace(case, options={**case.options, name: case.options[name] - 1})
    for name in ("target", "change", "start", "direction", "damping"):
        if name in case.options:
            yield replace(case, options={k: v for k, v in case.options.items() if k != name})
    if case.options.get("sweeps", 0) > 0:
        yield replace(case, options={**case.options, "sweeps": case.options["sweeps"] // 2})
    if case.named:
        yield replace(case, named=False)
    if case.directed:
        yield replace(case, directed=False)


def _simpler_tables(case: Case) -> Iterator[Case]:
    neutral = 0.0 if case.log else 1.0
    for k, (scope, table) in enumerate(case.factors):
        for values in _simpler_values(table, neutral):
            yield replace(case, factors=(*case.factors[:k], (scope, values), *case.factors[k + 1 :]))


def _simpler_values(table: tuple[float, ...], neutral: float = 1.0) -> Iterator[tuple[float, ...]]:
    """Tables of simpler numbers: all alike, one alike, all rounded, one rounded."""
    flat = (neutral,) * len(table)
    if table != flat:
        yield flat
    for digits in (1, 2, 4):
        rounded = tuple(float(f"{x:.{digits}g}") for x in table)
        if rounded != table:
            yield rounded
    for at, x in enumerate(table):
        simple = [neutral, *([0.0, float(f"{x:.1g}"), float(f"{x:.3g}")] if np.isfinite(x) else [])]
        for value in simple:
            if value != x and len(repr(value)) <= len(repr(x)):
                yield (*table[:at], value, *table[at + 1 :])


def _without_state(case: Case, v: int, state: int) -> Case:
    """One state of a variable left out of all tables."""
    factors = []
    for scope, table in case.factors:
        values = np.asarray(table).reshape([case.cards[u] for u in scope])
        if v in scope:
            values = np.delete(values, state, axis=scope.index(v))
        factors.append((scope, tuple(values.ravel().tolist())))
    questions = []
    for question in case.questions:
        evidence = dict(question.evidence)
        if v in evidence:
            seen = evidence[v]
            if isinstance(seen, int):
                evidence[v] = max(seen - (state < seen), 0) if seen != state else 0
            else:
                evidence[v] = seen[:state] + seen[state + 1 :]
        questions.append(replace(question, evidence=evidence))
    cards = (*case.cards[:v], case.cards[v] - 1, *case.cards[v + 1 :])
    return replace(case, cards=cards, factors=tuple(factors), questions=tuple(questions))


def _without_variable(case: Case, v: int) -> Case:
    """A variable left out: tables keep what they say about its first state."""
    factors = []
    for scope, table in case.factors:
        values = np.asarray(table).reshape([case.cards[u] for u in scope])
        if v in scope:
            values = np.take(values, 0, axis=scope.index(v))
        factors.append((tuple(u - (u > v) for u in scope if u != v), tuple(values.ravel().tolist())))
    questions = tuple(
        Question(
            question.weights[:v] + question.weights[v + 1 :],
            {u - (u > v): seen for u, seen in question.evidence.items() if u != v},
            None if question.order is None else tuple(u - (u > v) for u in question.order if u != v),
        )
        for question in case.questions
    )
    return replace(
        case, cards=case.cards[:v] + case.cards[v + 1 :], factors=tuple(factors), questions=questions, directed=False
    )


__all__ = ["kind_of", "shrunk"]
