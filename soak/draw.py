"""From a seed to a case: everything about it is drawn from that seed alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from soak.cases import Case, Factors, Question, Trouble
from soak.clauses import deterministic, formula, plan
from soak.diagrams import alternating, draw_diagram
from soak.executors import drawn_executor
from soak.files import draw_file
from soak.shapes import HARD, NUMBERS, SHAPES, Rng, Scopes, cardinalities, numbers, one_of

ENTRIES: Mapping[str, float] = MappingProxyType(
    {
        "solve": 0.18,
        "solver": 0.16,
        "bound": 0.23,
        "boxes": 0.05,
        "marginals": 0.08,
        "many": 0.03,
        "engine": 0.03,
        "file": 0.06,
        "cubes": 0.06,
        "each": 0.01,
        "parts": 0.02,
        "best": 0.04,
        "gradient": 0.03,
        "resume": 0.02,
        "explain": 0.01,
        "blocks": 0.05,
        "decide": 0.05,
    }
)
"""Each entry and its share of the cases."""

BY_BOXES = 0.25
"""Share of the marginals that workers find in boxes."""

ROADS_OF: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "bound": {"plain": 0.7, "bound-boxes": 0.15, "bound-searched": 0.15},
        "blocks": {"plain": 1.0},
        "boxes": {"plain": 0.3, "short-boxes": 0.7},
        "parts": {"plain": 1.0},
        "gradient": {"plain": 1.0},
        "each": {"plain": 0.5, "compiled": 0.5},
        "marginals": {
            "plain": 0.1,
            "compiled": 0.1,
            "twice": 0.1,
            "counting": 0.15,
            "split": 0.15,
            "partial-split": 0.1,
            "variational": 0.1,
            "untightened": 0.1,
            "small-memory": 0.1,
        },
        "engine": {"plain": 0.3, "compiled": 0.7},
        "many": {"plain": 0.3, "compiled": 0.2, "split": 0.3, "search": 0.1, "partial": 0.1},
        # Boxes that the caller lends to others, more often than all else.
        "cubes": {
            "plain": 0.1,
            "split": 0.15,
            "search": 0.1,
            "boxes": 0.2,
            "searched-boxes": 0.15,
            "wide-boxes": 0.05,
            "untightened": 0.05,
            "partial-split": 0.05,
            "wide": 0.05,
            "sometimes-wide": 0.05,
            "small-memory": 0.05,
        },
        "solve": {
            "plain": 0.1,
            "compiled": 0.05,
            "anytime": 0.05,
            "split": 0.06,
            "search": 0.07,
            "circuits": 0.1,
            "boxes": 0.06,
            "searched-boxes": 0.04,
            "wide-boxes": 0.02,
            "untightened": 0.05,
            "partial": 0.05,
            "partial-split": 0.05,
            "wide": 0.05,
            "variational": 0.1,
            "sometimes-wide": 0.05,
            "held": 0.05,
            "tiny-memory": 0.02,
            "small-memory": 0.03,
        },
    }
)
"""Roads of each entry and their shares; those that are not here have those of ``solve``."""

METHODS: Mapping[str, tuple[Mapping[str, Any], ...]] = MappingProxyType(
    {
        "auto": ({}, {"ibound": 0}, {"ibound": 1}, {"ibound": 2}),
        "tree": ({"ibound": 1}, {"ibound": 0}, {"ibound": 1}, {"ibound": 2}),
        "gdd": ({}, {"start": "wmb"}, {"start": "uniform"}, {"direction": "gradient"}, {"ibound": 2}, {"ibound": 1}),
        "mbe": ({}, {"ibound": 0}, {"ibound": 2}),
        "wmb": ({}, {"ibound": 0}, {"ibound": 2, "damping": 0.5}),
        "lbfgs": ({},),
        "reorder": ({}, {"ibound": 3}),
        "mas": ({}, {"ibound": 2}),
    }
)
"""Methods of ``bound`` and options of each."""

METHOD_SHARES: Mapping[str, float] = MappingProxyType(dict.fromkeys(METHODS, 1.0) | {"tree": 4.0, "lbfgs": 0.3})
"""The tree is what ``solve`` stands on; ``lbfgs`` takes ten times as long as the others."""

CERTIFIED = 0.2
"""Share of the cases of ``solve`` and ``bound`` that ask for a certificate."""

UNCERTIFIED = ("mas", "reorder")
"""Methods that have none."""

FRACTIONS = (0.5, 0.25, 0.9, 1e-3, 1e-6, 1.5, 3.0, 1e-12, 1e-100, 1e-300, 1e3)
"""Weights beside 0 and 1."""


def draw(seed: int, only: str | None = None) -> Case:
    """The case of a seed; with ``only``, of one entry."""
    rng = np.random.default_rng(seed)
    entry = _choice(rng, ENTRIES)
    entry = only or entry
    name = f"{entry}-{seed}"
    if entry == "file":
        return draw_file(rng, name)
    if entry == "decide":
        return draw_diagram(rng, name)
    cards, kind, factors, directed, log = _model(rng)
    fractions = entry in ("bound", "parts") and rng.random() < 0.3
    questions = tuple(_question(rng, cards, fractions=fractions) for _ in range(_how_many(rng, entry)))
    if entry in ("many", "engine") and rng.random() < 0.5:
        questions += questions[:1]
    if entry == "marginals":
        questions = (Question((1.0,) * len(cards), questions[0].evidence),)
    if entry in ("best", "boxes", "explain") and cards and 0.0 not in questions[0].weights:
        # Log Z has one value, and nothing that could be otherwise.
        weights = tuple(float(x) for x in rng.random(len(cards)) < 0.5)
        questions = (Question((0.0, *weights[1:]), questions[0].evidence),)
    if entry == "blocks":
        questions = (alternating(rng, questions[0]),)
    road = _choice(rng, ROADS_OF.get(entry, ROADS_OF["solve"]))
    options = _options(rng, entry, road)
    if (
        entry in ("solve", "solver", "bound", "boxes", "cubes", "best", "blocks")
        and options.get("method") not in UNCERTIFIED
    ):
        options["certificate"] = bool(rng.random() < CERTIFIED)
    if options.get("method") == "reorder":
        # It chooses its own order, whatever is given.
        questions = (Question(questions[0].weights, questions[0].evidence),)
    return Case(
        name=name,
        entry=entry,
        kind=kind,
        road=road,
        cards=tuple(cards),
        factors=factors,
        log=log,
        directed=directed,
        named=rng.random() < 0.15,
        questions=questions,
        options=options,
        trouble=_trouble(rng, entry, road, options),
    )


def _choice(rng: Rng, shares: Mapping[str, float]) -> str:
    left = rng.random() * sum(shares.values())
    for name, share in shares.items():
        left -= share
        if left < 0.0:
            return name
    return next(iter(shares))


def _model(rng: Rng) -> tuple[list[int], str, Factors, bool, bool]:
    """Cardinalities, the kind by name, factors, whether it is directed, whether tables are logs."""
    if rng.random() < 0.1:
        name, drawn = one_of(rng, [("formula", formula), ("deterministic", deterministic), ("plan", plan)])
        cards, tables = drawn(rng)
        return cards, name, tuple((scope, tuple(table.ravel().tolist())) for scope, table in tables), False, False
    cards = cardinalities(rng)
    shape = one_of(rng, HARD if rng.random() < 0.5 else list(SHAPES))
    scopes: Scopes = SHAPES[shape](rng, len(cards)) if cards else []
    if rng.random() < 0.15:
        scopes += [()] * int(rng.integers(1, 3))
    if cards and rng.random() < 0.3:
        scopes += [(int(v),) for v in rng.integers(0, len(cards), size=int(rng.integers(1, 4)))]
    # Zeros make most of the trouble.
    kind = "zeros" if rng.random() < 0.2 else one_of(rng, NUMBERS)
    mixed = rng.random() < 0.2
    # Without one configuration that zeros leave, most models with zeros would be impossible.
    planted = [int(rng.integers(card)) for card in cards] if rng.random() < 0.7 else None
    directed = shape == "network"
    normalised = directed and rng.random() < 0.7
    if directed:
        scopes = scopes[: len(cards)]
    factors = []
    for scope in scopes:
        size = math.prod(cards[v] for v in scope)
        if size > 1 << 12 and len(scope) > 2:
            continue
        table = numbers(rng, one_of(rng, NUMBERS) if mixed else kind, size)
        if planted is not None:
            at = np.ravel_multi_index([planted[v] for v in scope], [cards[v] for v in scope]) if scope else 0
            table[at] = table[at] or 1.0
        if normalised and rng.random() < 0.9:
            table = _distribution(rng, table.reshape(-1, cards[scope[-1]])).ravel()
        factors.append((scope, table))
    if directed:
        kind += "-sums" if normalised else ""
        directed = len(factors) == len(cards)
    log = rng.random() < 0.2
    if log:
        with np.errstate(divide="ignore"):
            factors = [(scope, np.log(table)) for scope, table in factors]
    plain = tuple((scope, tuple(table.tolist())) for scope, table in factors)
    return cards, f"{shape}/{'mixed' if mixed else kind}", plain, directed, log


def _distribution(rng: Rng, rows: Any) -> Any:
    """Rows that sum to one, or nearly, as files have them; a row of zeros stays one."""
    with np.errstate(over="ignore", invalid="ignore"):
        top = rows.max(axis=1, keepdims=True)
        rows = np.where(top > 0, rows / np.where(top > 0, top, 1.0), 0.0)
        total = rows.sum(axis=1, keepdims=True)
        rows = np.where(total > 0, rows / np.where(total > 0, total, 1.0), 0.0)
    match int(rng.integers(4)):
        case 0:
            return np.round(rows, 7)
        case 1:
            return rows * (1.0 + 1e-9 * (rng.random(rows.shape) - 0.5))
        case _:
            return rows


def _how_many(rng: Rng, entry: str) -> int:
    most = {"many": 4, "engine": 7, "each": 5}
    return int(rng.integers(2, most[entry] + 1)) if entry in most else 1


def _question(rng: Rng, cards: list[int], *, fractions: bool) -> Question:
    n = len(cards)
    share = one_of(rng, [0.0, 0.0, 0.3, 0.5, 0.8, 1.0])
    weights = (rng.random(n) >= share).astype(np.float64)
    if fractions:
        weights = np.where(rng.random(n) < 0.5, rng.choice(FRACTIONS, n), weights)
    evidence: dict[int, int | tuple[float, ...]] = {}
    if rng.random() < 0.4:
        for v in np.flatnonzero(rng.random(n) < 0.3).tolist():
            if rng.random() < 0.6:
                evidence[v] = int(rng.integers(cards[v]))
            else:
                kind = one_of(rng, ["normal", "zeros", "extreme", "spikes", "ties"])
                evidence[v] = tuple(numbers(rng, kind, cards[v]).tolist())
    order = None
    if fractions and rng.random() < 0.4:
        shuffled = rng.permutation(n).tolist()
        order = tuple(sorted(shuffled, key=lambda v: weights[v] == 0.0))
    return Question(tuple(weights.tolist()), evidence, order)


def _options(rng: Rng, entry: str, road: str) -> dict[str, Any]:
    options: dict[str, Any] = {"seed": int(rng.integers(3))}
    if entry == "many":
        return {**options, "threads": int(rng.integers(1, 3)), "time_limit": _time_limit(rng, road)}
    if entry == "each":
        return {**options, "time_limit": _time_limit(rng, road), "executor": drawn_executor(rng)}
    if entry == "parts":
        return {**options, "sweeps": int(rng.integers(0, 30)), "executor": drawn_executor(rng)}
    if entry == "boxes":
        options |= {"ibound": int(rng.integers(0, 2)), "rounds": int(rng.integers(0, 4))}
        options |= {"lends": one_of(rng, [0.0, 0.3, 0.8]), "lost": one_of(rng, [0.0, 0.0, 0.2])}
        options |= {"search": one_of(rng, [0.0, 1e-4, 1e-2]), "memory": one_of(rng, [1e9, 1e9, 1e6, 1e4])}
        return {**options, "time_limit": one_of(rng, [0.05, 0.2, 60.0, 60.0])}
    options["threads"] = 1 if rng.random() < 0.7 else 2
    if entry == "gradient":
        options |= {"ibound": one_of(rng, [None, 0, 1, 2]), "sweeps": int(rng.integers(0, 20))}
        return {**options, "steps": int(rng.integers(0, 4)), "calls": int(rng.integers(1, 4))}
    if entry == "engine":
        return {**options, "time_limit": _time_limit(rng, road)}
    if entry == "blocks":
        return {**options, "ibound": one_of(rng, [None, 0, 1, 2]), "sweeps": int(rng.integers(0, 30))}
    if entry == "bound" and road != "plain":
        options |= {"method": "auto", "time_limit": one_of(rng, [0.05, 1.0, 60.0])}
        # More than the process holds, whatever has run in it before: it would be refused.
        return {**options, "memory": one_of(rng, [None, None, 1e11])}
    if entry == "bound":
        method = _choice(rng, METHOD_SHARES)
        own = METHODS[method]
        options |= {"method": method, **own[int(rng.integers(len(own)))]}
        match int(rng.integers(4)):
            case 0:
                options["sweeps"] = int(rng.integers(0, 6))
            case 1:
                options["time_limit"] = _time_limit(rng, road)
            case 2:
                options |= {"sweeps": 50, "change": one_of(rng, [0.0, 1e-6, 1e-3])}
            case _:
                options |= {"sweeps": 150, "target": float(rng.normal(0.0, 10.0))}
        return options
    options["time_limit"] = _time_limit(rng, road)
    if entry == "marginals":
        options["memory"] = one_of(rng, [None, None, None, 4e9, 4e9, 4e9, 4e9, 5e8, 1e4])
        options["asks"] = one_of(rng, [None, None, 0, 1, 2])
        options["boxes"] = bool(rng.random() < BY_BOXES)
        return options
    options["gap"] = one_of(rng, [0.0, 0.0, 0.0, 1e-3, 1.0])
    if entry == "cubes":
        limit = options["time_limit"] or 1.0
        slices = {"seconds": limit * 10.0 ** rng.uniform(-3.0, -0.5), "doubt": one_of(rng, [0.0, 0.3, 0.8])}
        slices |= {"seed": int(rng.integers(1 << 30)), "caller_works": bool(rng.random() < 0.5)}
        if "boxes" in road:
            slices |= {"silent": slices["caller_works"]}
        options |= {"executor": drawn_executor(rng), "slices": slices}
    if entry == "best":
        options |= {"k": int(rng.integers(2, 7)), "distinct": one_of(rng, [1, 1, 1, 2, 3])}
    if entry == "best" and rng.random() < 0.3:
        # A worker that is lost before there is any bound takes the answer with it.
        options |= {"executor": {**drawn_executor(rng), "lost": 0.0}}
        if rng.random() < 0.3:
            options |= {"work": options.pop("time_limit") or 1.0}
    return options


def _time_limit(rng: Rng, road: str) -> float | None:
    if road == "plain" and rng.random() < 0.3:
        return None
    return one_of(rng, [0.05, 0.2, 1.0, 10.0, 60.0])


def _trouble(rng: Rng, entry: str, road: str, options: Mapping[str, Any]) -> Trouble:
    """A clock by looks in most cases, so that a case repeats; sometimes the true one, for short runs."""
    limit = options.get("time_limit")
    true_clock = road == "plain" or (limit is not None and limit <= 0.2 and rng.random() < 0.3)
    # A tree comes before boxes.
    looks = 10.0 ** (rng.uniform(1.5, 4.0) if "bound" in road else rng.uniform(0.5, 3.0))
    chosen: dict[str, Any] = {} if true_clock else {"step": (limit or 1.0) / looks}
    if entry == "bound" and limit is not None:
        chosen["step"] = limit / looks
    if rng.random() < 0.25:
        chosen["jump_at"] = int(10.0 ** rng.uniform(0.0, 2.5))
    if rng.random() < 0.1:
        chosen["raise_at"] = int(10.0 ** rng.uniform(0.0, 2.0))
    if entry == "solver":
        chosen["stop_after"] = one_of(rng, [0, 1, 2, 3, 5])
    elif entry in ("solve", "bound", "cubes"):
        match int(rng.integers(20)):
            case 0:
                chosen["callback_raises"] = int(rng.integers(1, 4))
            case 1 if entry != "cubes":
                chosen["signal_at"] = int(rng.integers(1, 4))
    return Trouble(**chosen)


def seeds_of(seed: int, first: int, count: int) -> list[int]:
    """Seeds of cases of a run: those of different runs have none in common."""
    return [seed * 1_000_000_000 + number for number in range(first, first + count)]


__all__ = ["ENTRIES", "METHODS", "draw", "seeds_of"]
