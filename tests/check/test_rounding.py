"""The proven errors of operations against errors measured in ball arithmetic, and the slow mode that uses these."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

import powersum_check as pc
from powersum_check.__main__ import main
from powersum_check.balls import Balls
from powersum_check.numbers import (
    FloatArray,
    Table,
    add,
    logs_of,
    normalised,
    outward,
    power_sum,
    power_sum_of,
    without,
)
from tests.check.helpers import question_of, random_draft, to_check, truth
from tests.check.test_alone import files_of, plain_draft
from tests.check.test_mutations import sound_draft
from tests.check.writer import Setting, no_tree

SIZES = [1e-300, 1e-12, 1.0, 40.0, 1e3, 1e8, 1e16, 1e40]


def random_values(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Numbers of very different sizes, some of them -inf."""
    sizes = rng.choice(SIZES, shape if rng.random() < 0.5 else (1,) * len(shape))
    values: FloatArray = rng.normal(0.0, 1.0, shape) * sizes
    values[rng.random(shape) < 0.2] = -math.inf
    return values


@pytest.mark.parametrize("seed", range(200))
def test_proven_errors_are_not_below_measured_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    balls = Balls()
    shape = tuple(rng.integers(1, 5, 2).tolist())
    tables = [Table(random_values(rng, shape)) for _ in range(int(rng.integers(1, 6)))]
    total = add(shape, tables)
    assert balls.of_sum([t.values for t in tables], total.values) <= total.up + 1e-322
    values = random_values(rng, (int(rng.integers(2, 200)), 3))
    weight = float(rng.choice([1e-300, 1e-100, 1e-30, 1e-7, 0.01, 0.3, 1.0, 1.7, 1e3]))
    result = power_sum(Table(values), weight)
    assert balls.of_power_sum(values, weight, result.values) <= result.up == result.down
    less, constant = normalised(Table(values))
    assert balls.of_sum([values, np.array(-constant)], less.values) <= less.up + 1e-322
    probabilities = np.exp(rng.normal(0.0, rng.choice([0.1, 10.0, 100.0]), 20))
    logs, error = logs_of(probabilities)
    assert balls.of_logs(probabilities, logs) <= error


@pytest.mark.parametrize("seed", range(100))
def test_proven_errors_of_a_few_numbers_are_not_below_measured_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = random_values(rng, (int(rng.integers(2, 9)),))
    assert power_sum_of([2.5], 0.3) == (2.5, 0.0)
    assert power_sum_of(numbers.tolist(), 0.0) == (numbers.max(), 0.0)
    for weight in (1e-3, 0.3, 1.0, 7.0):
        result, error = power_sum_of(numbers.tolist(), weight)
        assert Balls().of_power_sum(numbers, weight, np.array(result)) <= error
        table = power_sum(Table(numbers), weight)
        assert abs(result - float(table.values)) <= error + table.up or result == table.values == -math.inf


def test_many_states_at_once() -> None:
    """The error of a sum grows with the number of states, and its bound does."""
    values = np.random.default_rng(0).normal(0.0, 3.0, (20_000, 1))
    for weight in (0.5, 1.0):
        result = power_sum(Table(values), weight)
        assert Balls().of_power_sum(values, weight, result.values) <= result.up < 1e-11


def test_sums_of_constants_are_rounded_outwards() -> None:
    low, high = outward([0.1] * 10 + [1e16, -1e16], 0.0, 0.0)
    assert low < 1.0 < high
    assert high - low < 1e-14
    assert outward([-math.inf, 3.0], 1.0, 1.0) == (-math.inf, -math.inf)
    assert outward([3.0], 0.0, math.inf)[0] == -math.inf


def test_dropping_axes_keeps_both_sides() -> None:
    values = np.array([[0.0, -1.0], [-3.0, -0.5]])
    table = without(Table(values, 0.25, 0.5), (0,))
    assert (table.values + table.up >= values).all()
    assert (table.values - table.down <= values).all()
    assert without(Table(np.array([0.0, -math.inf])), (0,)).down == math.inf


@pytest.mark.parametrize("seed", range(40))
def test_the_slow_mode_agrees_and_is_not_wider(seed: int) -> None:
    draft = sound_draft(np.random.default_rng(seed))
    model, question = to_check(draft.model), question_of(draft)
    quick = pc.check(model, question, draft.zip())
    slow = pc.check(model, question, draft.zip(), exact=True)
    assert quick.log_lower <= slow.log_lower <= truth(draft) + 1e-9
    assert quick.log_upper >= slow.log_upper >= truth(draft) - 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_slow_mean_field(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draft = random_draft(rng)
    q = rng.random(sum(len(d) for d in Setting.of(draft).domains))
    draft.step("mean-field", no_tree(draft) | {"q": q})
    model, question = to_check(draft.model), question_of(draft)
    quick, slow = (pc.check(model, question, draft.zip(), exact=exact) for exact in (False, True))
    assert quick.log_lower <= slow.log_lower <= quick.log_lower + 1e-9 or quick.log_lower == slow.log_lower


def test_the_command_has_the_slow_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*files_of(plain_draft(4), tmp_path), "--exact"]) == 0
    assert "\nverified: " in capsys.readouterr().out
