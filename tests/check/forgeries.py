"""Small certificates of every kind, honest and forged, for readings of the rules to be compared on."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np

from powersum.model.model import Model
from tests.check.graphs import FORGET, Graph
from tests.check.helpers import random_draft
from tests.check.writer import (
    Array,
    Draft,
    Setting,
    context_arrays,
    core_arrays,
    no_tree,
    parts_by,
    starts,
    tree_arrays,
)
from tests.strategies import random_model

Rng = np.random.Generator


def pick(rng: Rng, *things: Any) -> Any:
    return things[int(rng.integers(0, len(things)))]


def random_box(rng: Rng, draft: Draft, share: float = 0.6) -> list[list[int]]:
    """Some states of each variable; all of most."""
    box = []
    for c in draft.model.cardinalities.tolist():
        chosen = [s for s in range(c) if rng.random() < share]
        box.append(chosen if chosen and rng.random() < 0.5 else list(range(c)))
    return box


def with_tree(rng: Rng, draft: Draft) -> None:
    """Trees of every form: exact, split, with contexts, in boxes."""
    setting = Setting.of(draft, random_box(rng, draft) if rng.random() < 0.3 else None)
    if not all(setting.domains):
        setting = Setting.of(draft)
    order = setting.random_order(rng)
    strict = bool(rng.random() < 0.6)
    arrays = tree_arrays(
        rng,
        setting,
        order,
        strict=strict,
        exact=bool(rng.random() < 0.2),
        temperature=pick(rng, 0.0, 0.2),
        scale=pick(rng, 1.0, 1.0, 1e3, 1e8),
    )
    if rng.random() < (0.1 if strict else 0.3):
        narrow(rng, arrays)
    # Contexts ask more of a tree: that of others they are refused.
    if rng.random() < (0.7 if strict else 0.4):
        share, settled = pick(rng, 0.2, 0.6, 1.0), pick(rng, 0.0, 0.0, 0.3, 1.0)
        listed = context_arrays(rng, setting, order, arrays, share=share, settled=settled)
        arrays |= listed
    if rng.random() < 0.2:
        arrays["groups"] = rng.integers(0, max(len(setting.scopes), 1), len(setting.scopes))
    if setting.domains != Setting.of(draft).domains:
        arrays["box"] = setting.box_rows()
    draft.step("tree", arrays)


def narrow(rng: Rng, arrays: dict[str, Array]) -> None:
    """Take variables out of scopes: factors and messages are maximised over them. No shifts are left."""
    for name in ("edges", "edge_starts", "edge_variables", "shifts"):
        arrays.pop(name, None)
    begin, variables = arrays["node_starts"].tolist(), arrays["node_variables"].tolist()
    scopes = [variables[a:b] for a, b in itertools.pairwise(begin)]
    for scope, above in zip(list(scopes), arrays["parent"].tolist(), strict=True):
        shared = [v for v in scope[1:] if above >= 0 and v in scopes[above][1:]]
        if shared and rng.random() < 0.5:
            lost = pick(rng, *shared)
            scopes[above] = [v for v in scopes[above] if v != lost]
    arrays["node_starts"] = starts(scopes)
    arrays["node_variables"] = np.array([v for scope in scopes for v in scope], np.int64)


def with_removed(rng: Rng, draft: Draft) -> None:
    """States removed: those without support in some table, now and then another."""
    setting = Setting.of(draft)
    gone = set()
    for scope, factor in zip(setting.scopes, draft.model.factors(), strict=False):
        table = np.asarray(factor.log_table) > -np.inf
        for axis, v in enumerate(factor.scope):
            if v in scope:
                support = np.asarray(table.any(axis=tuple(a for a in range(table.ndim) if a != axis)))
                gone |= {(v, s) for s in np.flatnonzero(~support).tolist()}
    if rng.random() < 0.1:
        gone.add((int(rng.integers(0, draft.model.n_variables)), 0))
    left = [[s for s in d if (v, s) not in gone] for v, d in enumerate(setting.domains)]
    removed = np.array(sorted(gone), np.int64).reshape(-1, 2)
    if not all(left):
        draft.step("tree", {"removed": removed})
        return
    part = Setting.of(draft, left)
    draft.step("tree", tree_arrays(rng, part, part.random_order(rng)) | {"removed": removed})


def with_split(rng: Rng, draft: Draft) -> None:
    """The states of a variable divided among trees, mostly in the right way."""
    setting = Setting.of(draft)
    order = setting.random_order(rng)
    if not order:
        return
    v = order[-1] if rng.random() < 0.6 else int(rng.choice(order))
    states = setting.domains[v]
    owner = rng.integers(0, 2, len(states))
    boxes: dict[int, list[int]] = {}
    exact, overlap = bool(rng.random() < 0.5), pick(rng, 0.0, 0.0, 0.3)
    for part in np.unique(owner).tolist():
        box = [list(d) for d in setting.domains]
        box[v] = [s for s, p in zip(states, owner.tolist(), strict=True) if p == part or rng.random() < overlap]
        inner = Setting.of(draft, box)
        arrays = tree_arrays(rng, inner, inner.random_order(rng), exact=exact)
        boxes[draft.step("tree", arrays | {"box": np.array([(v, s) for s in box[v]])})] = box[v]
    if len(boxes) > 1 and rng.random() < 0.1:
        del boxes[pick(rng, *boxes)]
    # The box may be smaller than what the parts are of, or in another variable.
    u = pick(rng, v, v, int(rng.choice(order)))
    rows = [(u, s) for s in setting.domains[u] if rng.random() < 0.7]
    options = {"box": np.array(rows)} if rows and rng.random() < 0.4 else {}
    draft.step("cover", options | {"parts": parts_by(v, boxes)})


def with_cover(rng: Rng, draft: Draft) -> None:
    """A random decision tree, whose parts name steps about them, about more, or about less."""
    setting = Setting.of(draft)
    order = setting.random_order(rng)
    if not order:
        return
    exact = bool(rng.random() < 0.6)
    rows: list[tuple[int, int, int]] = []

    def part(domains: list[list[int]], depth: int) -> None:
        step = -1
        if all(domains) and (depth == 0 or rng.random() < 0.3) and rng.random() < 0.9:
            box = [pick(rng, *[d] * 12, list(e), d[:1]) for d, e in zip(domains, setting.domains, strict=True)]
            inner = Setting.of(draft, box)
            arrays = tree_arrays(rng, inner, inner.random_order(rng), exact=exact)
            step = draft.step("tree", arrays | {"box": inner.box_rows()})
        # Most often by the variable that is eliminated last of those with several states.
        several = [u for u in order if len(domains[u]) > 1]
        if not depth or not several:
            rows.append((-1, -1, step))
            return
        v = several[-1] if rng.random() < 0.5 else pick(rng, *order)
        s = pick(rng, *setting.domains[v])
        rows.append((v, s, step))
        for half in ([t for t in domains[v] if t == s], [t for t in domains[v] if t != s]):
            part([*domains[:v], half, *domains[v + 1 :]], depth - 1)

    part(setting.domains, int(rng.integers(1, 4)))
    draft.step("cover", {"parts": np.array(rows, np.int64)})


def with_mean_field(rng: Rng, draft: Draft) -> None:
    setting = Setting.of(draft)
    core = [v for v in setting.free if rng.random() < 0.5]
    arrays = core_arrays(rng, setting, core)
    if rng.random() < 0.1:
        # With a weight too large the core is not eliminated exactly.
        arrays["weight"] = arrays["weight"] * pick(rng, 1.5, 1.0) + pick(rng, 0.0, 0.2)
    arrays["q"] = np.where(rng.random(len(arrays["q"])) < 0.3, 0.0, arrays["q"])
    draft.step("mean-field", arrays)


def same_weights(rng: Rng, weight: float) -> Draft:
    """A question in which all variables have the same weight, with zeros and equal entries."""
    n = int(rng.integers(2, 5))
    model = random_model(rng, n_variables=n, n_factors=int(rng.integers(1, 6)), max_states=3, zeros=0.3, spread=2.0)
    factors = [(factor.scope, np.round(factor.log_table)) for factor in model.factors()]
    cards = model.cardinalities.tolist()
    evidence = {v: int(rng.integers(0, cards[v])) for v in range(n) if rng.random() < 0.1}
    weights = [weight] * n
    if rng.random() < 0.1:
        weights[int(rng.integers(0, n))] = pick(rng, 0.0, 0.5, 1.0)
    return Draft(Model.from_factors(cards, factors, log=True), weights, evidence)


def with_graph(rng: Rng, draft: Draft) -> None:
    """Conditioning, in which nodes may be taken for one another."""
    setting = Setting.of(draft)
    draft.step("conditioning", Graph(rng, setting, pick(rng, *FORGET)).arrays(setting))


def with_walk(rng: Rng, draft: Draft) -> None:
    """Branching: any walk is a proof, if every box is closed."""
    setting = Setting.of(draft)
    scopes = setting.scopes
    n_places = sum(len(setting.domains[v]) for scope in scopes for v in scope)
    rows: list[tuple[int, int, int]] = []
    groups: list[list[tuple[int, float]]] = []

    def move() -> int:
        if not n_places or rng.random() < 0.4:
            return -1
        count = int(rng.integers(0, 1 + min(4, n_places)))
        groups.append([(int(rng.integers(0, n_places)), float(rng.normal())) for _ in range(count)])
        return len(groups) - 1

    def part(depth: int) -> None:
        if not depth or not setting.free or rng.random() < 0.3:
            rows.append((-1, -1, move()))
            return
        v = int(rng.choice(setting.free))
        rows.append((v, pick(rng, *setting.domains[v]), move()))
        part(depth - 1)
        part(depth - 1)

    part(4)
    moves = [one for group in groups for one in group]
    draft.step(
        "branching",
        no_tree(draft)
        | {
            "order": np.array(setting.free, np.int64),
            "table_of": np.arange(len(scopes)),
            "table_starts": np.cumsum([0, *map(len, scopes)]),
            "table_variables": np.array([v for scope in scopes for v in scope], np.int64),
            "parts": np.array(rows, np.int64),
            "move_starts": starts(groups),
            "move_places": np.array([place for place, _ in moves], np.int64),
            "moves": np.array([number for _, number in moves]),
        },
    )


def with_best(rng: Rng, draft: Draft) -> None:
    """A list of assignments, each with its value, and parts that are bounded by trees."""
    setting = Setting.of(draft)
    variables = [v for v, w in enumerate(draft.weights) if w == 0.0 and v not in draft.evidence]
    every = list(itertools.product(*(setting.domains[v] for v in variables)))
    distinct = int(rng.integers(1, 3))
    listed: list[tuple[int, ...]] = []
    for k in rng.permutation(len(every)).tolist():
        apart = distinct - int(rng.random() < 0.1)
        if len(listed) < 3 and all(sum(map(int.__ne__, every[k], other)) >= apart for other in listed):
            listed.append(every[k])
    boxes = [setting.domains]
    draft.step("tree", tree_arrays(rng, setting, setting.random_order(rng)))
    for row in listed:
        given = dict(zip(variables, row, strict=True))
        inner = Setting.of(draft, [[given[v]] if v in given else d for v, d in enumerate(setting.domains)])
        boxes.append(inner.domains)
        arrays = tree_arrays(rng, inner, inner.random_order(rng), exact=True)
        draft.step("tree", arrays | {"box": inner.box_rows()})
    rows: list[tuple[int, int, int]] = []

    def part(box: list[list[int]], depth: int, near: int = -1) -> None:
        fitting = [
            k for k, b in enumerate(boxes) if all(set(mine) <= set(own) for mine, own in zip(box, b, strict=True))
        ]
        if depth and not rng.random() < 0.1 and draft.steps and rng.random() < 0.3:
            inner = Setting.of(draft, box)
            boxes.append(inner.domains)
            fitting = [draft.step("tree", tree_arrays(rng, inner, inner.random_order(rng)) | {"box": inner.box_rows()})]
        around = int(rng.integers(0, len(listed))) if listed and depth and rng.random() < 0.8 else -1
        step = int(rng.choice(fitting)) if rng.random() < 0.8 else -1
        if around < 0:
            rows.append((-1, near, step))
            return
        rest, pieces = list(box), []
        for v, s in zip(variables, listed[around], strict=True):
            if s in box[v] and len(box[v]) > 1:
                rows.append((v, s, step))
                pieces.append([[t for t in d if t != s] if u == v else d for u, d in enumerate(rest)])
                rest[v], step = [s], -1
        differs = sum(rest[v] != [s] for v, s in zip(variables, listed[around], strict=True))
        part(rest, depth - 1, around if differs < distinct else -1)
        for piece in reversed(pieces):
            part(piece, depth - 1)

    part(setting.domains, 3)
    draft.arrays["best_variables"] = np.array(variables, np.int64)
    draft.arrays["best_states"] = np.array(listed, np.int64).reshape(len(listed), len(variables))
    draft.arrays["best_parts"] = np.array(rows, np.int64)
    draft.best = {"distinct": distinct, "claims": [{}] * (len(listed) + 1)}


def honest(rng: Rng) -> Draft:
    """A certificate whose steps follow the rules, but for now and then one."""
    kind = pick(rng, "graph", "graph", "walk", "best", "cover", "steps", "steps", "steps", "steps")
    if kind == "graph":
        draft = same_weights(rng, pick(rng, 1.0, 1.0, 0.3, 0.0))
        with_graph(rng, draft)
        return draft
    if kind == "walk":
        draft = same_weights(rng, pick(rng, 0.0, 0.0, 0.0, 0.0, 0.3))
        with_walk(rng, draft)
        return draft
    draft = random_draft(rng, n_variables=int(rng.integers(2, 5)), plain=kind == "best")
    if kind == "best":
        with_best(rng, draft)
        return draft
    if kind == "cover":
        with_cover(rng, draft)
        return draft
    for _ in range(int(rng.integers(1, 3))):
        pick(rng, with_tree, with_tree, with_removed, with_split, with_cover, with_mean_field)(rng, draft)
    if rng.random() < 0.2:
        maxima = [v for v, w in enumerate(draft.weights) if w == 0.0]
        draft.assignment = [[v, int(rng.integers(0, draft.model.cardinalities[v]))] for v in maxima]
    return draft


FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 0.999, 1e-30, 1e6, 1e7, 1e16, 1e200, -1e200]


def change_entry(rng: Rng, draft: Draft, name: str) -> None:
    """One number of an array becomes another."""
    array = draft.arrays[name].copy()
    if not array.size:
        return
    flat = array.reshape(-1)
    at = int(rng.integers(0, flat.size))
    if array.dtype.kind == "f":
        old = float(flat[at])
        changed = pick(rng, old * 0.999, old * 1.5, -old, old + 1.0, old - 0.1, *FLOATS)
        flat[at] = changed if abs(changed) < 1e30 or array.dtype.itemsize == 8 else 1e30
    else:
        other = int(pick(rng, -1, 0, 1, 2, 3, int(flat[at]) + 1, int(flat[at]) - 1, int(rng.choice(flat))))
        flat[at] = other if np.iinfo(array.dtype).min <= other else 0
    draft.arrays[name] = array


def change_length(rng: Rng, draft: Draft, name: str) -> None:
    """Rows of an array are lost, doubled or mixed."""
    array = draft.arrays[name]
    if not len(array):
        return
    at = int(rng.integers(0, len(array)))
    shuffled: Array = rng.permutation(array, axis=0)
    draft.arrays[name] = pick(
        rng, np.delete(array, at, axis=0), np.concatenate([array, array[at : at + 1]]), shuffled, array[::-1].copy()
    )


def change_count(rng: Rng, draft: Draft, name: str) -> None:
    """One item less of a list of lists, counted right."""
    for counts, items in (("gone_counts", "gone"), ("settled_counts", "settled"), ("child_counts", "child_nodes")):
        if name.endswith(counts):
            prefix = name.removesuffix(counts)
            numbers, flat = draft.arrays[name].copy(), draft.arrays[prefix + items]
            lanes = np.flatnonzero(numbers > 0)
            if len(lanes):
                lane = int(rng.choice(lanes))
                at = int(numbers[:lane].sum()) + int(rng.integers(0, numbers[lane]))
                numbers[lane] -= 1
                if at >= len(flat):
                    continue
                draft.arrays[name], draft.arrays[prefix + items] = numbers, np.delete(flat, at)


def change_head(rng: Rng, draft: Draft) -> None:
    """Steps or what they say of others are changed."""
    choice = int(rng.integers(0, 6))
    step = draft.steps[int(rng.integers(0, len(draft.steps)))]
    if choice == 0:
        step["kind"] = pick(rng, "tree", "cover", "mean-field", "conditioning", "branching")
    elif choice == 1 and draft.best:
        draft.best["distinct"] = pick(rng, 1, 2, 3, 0)
    elif choice == 2 and draft.assignment:
        draft.assignment[0][1] = 1 - draft.assignment[0][1]
    elif choice == 3:
        draft.steps.append(dict(step))
    else:
        draft.order = None
        draft.arrays["order"] = rng.permutation(draft.model.n_variables)


def forged(rng: Rng, draft: Draft) -> Draft:
    """A copy with one to three changes."""
    draft = copy.deepcopy(draft)
    for _ in range(int(rng.integers(1, 4))):
        # What belongs to steps, more often than the question.
        names = [name for name in sorted(draft.arrays) if "/" in name or name.startswith("best")]
        name = str(rng.choice(names if names and rng.random() < 0.95 else sorted(draft.arrays)))
        chance = rng.random()
        if chance < 0.6:
            change_entry(rng, draft, name)
        elif chance < 0.75:
            change_length(rng, draft, name)
        elif chance < 0.85:
            change_count(rng, draft, str(rng.choice([n for n in names if n.endswith("_counts")] or [name])))
        elif draft.steps:
            change_head(rng, draft)
    return draft
