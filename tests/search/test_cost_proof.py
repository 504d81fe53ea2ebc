"""Certificates of the search in whole numbers: the checker finds the bound, and nothing false in damaged ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.core import work_time as time
from powersum.model.certificate import Certificate
from powersum.model.question import Question
from powersum.prepare.simplify import simplify
from powersum.proof.certificate import certificate_of, ground_of
from powersum.run.proofs import by_branching
from powersum.search.costs import Costs, CostSearch
from tests.check.helpers import to_check
from tests.check.writer import Draft
from tests.oracle import exact_value
from tests.proof.test_conditioning import saved

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


def certified(
    model: ps.Model, *, seconds: float, dives: float, maximize: list[int] | str = "all"
) -> tuple[Certificate, float] | None:
    """A certificate of the bound that a search of so many seconds has found, and the bound."""
    question = Question.of(model, maximize=maximize)
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


def checked(model: ps.Model, certificate: Certificate, maximize: list[int] | None = None) -> pc.Verified:
    asked = pc.Question.of(to_check(model), maximize=range(model.n_variables) if maximize is None else maximize)
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


@pytest.mark.parametrize("seed", range(6))
def test_the_slow_mode_agrees(seed: int) -> None:
    pytest.importorskip("flint")
    model = random_costs(np.random.default_rng(seed))
    found = certified(model, seconds=100.0, dives=100.0)
    if found is not None:
        quick = checked(model, found[0])
        slow = saved(found[0], lambda path: pc.check(to_check(model), None, path, exact=True))
        truth = exact_value(model, np.zeros(model.n_variables))
        assert truth - CLOSE <= slow.log_upper <= quick.log_upper


@pytest.mark.parametrize("seed", range(10))
def test_a_walk_that_is_cut_short_proves_its_root(seed: int) -> None:
    model = random_costs(np.random.default_rng(seed))
    found = certified(model, seconds=0.0, dives=100.0)
    if found is not None:
        verified = checked(model, found[0])
        assert found[0].head["steps"][0]["kind"] == "branching"
        assert exact_value(model, np.zeros(model.n_variables)) - CLOSE <= verified.log_upper < math.inf


@pytest.mark.parametrize("seed", range(10))
def test_sums_that_simplification_has_done_are_no_obstacle(seed: int) -> None:
    """A barren leaf, a variable on which nothing depends, and one in no factor, beside a maximum."""
    rng = np.random.default_rng(seed)
    core = random_costs(rng)
    n, cards = core.n_variables, core.cardinalities.tolist()
    factors = [(f.scope, np.exp(f.log_table)) for f in core.factors()]
    leaf = rng.random((cards[0], 3)) + 0.1
    factors += [((0, n), leaf / leaf.sum(axis=1, keepdims=True)), ((1, n + 1), np.ones((cards[1], 2)))]
    model = ps.Model.from_factors([*cards, 3, 2, 2], factors)
    weights = np.append(np.zeros(n), np.ones(3))
    found = certified(model, seconds=100.0, dives=100.0, maximize=list(range(n)))
    if found is not None:
        truth = exact_value(model, weights)
        verified = checked(model, found[0], list(range(n)))
        assert truth - CLOSE <= verified.log_upper <= found[1] + CLOSE


def pair() -> tuple[ps.Model, dict[str, np.ndarray]]:
    """Two variables of two states, agreement rewarded and one state liked, without anything moved."""
    model = ps.Model.from_factors([2, 2], [((0, 1), np.array([[3.0, 1.0], [1.0, 2.0]])), ((0,), np.array([1.0, 2.0]))])
    arrays = {
        "order": np.array([0, 1]),
        "node_starts": np.zeros(1, np.int64),
        "node_variables": np.zeros(0, np.int64),
        "parent": np.zeros(0, np.int64),
        "weight": np.zeros(0),
        "home": np.array([-1, -1]),
        "table_of": np.array([0, 1]),
        "table_starts": np.array([0, 2, 3]),
        "table_variables": np.array([0, 1, 0]),
    }
    return model, arrays


Rows = list[tuple[int, int, int]]
CLOSE_IT = (-1, -1, -1)


def walked(rows: Rows, moves: list[float]) -> pc.Verified:
    """What parts prove, of which the first moves all numbers."""
    model, arrays = pair()
    draft = Draft(model, [0.0, 0.0])
    arrays |= {
        "parts": np.array(rows, np.int64).reshape(-1, 3),
        "move_starts": np.array([0, len(moves)]),
        "move_places": np.arange(len(moves)),
        "moves": np.array(moves),
    }
    draft.step("branching", arrays)
    return pc.check(to_check(model), pc.Question.of(to_check(model), maximize=[0, 1]), draft.zip())


def test_a_walk_by_hand() -> None:
    """The best has the value 4; tables by themselves allow 3 · 2, a division by the first variable's states 4."""
    like = [0.0, 0.0, 0.0, 0.0, 0.0, math.log(2.0)]
    assert walked([(-1, -1, 0)], [0.0] * 6).log_upper == pytest.approx(math.log(6.0))
    assert walked([(-1, -1, 0)], like).log_upper == pytest.approx(math.log(6.0))
    # Dividing changes no table: its largest entry is that of the part before, until numbers move at it.
    assert walked([(0, 0, 0), CLOSE_IT, CLOSE_IT], like).log_upper == pytest.approx(math.log(6.0))
    # Moved once more, the same numbers: the table of both variables is looked at where the first has its second state.
    assert walked([(0, 0, 0), CLOSE_IT, (-1, -1, 0)], like).log_upper == pytest.approx(math.log(4.0))
    assert walked([(-1, -1, 0)], [math.log(1.5), 0.0, 0.0, 0.0, -math.log(1.5), 0.0]).log_upper >= math.log(4.0)


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([], "before every part is bounded"),
        ([(0, 0, 0)], "before every part is bounded"),
        ([(0, 0, 0), CLOSE_IT], "before every part is bounded"),
        ([CLOSE_IT, CLOSE_IT], "go on after the last part"),
        ([(-1, -1, 1)], "does not exist"),
        ([(0, 2, 0), CLOSE_IT, CLOSE_IT], "which is not left"),
        ([(2, 0, 0), CLOSE_IT, CLOSE_IT], "which is not left"),
    ],
)
def test_walks_that_do_not_close_are_refused(rows: Rows, match: str) -> None:
    with pytest.raises(pc.CheckError, match=match):
        walked(rows, [0.0] * 6)


def test_tables_too_large_for_memory_are_refused() -> None:
    """The product of the tables with one scope takes memory beside the model."""
    _, arrays = pair()
    model = ps.Model.from_factors([60, 60], [((0, 1), np.ones((60, 60)) + np.eye(60)), ((0,), np.arange(60.0) + 1.0)])
    draft = Draft(model, [0.0, 0.0])
    none = {"move_starts": np.zeros(1, np.int64), "move_places": np.zeros(0, np.int64), "moves": np.zeros(0)}
    draft.step("branching", arrays | none | {"parts": np.array([CLOSE_IT])})
    question = pc.Question.of(to_check(model), maximize=[0, 1])
    assert pc.check(to_check(model), question, draft.zip()).log_upper == pytest.approx(math.log(120.0))
    with pytest.raises(pc.BadFile, match="too large"):
        pc.check(to_check(model), question, draft.zip(), memory=300_000)


def test_every_part_counts() -> None:
    """Both states of a variable may be told apart, and nothing is left: each of them is bounded."""
    rows = [(0, 0, 0), CLOSE_IT, (0, 1, -1), CLOSE_IT, CLOSE_IT]
    assert walked(rows, [0.0] * 6).log_upper == pytest.approx(math.log(6.0))
