"""Generated influence diagrams: known values, the seed decides, files give the same diagram."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from powersum.formats.diagrams import write_diagram
from tests.decisions.drawn import random_diagram
from tests.decisions.oracle import best_with_recall


def test_the_wildcatter_is_worth_22_and_a_half() -> None:
    assert ps.decide(ps.generate.wildcatter()).utility_upper == pytest.approx(22.5)


@pytest.mark.parametrize("seed", range(5))
def test_a_small_pomdp_is_solved_exactly(seed: int) -> None:
    diagram = ps.generate.pomdp(2, hidden=2, observed=1, actions=3, seed=seed)
    best = best_with_recall(diagram, {})
    decision = ps.decide(diagram)
    assert decision.utility_lower == pytest.approx(best, abs=1e-6)
    assert decision.utility_upper == pytest.approx(best, abs=1e-6)
    again, other = (ps.generate.pomdp(2, hidden=2, observed=1, actions=3, seed=s) for s in (seed, seed + 1))
    assert np.array_equal(diagram.model.log_values, again.model.log_values)
    assert not np.array_equal(diagram.model.log_values, other.model.log_values)


@pytest.mark.parametrize("seed", range(20))
def test_written_diagrams_are_read_back(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    diagram = random_diagram(rng, n=6, decisions=2)
    path = tmp_path / "diagram.uai"
    write_diagram(diagram, path)
    read = ps.read_diagram(path)
    assert read.recall
    assert best_with_recall(read, {}) == pytest.approx(best_with_recall(diagram, {}), rel=1e-12, abs=1e-12)


def test_limited_memory_is_written_where_the_format_has_a_place_for_it(tmp_path: Path) -> None:
    diagram = ps.generate.pomdp(3, recall=False)
    write_diagram(diagram, tmp_path / "limited.uai")
    read = ps.read_diagram(tmp_path / "limited.uai")
    assert not read.recall
    assert [set(c.sees) for c in read.choices] == [set(c.sees) for c in diagram.choices]
    loose = ps.Diagram.of(
        ps.Model.from_factors([2, 2, 2], [((0,), [0.5, 0.5])]), [([0, 1, 2], np.arange(8.0))], [(1, [0]), (2, [0])],
        recall=False,
    )  # fmt: skip
    with pytest.raises(ps.InputError, match="no place for that without perfect recall"):
        write_diagram(loose, tmp_path / "loose.uai")
    with pytest.raises(ps.InputError, match=r"written as \.uai"):
        write_diagram(diagram, tmp_path / "limited.xdsl")


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ps.InputError, match="stages"):
        ps.generate.pomdp(0)
