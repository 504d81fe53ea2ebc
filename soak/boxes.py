"""Boxes that are split, each with its own tree: the search of ``solve`` alone, for small models seldom get that far.

Some boxes are lent, as to other processes; some of these never come back.
"""

from __future__ import annotations

import math
import pickle
from importlib import import_module
from typing import Any

import numpy as np

import powersum as ps
from soak.asking import asked, prepared
from soak.cases import Case, Question
from soak.certificates import verified
from soak.claims import CLOSE, Wrong, slack, wrong_history
from soak.oracle import Truth
from soak.roads import road

TURNS = 300
"""Pieces of work at most."""

TRIES = 50
"""Assignments that are tried before one is known to begin with."""


def boxes(case: Case, ends: list[str]) -> Wrong:
    """Every bound on the way holds, and what was split by the end can be proven."""
    model, question, truth = prepared(case)
    questioned = import_module("powersum.model.question").Question.of(model, **asked(case, question))
    problem = import_module("powersum.prepare.simplify").simplified(questioned)
    if not problem.feasible or not (problem.tau == 0.0).any():
        ends.append("nothing to split")
        return []
    seen: list[ps.Snapshot] = []
    splitting: list[Any] = []
    with road(case.road, case.trouble):
        ends.append(_split(case, problem, seen, splitting))
    wrong = list(wrong_history(seen, truth))
    if splitting and case.options["certificate"]:
        wrong += _unproven(model, question, questioned, problem, splitting[0], truth)
    return wrong


def _split(case: Case, problem: Any, seen: list[ps.Snapshot], made: list[Any]) -> str:
    """Split until nothing is left, time is over or all turns were had; the splitting, and its bounds after each."""
    options, rng = case.options, np.random.default_rng(case.options["seed"])
    order = import_module("powersum.prepare.ordering").elimination_order(problem.model, problem.tau)
    tree = import_module("powersum.bounds.tree.covering_tree").CoveringTree(problem, order, ibound=options["ibound"])
    for _ in range(options["rounds"]):
        tree.step(math.inf)
    evaluator = import_module("powersum.assign.evaluator").Evaluator(problem, memory=1e7)
    value, states = -math.inf, np.zeros(0, dtype=np.int64)
    for _ in range(TRIES):
        if value == -math.inf:
            states = np.where(evaluator.is_max, rng.integers(problem.model.cardinalities), -1)
            value = evaluator.value(states)
    if tree.best_tree.exact or not math.isfinite(value):
        return "exact at once" if tree.best_tree.exact else "nothing known"
    log_error = import_module("powersum.model.rounding").elimination_error(problem.model)
    splitting = import_module("powersum.divide.splitting").Splitting(
        problem,
        tree.best_tree,
        evaluator,
        log_lower=value,
        assignment=states,
        log_error=log_error,
        memory=options["memory"],
        keeps_all=options["certificate"],
        seed=options["seed"],
    )
    made.append(splitting)
    board = import_module("powersum.run.board").Board(len(problem.original_tau))
    search = 0.0 if options["certificate"] else options["search"]
    ends, lent = _now() + options["time_limit"], list[Any]()
    for turn in range(TURNS):
        if rng.random() < options["lends"] and (box := splitting.lend(searches=search > 0.0)) is not None:
            lent.append(box)
        if lent and (splitting.waits or rng.random() < 0.5):
            box = lent.pop(int(rng.integers(len(lent))))
            if rng.random() >= options["lost"]:
                _bring_back(splitting, box, search, in_time=rng.random() < 0.9)
            progress = None
        else:
            progress = splitting.run(-math.inf, ends, search=search)
        # The one door by which numbers become bounds.
        board.offer_lower(problem, splitting.log_lower, 2.0 * log_error, splitting.assignment)
        board.offer_upper(problem, splitting.log_upper, 0.0)
        seen.append(ps.Snapshot(0.0, turn, board.log_upper, board.log_lower))
        if splitting.done or (progress is not None and progress.name != "MORE"):
            break
    return "split" if len(seen) > 2 else "hardly begun"


def _bring_back(splitting: Any, box: Any, search: float, *, in_time: bool) -> None:
    """What another process makes of a box."""
    trees, there = pickle.loads(pickle.dumps((splitting.trees, box)))
    lending = import_module("powersum.run.lending")
    if box.variable >= 0:
        splitting.take_parts(box, lending.split_lent(trees, there, math.inf) if in_time else None)
        return
    known = splitting.log_lower, splitting.log_error
    splitting.take_search(box, lending.search_lent(trees, there, *known, search, splitting.search_bytes))


def _now() -> float:
    return float(import_module("powersum.core.work_time").monotonic())


def _unproven(
    model: ps.Model, question: Question, questioned: Any, problem: Any, splitting: Any, truth: Truth
) -> Wrong:
    certificates = import_module("powersum.proof.certificate")
    ground = certificates.ground_of(questioned, problem)
    proof = import_module("powersum.run.proofs").by_splitting(ground, splitting)
    certificate = certificates.certificate_of(questioned, ground, proof, log_lower=-math.inf, log_upper=proof.log_upper)
    try:
        _, upper = verified(model, question, certificate)
    except Exception as error:
        return [f"certificate: {type(error).__name__}: {error}"]
    wrong = []
    if not upper >= truth.value - slack(truth.value, truth.error):
        wrong.append(f"proof: it proves {upper!r}, the truth is {truth.value!r}")
    if not upper <= proof.log_upper + slack(proof.log_upper, 0.0, CLOSE):
        wrong.append(f"proof: it proves {upper!r}, and {proof.log_upper!r} was claimed")
    return wrong
