"""Samples: those of small models have the exact frequencies, weights make up for tables that were cut."""

from __future__ import annotations

import math

import numpy as np
import pytest

import powersum as ps
from powersum.api.sampling import Drawer
from powersum.model.question import Question
from tests.cases import hard_case
from tests.oracle import exact_value


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("entries", [math.inf, 1.0])
def test_means_are_the_marginals(seed: int, entries: float) -> None:
    """Exact or weighted: the share of each state is within five standard deviations of its probability."""
    model, _, evidence = hard_case(seed)
    question = Question.of(model, evidence=evidence)
    tau = np.ones(model.n_variables)
    if exact_value(model, tau, evidence=evidence) == -math.inf:
        with pytest.raises(ps.ImpossibleError):
            ps.sample(model, 10, evidence=evidence)
        return
    drawer = Drawer(question, entries=1e9 if entries == math.inf else 2.0, seconds=60.0)
    if entries == 1.0:
        drawer._tables.clear()
        drawer.exact = True
        drawer.log_sum = drawer._eliminate(1.0)
        assert drawer.log_sum >= exact_value(model, tau, evidence=evidence) - 1e-9
    found = drawer.draw(20_000, np.random.default_rng(seed), lambda: False)
    assert found.exact == drawer.exact
    truth = ps.marginals(model, evidence=evidence)
    size = found.effective_size
    assert size > 30
    for v in range(model.n_variables):
        share = np.bincount(found.states[:, v], found.weights, minlength=int(model.cardinalities[v]))
        wanted = truth.beliefs[v]
        assert (np.abs(share - wanted) <= 5.0 * np.sqrt(wanted * (1 - wanted) / size) + 1e-3).all()
        assert (share[wanted == 0.0] == 0.0).all()


def test_pairs_are_drawn_together() -> None:
    """A copy is a copy in each sample."""
    model = ps.Model.from_factors([2, 2], [((0,), [0.3, 0.7]), ((0, 1), [[1.0, 0.0], [0.0, 1.0]])])
    drawn = ps.sample(model, 1000, seed=3)
    assert (drawn.states[:, 0] == drawn.states[:, 1]).all()
    assert drawn.exact
    assert drawn.effective_size == pytest.approx(1000)
    assert ps.sample(model, 1000, seed=3).states.tolist() == drawn.states.tolist()


def test_evidence_and_likelihoods() -> None:
    model = ps.Model.from_tables({"a": [0.5, 0.5], "b": [0.5, 0.5]}, states={"a": ["n", "y"], "b": ["n", "y"]})
    drawn = ps.sample(model, 5000, evidence={"a": "y", "b": [0.1, 0.9]})
    assert (drawn.states[:, 0] == 1).all()
    assert drawn.states[:, 1].mean() == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_as_a_frame(library: str) -> None:
    pytest.importorskip("narwhals")
    pytest.importorskip(library)
    model = ps.Model.from_tables({"a": {"no": 0.5, "yes": 0.5}})
    frame = ps.sample(model, 7).to_frame(library)
    assert type(frame).__module__.split(".")[0] == library
    assert list(frame.columns) == ["a"]
    assert len(frame) == 7


def test_wrong_calls_are_one_line() -> None:
    model = ps.Model.from_tables({"a": [0.5, 0.5]})
    for call, message in (
        (lambda: ps.sample(model, -1), "n is -1"),
        (lambda: ps.sample(model, 1).to_frame("excel"), "'excel' is no library of data frames"),
    ):
        with pytest.raises(ps.InputError, match=message):
            call()
    assert len(ps.sample(model, 0)) == 0
