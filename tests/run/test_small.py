"""The short road and the long one give the same answers; on the short one nothing is compiled or loaded for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.instances import DATA

import powersum as ps
from powersum.exact import small
from tests.cases import case
from tests.data import needs_data
from tests.exact.test_small import question, random_network
from tests.oracle import assignment_value

Road = Callable[[str], None]


@pytest.fixture
def road(monkeypatch: pytest.MonkeyPatch) -> Road:
    """Choose a road."""
    most = {"short": 1_000_000, "long": -1}
    return lambda which: monkeypatch.setattr(small, "MOST_ENTRIES", most[which])


def both(road: Road, model: ps.Model, query: ps.Query, evidence: Mapping[int, Any]) -> tuple[ps.Result, ps.Result]:
    """The answers of both roads, compared in all that must be the same."""
    answers = []
    for which in ("short", "long"):
        road(which)
        answers.append(ps.solve(model, evidence=evidence, weights=query))
    one, other = answers
    assert one.status == other.status
    assert one.assignment.keys() == other.assignment.keys()
    # Both are intervals around the same number.
    assert one.log_lower <= other.log_upper
    assert other.log_lower <= one.log_upper
    assert one.gap <= 1e-6
    return one, other


@pytest.mark.parametrize("seed", range(120))
def test_the_same_answers(seed: int, road: Road) -> None:
    if seed % 2:
        model = random_network(seed)
        evidence, tau = question(model, seed)
        query = ps.Query(tau)
    else:
        model, query, evidence = case(seed)
    one, _ = both(road, model, query, evidence)
    if one.status == ps.Status.OPTIMAL:
        chosen = {int(name): int(state) for name, state in one.assignment.items()}
        value = assignment_value(model, chosen, evidence={v: s for v, s in evidence.items() if v not in chosen})
        assert one.log_lower - 1e-9 <= value <= one.log_upper + 1e-9


@pytest.mark.parametrize("seed", range(60))
def test_the_same_marginals(seed: int, road: Road) -> None:
    model = random_network(seed) if seed % 2 else case(seed).model
    evidence, _ = question(model, seed)
    found: list[ps.Marginals | str] = []
    for which in ("short", "long"):
        road(which)
        try:
            found.append(ps.marginals(model, evidence=evidence))
        except ps.InputError as error:
            found.append(str(error))
    if isinstance(found[0], str) or isinstance(found[1], str):
        assert found[0] == found[1]
        return
    assert found[0].exact
    assert found[1].exact
    for one, other in zip(found[0].beliefs, found[1].beliefs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_likelihoods_count_on_both_roads(road: Road) -> None:
    model = random_network(5)
    evidence = {1: np.linspace(0.2, 0.9, int(model.cardinalities[1]))}
    both(road, model, ps.Query.of(model, [0]), evidence)


@needs_data
@pytest.mark.parametrize("name", ["alarm", "child", "insurance", "hailfinder", "hepar2", "win95pts"])
def test_real_networks(name: str, road: Road) -> None:
    model = ps.read(DATA / "bayes" / f"{name}.uai")
    rng = np.random.default_rng(1)
    for _ in range(5):
        maximize = rng.permutation(model.n_variables)[:3].tolist()
        both(road, model, ps.Query.of(model, maximize), {})


HEAVY = {"numba", "scipy", "matplotlib", "pyagrum", "networkx"}


@pytest.mark.parametrize("suffix", [".bif", ".uai", ".xmlbif"])
def test_the_command_line_loads_no_compiler(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    ps.write(random_network(7).with_names([f"v{v}" for v in range(random_network(7).n_variables)]), path)
    code = (
        "import sys; from powersum.app.cli.app import run_app;"
        f"assert run_app(['solve', {str(path)!r}, '--max', 'all']) == 0;"
        f"assert not set(sys.modules) & {HEAVY!r}, set(sys.modules) & {HEAVY!r}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr


def test_the_functions_load_no_compiler() -> None:
    code = (
        "import sys, powersum as ps;"
        "m = ps.Model.from_factors([2, 2], [((0,), [0.8, 0.2]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])]);"
        "ps.solve(m, 'all'), ps.solve(m), ps.marginals(m, evidence={1: 1});"
        "list(ps.solve_each(m, [{}, {'maximize': [0]}]));"
        f"assert not set(sys.modules) & {HEAVY!r}, set(sys.modules) & {HEAVY!r}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
