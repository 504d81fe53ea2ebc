"""Proofs of parts, of which likelihoods forbid states, as steps about a box: conditioning and branching too."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.model.certificate import Certificate
from powersum.model.question import Question
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from powersum.proof.boxes import NOTHING_PROVEN, proof_of
from powersum.proof.certificate import certificate_of, ground_of
from powersum.proof.conditioning import conditioning_arrays
from powersum.proof.format import Ground, Proof
from powersum.run.proofs import by_branching, by_conditioning
from powersum.search.costs import Costs, CostSearch
from powersum_check.archive import Archive
from powersum_check.box import Step, restricted, root_box
from powersum_check.steps import prove
from tests.check.helpers import to_check
from tests.exact.test_counting import counted
from tests.oracle import exact_value
from tests.proof.test_conditioning import tangled
from tests.run.test_best_proofs import packed
from tests.search.test_cost_proof import random_costs

CLOSE = 1e-9

Part = dict[int, frozenset[int]]


def branched(ground: Ground, problem: Problem) -> Proof:
    search = CostSearch(Costs(problem.model), np.arange(problem.model.n_variables))
    search.run(math.inf)
    return by_branching(ground, search, problem, 100.0, 1e8)


def counted_through(ground: Ground, problem: Problem) -> Proof:
    found = counted(problem.model, np.ones(problem.model.n_variables), log=True)
    return by_conditioning(ground, problem, conditioning_arrays(found, problem), found.log_value)


def random_part(rng: np.random.Generator, cards: list[int]) -> Part:
    """Some states of some variables; one alone now and then, or all but one."""
    part = {}
    for v, card in enumerate(cards):
        if rng.random() < 0.4:
            size = int(rng.integers(1, card))
            part[v] = frozenset(int(s) for s in rng.permutation(card)[:size])
    return part or {0: frozenset((0,))}


def likelihoods_of(part: Part, cards: list[int]) -> dict[int, list[float]]:
    return {v: [float(s in states) for s in range(cards[v])] for v, states in part.items()}


def proven(model: ps.Model, weights: list[float], certificate: Certificate, number: int) -> tuple[float, float]:
    """The bounds that one step of a certificate proves on its box."""
    checked, memory = to_check(model), 10**9
    question = pc.Question(tuple(weights))
    archive = Archive(packed(certificate), memory)
    head = certificate.head["steps"][number]
    step = Step(archive, number, checked, question, root_box(checked, question), head["kind"])
    return prove(replace(step, domains=restricted(step)), [])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("kind", "prover", "weight"), [("branching", branched, 0.0), ("conditioning", counted_through, 1.0)]
)
def test_a_part_is_proven_as_a_box_of_the_whole(
    kind: str, prover: Callable[[Ground, Problem], Proof], weight: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    model = random_costs(rng) if weight == 0.0 else tangled(rng)
    cards = model.cardinalities.tolist()
    part = random_part(rng, cards)
    asked_of = likelihoods_of(part, cards)
    whole = Question.of(model, maximize="all" if weight == 0.0 else None)
    asked = Question.of(model, maximize="all" if weight == 0.0 else None, evidence=asked_of)
    observed = asked.observed
    problem = simplify(observed.model, asked.query, observed.states)
    if not problem.feasible or not problem.model.n_variables:
        return
    ground = ground_of(asked, problem)
    proof = prover(ground, problem)
    certificate = certificate_of(asked, ground, proof, log_lower=-math.inf, log_upper=proof.log_upper)
    found = proof_of(certificate, 1, whole, asked, part)
    assert found is not NOTHING_PROVEN
    assert [step.kind for step in found.steps] == [kind]
    joined = certificate_of(
        whole,
        ground_of(whole, simplify(model, whole.query, {})),
        Proof(list(found.steps), math.inf),
        log_lower=-math.inf,
        log_upper=math.inf,
    )
    weights = [weight] * len(cards)
    low, high = proven(model, weights, joined, 0)
    factors = [(f.scope, np.exp(f.log_table)) for f in model.factors()]
    factors += [((v,), np.array(row)) for v, row in asked_of.items()]
    truth = exact_value(ps.Model.from_factors(cards, factors), np.array(weights))
    assert low - CLOSE <= truth <= high + CLOSE
    assert high <= found.log_upper + CLOSE
    if kind == "conditioning":
        assert low >= truth - CLOSE
