"""Certificates of the search in whole numbers: the checker finds the bound, and nothing false in damaged ones."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.answer.certificate import certificate_of, ground_of
from powersum.answer.proofs import by_branching
from powersum.core import work_time as time
from powersum.model.certificate import Certificate
from powersum.model.question import Question
from powersum.prepare.simplify import simplify
from powersum.search.costs import Costs, CostSearch
from tests.check.helpers import to_check
from tests.exact.test_count_proof import saved
from tests.oracle import exact_value

CLOSE = 1e-9


def random_costs(rng: np.random.Generator) -> ps.Model:
    """A model that takes some branching: pairs and triples of few states, zeros among them."""
    n = int(rng.integers(5, 9))
    cards = rng.integers(2, 4, n)
    spread, zeros = rng.choice([0.1, 1.0, 5.0]), rng.choice([0.0, 0.15])
    factors = []
    for _ in range(2 * n):
        scope = rng.choice(n, int(rng.choice([1, 2, 2, 3])), replace=False)
        table = np.exp(rng.normal(scale=spread, size=tuple(cards[scope])))
        factors.append((tuple(scope.tolist()), table * (rng.random(table.shape) >= zeros)))
    return ps.Model.from_factors(cards.tolist(), factors)


def certified(model: ps.Model, *, seconds: float, dives: float) -> tuple[Certificate, float] | None:
    """A certificate of the bound that a search of so many seconds has found, and the bound."""
    question = Question.of(model, maximize="all")
    problem = simplify(model, question.query, {})
    if not problem.feasible or not problem.model.n_variables:
        return None
    costs = Costs(problem.model)
    search = CostSearch(costs, np.arange(problem.model.n_variables))
    search.run(time.monotonic() + dives)
    if search.bound >= costs.hard:
        return None
    ground = ground_of(question, problem)
    proof = by_branching(ground, search, problem, seconds, 1e8)
    bound = certificate_of(question, ground, proof, log_lower=-math.inf, log_upper=proof.log_upper)
    return bound, costs.log_upper(search.bound) + problem.log_constant


def checked(model: ps.Model, certificate: Certificate) -> pc.Verified:
    asked = pc.Question.of(to_check(model), maximize=range(model.n_variables))
    return saved(certificate, lambda path: pc.check(to_check(model), asked, path))


@pytest.mark.parametrize("seed", range(60))
def test_the_checker_finds_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_costs(rng)
    found = certified(model, seconds=100.0, dives=float(rng.choice([0.0, 100.0])))
    if found is None:
        return
    certificate, log_upper = found
    verified = checked(model, certificate)
    assert verified.log_upper >= exact_value(model, np.zeros(model.n_variables)) - CLOSE
    assert verified.log_upper <= log_upper + CLOSE


@pytest.mark.parametrize("seed", range(10))
def test_a_walk_that_is_cut_short_proves_its_root(seed: int) -> None:
    model = random_costs(np.random.default_rng(seed))
    found = certified(model, seconds=0.0, dives=100.0)
    if found is not None:
        verified = checked(model, found[0])
        assert found[0].head["steps"][0]["kind"] == "branching"
        assert exact_value(model, np.zeros(model.n_variables)) - CLOSE <= verified.log_upper < math.inf


@pytest.mark.parametrize("seed", range(12))
def test_damaged_ones_prove_nothing_false(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = None
    while found is None:
        model = random_costs(rng)
        found = certified(model, seconds=100.0, dives=100.0)
    certificate, _ = found
    truth = exact_value(model, np.zeros(model.n_variables))
    names = [n for n in certificate.arrays if n.startswith("0/") and certificate.arrays[n].size]
    for _ in range(200):
        name = names[int(rng.integers(len(names)))]
        array = np.array(certificate.arrays[name])
        place = int(rng.integers(array.size))
        other = array.flat[int(rng.integers(array.size))]
        if array.dtype.kind == "f":
            array.flat[place] = rng.choice([0.0, -1.0, other, 1e16, 1e300])
        else:
            array.flat[place] = max(0, min(126, int(other) + int(rng.integers(-1, 2))))
        if rng.random() < 0.2 and array.ndim == 1:
            array = np.delete(array, place)
        head = dict(certificate.head) | {"claim": {"log_lower": None, "log_upper": None}}
        damaged = replace(certificate, head=head, arrays={**certificate.arrays, name: array})
        try:
            verified = checked(model, damaged)
        except pc.CheckError:
            continue
        assert verified.log_upper >= truth - CLOSE, name
