"""Proofs of upper bounds, made only when a certificate is asked for: each kind of work says how its bound is proven.

A *prover* is what comes to the board with a bound. It is called once, at the end or before the point of the bound is
given up, and returns steps of a certificate together with the bound that they prove.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from powersum.bounds.corner import Corner
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.core import work_time as time
from powersum.core.arrays import BoolArray, IntArray, starts_of
from powersum.core.progress import Progress
from powersum.divide.splitting import Splitting
from powersum.exact.components import part_of
from powersum.exact.counting import Counting
from powersum.model.query import Query
from powersum.prepare.fewer_states import possible_with
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from powersum.proof.boxes import Steps
from powersum.proof.conditioning import conditioning_arrays
from powersum.proof.elimination import elimination_forest
from powersum.proof.format import Array, Forest, Ground, Proof, Prover, Step
from powersum.search.and_or import AndOr
from powersum.search.circuit_search import CircuitSearch
from powersum.search.costs import CostSearch
from powersum.search.costs.proof import CostProof
from powersum.search.proof import SearchProof
from powersum.sums.partial_sum import Recorded
from powersum.sums.proof import sum_contexts, variational_step
from powersum.sums.variational import Variational

BOX_BYTES = 3e7
"""Memory for proving one box of a search by circuits: more takes longer to lay out than a box takes."""

MOST_BOXES = 500
"""Boxes of a search by circuits that are proven one by one."""

DEEPEST = 200
"""Variables set in a box of a search by circuits that is proven for itself."""

Row = tuple[int, int]
"""A variable and one of its states."""

MOST_CASES = 2000
"""Cases that a refutation may distinguish."""


def by_elimination(ground: Ground, order: IntArray | None = None, log_value: float = -math.inf) -> Proof:
    """Elimination of everything along an order, or along one that is chosen here."""
    return Proof([ground.tree([_eliminated(ground.problem, order)])], log_value, exact=True)


def by_contradiction(ground: Ground) -> Proof:
    """Simplification has found that nothing is possible."""
    return Proof([ground.contradiction()], -math.inf)


def by_easy_components(ground: Ground, rest: Problem) -> Proof:
    """Elimination of the components that are not part of the rest shows that nothing is possible."""
    return Proof([ground.tree(_others(ground.problem, rest))], -math.inf)


def by_tree(ground: Ground, tree: FixedTree, problem: Problem, *, evaluate: bool = True) -> Proof:
    """A covering tree of a problem that easy components may have been taken out of.

    Without ``evaluate`` its bound is taken as it was found: to compute it again would disturb its descent.
    """
    return by_forest(ground, tree.forest(problem), tree.bound() if evaluate else tree.log_upper, problem)


def by_forest(ground: Ground, forest: Forest, log_upper: float, problem: Problem) -> Proof:
    """Another bound of mini-buckets on a problem that easy components may have been taken out of."""
    return Proof([ground.tree([forest, *_others(ground.problem, problem)])], log_upper + problem.log_constant)


def by_corner(ground: Ground, found: Corner) -> Proof:
    """The corner bound on the problem of the ground."""
    return Proof([ground.tree([found.forest(ground.problem)])], found.log_upper + ground.problem.log_constant)


def by_search(ground: Ground, search: AndOr, problem: Problem, seconds: float, memory: float) -> Proof:
    """Branch and bound; where the walk through what it knows takes more seconds or bytes than these, its tree alone."""
    proof = SearchProof(search, problem, memory=memory)
    if not proof.run(time.monotonic() + seconds):
        return by_tree(ground, search.bound_tree, problem)
    forests = [search.bound_tree.forest(problem), *_others(ground.problem, problem)]
    return Proof([ground.tree(forests, proof.arrays())], proof.log_upper + problem.log_constant)


def by_splitting(ground: Ground, splitting: Splitting) -> Proof:
    """Boxes of max variables: the tree of each that was not split, and what these were split from."""
    problem, whole = splitting.problem, ground.problem
    others = _others(whole, problem)
    steps = Steps()
    number: dict[int, int] = {}
    for box, rows in splitting.boxes():
        inside = within(ground, problem, box.alive, rows)
        if box.parts:
            states = splitting.states_of(box)
            parts = {int(state): number[id(part)] for state, part in zip(states, box.parts, strict=True)}
            number[id(box)] = cover_by(steps, ground, problem, box.variable, parts, rows)
        elif splitting.is_empty(box):
            number[id(box)] = steps.add(inside.contradiction(), rows)
        else:
            number[id(box)] = steps.add(inside.tree([splitting.forest(box), *others]), rows)
    return Proof(steps, splitting.log_upper + problem.log_constant)


def by_branching(ground: Ground, search: CostSearch, problem: Problem, seconds: float, memory: float) -> Proof:
    """Branch and bound in whole numbers, walked once more; its root alone where that takes too long."""
    proof = CostProof(search, memory=memory)
    proof.run(time.monotonic() + seconds)
    step = ground.tree(_others(ground.problem, problem), proof.arrays(problem), kind="branching")
    # A configuration costs whole units less than it truly loses, so the bound is not below what the checker finds.
    log_upper = search.costs.log_upper(proof.cost) + search.costs.log_error + problem.log_constant
    return Proof([step], log_upper)


def by_sums(ground: Ground, tree: FixedTree, problem: Problem, recorded: Recorded) -> Step:
    """A pass of partial sums over everything: it proves a bound on either side."""
    forests = [tree.forest(problem), *_others(ground.problem, problem)]
    return ground.tree(forests, sum_contexts(recorded, problem))


def by_sums_given(ground: Ground, tree: FixedTree, problem: Problem, recorded: Recorded, states: IntArray) -> Step:
    """A pass over what an assignment of the max variables leaves: it proves a lower bound on their value."""
    forests = [tree.forest(problem), *_others(ground.problem, problem)]
    return ground.given(ground.tree(forests), states, sum_contexts(recorded, problem))


def by_conditioning(ground: Ground, problem: Problem, arrays: Mapping[str, Array], log_value: float) -> Proof:
    """Conditioning of everything, from the arrays of :mod:`powersum.proof.conditioning`."""
    return Proof([_conditioned(ground, problem, arrays)], log_value + problem.log_constant, exact=True)


def by_conditioning_given(ground: Ground, problem: Problem, arrays: Mapping[str, Array], states: IntArray) -> Step:
    """Conditioning of what an assignment of the max variables leaves: it proves a lower bound on their value."""
    return ground.given(_conditioned(ground, problem, arrays), states, {})


def by_circuit(
    ground: Ground,
    search: CircuitSearch,
    problem: Problem,
    order: IntArray,
    memory: float,
    seconds: float,
    otherwise: Prover | None,
) -> Proof:
    """Conditioning along an order in each box of a search by circuits, or of the whole; else what was known before."""
    deadline, boxes = time.monotonic() + seconds, search.boxes()
    few = len(boxes) <= MOST_BOXES and max(map(len, boxes)) <= DEEPEST
    proof = _circuits(ground, problem, order, min(BOX_BYTES, memory), boxes, deadline) if few else None
    if proof is None:
        proof = _circuits(ground, problem, order, memory, [[]], math.inf)
    if proof is None:
        return Proof([], math.inf) if otherwise is None else otherwise(ground)
    return proof


def _circuits(
    ground: Ground, problem: Problem, order: IntArray, memory: float, boxes: list[list[Row]], deadline: float
) -> Proof | None:
    """The value of the circuit of each box; None where there is not enough time or memory."""
    steps, values = Steps(), [-math.inf]
    others = _others(ground.problem, problem)

    def original(v: int, s: int) -> Row:
        return int(problem.variables[v]), int(problem.kept_states[problem.kept_state_starts[v] + s])

    def proven(listed: list[list[Row]], depth: int) -> int | None:
        """The number of the step about all that these boxes have in common."""
        known = listed[0][:depth]
        rows = [original(v, s) for v, s in known]
        if len(listed[0]) == depth:
            alive = np.ones(len(problem.kept_states), dtype=np.bool_)
            given = np.full(problem.model.n_variables, -1, dtype=np.int64)
            for v, s in known:
                low, high = problem.kept_state_starts[v : v + 2]
                alive[low:high] = np.arange(high - low) == s
                given[v] = s
            block = np.zeros_like(given)
            counting = Counting(problem.model, problem.tau, order, memory=memory, given=given, rank=block, log=True)
            progress = Progress.MORE
            while progress is Progress.MORE and time.monotonic() < deadline:
                progress = counting.step()
            if progress is not Progress.DONE:
                return None
            values.append(counting.log_value)
            arrays = conditioning_arrays(counting, problem, given)
            return steps.add(within(ground, problem, alive, rows).tree(others, arrays, kind="conditioning"), rows)
        v = listed[0][depth][0]
        parts = {}
        for state, part in groupby(sorted(listed, key=lambda box: box[depth][1]), key=lambda box: box[depth][1]):
            step = proven(list(part), depth + 1)
            if step is None:
                return None
            parts[state] = step
        return cover_by(steps, ground, problem, v, parts, rows)

    if proven(boxes, 0) is None:
        return None
    return Proof(steps, max(values) + problem.log_constant)


def within(ground: Ground, problem: Problem, alive: BoolArray, rows: Sequence[Row]) -> Ground:
    """The ground of a box: these states of the problem, and original states that are given."""
    whole = ground.problem
    possible = possible_with(problem, alive, ground.model.cardinalities) & whole.possible
    return replace(ground, problem=replace(whole, possible=possible), evidence={**ground.evidence, **dict(rows)})


def cover_by(
    steps: Steps, ground: Ground, problem: Problem, variable: int, parts: Mapping[int, int], rows: Sequence[Row]
) -> int:
    """A step that divides a box by states of a variable: the step of each state's part."""
    v = int(problem.variables[variable])
    low = int(problem.kept_state_starts[variable])
    kept = {int(problem.kept_states[low + state]): step for state, step in parts.items()}
    gone = np.setdiff1d(np.arange(ground.model.cardinalities[v]), list(kept))
    # What zeros had excluded before is a part of its own, in which nothing is.
    zeros = steps.add(ground.contradiction(), [*rows, *((v, int(s)) for s in gone)]) if len(gone) else -1
    return steps.cover(v, kept, rows, zeros)


def _conditioned(ground: Ground, problem: Problem, arrays: Mapping[str, Array]) -> Step:
    return ground.tree(_others(ground.problem, problem), arrays, kind="conditioning")


def by_distributions(ground: Ground, bound: Variational, problem: Problem, states: IntArray) -> Step | None:
    """A variational bound on the value of an assignment, from below; None where the format cannot tell it."""
    return variational_step(bound, problem, ground, _others(ground.problem, problem), states)


def by_cases(ground: Ground) -> Proof:
    """That nothing is possible, by the states of one variable after another until propagation shows it.

    Where that takes too many cases, nothing is proven.
    """
    steps = Steps()
    query = Query(ground.weights)

    def refuted(known: dict[int, int]) -> bool:
        inside = simplify(ground.model, query, {**ground.evidence, **known}, barren=False)
        rows = sorted(known.items())
        if not inside.feasible:
            steps.add(replace(ground, problem=inside).contradiction(), rows)
            return True
        # The variable in most tables, of those with fewest states.
        model = inside.model
        if not model.n_variables:
            return False
        uses = np.bincount(model.scope_variables, minlength=model.n_variables)
        v = int(inside.variables[np.lexsort((-uses, model.cardinalities))[0]])
        low, high = starts_of(ground.model.cardinalities)[v : v + 2].tolist()
        cases = {}
        for state in range(high - low):
            if len(steps) > MOST_CASES or not refuted({**known, v: state}):
                return False
            cases[state] = len(steps) - 1
        steps.cover(v, cases, rows)
        return True

    return Proof(steps, -math.inf) if refuted({}) else Proof([], math.inf)


def _eliminated(problem: Problem, order: IntArray | None = None) -> Forest:
    return elimination_forest(
        problem, elimination_order(problem.model, problem.tau, rank=problem.rank) if order is None else order
    )


def _others(whole: Problem, rest: Problem) -> list[Forest]:
    """The components of the whole that are not in the rest, eliminated: that was easy once, and is so again."""
    others = ~np.isin(whole.variables, rest.variables)
    if not others.any():
        return []
    return [_eliminated(part_of(whole, np.arange(len(others)), others)[0])]
