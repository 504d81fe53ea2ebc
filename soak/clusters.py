"""Entries with ``workers=``: one question in cubes, many questions, a decomposed bound in parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import powersum as ps
from powersum.cluster.errors import ClusterError
from soak.asking import asked, prepared, way
from soak.cases import Case
from soak.claims import Wrong, truth_of, wrong_history, wrong_result
from soak.executors import executor_of, small_slices
from soak.roads import Injected, road


def cubes(case: Case, ends: list[str]) -> Wrong:
    """``solve(workers=…)``: every snapshot holds, also where workers are lost."""
    model, question, truth = prepared(case)
    options = dict(case.options)
    spec, slices = options.pop("executor"), options.pop("slices")
    seen: list[ps.Snapshot] = []

    def callback(snapshot: ps.Snapshot) -> None:
        seen.append(snapshot)
        if len(seen) == case.trouble.callback_raises:
            raise Injected("in the callback")

    wrong: Wrong = []
    try:
        with road(case.road, case.trouble), small_slices(**slices), executor_of(spec) as executor:
            result = ps.solve(
                model, **asked(case, question), workers=executor, callback=callback, **options, **way(case)
            )
    except ClusterError as error:
        ends.append("lost")
        # All are gone before there is any bound; otherwise what is known is the answer.
        if not spec["lost"] or any(snapshot.log_upper < math.inf for snapshot in seen):
            wrong.append(f"lost: {error}")
        return wrong + _shown(case, seen)
    ends.append(result.status.value)
    return wrong + wrong_result(case, model, question, result, truth, seen)


def _shown(case: Case, seen: list[ps.Snapshot]) -> Wrong:
    _, _, truth = prepared(case)
    return [f"shown, {text}" for text in wrong_history(seen, truth)]


def each(case: Case, ends: list[str]) -> Wrong:
    """``solve_each`` on an executor: all answers, in order."""
    model = case.model()
    questions = [asked(case, question) for question in case.questions]
    options = dict(case.options)
    spec = options.pop("executor")
    results: list[ps.Result] = []
    try:
        with road(case.road, case.trouble), executor_of(spec) as executor:
            for item in ps.solve_each(model, iter(questions), workers=executor, **options):
                if item.result is None:
                    return [f"refused: {item.error}"]
                results.append(item.result)
    except ClusterError as error:
        ends.append("lost")
        wrong: Wrong = [] if spec["lost"] else [f"lost: {error}"]
    else:
        wrong = [] if len(results) == len(questions) else [f"answers: {len(results)} of {len(questions)}"]
    for question, result in zip(case.questions, results, strict=False):
        ends.append(result.status.value)
        wrong += wrong_result(case, model, question, result, truth_of(case, model, question), ())
    return wrong


def parts(case: Case, ends: list[str]) -> Wrong:
    """``bound(method="gdd", workers=…)``."""
    model, question, truth = prepared(case)
    options: dict[str, Any] = dict(case.options)
    spec: Mapping[str, Any] = options.pop("executor")
    seen: list[ps.Snapshot] = []
    try:
        with road(case.road, case.trouble), executor_of(spec) as executor:
            result = ps.bound(
                model,
                **asked(case, question),
                order=question.order,
                method="gdd",
                workers=executor,
                callback=seen.append,
                **options,
            )
    except ClusterError as error:
        ends.append("lost")
        return _shown(case, seen) + ([] if spec["lost"] else [f"lost: {error}"])
    ends.append(result.status.value)
    return wrong_result(case, model, question, result, truth, seen)
