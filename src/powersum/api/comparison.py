"""``compare``: several methods on one question, side by side, sweep by sweep."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from powersum.api.bounding import checked_order, reduced_order
from powersum.bounds.registry import METHODS
from powersum.bounds.rivals import BASELINES
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt, interruptible
from powersum.model.defaults import COMPARED_SWEEPS
from powersum.model.keys import as_text, listed
from powersum.model.limits import Limits
from powersum.model.model import Model, VariableKey
from powersum.model.query import Query
from powersum.model.question import EvidenceLike, ModelLike, Question, WeightsLike, function_of

if TYPE_CHECKING:
    from powersum.assign.evaluator import Evaluator
    from powersum.core.arrays import IntArray
    from powersum.prepare.problem import Problem

RUNNABLE: Mapping[str, str] = MappingProxyType({**METHODS, **BASELINES})
"""Every method that can be compared: those that bound, and the rivals."""

DEFAULT_METHODS = ("gdd", "wmb:0.035", "lbfgs", "mbe", "reorder", "tree:1")

PAPER_GDD: Mapping[str, Any] = MappingProxyType({"start": "uniform", "direction": "gradient", "inner_steps": 5})
"""Algorithm 1 as the paper describes it: plain gradients, five steps a block. It does not say which first weights it
takes; even ones end lower than those of its supplement, whose zeros stay zero for ever."""

OPTION_OF: Mapping[str, tuple[str, type]] = MappingProxyType(
    {
        "gdd": ("start", str),
        "tree": ("ibound", int),
        "wmb": ("damping", float),
        "trw": ("damping", float),
        **dict.fromkeys(("mbe", "reorder", "mas"), ("ibound", int)),
    }
)
"""What a value after a method's name and a colon means."""

# Decoding a tree takes it back to its best point and makes it forget its curvature: that is done once, at the end.
DECODED_LAST = ("tree",)

EVALUATION_WORK = 2e7
"""Table entries that one exact evaluation of a decoding may cost: about a tenth of a second."""

PointCallback = Callable[[str, "Point"], None]


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """A method with its options, and the words that chose it."""

    label: str
    method: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """Where a method stands after a sweep; all values are natural logs.

    ``value`` is that of the sweep itself, which for some methods may rise; ``log_upper`` is the best bound so far,
    ``inf`` for a method that gives none. ``log_decoded`` is Q(x_B) of the latest decoding, evaluated exactly: ``-inf``
    for an impossible one, None where it was not evaluated.
    """

    sweep: int
    seconds: float
    value: float
    log_upper: float
    log_decoded: float | None


@dataclass(frozen=True, slots=True)
class Trace:
    """What one method did."""

    label: str
    method: str
    guaranteed: bool
    points: tuple[Point, ...]
    sizes: Mapping[str, int | float]

    @property
    def best(self) -> float:
        """The best value that the method stands for: its bound, or its last value where it gives none."""
        return self.points[-1].log_upper if self.guaranteed else self.points[-1].value


@dataclass(frozen=True, slots=True)
class Comparison:
    """All traces, and what has to be said about them."""

    traces: tuple[Trace, ...]
    notes: tuple[str, ...]

    def to_csv(self) -> str:
        """One line for each method and sweep."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["method", "sweep", "seconds", "value", "log_upper", "log_decoded"])
        for trace in self.traces:
            for p in trace.points:
                decoded = "" if p.log_decoded is None else repr(p.log_decoded)
                row = [trace.label, p.sweep, f"{p.seconds:.6f}", repr(p.value), repr(p.log_upper), decoded]
                writer.writerow(row)
        return text.getvalue()


def parse_methods(words: str | Iterable[str]) -> list[MethodChoice]:
    """Methods from words such as ``gdd``, ``wmb:0.035`` or ``tree:1``, separated by commas or already apart."""
    given = words.split(",") if isinstance(words, str) else listed(words, "methods", "names of methods")
    for word in given:
        if not isinstance(word, str):
            raise InputError(f"methods: {as_text(word)} is no name of a method: give a string")
    choices = [_choice(word.strip()) for word in given if word.strip()]
    if not choices:
        raise InputError(f"no method is given: there is {', '.join(RUNNABLE)}")
    twice = {c.label for c in choices if [d.label for d in choices].count(c.label) > 1}
    if twice:
        raise InputError(f"method {min(twice)!r} is given twice")
    return choices


def _choice(word: str) -> MethodChoice:
    name, colon, value = word.partition(":")
    if name not in RUNNABLE:
        near = get_close_matches(name, RUNNABLE, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"no method is called {name!r}: there is {', '.join(RUNNABLE)}{hint}")
    if not colon:
        return MethodChoice(word, name, {})
    if name not in OPTION_OF:
        raise InputError(f"method {name} takes no value: {word!r}")
    if word == "gdd:paper":
        return MethodChoice(word, name, PAPER_GDD)
    option, kind = OPTION_OF[name]
    try:
        return MethodChoice(word, name, {option: kind(value)})
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise InputError(f"{word!r}: the {option} of {name} must be {expected}, not {value!r}") from None


def compare(
    model: ModelLike,
    maximize: Iterable[VariableKey] | str | None = None,
    *,
    evidence: EvidenceLike | None = None,
    weights: WeightsLike | None = None,
    methods: str | Iterable[str] = DEFAULT_METHODS,
    order: Sequence[VariableKey] | IntArray | None = None,
    sweeps: int | None = None,
    time_limit: float | None = None,
    decode: bool = True,
    threads: int = 1,
    seed: int = 0,
    callback: PointCallback | None = None,
) -> Comparison:
    """Run several methods on the same simplified problem with the same elimination order.

    Parameters
    ----------
    model, maximize, evidence, weights, order
        The question, as in :func:`powersum.bound`.
    methods
        Names, each with an optional value: ``wmb:0.035`` (damping), ``tree:1`` or ``mbe:2`` (i-bound), ``gdd:wmb``
        (first weights), ``gdd:paper`` (plain gradients as in the paper).
    sweeps, time_limit
        Each method stops after this number of sweeps, or seconds of its own; after 20 sweeps if neither is given.
    decode
        Whether to decode after every sweep and evaluate what was decoded; not counted in the seconds.
    threads, seed
        Handed to every method.
    callback
        Called with a method's words and a :class:`Point` after every sweep.

    Examples
    --------
    >>> import powersum as ps
    >>> from powersum.api.comparison import compare
    >>> model, query = ps.generate.grid(3, 3, seed=1)
    >>> [trace.label for trace in compare(model, query, methods="gdd,mbe", sweeps=2).traces]
    ['gdd', 'mbe']
    """
    from powersum.prepare.simplify import simplified

    if sweeps is None and time_limit is None:
        sweeps = COMPARED_SWEEPS
    limits = Limits(sweeps=sweeps, time_limit=time_limit, threads=threads, seed=seed)
    function_of(callback, "callback")
    choices = parse_methods(methods)
    question = Question.of(model, maximize, evidence=evidence, weights=weights, order=order, limits=limits)
    question.no_blocks("compare")
    eliminated = checked_order(question)
    with interruptible() as interrupt:
        problem = simplified(question)
        if not problem.feasible or problem.model.n_variables == 0:
            point = Point(0, 0.0, problem.log_constant, problem.log_constant, None)
            traces = [Trace(c.label, c.method, True, (point,), {}) for c in choices]
            return Comparison(tuple(traces), ("Simplification alone gave the exact value.",))
        chosen = reduced_order(problem, eliminated, seed=limits.seed)
        # Everything that can be refused is refused before anything long runs.
        for choice in choices:
            _start(choice, problem, chosen, limits)
            _warm_up(choice.method)
        scores = _Scores(problem) if decode and (problem.tau == 0.0).any() else None
        done, notes = [], []
        for choice in choices:
            done.append(_run(choice, problem, chosen, limits, scores, interrupt, callback))
            if interrupt.cause is not None:
                notes.append(f"Interrupted by {interrupt.cause}: the methods after {choice.label} did not run.")
                break
        if scores is not None and scores.too_wide:
            notes.append("Decodings are not evaluated: given the max variables, the sum is still too wide.")
    return Comparison(tuple(done), tuple(notes))


def _start(choice: MethodChoice, problem: Problem, order: IntArray, limits: Limits) -> Any:
    return _class(choice.method)(problem, order, threads=limits.threads, seed=limits.seed, **choice.options)


def _class(method: str) -> Any:
    module, _, name = RUNNABLE[method].partition(":")
    return cast(Any, getattr(import_module(module), name))


@cache
def _warm_up(method: str) -> None:
    """Load the method's compiled code on a toy, so that nobody's seconds are spent on it."""
    from powersum.prepare.simplify import simplify

    around = [(i, (i + 1) % 4) for i in range(4)]
    model = Model.from_factors([2] * 4, [(pair, [[1.0, 2.0], [3.0, 1.0]]) for pair in around])
    problem = simplify(model, Query.of(model, [0, 1]), {})
    toy = _class(method)(problem, reduced_order(problem, None), threads=1, seed=0)
    toy.step(math.inf)
    toy.decode()


class _Scores:
    """Exact values of decodings while they are affordable."""

    def __init__(self, problem: Problem) -> None:
        from powersum.assign.evaluator import Evaluator

        self._evaluator: Evaluator = Evaluator(problem, memory=2e8)
        self._constant = problem.log_constant
        self.too_wide = False

    def of(self, states: IntArray) -> float | None:
        """Q(x_B) of the states; None once one of them has cost too much."""
        if self.too_wide:
            return None
        total = self._constant + self._evaluator.plain_value(states)
        for c in range(self._evaluator.n_components):
            if total == -math.inf:
                break
            value = self._evaluator.component_value(c, states, EVALUATION_WORK)
            if value == math.inf:
                self.too_wide = True
                return None
            total += value
        return float(total)


def _run(
    choice: MethodChoice,
    problem: Problem,
    order: IntArray,
    limits: Limits,
    scores: _Scores | None,
    interrupt: Interrupt,
    callback: PointCallback | None,
) -> Trace:
    """One method from its start to its last sweep."""
    began = time.monotonic()
    method = _start(choice, problem, order, limits)
    spent = time.monotonic() - began
    points = [_point(method, 0, spent, problem)]
    last = math.inf if limits.sweeps is None else limits.sweeps
    longest = limits.seconds
    more = True
    while True:
        over = not more or len(points) > last or spent >= longest or interrupt.cause is not None
        if scores is not None and (over or choice.method not in DECODED_LAST):
            states = np.asarray(method.decode(), dtype=np.int64)
            points[-1] = replace(points[-1], log_decoded=scores.of(states))
        if callback is not None:
            callback(choice.label, points[-1])
        if over:
            break
        began = time.monotonic()
        more = method.step(began + longest - spent)
        spent += time.monotonic() - began
        point = _point(method, len(points), spent, problem)
        # A method that has nothing left to do has not made another sweep.
        if more or point.value != points[-1].value:
            points.append(point)
    guaranteed = bool(getattr(method, "guaranteed", True))
    return Trace(choice.label, choice.method, guaranteed, tuple(points), method.sizes())


def _point(method: Any, sweep: int, seconds: float, problem: Problem) -> Point:
    value = float(getattr(method, "last_value", method.log_upper))
    return Point(sweep, seconds, value + problem.log_constant, float(method.log_upper) + problem.log_constant, None)
