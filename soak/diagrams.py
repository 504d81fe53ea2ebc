"""Influence diagrams and blocks that alternate, against brute force that shares no code with powersum."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

import powersum as ps
from powersum.core.errors import ImpossibleError
from powersum.run.tuning import Schedule
from soak.asking import prepared
from soak.cases import Case, Question
from soak.claims import Wrong, wrong_result
from soak.roads import Injected, road
from soak.shapes import Rng

LongArray = npt.NDArray[np.longdouble]

MOST_POLICIES = 3000
"""Policies of limited memory that are all tried; of more only the bounds of perfect recall are held against."""

BLOCK_ROADS: tuple[tuple[str, ...], ...] = ((), ("worth_counting",), ("worth_counting", "scenarios_of"))
"""What ``solve`` does without along blocks that alternate."""

CLOSE = 1e-9
"""How far a claim may be from the truth, relative to the largest utility: rounding of powersum's numbers is counted."""


def alternating(rng: Rng, question: Question) -> Question:
    """The question along a random order, in which sums and maxima alternate."""
    n = len(question.weights)
    order = rng.permutation(n).tolist()
    weights = [float(w) for w in rng.random(n) < rng.random()]
    return Question(tuple(weights), question.evidence, tuple(order))


def blocks(case: Case, ends: list[str]) -> Wrong:
    """``bound`` and ``solve`` along an order in which sums and maxima alternate."""
    model, question, truth = prepared(case)
    assert question.order is not None
    place = np.argsort(question.order)
    query = ps.Query(np.array(question.weights), None, place)
    with road(case.road, case.trouble):
        result = ps.bound(model, weights=query, evidence=case.evidence(question), **case.options)
    ends.append(result.status.value)
    # The answer has states of the outermost maxima only.
    wrong = list(wrong_result(case, model, question, result, truth, (), states=False))
    if query.blocks is not None:
        with ExitStack() as stack:
            for name in BLOCK_ROADS[len(model.log_values) % len(BLOCK_ROADS)]:
                stack.enter_context(patch(f"powersum.run.alternating.{name}", lambda given: None))
            quick = 0.0 if len(case.name) % 2 else 0.5
            solved = ps.solve(
                model,
                weights=query,
                evidence=case.evidence(question),
                time_limit=2,
                schedule=Schedule(quick=quick, late_elimination=quick),
            )
        ends.append(solved.status.value)
        wrong += wrong_result(case, model, question, solved, truth, (), states=False)
    return wrong


def draw_diagram(rng: Rng, name: str) -> Case:
    """A diagram of a seed, and how it is asked."""
    recall = bool(rng.random() < 0.6)
    options = {
        "seed": int(rng.integers(1 << 30)),
        "recall": recall,
        "observed": bool(rng.random() < 0.3),
        "most": int(rng.choice([4, 12, 64, 1 << 20], p=[0.1, 0.2, 0.2, 0.5])),
        "quick": float(rng.choice([0.0, 30.0, 1e8])),
        "time_limit": float(rng.choice([0.01, 0.3, 5.0], p=[0.1, 0.2, 0.7])),
    }
    return Case(name=name, entry="decide", kind="recall/-" if recall else "limited/-", options=options)


def diagram_of(options: Mapping[str, object]) -> tuple[ps.Diagram, dict[int, int]]:
    """The diagram of a case, and what is observed: the first decision and what is above it."""
    rng = np.random.default_rng(int(str(options["seed"])))
    recall = bool(options["recall"])
    n = int(rng.integers(2, 8 if recall else 7))
    cards = rng.integers(1, 4, n).tolist() if recall else rng.choice([2, 2, 2, 3], n).tolist()
    decisions = set(rng.permutation(n)[: int(rng.integers(1, min(n, 4 if recall else 3)))].tolist())
    factors = []
    for v in range(n):
        if v in decisions:
            continue
        above = rng.permutation(v)[: int(rng.integers(0, 4))].tolist()
        table = rng.dirichlet(np.full(cards[v], rng.choice([0.02, 0.7, 5.0])), [cards[u] for u in above])
        if rng.random() < 0.3:
            table = np.eye(cards[v])[table.argmax(axis=-1)]
        factors.append(([*above, v], table / table.sum(axis=-1, keepdims=True)))
    seen = []
    for d in sorted(decisions):
        before = [v for v in range(d) if not recall or v not in decisions]
        seen.append((d, [v for v in before if rng.random() < (0.6 if recall else 0.35)][: 9 if recall else 2]))
    utilities = []
    for _ in range(int(rng.integers(1, 5))):
        scope = rng.permutation(n)[: int(rng.integers(0, 4))].tolist()
        size = rng.choice([1e-3, 1.0, 1e6]) * rng.normal(0.0, 1.0, [cards[v] for v in scope])
        utilities.append((scope, np.round(size, int(rng.integers(0, 12)))))
    diagram = ps.Diagram.of(ps.Model.from_factors(cards, factors), utilities, seen, recall=recall)
    observed = {}
    if options["observed"]:
        first = min(decisions)
        if rng.random() < 0.5:
            observed[first] = int(rng.integers(cards[first]))
        observed.update({v: int(rng.integers(cards[v])) for v in range(first) if rng.random() < 0.4})
    return diagram, observed


def decide(case: Case, ends: list[str]) -> Wrong:
    """``decide``: both sides, and the value of the policy that is shown."""
    diagram, observed = diagram_of(case.options)
    weight, utility = _joint(diagram, observed)
    options = case.options
    with (
        patch("powersum.decisions.search.MOST_ENTRIES", options["most"]),
        patch("powersum.decisions.search.QUICK", options["quick"]),
    ):
        try:
            found = ps.decide(diagram, evidence=observed, time_limit=options["time_limit"])
        except ps.InputError as error:
            if isinstance(error, ImpossibleError) and not weight.any():
                raise Injected from None
            raise
    ends.append(found.status.value)
    return list(_wrong(diagram, observed, found, weight, utility))


def _wrong(
    diagram: ps.Diagram, observed: Mapping[int, int], found: ps.Decision, weight: LongArray, utility: LongArray
) -> Iterator[str]:
    n_open = math.prod(int(diagram.model.cardinalities[v]) for v in diagram.decisions if v not in observed)
    given = weight.sum() / n_open
    slack = CLOSE * float(sum(float(np.abs(u.table).max()) for u in diagram.utilities))
    recalled = float(_with_recall(diagram, observed, weight * utility) / given)
    shown = _value(diagram, found, weight * utility) / given
    best = recalled if diagram.recall else _of_policies(diagram, observed, weight * utility)
    best = best if best is None or diagram.recall else best / given
    if found.utility_lower > shown + slack:
        yield f"decide lower: {found.utility_lower!r} is claimed for a policy of {float(shown)!r}"
    if shown > recalled + slack:
        yield f"decide oracle: a policy of {float(shown)!r} is better than perfect recall, {recalled!r}"
    if found.utility_upper < shown - slack:
        yield f"decide upper: {found.utility_upper!r} is below its own policy, {float(shown)!r}"
    if best is not None:
        if found.utility_upper < best - slack:
            yield f"decide upper: {found.utility_upper!r} is below the best policy, {float(best)!r}"
        if found.status is ps.Status.OPTIMAL and abs(shown - best) > 1e-5 * (slack / CLOSE + abs(float(best)) + 1.0):
            yield f"decide optimal: the policy has {float(shown)!r}, the best {float(best)!r}"


def _joint(diagram: ps.Diagram, observed: Mapping[int, int]) -> tuple[LongArray, LongArray]:
    """Product of the distributions and total utility, one axis a variable."""
    shape = tuple(int(c) for c in diagram.model.cardinalities)

    def spread(scope: tuple[int, ...], table: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        sizes = [shape[v] if v in scope else 1 for v in range(len(shape))]
        return np.transpose(table, np.argsort(scope)).reshape(sizes)

    weight, utility = np.ones(shape, dtype=np.longdouble), np.zeros(shape, dtype=np.longdouble)
    for scope, log in diagram.model.factors():
        weight = weight * spread(scope, np.exp(log.astype(np.longdouble)))
    for part in diagram.utilities:
        utility = utility + spread(part.scope, part.table)
    for v, state in observed.items():
        weight = weight * spread((v,), (np.arange(shape[v]) == state).astype(np.float64))
    return weight, utility


def _with_recall(diagram: ps.Diagram, observed: Mapping[int, int], value: LongArray) -> np.longdouble:
    steps: list[tuple[bool, int]] = []
    seen: set[int] = set()
    for choice in diagram.choices:
        new = [v for v in choice.sees if v not in seen and v not in diagram.decisions]
        steps += [(False, v) for v in new]
        steps.append((choice.variable not in observed, choice.variable))
        seen.update([*new, choice.variable])
    steps += [(False, v) for v in range(value.ndim) if v not in seen]
    for decided, axis in reversed(steps):
        value = value.max(axis, keepdims=True) if decided else value.sum(axis, keepdims=True)
    return np.longdouble(value.ravel()[0])


def _of_policies(diagram: ps.Diagram, observed: Mapping[int, int], value: LongArray) -> np.longdouble | None:
    """The best of all policies; None where there are too many."""
    cards = diagram.model.cardinalities
    rules = []
    for k, choice in enumerate(diagram.choices):
        if choice.variable not in observed:
            view = tuple(v for v in diagram.known(k) if v not in observed)
            shape = tuple(int(cards[v]) for v in view)
            rules.append((choice.variable, view, shape, int(cards[choice.variable])))
    if math.prod(states ** math.prod(shape) for _, _, shape, states in rules) > MOST_POLICIES:
        return None
    each = (itertools.product(range(states), repeat=math.prod(shape)) for _, _, shape, states in rules)
    best = -np.longdouble(np.inf)
    for policy in itertools.product(*each):
        left = value
        for (decision, view, shape, _), cells in zip(rules, policy, strict=True):
            left = left * _follows(np.array(cells, dtype=np.int64).reshape(shape), view, decision, value.shape)
        best = max(best, left.sum())
    return best


def _value(diagram: ps.Diagram, found: ps.Decision, value: LongArray) -> np.longdouble:
    """What the policy of an answer has, from its rows."""
    for rule in found.policy:
        view = tuple(diagram.model.variable(name) for name in rule.sees)
        chosen = np.zeros([int(diagram.model.cardinalities[v]) for v in view], dtype=np.int64)
        for case, state in rule.rows():
            chosen[tuple(int(s) for s in case)] = int(state)
        decision = diagram.model.variable(rule.decision)
        known = diagram.known(diagram.decisions.index(decision))
        assert set(view) <= set(known), f"decision {decision} goes by {view}, it knows {known}"
        value = value * _follows(chosen, view, decision, value.shape)
    return np.longdouble(value.sum())


def _follows(
    chosen: npt.NDArray[np.int64], view: tuple[int, ...], decision: int, shape: tuple[int, ...]
) -> npt.NDArray[np.bool_]:
    """1 where a decision is what its rule says, one axis a variable."""
    table = chosen[..., None] == np.arange(shape[decision])
    scope = (*view, decision)
    sizes = [shape[v] if v in scope else 1 for v in range(len(shape))]
    return np.asarray(np.transpose(table, np.argsort(scope)).reshape(sizes))
