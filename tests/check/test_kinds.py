"""Certificates of every kind on random models: what is verified holds the truth, and is tight where it should be."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import powersum_check as pc
from powersum.model.model import Model
from tests.check.forgeries import narrow
from tests.check.helpers import CLOSE, checked, holds, random_draft, truth
from tests.check.writer import (
    Draft,
    Setting,
    context_arrays,
    core_arrays,
    no_tree,
    parts_by,
    split_weights,
    starts,
    tree_arrays,
)
from tests.oracle import joint_log_table, power_sum

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_tree_is_an_upper_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=6)
    setting = Setting.of(draft)
    temperature = float(rng.choice([0.0, 0.2]))
    draft.step("tree", tree_arrays(rng, setting, setting.random_order(rng), temperature=temperature))
    verified = checked(draft)
    assert holds(verified, truth(draft))
    assert verified.log_upper < math.inf


@pytest.mark.parametrize("seed", range(60))
def test_nodes_may_lose_variables(seed: int) -> None:
    """What is maximised makes the bound larger, and costs the lower bound its spread."""
    rng = np.random.default_rng(seed)
    draft = random_draft(rng)
    setting = Setting.of(draft)
    arrays = tree_arrays(rng, setting, setting.random_order(rng), exact=bool(seed % 2))
    narrow(rng, arrays)
    draft.step("tree", arrays)
    assert holds(checked(draft), truth(draft))


@pytest.mark.parametrize("seed", range(60))
def test_what_factors_lose_costs_the_lower_bound_of_contexts_too(seed: int) -> None:
    """A variable leaves all scopes but those of its own nodes: factors are maximised over it, and the tree is exact."""
    rng = np.random.default_rng(seed)
    draft = random_draft(rng)
    setting = Setting.of(draft)
    order = setting.random_order(rng)
    arrays = tree_arrays(rng, setting, order, exact=True)
    begin, variables = arrays["node_starts"].tolist(), arrays["node_variables"].tolist()
    scopes = [variables[a:b] for a, b in pairwise(begin)]
    lost = int(rng.choice(order)) if order else -1
    scopes = [scope[:1] + [v for v in scope[1:] if v != lost] for scope in scopes]
    arrays["node_starts"] = starts(scopes)
    arrays["node_variables"] = np.array([v for scope in scopes for v in scope], dtype=np.int64)
    listed = context_arrays(rng, setting, order, arrays, share=0.0, settled=0.0)
    for more in ({}, listed):
        draft.step("tree", arrays | more)
        try:
            verified = checked(draft)
        except pc.Rejected:
            # Messages pass the bucket of the variable that was lost, which contexts forbid.
            continue
        assert holds(verified, truth(draft))


@pytest.mark.parametrize("seed", SEEDS)
def test_elimination_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=6)
    setting = Setting.of(draft)
    draft.step("tree", tree_arrays(rng, setting, setting.random_order(rng), exact=True))
    verified = checked(draft)
    value = truth(draft)
    assert holds(verified, value)
    if value == -math.inf:
        assert verified.log_upper == -math.inf
    else:
        assert verified.log_upper - verified.log_lower < CLOSE


def random_box(rng: np.random.Generator, draft: Draft, share: float = 0.5) -> list[list[int]]:
    """Some states of each variable, at least one of those that the evidence allows."""
    box = []
    for v, c in enumerate(draft.model.cardinalities.tolist()):
        states = [draft.evidence[v]] if v in draft.evidence else list(range(c))
        chosen = [s for s in states if rng.random() < share]
        box.append(chosen or [int(rng.choice(states))])
    return box


@pytest.mark.parametrize("seed", SEEDS)
def test_boxes_bound_from_below_only(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=6)
    setting = Setting.of(draft, random_box(rng, draft))
    arrays = tree_arrays(rng, setting, setting.random_order(rng), exact=True)
    draft.step("tree", arrays | {"box": setting.box_rows()})
    verified = checked(draft)
    assert holds(verified, truth(draft))
    inside = truth(draft, setting.domains)
    assert abs(verified.log_lower - inside) < CLOSE or inside == verified.log_lower == -math.inf
    whole = all(
        len(d) == (1 if v in draft.evidence else c)
        for v, (d, c) in enumerate(zip(setting.domains, draft.model.cardinalities.tolist(), strict=True))
    )
    assert (verified.log_upper < math.inf) == whole


@pytest.mark.parametrize("seed", SEEDS)
def test_value_of_an_assignment(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=6, plain=True)
    box = [
        [draft.evidence.get(v, int(rng.integers(0, c)))] if draft.weights[v] == 0.0 else list(range(c))
        for v, c in enumerate(draft.model.cardinalities.tolist())
    ]
    setting = Setting.of(draft, box)
    arrays = tree_arrays(rng, setting, setting.random_order(rng), exact=True)
    draft.step("tree", arrays | {"box": setting.box_rows()})
    draft.assignment = [[v, d[0]] for v, d in enumerate(box) if draft.weights[v] == 0.0]
    verified = checked(draft)
    inside = truth(draft, setting.domains)
    assert abs(verified.log_lower - inside) < CLOSE or inside == verified.log_lower == -math.inf
    assert verified.assignment == {v: s for v, s in draft.assignment}  # noqa: C416
    # A lower bound of another box says nothing about this assignment.
    if draft.assignment and draft.model.cardinalities[v := draft.assignment[0][0]] > 1:
        draft.assignment[0][1] = (draft.assignment[0][1] + 1) % int(draft.model.cardinalities[v])
        assert checked(draft).log_lower == -math.inf


@pytest.mark.parametrize("seed", SEEDS)
def test_covers_join_cubes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=5)
    cards = draft.model.cardinalities.tolist()
    v = int(rng.integers(0, 5))
    states = [draft.evidence[v]] if v in draft.evidence else list(range(cards[v]))
    bounded: dict[int, list[int]] = {}
    exact = bool(rng.random() < 0.5)
    parts = rng.integers(0, 2, len(states))
    for part in np.unique(parts).tolist():
        box = [list(range(c)) for c in cards]
        box[v] = [s for s, p in zip(states, parts.tolist(), strict=True) if p == part]
        setting = Setting.of(draft, box)
        arrays = tree_arrays(rng, setting, setting.random_order(rng), exact=exact)
        bounded[draft.step("tree", arrays | {"box": np.array([(v, s) for s in box[v]])})] = box[v]
    # The larger part comes last: all states but those told apart before.
    (last, _), *first = sorted(bounded.items(), key=lambda item: -len(item[1]))
    rows = parts_by(v, dict(first), last)
    cover = draft.step("cover", {"parts": rows})
    verified = checked(draft)
    value = truth(draft)
    assert holds(verified, value)
    ranks = [-w for w in draft.weights] if draft.order is None else [draft.order.index(u) for u in range(5)]
    is_last = all(ranks[u] <= ranks[v] for u in range(5) if cards[u] > 1 and u not in draft.evidence)
    if exact and is_last and value > -math.inf:
        assert verified.log_upper - verified.log_lower < CLOSE
    if draft.order is None:
        assert verified.log_upper < math.inf
    # With a part that no step bounds there is no upper bound.
    draft.arrays[f"{cover}/parts"] = np.array([[*row[:2], -1 if row[2] == last else row[2]] for row in rows.tolist()])
    if first:
        assert checked(draft).log_upper == math.inf


def without_support(model: Model, domains: list[list[int]]) -> list[tuple[int, int]]:
    """States that no assignment in a box with a positive product has: more than propagation may find."""
    joint = joint_log_table(model)
    box = np.full(joint.shape, -math.inf)
    box[np.ix_(*domains)] = 0.0
    possible = joint + box > -math.inf
    rows = []
    for v, d in enumerate(domains):
        alive = possible.any(axis=tuple(u for u in range(model.n_variables) if u != v))
        rows += [(v, s) for s in d if not alive[s]]
    return rows


def chain_with_zeros(rng: np.random.Generator) -> Model:
    """A tree-structured model with many zeros, in which propagation finds all that is impossible."""
    cards = rng.integers(2, 4, 5)
    factors = []
    for v in range(1, 5):
        u = int(rng.integers(0, v))
        table = np.where(rng.random((cards[u], cards[v])) < 0.45, 0.0, rng.random((cards[u], cards[v])) + 0.1)
        factors.append(((u, v), table))
    return Model.from_factors(cards.tolist(), factors)


@pytest.mark.parametrize("seed", SEEDS)
def test_removed_states(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = chain_with_zeros(rng)
    weights = rng.choice([0.0, 1.0], 5).tolist()
    draft = Draft(model, weights)
    full = [list(range(c)) for c in model.cardinalities.tolist()]
    gone = without_support(model, full)
    left = [[s for s in d if (v, s) not in gone] for v, d in enumerate(full)]
    removed = np.array(gone, dtype=np.int64).reshape(-1, 2)
    value = truth(draft)
    if not all(left):
        draft.step("tree", {"removed": removed})
        assert value == checked(draft).log_upper == -math.inf
        return
    setting = Setting.of(draft, left)
    draft.step("tree", tree_arrays(rng, setting, setting.random_order(rng), exact=True) | {"removed": removed})
    verified = checked(draft)
    assert holds(verified, value)
    assert verified.log_upper - verified.log_lower < CLOSE
    # One state more than is impossible is refused.
    v = int(rng.integers(0, 5))
    draft.arrays["0/removed"] = np.concatenate([removed, [(v, left[v][0])]])
    with pytest.raises(pc.Rejected, match="impossible"):
        checked(draft)


def test_groups_of_factors_prove_more() -> None:
    """Two tables each allow x0 = 0, their product does not."""
    model = Model.from_factors(
        [2, 2], [((0, 1), [[1.0, 0.0], [1.0, 1.0]]), ((1, 0), [[0.0, 1.0], [1.0, 1.0]]), ((0,), [5.0, 2.0])]
    )
    draft = Draft(model, [0.0, 1.0])
    setting = Setting.of(draft, [[1], [0, 1]])
    rng = np.random.default_rng(0)
    arrays = tree_arrays(rng, setting, [1], exact=True) | {"removed": np.array([[0, 0]])}
    draft.step("tree", arrays)
    with pytest.raises(pc.Rejected, match="state 0 of variable 0"):
        checked(draft)
    draft.arrays["0/groups"] = np.array([0, 0, 2])
    verified = checked(draft)
    assert holds(verified, truth(draft))
    assert abs(verified.log_lower - math.log(4.0)) < CLOSE


def test_infeasible_by_elimination_and_by_search() -> None:
    """x0 = x1 = x2 ≠ x0 is impossible, though every state has support everywhere."""
    same, other = np.eye(2), 1.0 - np.eye(2)
    model = Model.from_factors([2, 2, 2], [((0, 1), same), ((1, 2), same), ((0, 2), other)])
    rng = np.random.default_rng(1)
    for weights in ([1.0] * 3, [0.0] * 3, [1.0, 0.0, 0.0]):
        draft = Draft(model, weights)
        setting = Setting.of(draft)
        order = setting.random_order(rng)
        draft.step("tree", tree_arrays(rng, setting, order, exact=True))
        assert checked(draft).log_upper == -math.inf
        draft = Draft(model, weights)
        arrays = tree_arrays(rng, setting, order, strict=True)
        draft.step("tree", arrays | context_arrays(rng, setting, order, arrays, share=1.0, settled=0.0))
        assert checked(draft).log_upper == -math.inf
        draft = Draft(model, weights)
        draft.step("tree", {"removed": np.array([[0, 0], [0, 1]])})
        with pytest.raises(pc.Rejected):
            checked(draft)


@pytest.mark.parametrize("seed", range(40))
def test_barren_leaves_are_dropped_at_no_loss(seed: int) -> None:
    """A leaf that sums to one for all states of its parents, with contexts of the rest and without."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, 4).tolist()
    leaf = rng.random((cards[0], cards[1], cards[3])) + 0.1
    leaf /= leaf.sum(axis=2, keepdims=True)
    factors = [
        ((0, 2), rng.random((cards[0], cards[2]))),
        ((2, 1), rng.random((cards[2], cards[1]))),
        ((0, 1, 3), leaf),
    ]
    draft = Draft(Model.from_factors(cards, factors), [0.0, 0.0, 1.0, 1.0])
    scopes = [[3, 0, 1], [2, 0, 1], [0, 1], [1]]
    arrays = {
        "order": np.array([3, 2, 0, 1]),
        "node_starts": starts(scopes),
        "node_variables": np.array([v for s in scopes for v in s]),
        "parent": np.array([-1, 2, 3, -1]),
        "weight": np.array([1.0, 1.0, 0.0, 0.0]),
        "home": np.array([1, 1, 0]),
    }
    draft.step("tree", arrays)
    verified = checked(draft)
    assert holds(verified, truth(draft))
    assert verified.log_upper - verified.log_lower < CLOSE
    contexts = {
        "context_variables": np.array([1]),
        "context_counts": np.array([1]),
        "context_states": np.zeros(0, dtype=np.uint8),
        "context_settled": np.array([seed % 2]),
    }
    draft = Draft(draft.model, draft.weights)
    draft.step("tree", arrays | contexts)
    verified = checked(draft)
    assert holds(verified, truth(draft))
    assert verified.log_upper - verified.log_lower < CLOSE


@pytest.mark.parametrize("seed", SEEDS)
def test_mean_field_is_a_lower_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=5)
    setting = Setting.of(draft, random_box(rng, draft, 0.8))
    q = rng.random(sum(len(d) for d in setting.domains))
    if seed % 2:
        # Point masses.
        q[:] = 0.0
        q[np.cumsum([0, *(len(d) for d in setting.domains)])[:-1]] = rng.random(len(setting.domains)) + 0.1
    draft.step("mean-field", no_tree(draft) | {"q": q, "box": setting.box_rows()})
    verified = checked(draft)
    assert verified.log_lower <= truth(draft) + CLOSE
    assert verified.log_upper == math.inf
    if seed % 2:
        joint = truth(draft, [d[:1] for d in setting.domains])
        assert abs(verified.log_lower - joint) < CLOSE or joint == verified.log_lower == -math.inf


@pytest.mark.parametrize("seed", range(30))
def test_decomposed_bounds_are_trees_of_chains(seed: int) -> None:
    """The bound of the paper (gdd): a factor graph with shifts and weights, against its own formula."""
    rng = np.random.default_rng(seed)
    n = 4
    cards = rng.integers(2, 4, n).tolist()
    order = rng.permutation(n).tolist()
    weights = [0.0] * n
    for v in order[:2]:
        weights[v] = 1.0
    position = {v: p for p, v in enumerate(order)}
    clusters = [sorted(rng.permutation(n)[:2].tolist(), key=lambda v: position[v]) for _ in range(4)]
    model = Model.from_factors(cards, [(c, rng.random([cards[v] for v in c]) + 0.05) for c in clusters])
    regions = clusters + [[v] for v in range(n)]
    shares: list[dict[int, float]] = [{} for _ in regions]
    for v in range(n):
        holders = [r for r, scope in enumerate(regions) if v in scope]
        for r, w in zip(holders, split_weights(rng, weights[v], weights[v], len(holders)), strict=True):
            shares[r][v] = w
    links = [(len(clusters) + v, c, rng.normal(0.0, 1.0, cards[v])) for c, scope in enumerate(clusters) for v in scope]
    # The formula: each region by itself, along the order.
    tables = [np.array(f.log_table) for f in model.factors()] + [np.zeros(c) for c in cards]
    for separator, cluster, delta in links:
        tables[separator] = tables[separator] + delta
        axis = regions[cluster].index(separator - len(clusters))
        tables[cluster] = tables[cluster] - delta.reshape([-1 if a == axis else 1 for a in range(2)])
    bound = 0.0
    for r, scope in enumerate(regions):
        for v in scope:
            tables[r] = power_sum(tables[r], 0, shares[r][v])
        bound += float(tables[r])
    # The certificate.
    scopes: list[list[int]] = []
    parent: list[int] = []
    weight: list[float] = []
    first: list[int] = []
    for r, scope in enumerate(regions):
        first.append(len(scopes))
        for k, v in enumerate(scope):
            scopes.append(scope[k:])
            parent.append(len(scopes) if k + 1 < len(scope) else -1)
            weight.append(shares[r][v])
    draft = Draft(model, weights)
    draft.step(
        "tree",
        {
            "order": np.array(order),
            "node_starts": starts(scopes),
            "node_variables": np.array([v for s in scopes for v in s]),
            "parent": np.array(parent),
            "weight": np.array(weight),
            "home": np.array(first[: len(clusters)]),
            "edges": np.array([(first[a], first[b]) for a, b, _ in links]),
            "edge_starts": np.arange(len(links) + 1),
            "edge_variables": np.array([a - len(clusters) for a, _, _ in links]),
            "shifts": np.concatenate([delta for _, _, delta in links]),
        },
    )
    verified = checked(draft)
    assert holds(verified, truth(draft))
    assert abs(verified.log_upper - bound) < CLOSE


@pytest.mark.parametrize("seed", SEEDS)
def test_mean_field_with_a_core(seed: int) -> None:
    """Some variables are eliminated, given the expectations over the others; with all of them it is the value."""
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=5)
    setting = Setting.of(draft, random_box(rng, draft, 0.9))
    found = []
    for core in ([v for v in setting.free if rng.random() < 0.5], setting.free):
        draft.step("mean-field", core_arrays(rng, setting, core) | {"box": setting.box_rows()})
        found.append(checked(draft).log_lower)
    value = truth(draft, setting.domains)
    assert all(lower <= value + CLOSE for lower in found)
    assert found[1] == pytest.approx(value, abs=CLOSE)


def test_the_core_of_a_mean_field_is_eliminated_exactly() -> None:
    draft = random_draft(np.random.default_rng(1), plain=True)
    setting = Setting.of(draft)
    arrays = core_arrays(np.random.default_rng(2), setting, setting.free)
    draft.step("mean-field", arrays | {"weight": arrays["weight"] + 0.5})
    with pytest.raises(pc.Rejected, match="the core is not eliminated exactly"):
        checked(draft)


def test_mean_field_is_tight_for_independent_variables() -> None:
    rng = np.random.default_rng(3)
    tables = [rng.random(c) + 0.1 for c in (2, 3, 4)]
    draft = Draft(Model.from_factors([2, 3, 4], [((v,), t) for v, t in enumerate(tables)]), [1.0, 1.0, 0.0])
    tables[2] = np.where(tables[2] == tables[2].max(), 1.0, 0.0)
    draft.step("mean-field", no_tree(draft) | {"q": np.concatenate(tables)})
    assert abs(checked(draft).log_lower - truth(draft)) < CLOSE


@pytest.mark.parametrize("seed", SEEDS)
def test_conditioned_trees(seed: int) -> None:
    """Trees over an order that names variables of one state as well, in boxes that a cover joins."""
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=5, plain=True)
    setting = Setting.of(draft)
    order = setting.random_order(rng)
    if not order:
        pytest.skip("no variable to divide by")
    v = order[-1]
    children: dict[int, list[int]] = {}
    for s in setting.domains[v]:
        part = Setting.of(draft, [[s] if u == v else d for u, d in enumerate(setting.domains)])
        whole = Setting(draft, part.domains, setting.scopes, setting.free)
        arrays = tree_arrays(rng, whole, order, exact=bool(seed % 2))
        children[draft.step("tree", arrays | {"box": np.array([[v, s]])})] = [s]
    draft.step("cover", {"parts": parts_by(v, children)})
    verified, value = checked(draft), truth(draft)
    assert holds(verified, value)
    if seed % 2 and value > -math.inf:
        assert verified.log_upper - verified.log_lower < CLOSE
