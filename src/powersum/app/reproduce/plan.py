"""What is measured for each figure, cut into tasks that can be stored and taken up again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from powersum.api.comparison import PAPER_GDD, PointCallback, Trace, compare
from powersum.app.reproduce import grid3
from powersum.app.reproduce.instances import (
    FIGURE_3,
    SUPPLEMENT_C,
    PaperQuestion,
    diagnostic,
    half_of,
    ising_grid,
    pedigrees,
)
from powersum.core.arrays import IntArray
from powersum.model.model import Model
from powersum.model.query import Query

FIGURES = ("1", "2", "3", "A", "B", "C")
"""Figures 1 to 3 of the paper, supplements A to C."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is measured. The defaults are the paper's; tests take less."""

    data: Path | None = None
    seed: int = 0
    sweeps: int = 20
    long_sweeps: int = 200
    seconds: float = 6.0
    """Most seconds of a method in a long run."""
    dampings: tuple[float, ...] = (0.01, 0.02, 0.03, 0.035, 0.04, 0.05, 0.06)
    shares: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    grids: int = 20
    """Number of Ising grids of supplement A."""
    grid_sweeps: int = 60
    instances: int | None = None
    """Most instances of a figure; None for all."""
    descent_sweeps: int = 800
    """Sweeps of figure 1."""

    def fingerprint(self) -> dict[str, Any]:
        """What a stored measurement must agree with to be taken up again."""
        from powersum import __version__

        return {
            "version": __version__,
            "data": self.data is not None,
            "gdd:paper": dict(PAPER_GDD),
            **{name: getattr(self, name) for name in self.__slots__ if name != "data"},
        }


@dataclass(frozen=True, slots=True)
class FigureTask:
    """One measurement: its figure, its name, and the function that makes it."""

    figure: str
    key: str
    title: str
    run: Callable[[PointCallback | None], dict[str, Any]]


def tasks(settings: Settings, figures: tuple[str, ...]) -> list[FigureTask]:
    """All tasks of the figures, in order."""
    found: list[FigureTask] = []
    data, seed, most = settings.data, settings.seed, settings.instances
    if "1" in figures:
        found.append(FigureTask("1", "grid3x3", "3×3 grid", lambda _: grid3.measure(sweeps=settings.descent_sweeps)))
    if "2" in figures:
        found += [_curves("2", q, settings) for q in diagnostic(data, seed)[:most]]
    if "3" in figures:
        found += [_curves("3", q, settings) for q in pedigrees(data, FIGURE_3[:most], seed)]
    if "A" in figures:
        found += [_ising(s, settings) for s in range(settings.grids)]
    if "B" in figures:
        for q in diagnostic(data, seed)[: 3 if most is None else most]:
            found += [_share(q, share, settings) for share in settings.shares]
    if "C" in figures:
        found += [_curves("C", q, settings) for q in pedigrees(data, SUPPLEMENT_C[:most], seed)]
    return found


def _curves(figure: str, question: PaperQuestion, settings: Settings) -> FigureTask:
    """The curves of one instance, and long runs of what keeps descending."""
    wmb = [f"wmb:{d:g}" for d in settings.dampings]
    methods = ["gdd", "gdd:paper", *wmb, "wmb:0.5", "lbfgs", "mbe", "reorder", "mas", "tree:1"]

    def run(callback: PointCallback | None) -> dict[str, Any]:
        model, query = question.model, question.query
        short = compare(model, query, methods=methods, sweeps=settings.sweeps, callback=callback)
        long = compare(
            model,
            query,
            methods=["gdd", "gdd:paper", "lbfgs", "tree:1"],
            sweeps=settings.long_sweeps,
            time_limit=settings.seconds,
            decode=False,
            callback=callback,
        )
        return {
            "title": question.title,
            "notes": list(short.notes),
            "traces": [trace_record(t) for t in short.traces],
            "long": [trace_record(t) for t in long.traces],
        }

    return FigureTask(figure, question.key, question.title, run)


def _ising(number: int, settings: Settings) -> FigureTask:
    """Supplement A: the sum and a marginal MAP query on one grid, with exact values."""

    def run(callback: PointCallback | None) -> dict[str, Any]:
        model = ising_grid(5, 2.0, settings.seed + number)
        record: dict[str, Any] = {"title": f"5×5 Ising grid {number}"}
        for kind, query in (("sum", []), ("mixed", half_of(model, settings.seed + number, 12 / 25))):
            found = compare(
                model,
                query,
                methods=["trw", "gdd", "wmb:0.05", "tree:1"],
                sweeps=settings.grid_sweeps,
                decode=False,
                callback=callback,
            )
            record[kind] = [trace_record(t) for t in found.traces]
            record[f"exact_{kind}"] = exact_value(model, Query.of(model, query))
        return record

    return FigureTask("A", f"ising{number}", f"Ising grid {number + 1} of {settings.grids}", run)


def _share(question: PaperQuestion, share: float, settings: Settings) -> FigureTask:
    """Supplement B: best bounds within the sweeps for one share of max variables."""

    def run(callback: PointCallback | None) -> dict[str, Any]:
        query = half_of(question.model, settings.seed, share)
        found = compare(
            question.model,
            query,
            methods=["gdd", "gdd:paper", "wmb:0.5", "wmb:0.04", "wmb:0.02", "tree:1"],
            sweeps=settings.sweeps,
            decode=False,
            callback=callback,
        )
        return {"title": question.title, "share": share, "best": {t.label: t.best for t in found.traces}}

    return FigureTask("B", f"{question.key}-{round(100 * share)}", f"{question.title}, {share:.0%} max", run)


def exact_value(model: Model, query: Query) -> float:
    """The exact value by elimination."""
    from powersum.exact.elimination import Elimination
    from powersum.prepare.ordering import elimination_order
    from powersum.prepare.simplify import simplify

    problem = simplify(model, query, {})
    order: IntArray = elimination_order(problem.model, problem.tau)
    return float(Elimination(problem.model, order, problem.tau).run().log_value + problem.log_constant)


def trace_record(trace: Trace) -> dict[str, Any]:
    """A trace as plain values."""
    points = [[p.sweep, p.seconds, p.value, p.log_upper, p.log_decoded] for p in trace.points]
    return {
        "label": trace.label,
        "method": trace.method,
        "guaranteed": trace.guaranteed,
        "points": points,
        "sizes": dict(trace.sizes),
    }
