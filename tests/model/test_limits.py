"""Limits: numbers of every call, checked once; wrong types and values are one line that names argument and value."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum import InputError, Model
from powersum.api.comparison import compare
from powersum.core.memory import LEAST_MEMORY
from powersum.model.limits import Limits, memory_bytes
from powersum.prepare.simplify import simplify
from tests.batch import results_of

COIN = Model.from_factors([2], [((0,), [0.3, 0.7])])

METHOD_OF: dict[str, dict[str, Any]] = {"inner_steps": {"method": "gdd"}}
"""The method of an option that the default method has not."""

ENTRIES: dict[str, tuple[set[str], Callable[..., object]]] = {
    "Limits": ({"threads", "seed", "sweeps", "time_limit", "memory", "gap", "target", "change"}, Limits),
    "bound": (
        {
            "threads",
            "seed",
            "sweeps",
            "time_limit",
            "memory",
            "target",
            "change",
            "ibound",
            "callback",
            "method",
            "inner_steps",
        },
        lambda **options: ps.bound(COIN, **(METHOD_OF.get(next(iter(options)), {}) | options)),
    ),
    "solve": (
        {"threads", "seed", "time_limit", "memory", "gap", "callback"},
        lambda **options: ps.solve(COIN, **options),
    ),
    "Solver": ({"threads", "seed", "time_limit", "memory", "gap"}, lambda **options: ps.Solver(COIN, **options)),
    "marginals": ({"threads", "seed", "time_limit", "memory"}, lambda **options: ps.marginals(COIN, **options)),
    "compare": (
        {"threads", "seed", "sweeps", "time_limit", "callback", "methods"},
        lambda **options: compare(COIN, methods=options.pop("methods", "gdd"), **options),
    ),
    "solve_each": (
        {"threads", "seed", "time_limit", "memory", "gap"},
        lambda **options: results_of(COIN, [{}], **options),
    ),
}

WHOLE = ("threads", "seed", "sweeps", "ibound", "inner_steps")
REAL = ("time_limit", "memory", "gap", "target", "change")
NOT_WHOLE: list[Any] = [1.0, 2.5, True, np.float64(1.0), "1", [1], 1j, np.array([1]), math.nan]
NOT_REAL: list[Any] = ["ten", True, [1.0], 1j, np.complex128(1.0), math.nan, np.array([1.0]), print, np.True_]
CASES = [
    *((name, value) for name in WHOLE for value in NOT_WHOLE),
    *((name, value) for name in REAL for value in NOT_REAL),
    *(("callback", value) for value in (5, "print")),
    *(("method", value) for value in (5, ["gdd"], np.array(["gdd"]))),
    *(("methods", value) for value in (5, [5], [["gdd"]])),
    *((name, 0) for name in ("threads", "time_limit", "memory")),
    *((name, -1) for name in (*WHOLE, *REAL) if name != "target"),
    ("threads", None),
    ("seed", None),
    ("gap", None),
    ("change", math.inf),
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_wrong_option_is_one_line_that_names_it(entry: str) -> None:
    taken, call = ENTRIES[entry]
    refused = 0
    for name, value in CASES:
        if name not in taken:
            continue
        with pytest.raises(InputError) as caught:
            call(**{name: value})
        message = str(caught.value)
        assert message.startswith(name), (name, value, message)
        assert "\n" not in message
        assert len(message) < 200
        shown = value[0] if name == "methods" and isinstance(value, list) else value
        assert f"{shown!r}"[:20] in message or "MB" in message, (name, value, message)
        refused += 1
    assert refused >= len(taken)


def test_the_same_fault_has_the_same_words_everywhere() -> None:
    for name, value in (("seed", 1.5), ("time_limit", -2.0), ("memory", "much"), ("gap", "small"), ("threads", 0)):
        told = set()
        for taken, call in ENTRIES.values():
            if name in taken:
                with pytest.raises(InputError) as caught:
                    call(**{name: value})
                told.add(str(caught.value))
        assert len(told) == 1, told


def test_numbers_of_other_kinds_are_taken() -> None:
    limits = Limits(threads=np.int8(2), seed=np.uint64(7), sweeps=np.int32(3), time_limit=np.float32(0.5), gap=1)  # type: ignore[arg-type]
    assert (limits.threads, limits.seed, limits.sweeps, limits.time_limit, limits.gap) == (2, 7, 3, 0.5, 1.0)
    assert all(type(value) is int for value in (limits.threads, limits.seed, limits.sweeps))
    assert Limits(time_limit=Fraction(1, 2)).seconds == 0.5  # type: ignore[arg-type]
    assert Limits(time_limit=math.inf, target=-math.inf).seconds == math.inf
    assert (Limits().seconds, Limits().bytes) == (math.inf, math.inf)


@pytest.mark.parametrize(
    ("given", "size"),
    [("500M", 5e8), ("2G", 2e9), ("2GiB", 2.0 * 1024**3), ("1.5g", 1.5e9), ("123456", 123456.0), (" 1 kB ", 1e3)],
)
def test_sizes_in_words(given: str, size: float) -> None:
    assert memory_bytes(given) == size
    if size >= LEAST_MEMORY:
        assert Limits(memory=given).bytes == size


MEMORY_ENTRIES: dict[str, Callable[..., Any]] = {
    "solve": ps.solve,
    "Solver": ps.Solver,
    "the best": lambda model, **memory: ps.solve(model, "all", k=2, **memory),
    "cubes": lambda model, **memory: ps.solve(model, workers=2, **memory),
    "bound": ps.bound,
    "marginals": ps.marginals,
    "solve_each": lambda model, **memory: list(ps.solve_each(model, [{}], **memory)),
    "BoundFunction": ps.BoundFunction,
    "Engine": ps.Engine,
}


@pytest.mark.parametrize("entry", MEMORY_ENTRIES)
@pytest.mark.parametrize("size", [3, 12, 30])
def test_too_little_memory_is_refused_however_easy_the_question_is(entry: str, size: int) -> None:
    model = ps.generate.grid(size, size, seed=1).model
    for memory in ("1M", 1e6, 1_999_999, "19.9M", "100M", "319M"):
        with pytest.raises(
            InputError,
            match=r"^memory is .* MB: the process .* takes .* MB, so that at least .* MB are needed;",
        ):
            MEMORY_ENTRIES[entry](model, memory=memory)


def test_explain_refuses_too_little_memory() -> None:
    model = ps.generate.grid(3, 3, seed=1).model
    with pytest.raises(InputError, match=r"^memory is 1 MB"):
        ps.solve(model, [0]).explain(model, memory="1M")


@pytest.mark.parametrize("given", ["", "G", "-1G", "1e9G", "1,5G", "inf", "٢G", "9" * 400, 2**70, math.inf])
def test_sizes_that_are_none(given: Any) -> None:
    with pytest.raises(InputError, match=r"^memory is ") as caught:
        memory_bytes(given)
    assert len(str(caught.value)) < 200


def test_memory_in_words_works_everywhere() -> None:
    model, query = ps.generate.grid(3, 3, seed=1)
    solved = ps.solve(model, query, memory="8G")
    assert solved.options["memory"] == 8e9
    assert ps.Solver(model, query, memory="8G").question.limits.bytes == 8e9
    assert ps.bound(model, query, memory="8GB", sweeps=2).options["memory"] == 8e9
    assert ps.marginals(model, memory="8G").exact
    assert results_of(model, [{"maximize": query}], memory="8G")[0].log_upper == solved.log_upper


@pytest.mark.parametrize("model", [None, 5, {"a": [0.5, 0.5]}, b"coin.uai", ["coin.uai"]])
def test_a_model_is_a_model_or_a_path(model: Any) -> None:
    for call in (ps.solve, ps.bound, ps.marginals, compare, lambda model: results_of(model, [])):
        with pytest.raises(InputError, match=r"^model is .*: give a powersum.Model, or the path of a file$"):
            call(model)


def test_samples_of_evidence_are_whole(tmp_path: Path) -> None:
    (tmp_path / "two.evid").write_text("2\n1 0 1\n1 0 0\n")
    for sample in (1.0, True, "1", -1):
        with pytest.raises(InputError, match=r"^sample is "):
            ps.read_evidence(tmp_path / "two.evid", sample=sample)  # type: ignore[arg-type]


def test_simplification_has_no_words_of_its_own() -> None:
    for query, evidence in ((ps.Query(np.ones(2)), {}), (ps.Query(np.ones(1)), {3: 0}), (ps.Query(np.ones(1)), {0: 9})):
        told = []
        for call in (
            lambda query=query, evidence=evidence: simplify(COIN, query, evidence),
            lambda query=query, evidence=evidence: ps.bound(COIN, weights=query, evidence=evidence),
        ):
            with pytest.raises(InputError) as caught:
                call()
            told.append(str(caught.value))
        assert told[0] == told[1]
