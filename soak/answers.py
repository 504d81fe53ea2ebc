"""Entries for more answers from one question: the k best, gradients, checkpoints, explanations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import powersum as ps
from soak.asking import asked, prepared, way
from soak.cases import Case, Question
from soak.certificates import checked_file, proven_best
from soak.claims import CLOSE, SAME, Wrong, slack, truth_of, wrong_result
from soak.executors import Unkind, perhaps_beside
from soak.oracle import LongArray, Truth
from soak.roads import Injected, road


def best(case: Case, ends: list[str]) -> Wrong:
    """``solve(k=…, distinct=…)``, sometimes with a certificate of all of them."""
    model, question, truth = prepared(case)
    # A model without variables has one value.
    options = case.options if 0.0 in question.weights else {**case.options, "k": 1}
    with road(case.road, case.trouble), perhaps_beside(options) as given:
        result = ps.solve(model, **asked(case, question), **given, **way(case))
    ends.append(result.status.value)
    if not result.best:
        return wrong_result(case, model, question, result, truth, ())
    return list(_wrong_best(case, model, question, result, truth))


def _wrong_best(case: Case, model: ps.Model, question: Question, result: ps.Result, truth: Truth) -> Iterator[str]:
    distinct = case.options["distinct"]
    values, error = truth.of_assignments()
    best = result.best
    left = values.copy()
    ranked = np.sort(values.ravel())[::-1]
    uppers = [*(one.log_upper for one in best), result.log_upper_next]
    for number, upper in enumerate(uppers):
        # With enough difference asked for, what is too near to those before does not count.
        if distinct > 1:
            most = float(left.max(initial=-math.inf))
        else:
            most = float(ranked[number]) if number < len(ranked) else -math.inf
        allowed = slack(most, error)
        if upper is None or not upper >= most - allowed:
            yield f"best: number {number + 1} is at most {upper!r}, and there is {most!r}"
        if number == len(best):
            break
        one = best[number]
        states = [model.state(v, one.assignment[model.name(v)]) if w == 0.0 else 0 for v, w in enumerate(truth.weights)]
        own = tuple(0 if v in truth.observed else s for v, s in enumerate(states))
        value = float(values[own])
        if not one.log_lower <= value + allowed:
            yield f"best: log_lower of number {number + 1} is {one.log_lower!r}, its value {value!r}"
        if left[own] == -math.inf and value > -math.inf:
            yield f"best: number {number + 1} is too near to one before it"
        if one.status is ps.Status.OPTIMAL and not value >= most - 2 * SAME - slack(most, error, CLOSE):
            yield f"best: number {number + 1} is called optimal with {value!r}, and there is {most!r}"
        left = np.where(_apart(left.shape, own) < distinct, -np.inf, left)
    if result.certificate is not None:
        yield from _wrong_proof(model, question, result, truth, values, error)


def _wrong_proof(
    model: ps.Model, question: Question, result: ps.Result, truth: Truth, values: LongArray, error: float
) -> Iterator[str]:
    try:
        proven = proven_best(model, question, result.certificate)
    except Exception as refused:
        yield f"certificate: {type(refused).__name__}: {refused}"
        return
    left = values.copy()
    for number, place in enumerate(proven.places):
        own = tuple(0 if v in truth.observed else place.assignment.get(v, 0) for v in range(len(truth.cards)))
        most = float(left.max(initial=-math.inf))
        if not place.log_upper >= most - error or not place.log_lower <= float(values[own]) + error:
            yield f"certificate: of number {number + 1} {place} is accepted, and there is {most!r}"
        left = np.where(_apart(left.shape, own) < proven.distinct, -np.inf, left)
    if not proven.log_upper_next >= float(left.max(initial=-math.inf)) - error:
        yield f"certificate: the next is at most {proven.log_upper_next!r}, and there is {float(left.max())!r}"
    if any("certificate proves less" in note for note in result.notes):
        return
    sides = [*(place.log_upper for place in proven.places), proven.log_upper_next]
    for number, one in enumerate(result.best):
        allowed = slack(one.log_lower, error, SAME) + SAME
        if (
            not sides[number] <= one.log_upper + allowed
            or not proven.places[number].log_lower >= one.log_lower - allowed
        ):
            yield f"certificate: of number {number + 1} it proves {proven.places[number]}, claimed is {one}"


def _apart(shape: tuple[int, ...], own: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """In how many variables each assignment differs from one."""
    apart = np.zeros(shape, dtype=np.int64)
    for axis, (size, state) in enumerate(zip(shape, own, strict=True)):
        apart += (np.arange(size) != state).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return apart


def gradient(case: Case, ends: list[str]) -> Wrong:
    """``BoundFunction``: values are bounds for the numbers of the call, whatever came before."""
    model, question, truth = prepared(case)
    options = dict(case.options)
    seed, calls = options["seed"], options.pop("calls")
    wrong: Wrong = []
    with road(case.road, case.trouble):
        value, slope = ps.BoundFunction(
            model, **asked(case, question), **{k: v for k, v in options.items() if k != "steps"}
        )(steps=0)
    wrong += _wrong_gradient("first", value, slope, model, truth)
    if truth.value == -math.inf:
        ends.append("infeasible")
        return wrong
    with road(case.road, case.trouble):
        tree = ps.BoundFunction(model, **asked(case, question), **options)
    rng = np.random.default_rng(seed)
    for call in range(calls):
        logs = model.log_values + np.where(rng.random(len(model.log_values)) < 0.5, rng.normal(0.0, 2.0), 0.0)
        other = ps.Model.from_factors(
            model.cardinalities.tolist(),
            [
                (factor.scope, piece.reshape(np.shape(factor.log_table)))
                for factor, piece in zip(
                    model.factors(), np.split(logs, model.table_starts[1:-1]) if model.n_factors else [], strict=True
                )
            ],
            log=True,
        )
        with road(case.road, case.trouble):
            value, slope = tree(logs)
        wrong += _wrong_gradient(f"call {call}", value, slope, model, truth_of(case, other, question))
    ends.append("exact" if tree.exact else "bounded")
    return wrong


def _wrong_gradient(
    what: str, value: float, slope: np.ndarray[tuple[int, ...], np.dtype[np.float64]], model: ps.Model, truth: Truth
) -> Iterator[str]:
    if not value >= truth.value - slack(truth.value, truth.error):
        yield f"gradient: {what} gives {value!r}, the truth is {truth.value!r}"
    if slope.shape != model.log_values.shape or not np.isfinite(slope).all() or (slope < -CLOSE).any():
        yield f"gradient: {what} has slopes {slope.tolist()[:20]}"
    elif truth.value > -math.inf:
        for k, piece in enumerate(np.split(slope, model.table_starts[1:-1]) if model.n_factors else []):
            if not abs(piece.sum() - 1.0) < 1e-6:
                yield f"gradient: {what}: the slopes of factor {k} add up to {piece.sum()!r}"


def resume(case: Case, ends: list[str]) -> Wrong:
    """A proof in a file, of any kind and however its run ended, and runs that go on from it: they prove no less."""
    model, question, truth = prepared(case)
    wrong: Wrong = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.zip")
        result, seen = None, list[ps.Snapshot]()
        try:
            with road(case.road, case.trouble):
                result = _proven_in_file(case, model, question, path, seen.append)
        except Injected:
            ends.append("injected")
        if result is not None:
            wrong += wrong_result(case, model, question, result, truth, seen)
        if not path.exists():
            return wrong
        before = (-math.inf, math.inf)
        # The run's own file goes on in the same place, another one elsewhere.
        for step, options in (
            ("file", None),
            ("resumed", {"certificate": True}),
            ("resumed into its file", {"checkpoint": path, "every": 0.0}),
        ):
            if options is not None:
                again = ps.solve(model, **asked(case, question), resume=path, **case.options, **options, **way(case))
                ends.append(again.status.value)
                wrong += [f"{step}, {text}" for text in wrong_result(case, model, question, again, truth, ())]
                if not again.log_upper <= before[1] + slack(before[1], truth.error, SAME):
                    wrong.append(f"{step}: the upper bound was {before[1]!r}, and is {again.log_upper!r}")
                if "certificate" in options and again.certificate is not None:
                    again.certificate.save(Path(folder, "second.zip"))
            proof = Path(folder, "second.zip") if step == "resumed" else path
            try:
                lower, upper = checked_file(model, question, proof)
            except Exception as error:
                return [*wrong, f"{step}: {type(error).__name__}: {error}"]
            if not lower - truth.error <= truth.value <= upper + truth.error:
                wrong.append(f"{step}: {lower!r} to {upper!r} is accepted, the truth is {truth.value!r}")
            if not upper <= before[1] + slack(before[1], truth.error, SAME):
                wrong.append(f"{step}: {before[1]!r} was proven from above, and {upper!r} is")
            if step == "file":
                before = lower, upper
    return wrong


def _proven_in_file(
    case: Case, model: ps.Model, question: Question, path: Path, callback: Callable[[ps.Snapshot], None]
) -> ps.Result | None:
    """A certificate of the kind that the case has, saved; the result where it is one of the question itself."""
    kind = case.options["seed"] if case.trouble.raise_at == 0 else 0
    options, common = dict(case.options), asked(case, question)
    if kind == 1:
        method = METHODS[len(case.factors) % len(METHODS)]
        proven = ps.bound(model, **common, method=method, sweeps=3, certificate=True)
    elif kind == 2 and 0.0 in question.weights:
        proven = ps.solve(model, **common, k=2, certificate=True, **options, **way(case))
    elif kind == 2:
        executor = Unkind(2, threaded=False, lost=0.0, forgotten=0.0, seed=len(case.factors))
        proven = ps.solve(model, **common, certificate=True, workers=executor, **options, **way(case))
    else:
        return ps.solve(model, **common, checkpoint=path, every=0.0, callback=callback, **options, **way(case))
    if proven.certificate is not None:
        proven.certificate.save(path)
    return None if kind == 2 and proven.best else proven


METHODS = ("auto", "gdd", "wmb", "mbe")
"""Methods of ``bound`` that have certificates."""


def explain(case: Case, ends: list[str]) -> Wrong:
    """``Result.explain``: probabilities without each piece of evidence, and what alternatives cost."""
    model, question, truth = prepared(case)
    with road(case.road, case.trouble):
        result = ps.solve(model, **asked(case, question), **case.options, **way(case))
    ends.append(result.status.value)
    if not result.assignment:
        return []
    wrong: Wrong = []
    with road(case.road, case.trouble):
        told = result.explain(model, time_limit=case.options["time_limit"])
    states = {v: model.state(v, result.assignment[model.name(v)]) for v, w in enumerate(truth.weights) if w == 0.0}
    value, error = truth.assigned(states)
    values, _ = truth.of_assignments()
    for one in told.alternatives:
        v = model.variable(one.name)
        others = np.delete(values, states[v], axis=v)
        loss = value - float(others.max(initial=-math.inf))
        allowed = 2.0 * slack(value, error, CLOSE) if math.isfinite(loss) else 0.0
        if not one.log_loss_lower - allowed <= loss <= one.log_loss_upper + allowed:
            wrong.append(f"explain: {one.name} costs {loss!r}, said is {one}")
    for piece in told.evidence:
        v = model.variable(piece.name)
        fewer = Question(question.weights, {u: s for u, s in question.evidence.items() if u != v})
        without = truth_of(case, model, fewer)
        total = truth_of(case, model, Question((1.0,) * len(question.weights), fewer.evidence))
        for name, share, log_value in (
            ("best_probability", piece.best_probability, without.value),
            ("probability", piece.probability, without.assigned(states)[0]),
        ):
            if total.value == -math.inf:
                continue
            right = math.exp(min(log_value - total.value, 0.0))
            if not share.lower <= right * (1.0 + CLOSE) + 1e-300 or not share.upper >= right * (1.0 - CLOSE) - 1e-300:
                wrong.append(f"explain: without {piece.name} {name} is {right!r}, said is {share!r}")
    return wrong
