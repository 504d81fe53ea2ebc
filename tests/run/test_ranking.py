"""What tables say of parts of the k best, against brute force; and trees that are handed on to parts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

import powersum as ps
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.rebuilding import rebuilt, saved_of
from powersum.core.interrupt import Interrupt
from powersum.exact import small
from powersum.model.question import Question
from powersum.prepare.ordering import elimination_order
from powersum.prepare.simplify import simplified
from powersum.run.inheritance import Inherited
from powersum.run.ranking import Ranking, ranking_of, small_ranking
from powersum.run.solver import Solver
from tests.cases import Case, bushy_case, case, hard_case
from tests.oracle import assignment_value

CLOSE = 1e-9


def question_of(asked: Case) -> Question:
    return Question.of(asked.model, evidence=asked.evidence, weights=asked.query)


def by_tables(asked: Case, ibound: int | None, saved: bool) -> Ranking | None:
    """The ranking of a question that is treated as if it were not small."""
    question = question_of(asked)
    left = None
    problem = simplified(question)
    if saved and problem.feasible and problem.model.n_variables:
        order = elimination_order(problem.model, problem.tau)
        tree = CoveringTree(problem, order, ibound=1)
        tree.step(math.inf)
        left = saved_of(tree.best_tree, problem)
    found, _ = ranking_of(
        question, left, log_lower=-math.inf, memory=1e9, seconds=0.05, ibound=ibound, interrupt=Interrupt()
    )
    return found


def in_plain_numpy(asked: Case) -> Ranking | None:
    question = question_of(asked)
    elimination = small.small_elimination(*question.observed, question.query.weights)
    assert elimination is not None
    return small_ranking(elimination)


ROADS: list[Callable[[Case], Ranking | None]] = [
    in_plain_numpy,
    lambda asked: by_tables(asked, None, saved=False),
    lambda asked: by_tables(asked, 1, saved=False),
    lambda asked: by_tables(asked, 1, saved=True),
]


@pytest.mark.parametrize("road", range(len(ROADS)))
@pytest.mark.parametrize("kind", [case, hard_case, bushy_case])
@pytest.mark.parametrize("seed", range(4))
def test_every_part_is_bounded_and_exact_tables_tell_its_value(
    kind: Callable[[int], Case], seed: int, road: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small, "MOST_ENTRIES", 1_000_000)
    asked = kind(seed)
    ranking = ROADS[road](asked)
    variables = [int(v) for v in asked.query.max_variables if int(v) not in asked.evidence]
    if ranking is None or not variables:
        return
    assert sorted(ranking.variables) == variables
    sizes = [int(asked.model.cardinalities[v]) for v in ranking.variables]
    values = {
        states: assignment_value(
            asked.model, dict(zip(ranking.variables, states, strict=True)), evidence=asked.evidence
        )
        for states in itertools.product(*map(range, sizes))
    }
    assert ranking.log_upper >= max(values.values()) - CLOSE
    rng = np.random.default_rng(seed)
    for number in rng.permutation(len(values))[:12].tolist():
        states = list(values)[number]
        losses = ranking.losses(states)
        path = ranking.log_upper
        for depth in range(len(states)):
            for state in range(sizes[depth]):
                prefix = (*states[:depth], state)
                truth = max(value for own, value in values.items() if own[: depth + 1] == prefix)
                told = path - float(losses[depth][state])
                assert told >= truth - CLOSE
                if ranking.exact:
                    assert told == pytest.approx(truth, abs=1e-7)
            path -= float(losses[depth][states[depth]])
        assert path >= values[states] - CLOSE
    best = ranking.best({})
    kept = frozenset(range(sizes[-1])) - {best[-1]}
    if ranking.exact and max(values.values()) > -math.inf:
        assert values[best] == pytest.approx(max(values.values()), abs=1e-7)
        if kept:
            others = {own: value for own, value in values.items() if own[-1] in kept}
            if max(others.values()) > -math.inf and len(states) == 1:
                assert values[ranking.best({ranking.variables[-1]: kept})] == pytest.approx(max(others.values()))


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_that_is_left_bounds_the_whole_as_before_and_every_part(seed: int) -> None:
    asked = hard_case(seed, zeros=0.1 * (seed % 3))
    question = question_of(asked)
    problem = simplified(question)
    if not problem.feasible or not problem.model.n_variables:
        return
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1)
    for _ in range(5):
        tree.step(math.inf)
    saved = saved_of(tree.best_tree, problem)
    again = rebuilt(saved, problem, threads=1, memory=1e9)
    assert again is not None
    assert again.log_upper == pytest.approx(tree.log_upper, abs=1e-6)
    rng = np.random.default_rng(seed)
    for v in rng.permutation(asked.query.max_variables)[:4].tolist():
        kept = frozenset(range(int(asked.model.cardinalities[v]))) - {int(rng.integers(asked.model.cardinalities[v]))}
        part = question.within({v: kept})
        assert part is not None
        evidence = part.all_evidence
        inner = simplified(part)
        truth = ps.solve(asked.model, weights=asked.query, evidence=evidence)
        if inner.feasible and inner.model.n_variables:
            own = rebuilt(saved, inner, threads=1, memory=1e9)
            assert own is not None
            assert own.log_upper + inner.log_constant >= truth.log_lower - CLOSE
            solver = Solver(asked.model, evidence=evidence, weights=asked.query, time_limit=600.0)
            solver.begin_with(Inherited(saved, [(int(u), 0) for u in asked.query.max_variables]))
            for _ in solver:
                pass
            assert solver.result().log_lower == pytest.approx(truth.log_lower, abs=2e-6)
            assert solver.result().log_upper >= truth.log_lower - CLOSE
