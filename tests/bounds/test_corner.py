"""The corner bound: never below the value, at most what a reader of a network sees, a floor under all methods."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.bounds.corner import Corner, corner, corner_of, rank_of
from powersum.bounds.registry import METHODS
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.model.question import Question
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplified
from powersum.proof.certificate import certificate_of, ground_of
from powersum.run.proofs import by_corner
from powersum.run.tuning import Schedule
from tests.check.helpers import random_draft, to_check, truth

WIDE = Schedule(elimination_cost=1e3, look_first=False)
"""A schedule by which nothing is small."""


def drawn(seed: int) -> tuple[Question, float, Model]:
    """A random question of any weights with zeros, evidence, likelihoods and sometimes an order; its value."""
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=int(rng.integers(1, 7)), plain=True)
    if rng.random() < 0.5:
        draft.weights = rng.choice([0.0, 0.3, 1.0, 1.7], len(draft.weights)).tolist()
        if rng.random() < 0.5:
            # Any order of sums, with max variables last, is a question of its own.
            draft.order = sorted(rng.permutation(len(draft.weights)).tolist(), key=lambda v: draft.weights[v] == 0.0)
    known = {**draft.evidence, **{v: list(t) for v, t in draft.likelihoods.items() if v not in draft.evidence}}
    draft.likelihoods = {v: t for v, t in draft.likelihoods.items() if v not in draft.evidence}
    query = Query(np.array(draft.weights))
    if draft.order is None and rng.random() < 0.5:
        # Sums and maxima in blocks that alternate have the value of each order that keeps to the blocks.
        which = rng.integers(0, 4, len(draft.weights))
        draft.weights = rng.choice([0.0, 1.0], 4)[which].tolist()
        draft.order = np.argsort(which, kind="stable").tolist()
        query = Query(np.array(draft.weights), blocks=which)
        return Question.of(draft.model, None, evidence=known, weights=query), truth(draft), draft.model
    return Question.of(draft.model, None, evidence=known, weights=query, order=draft.order), truth(draft), draft.model


def found_for(question: Question) -> tuple[Problem, Corner] | None:
    """The problem of a question and its corner bound; None where nothing is left to bound."""
    problem = simplified(question)
    if not problem.feasible or not problem.model.n_variables:
        return None
    found = corner_of(question, problem)
    assert found is not None
    return problem, found


def network(rng: np.random.Generator, n_variables: int, *, zeros: float) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Conditional tables of a random network, the axes of each in any order, the tables too."""
    cards = rng.integers(2, 4, n_variables)
    tables = []
    for v in range(n_variables):
        parents = rng.permutation(v)[: int(rng.integers(0, min(v, 3) + 1))].tolist()
        table = rng.dirichlet(np.ones(cards[v]), tuple(cards[parents]))
        if rng.random() < zeros:
            # A function of the parents.
            table = np.eye(cards[v])[table.argmax(axis=-1)]
        axes = rng.permutation(len(parents) + 1)
        scope = np.array([*parents, v])[axes]
        tables.append((tuple(scope.tolist()), table.transpose(axes)))
    return [tables[k] for k in rng.permutation(n_variables)]


@pytest.mark.parametrize("seed", range(150))
def test_holds_for_questions_of_every_kind_and_a_certificate_proves_it(seed: int, tmp_path: Path) -> None:
    question, value, model = drawn(seed)
    both = found_for(question)
    if both is None:
        return
    problem, found = both
    for one in (found, corner(problem, rank_of(question))):
        assert one.above(problem) >= value - 1e-9
        assert one.log_error <= 1e-9
    ground = ground_of(question, problem)
    proof = by_corner(ground, found)
    certificate = certificate_of(question, ground, proof, log_lower=-math.inf, log_upper=found.above(problem))
    certificate.save(tmp_path / "proof.zip")
    verified = pc.check(to_check(model), None, tmp_path / "proof.zip")
    assert verified.log_upper >= value - 1e-9
    # The checker multiplies tables before it maximises them, as simplification did.
    assert verified.log_upper <= found.above(problem) + 1e-9


@pytest.mark.parametrize("seed", range(120))
def test_is_at_most_what_a_reader_of_a_network_sees(seed: int) -> None:
    """Conditional tables sum to one, so everything is at most the product of the largest likelihoods."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 14))
    tables = network(rng, n, zeros=float(rng.choice([0.0, 0.5, 1.0])))
    cards = [max(t.shape[s.index(v)] for s, t in tables if v in s) for v in range(n)]
    model = Model.from_factors(cards, tables)
    weights = (rng.random(n) < rng.choice([0.4, 0.8, 1.0])).astype(np.float64)
    known: dict[int, object] = {}
    reader = 0.0
    for v in range(n):
        if rng.random() < 0.15:
            known[v] = int(rng.integers(cards[v]))
        elif rng.random() < 0.2:
            known[v] = (rng.random(cards[v]) * 3.0).tolist()
            reader += math.log(max(known[v]))  # type: ignore[call-overload]
    question = Question.of(model, None, evidence=known, weights=Query(weights))
    both = found_for(question)
    if both is not None:
        problem, found = both
        assert found.above(problem) <= reader + 1e-9


def test_an_exclusive_or_is_read_whichever_axis_looks_like_the_child() -> None:
    """Every axis of such a table sums to one; only a choice without cycles gives the bound."""
    rng = np.random.default_rng(5)
    n = 60
    flip = np.zeros((2, 2, 2))
    for a, b in product(range(2), repeat=2):
        flip[a, b, a ^ b] = 1.0
    tables: list[tuple[tuple[int, ...], np.ndarray]] = [((v,), np.array([0.3, 0.7])) for v in range(12)]
    tables += [((*rng.permutation(v)[:2].tolist(), v), flip) for v in range(12, n)]
    model = Model.from_factors([2] * n, [tables[k] for k in rng.permutation(n)])
    both = found_for(Question.of(model, list(range(12, n, 5)), evidence={}))
    assert both is not None
    assert both[1].above(both[0]) <= 1e-9


def test_a_maximum_inside_a_sum_stays_there() -> None:
    """A state for each case is worth more than the best state for all of them."""
    model = Model.from_factors([2, 2], [((0, 1), np.eye(2))])
    question = Question.of(model, weights=Query.along(model, [("sum", [0]), ("max", [1])]))
    problem, found = found_for(question) or (None, None)
    assert problem is None or found is None or found.above(problem) >= math.log(2.0)
    assert ps.bound(model, weights=question.query).log_upper == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("method", ["auto", *METHODS])
@pytest.mark.parametrize("seed", range(12))
def test_no_method_reports_more(method: str, seed: int) -> None:
    question, value, _ = drawn(seed)
    both = found_for(question)
    if both is None or (question.query.blocks is not None and method not in ("auto", "tree")):
        return
    floor = both[1].above(both[0])
    options = {"ibound": 1} if method in ("auto", "tree", "mbe", "wmb") else {}
    found = ps.bound(
        question.model,
        None,
        evidence=question.all_evidence,
        weights=question.query,
        order=question.order,
        method=method,
        sweeps=1,
        **options,  # type: ignore[arg-type]
    )
    assert all(snapshot.log_upper <= floor for snapshot in found.history)
    assert found.log_upper >= value - 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_solve_reports_no_more_and_proves_it(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    tables = network(rng, 12, zeros=0.5)
    cards = [max(t.shape[s.index(v)] for s, t in tables if v in s) for v in range(12)]
    model = Model.from_factors(cards, tables)
    question = Question.of(model, [0, 5, 7], evidence={11: 0})
    both = found_for(question)
    found = ps.solve(model, [0, 5, 7], evidence={11: 0}, schedule=WIDE, time_limit=5.0, certificate=True)
    if both is not None:
        assert found.history[0].log_upper <= both[1].above(both[0])
    assert found.certificate is not None
    found.certificate.save(tmp_path / "proof.zip")
    assert pc.check(to_check(model), None, tmp_path / "proof.zip").log_upper <= found.log_upper + 1e-6


def test_bound_claims_the_corner_where_its_method_is_worse(tmp_path: Path) -> None:
    """A certificate of mini-buckets that are worse than the corner proves the corner."""
    rng = np.random.default_rng(3)
    tables = network(rng, 40, zeros=0.3)
    cards = [max(t.shape[s.index(v)] for s, t in tables if v in s) for v in range(40)]
    model = Model.from_factors(cards, tables)
    found = ps.bound(model, list(range(0, 40, 3)), method="mbe", ibound=1, sweeps=1, certificate=True)
    assert found.log_upper <= 1e-9
    assert found.certificate is not None
    found.certificate.save(tmp_path / "proof.zip")
    assert pc.check(to_check(model), None, tmp_path / "proof.zip").log_upper <= 1e-8
