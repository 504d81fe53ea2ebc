"""Each condition of the proofs by itself: a certificate that breaks it alone would prove something false."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import powersum_check as pc
from powersum.model.model import Model
from tests.check.helpers import checked, truth
from tests.check.writer import Array, Draft, no_tree, parts_by, starts

SAME = [[1.0, 0.0], [0.0, 1.0]]
PAIR = [[0.9, 0.2], [0.3, 0.6]]


def tree(order: list[int], nodes: list[tuple[list[int], int, float]], home: list[int]) -> dict[str, Array]:
    """A tree from nodes (scope, parent, weight)."""
    return {
        "order": np.array(order, dtype=np.int64),
        "node_starts": starts([scope for scope, _, _ in nodes]),
        "node_variables": np.array([v for scope, _, _ in nodes for v in scope], dtype=np.int64),
        "parent": np.array([parent for _, parent, _ in nodes], dtype=np.int64),
        "weight": np.array([weight for _, _, weight in nodes]),
        "home": np.array(home, dtype=np.int64),
    }


def shifts(edges: list[tuple[int, int, list[int], Any]]) -> dict[str, Array]:
    """Edges (one node, the other, scope, table)."""
    return {
        "edges": np.array([(a, b) for a, b, _, _ in edges], dtype=np.int64),
        "edge_starts": starts([scope for _, _, scope, _ in edges]),
        "edge_variables": np.array([v for _, _, scope, _ in edges for v in scope], dtype=np.int64),
        "shifts": np.concatenate([np.ravel(table) for _, _, _, table in edges]).astype(float),
    }


def contexts(rows: dict[int, list[list[int]]], settled: int = 0) -> dict[str, Array]:
    """Contexts by variable."""
    flat = [s for some in rows.values() for row in some for s in row]
    count = sum(len(some) for some in rows.values())
    return {
        "context_variables": np.array(list(rows), dtype=np.int64),
        "context_counts": np.array([len(some) for some in rows.values()], dtype=np.int64),
        "context_states": np.array(flat, dtype=np.int64),
        "context_settled": np.full(count, settled, dtype=np.uint8),
    }


def refused(draft: Draft, match: str) -> None:
    with pytest.raises(pc.Rejected, match=match):
        checked(draft)


def one(model: Model, weights: list[float], arrays: dict[str, Array], **options: Any) -> Draft:
    """A certificate of one tree."""
    draft = Draft(model, weights)
    draft.step("tree", arrays, **options)
    return draft


PAIR_MODEL = Model.from_factors([2, 2], [((0, 1), PAIR)])


def test_max_variables_come_last() -> None:
    """Max before sum gives less than the other way round: Σ max would be claimed as max Σ."""
    good = one(PAIR_MODEL, [0.0, 1.0], tree([1, 0], [([1, 0], 1, 1.0), ([0], -1, 0.0)], [0]))
    assert abs(checked(good).log_upper - truth(good)) < 1e-9
    refused(one(PAIR_MODEL, [0.0, 1.0], tree([0, 1], [([0, 1], 1, 0.0), ([1], -1, 1.0)], [0])), "order")


@pytest.mark.parametrize(("weights", "order"), list(itertools.product([[0.5, 1.0], [1.0, 0.5]], [[0, 1], [1, 0]])))
def test_the_order_of_the_question_counts(weights: list[float], order: list[int]) -> None:
    """With an order in the question only that order is a proof; without, larger weights come first."""
    a, b = order
    arrays = tree(order, [([a, b], 1, weights[a]), ([b], -1, weights[b])], [0])
    for asked in (None, [0, 1], [1, 0]):
        draft = Draft(PAIR_MODEL, weights, order=asked)
        draft.step("tree", arrays)
        if (asked or ([0, 1] if weights[0] > weights[1] else [1, 0])) == order:
            assert abs(checked(draft).log_upper - truth(draft)) < 1e-9
        else:
            refused(draft, "order")


def test_order_names_each_free_variable_once() -> None:
    for order in ([1], [1, 1], [0, 0]):
        refused(one(PAIR_MODEL, [0.0, 1.0], tree(order, [([1], -1, 1.0)], [0])), "order|scope|factor")
    for order in ([1, 0, 0], [1, 0, 1]):
        with pytest.raises(pc.BadFile, match="order has 3 rows"):
            checked(one(PAIR_MODEL, [0.0, 1.0], tree(order, [([1], -1, 1.0)], [0])))


def test_weights_add_up_to_that_of_the_question() -> None:
    model = Model.from_factors([2], [((0,), [0.4, 0.6]), ((0,), [0.5, 0.5])])
    arrays = tree([0], [([0], -1, 0.5), ([0], -1, 0.5)], [0, 1])
    assert checked(one(model, [1.0], arrays)).log_upper >= truth(one(model, [1.0], arrays)) - 1e-12
    arrays["weight"] = np.array([0.5, math.nextafter(0.5, 0.0)])
    refused(one(model, [1.0], arrays), "weights of variable 0")
    # 0.1 added up ten times is less than 1 in doubles, but not in truth; 1/3 three times is less in truth.
    ten = Model.from_factors([2], [((0,), [0.4, 0.6])] * 10)
    assert checked(one(ten, [1.0], tree([0], [([0], -1, 0.1)] * 10, list(range(10))))).log_upper < 0.0
    three = Model.from_factors([2], [((0,), [0.4, 0.6])] * 3)
    refused(one(three, [1.0], tree([0], [([0], -1, 1.0 / 3.0)] * 3, [0, 1, 2])), "weights of variable 0")


def test_messages_go_to_later_variables() -> None:
    """A message to a node of the same or an earlier variable would not be there when it is needed."""
    model = Model.from_factors([2, 2], [((0, 1), SAME), ((0,), [0.3, 0.7])])
    refused(one(model, [1.0, 1.0], tree([0, 1], [([0, 1], 1, 1.0), ([0, 1], 2, 0.0), ([1], -1, 1.0)], [0, 1])), "later")
    refused(one(model, [1.0, 1.0], tree([0, 1], [([1], 1, 1.0), ([0, 1], -1, 1.0)], [1, 1])), "later")


def test_factors_are_maximised_over_what_their_node_lacks() -> None:
    """Above by the largest entries, below by the least."""
    table = PAIR_MODEL.factor(0).log_table
    sums = tree([0, 1], [([0], -1, 1.0), ([1], -1, 1.0)], [0])
    found = checked(one(PAIR_MODEL, [1.0, 1.0], sums))
    most, least = np.exp(table.max(axis=1)), np.exp(table.min(axis=1))
    assert found.log_upper == pytest.approx(math.log(2 * most.sum()))
    assert found.log_lower <= math.log(2 * least.sum()) + 1e-9
    # At the node of the other variable, which keeps a node of its own.
    late = checked(one(PAIR_MODEL, [1.0, 1.0], tree([0, 1], [([0, 1], 1, 1.0), ([1], -1, 1.0)], [1])))
    assert late.log_upper == pytest.approx(math.log(2 * np.exp(table.max(axis=0)).sum()))


def test_what_a_group_does_not_depend_on_is_lost_without_loss() -> None:
    """Both depend on variable 1, their product does not; alone, each would count with its largest entries."""
    one_way, other_way = np.array([[1.0, 2.0], [4.0, 8.0]]), np.array([0.5, 0.25])
    model = Model.from_factors([2, 2], [((0, 1), one_way), ((1,), other_way)])
    arrays = tree([0, 1], [([0], -1, 1.0)], [0, 0])
    value = math.log(2 * (0.5 + 2.0))
    together = checked(one(model, [1.0, 1.0], arrays | {"groups": np.array([0, 0])}))
    assert together.log_upper == pytest.approx(value)
    assert together.log_lower == pytest.approx(value)
    alone = checked(one(model, [1.0, 1.0], arrays))
    assert alone.log_upper == pytest.approx(math.log(2 * 10.0 * 0.5))
    assert alone.log_lower < value - 0.1


@pytest.mark.parametrize("least", [0.0, 0.5])
def test_a_group_that_is_zero_where_one_of_it_depends_on_something(least: float) -> None:
    """Only at x0 = x1 = 0 does the first depend on variable 2, and there the second, which lacks nothing, is 0."""
    depends = np.ones((2, 2, 2))
    depends[0, 0, 0] = least
    model = Model.from_factors([2, 2, 2], [((0, 1, 2), depends), ((0, 1), [[0.0, 1.0], [1.0, 1.0]])])
    arrays = tree([0, 1, 2], [([0, 1], 1, 1.0), ([1], -1, 1.0)], [0, 0])
    together = checked(one(model, [1.0] * 3, arrays | {"groups": np.array([0, 0])}))
    assert together.log_lower == pytest.approx(math.log(6.0))
    assert together.log_upper == pytest.approx(math.log(6.0))
    alone = checked(one(model, [1.0] * 3, arrays))
    assert alone.log_upper == pytest.approx(math.log(6.0))
    assert alone.log_lower < math.log(6.0) - 0.1


def test_factors_without_a_node() -> None:
    # Without a node it counts with its largest entry above, and with its least below.
    draft = one(PAIR_MODEL, [1.0, 1.0], tree([0, 1], [], [-1]))
    assert checked(draft).log_upper == pytest.approx(math.log(4 * 0.9))
    assert checked(draft).log_lower == pytest.approx(math.log(4 * 0.2), abs=1e-7)


def test_scopes_are_in_the_order_of_elimination() -> None:
    refused(one(PAIR_MODEL, [1.0, 1.0], tree([0, 1], [([1, 0], 1, 1.0), ([0], -1, 1.0)], [0])), "scope|later")
    refused(one(PAIR_MODEL, [1.0, 1.0], tree([0, 1], [([0, 0, 1], 1, 1.0), ([1], -1, 1.0)], [0])), "scope")
    refused(one(PAIR_MODEL, [1.0, 1.0], tree([0, 1], [([0, 1], 1, 1.0), ([], -1, 1.0)], [0])), "scope")


def test_shifts_lie_in_both_nodes() -> None:
    model = Model.from_factors([2, 2, 2], [((0, 1), PAIR), ((0, 2), PAIR)])
    arrays = tree([0, 1, 2], [([0, 1], 2, 0.5), ([0, 2], 3, 0.5), ([1], -1, 1.0), ([2], -1, 1.0)], [0, 1])
    assert checked(one(model, [1.0] * 3, arrays | shifts([(0, 1, [0], [1.0, -2.0])]))).log_upper < math.inf
    refused(one(model, [1.0] * 3, arrays | shifts([(0, 1, [1], [1.0, -2.0])])), "shift")


def test_too_much_weight_is_no_value() -> None:
    """A node of more weight than τ bounds from above only."""
    arrays = tree([1, 0], [([1, 0], 1, 1.0), ([0], -1, 0.1)], [0])
    verified = checked(one(PAIR_MODEL, [0.0, 1.0], arrays))
    assert verified.log_lower == -math.inf
    split = Model.from_factors([2], [((0,), [0.4, 0.6]), ((0,), [0.6, 0.4])])
    verified = checked(one(split, [1.0], tree([0], [([0], -1, 1.0), ([0], -1, 0.0)], [0, 1])))
    assert verified.log_lower == -math.inf


def test_dropped_variables_cost_the_lower_bound() -> None:
    """A message that is not constant loses its spread, and all where it has zeros."""
    for table in (PAIR, SAME, [[1.0, 0.0], [1.0, 0.0]]):
        model = Model.from_factors([2, 2], [((0, 1), table)])
        draft = one(model, [1.0, 1.0], tree([0, 1], [([0, 1], -1, 1.0)], [0]))
        verified = checked(draft)
        assert verified.log_lower <= truth(draft) <= verified.log_upper + 1e-9
        assert (verified.log_lower > -math.inf) == (table != [[1.0, 0.0], [1.0, 0.0]])
    # The same where only the rest has contexts.
    model = Model.from_factors([2, 2], [((0, 1), PAIR), ((1,), [0.3, 0.7])])
    nodes: list[tuple[list[int], int, float]] = [([0, 1], -1, 1.0), ([1], -1, 1.0)]
    draft = one(model, [1.0, 1.0], tree([0, 1], nodes, [0, 1]) | contexts({1: [[]]}))
    verified = checked(draft)
    assert verified.log_lower <= truth(draft) <= verified.log_upper
    # A barren variable of too much weight has no lower bound.
    nodes[0] = ([0, 1], -1, 1.5)
    assert checked(one(model, [1.0, 1.0], tree([0, 1], nodes, [0, 1]) | contexts({1: [[]]}))).log_lower == -math.inf


TRIANGLE = Model.from_factors([2, 2, 2], [((0, 1), PAIR), ((0, 2), PAIR), ((1, 2), PAIR)])


def triangle(**changes: Any) -> dict[str, Array]:
    """Variable 0 split between its two factors; all that contexts ask for."""
    nodes: list[tuple[list[int], int, float]] = [([0, 1], 2, 0.5), ([0, 2], 3, 0.5), ([1, 2], 3, 1.0), ([2], -1, 1.0)]
    return tree([0, 1, 2], changes.get("nodes", nodes), changes.get("home", [0, 1, 2]))


def test_what_contexts_ask_for() -> None:
    weights = [1.0] * 3
    full = contexts({2: [[]], 1: [[0], [1]], 0: [[0, 1]]})
    draft = one(TRIANGLE, weights, triangle() | full)
    assert checked(draft).log_upper < checked(one(TRIANGLE, weights, triangle())).log_upper
    assert -math.inf < checked(draft).log_lower < truth(draft) - 0.1
    everything = contexts({2: [[]], 1: [[0], [1]], 0: [list(row) for row in itertools.product(range(2), repeat=2)]})
    draft = one(TRIANGLE, weights, triangle() | everything)
    verified = checked(draft)
    assert abs(verified.log_upper - truth(draft)) < 1e-9
    assert abs(verified.log_lower - truth(draft)) < 1e-9
    # A shift between different variables would be half in what is computed and half in what is not.
    refused(one(TRIANGLE, weights, triangle() | full | shifts([(0, 2, [1], [3.0, 3.0])])), "different variables")
    # A message past the bucket of its next variable.
    past = [([0, 1], 3, 0.5), ([0, 2], 3, 0.5), ([1], 4, 0.5), ([1, 2], 4, 0.5), ([2], -1, 1.0)]
    arrays = triangle(nodes=past, home=[0, 1, 3])
    assert checked(one(TRIANGLE, weights, arrays)).log_upper < math.inf
    refused(one(TRIANGLE, weights, arrays | contexts({2: [[]]})), "past the bucket")
    # A message dropped, though its variable has another node.
    dropped = [([0, 1], -1, 0.5), ([0, 2], 3, 0.5), ([1, 2], 3, 1.0), ([2], -1, 1.0)]
    refused(one(TRIANGLE, weights, triangle(nodes=dropped) | full), "drops")
    # Variable 1 is barren, but another table has it.
    both = [([0, 1], -1, 0.5), ([0], -1, 0.5), ([1, 2], -1, 1.0), ([2], -1, 1.0)]
    refused(one(TRIANGLE, weights, triangle(nodes=both, home=[0, -1, 2]) | contexts({2: [[]]})), "barren variable")
    # A node with more than the context of its variable, which is not in the problem there.
    far = Model.from_factors([2, 2, 2], [((0, 1), PAIR), ((2,), [0.3, 0.7])])
    wide: list[tuple[list[int], int, float]] = [([0, 1, 2], 1, 1.0), ([1, 2], 2, 1.0), ([2], -1, 1.0)]
    arrays = tree([0, 1, 2], wide, [0, 2])
    assert checked(one(far, weights, arrays)).log_lower > -math.inf
    refused(one(far, weights, arrays | contexts({2: [[]]})), "beyond the context")


def test_contexts_name_states_of_the_box() -> None:
    for row in ([2], [7]):
        refused(one(TRIANGLE, [1.0] * 3, triangle() | contexts({2: [[]], 1: [row]})), "not in the box")
    box = {"box": np.array([[2, 0]])}
    refused(one(TRIANGLE, [1.0] * 3, triangle() | contexts({2: [[]], 1: [[0], [1]]}) | box), "not in the box")
    draft = one(TRIANGLE, [1.0] * 3, triangle() | contexts({2: [[]], 1: [[0]], 0: [[0, 0], [1, 0]]}) | box)
    assert checked(draft).log_lower == pytest.approx(truth(draft, [[0, 1], [0, 1], [0]]))


def test_unlisted_contexts_have_no_value_unless_the_tree_is_exact_below() -> None:
    whole: list[tuple[list[int], int, float]] = [([0, 1, 2], 1, 1.0), ([1, 2], 2, 1.0), ([2], -1, 1.0)]
    draft = one(TRIANGLE, [1.0] * 3, tree([0, 1, 2], whole, [0, 0, 1]) | contexts({2: [[]]}))
    verified = checked(draft)
    assert verified.log_upper - verified.log_lower < 1e-9
    assert abs(verified.log_upper - truth(draft)) < 1e-9
    draft = one(TRIANGLE, [1.0] * 3, triangle() | contexts({}))
    assert checked(draft).log_lower == -math.inf


def cubes(weights: list[float], boxes: list[list[tuple[int, int]]], variable: int, **options: Any) -> Draft:
    """Exact values of some boxes of the pair model, joined by a cover."""
    draft = Draft(PAIR_MODEL, weights)
    order = sorted(range(2), key=lambda v: -weights[v])
    for box in boxes:
        free = [v for v in order if len({s for u, s in box if u == v}) != 1]
        nodes = [(free[k:], k + 1 if k + 1 < len(free) else -1, weights[free[k]]) for k in range(len(free))]
        draft.step("tree", tree(free, nodes, [0 if free else -1]) | {"box": np.array(box).reshape(-1, 2)})
    more = {"box": np.array(options["box"])} if "box" in options else {}
    parts = {k: [s for v, s in box if v == variable] or [0, 1] for k, box in enumerate(boxes)}
    draft.step("cover", {**more, "parts": parts_by(variable, parts)})
    return draft


def test_a_box_has_no_states_but_those_of_the_evidence() -> None:
    model = Model.from_factors([2], [((0,), [0.25, 0.75])])
    for state, value in ((0, math.log(0.25)), (1, -math.inf)):
        draft = Draft(model, [1.0], {0: 0})
        draft.step("tree", {**no_tree(draft), "box": np.array([(0, state)])})
        verified = checked(draft)
        assert verified.log_lower == pytest.approx(value)
        assert verified.log_lower <= math.log(0.25)


def test_covers_have_every_state() -> None:
    assert checked(cubes([1.0, 1.0], [[(0, 0)], [(0, 1)]], 0)).log_upper < math.inf
    assert checked(cubes([1.0, 1.0], [[(0, 0)], [(0, 0)]], 0)).log_upper == math.inf
    # Parts that leave out states of another variable do not cover the box.
    assert checked(cubes([1.0, 1.0], [[(0, 0), (1, 0)], [(0, 1)]], 0)).log_upper == math.inf
    # Parts for another variable's states.
    assert checked(cubes([1.0, 1.0], [[(0, 0)], [(0, 1)]], 1)).log_upper == math.inf


def test_covers_add_only_what_is_disjoint_and_inside() -> None:
    draft = cubes([1.0, 1.0], [[(0, 0)], [(0, 1)], [(0, 1)]], 0)
    assert checked(draft).log_lower <= truth(draft)
    # A division by a sum variable before the maximum is taken: max Σ is less than Σ max.
    draft = cubes([0.0, 1.0], [[(1, 0)], [(1, 1)]], 1)
    verified = checked(draft)
    assert verified.log_lower <= truth(draft) <= verified.log_upper
    # Parts outside the box of the cover say nothing about it, and a box is not the root.
    draft = cubes([1.0, 1.0], [[(0, 0)], [(0, 1)]], 0, box=[(1, 0)])
    draft.step("cover", {"box": np.array([[1, 0]]), "parts": parts_by(0, {0: [0], 1: [1]})})
    verified = checked(draft)
    assert verified.log_lower <= truth(draft)
    assert verified.log_upper == math.inf


def test_boxes_of_a_cover_are_judged_by_their_own() -> None:
    """The lower bound of a cover of a box must not come from parts that lie outside."""
    draft = cubes([0.0, 0.0], [[(0, 0)], [(0, 1)]], 0, box=[(0, 0), (0, 1), (1, 0)])
    draft.assignment = [[0, 0], [1, 0]]
    assert checked(draft).log_lower == -math.inf
    draft = cubes([0.0, 0.0], [[(0, 0)], [(0, 1)]], 0, box=[(0, 1), (1, 0)])
    draft.assignment = [[0, 1], [1, 0]]
    assert checked(draft).log_lower <= math.log(0.3)


def test_covers_of_a_question_with_an_order() -> None:
    """Taking a power sum out past one of larger weight is no bound: the cover gives none."""
    draft = Draft(PAIR_MODEL, [0.0, 1.0], order=[0, 1])
    for s in range(2):
        draft.step("tree", tree([1], [([1], -1, 1.0)], [0]) | {"box": np.array([[0, s]])})
    draft.step("cover", {"parts": parts_by(0, {0: [0], 1: [1]})})
    verified = checked(draft)
    assert verified.log_upper == math.inf
    assert verified.log_lower <= truth(draft)


@pytest.mark.parametrize("possible", [0.0, 0.5])
def test_parts_in_which_nothing_is_possible_join_in_any_order(possible: float) -> None:
    """Zeros are zeros whatever is eliminated first; one part in which something is possible, and there is no bound."""
    model = Model.from_factors([2, 2], [((0, 1), [[0.0, 0.0], [possible, 0.0]])])
    draft = Draft(model, [0.0, 1.0], order=[0, 1])
    for s in range(2):
        draft.step("tree", tree([1], [([1], -1, 1.0)], [0]) | {"box": np.array([[0, s]])})
    draft.step("cover", {"parts": parts_by(0, {0: [0], 1: [1]})})
    assert checked(draft).log_upper == (math.inf if possible else -math.inf)


@pytest.mark.parametrize("state", [0, 1])
def test_trees_may_hold_variables_of_one_state(state: int) -> None:
    """The tree of everything serves a box in which some variables have one state."""
    draft = one(PAIR_MODEL, [1.0, 0.0], tree([0, 1], [([0, 1], 1, 1.0), ([1], -1, 0.0)], [0]))
    draft.arrays["0/box"] = np.array([[1, state]])
    assert checked(draft).log_lower == pytest.approx(math.log(PAIR[0][state] + PAIR[1][state]))
    refused(one(PAIR_MODEL, [1.0, 0.0], tree([1], [([1], -1, 0.0)], [0])), "several states")
    refused(one(PAIR_MODEL, [1.0, 0.0], tree([0, 0], [([0], -1, 1.0)], [0])), "once")


def test_mean_field_needs_a_distribution() -> None:
    for q in ([1.0, -0.5, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0], [1e-250, 0.0, 1.0, 1.0]):
        draft = Draft(PAIR_MODEL, [1.0, 1.0])
        draft.step("mean-field", no_tree(draft) | {"q": np.array(q)})
        refused(draft, "distribution")
    model = Model.from_factors([2, 2], [((0, 1), SAME)])
    for q, value in (([1.0, 1.0, 1.0, 1.0], -math.inf), ([1.0, 0.0, 1.0, 0.0], 0.0)):
        draft = Draft(model, [1.0, 1.0])
        draft.step("mean-field", no_tree(draft) | {"q": np.array(q)})
        assert checked(draft).log_lower == pytest.approx(value, abs=1e-12)
    # So small that products underflow: refused rather than taken for 0.
    draft = Draft(PAIR_MODEL, [1.0, 1.0])
    draft.step("mean-field", no_tree(draft) | {"q": np.array([1.0, 1e-180, 1e-180, 1.0])})
    refused(draft, "so small")


def test_huge_shifts_weaken_the_bound_and_never_falsify_it() -> None:
    """Shifts of 1e21 once made a bound 9.6 nats below the truth: here their rounding is part of the bound."""
    model = Model.from_factors([2, 2], [((0, 1), PAIR), ((1, 0), PAIR)])
    for size in (1e3, 1e12, 1e16, 1e21, 1e200):
        table = [[size, -size], [-0.7 * size, size / 3.0]]
        nodes: list[tuple[list[int], int, float]] = [([0, 1], 2, 0.5), ([0, 1], 2, 0.5), ([1], -1, 1.0)]
        arrays = tree([0, 1], nodes, [0, 1]) | shifts([(0, 1, [0, 1], table), (1, 0, [0, 1], table)])
        draft = one(model, [1.0, 1.0], arrays)
        assert checked(draft).log_upper >= truth(draft)
    refused(one(model, [1.0, 1.0], arrays | {"shifts": np.full(8, 1e300)}), "entries of size")


def test_small_weights_are_the_maximum_or_refused() -> None:
    for weight, fine in ((1e-30, True), (1e-100, True), (1e-300, True), (1e-301, False), (-1.0, False), (1e7, False)):
        model = Model.from_factors([2], [((0,), [0.4, 0.6]), ((0,), [0.5, 0.5])])
        draft = one(model, [1.0], tree([0], [([0], -1, 1.0), ([0], -1, weight)], [0, 1]))
        if fine:
            assert truth(draft) <= checked(draft).log_upper < truth(draft) + 1e-9
        else:
            refused(draft, "weight")
