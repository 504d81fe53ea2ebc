"""A small writer of certificates for the tests: random trees, contexts and boxes. Shares nothing with the checker."""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np

from powersum.model.model import Model

Array = np.ndarray[Any, Any]


def digest(model: Model) -> str:
    """The digest of docs/certificates.md."""
    lengths = np.diff(model.scope_starts).tolist()
    words = [
        model.n_variables,
        *model.cardinalities.tolist(),
        model.n_factors,
        *lengths,
        *model.scope_variables.tolist(),
    ]
    bits = np.packbits(np.isneginf(model.log_values))
    return hashlib.sha256(b"powersum-model-1" + np.array(words, "<i8").tobytes() + bits.tobytes()).hexdigest()


@dataclass
class Draft:
    """A certificate that is being written."""

    model: Model
    weights: Sequence[float]
    evidence: Mapping[int, int] = field(default_factory=dict)
    likelihoods: Mapping[int, Sequence[float]] = field(default_factory=dict)
    order: Sequence[int] | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    claim: dict[str, Any] = field(default_factory=lambda: {"log_lower": None, "log_upper": None})
    assignment: list[list[int]] | None = None
    best: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.arrays["weights"] = np.asarray(self.weights, dtype=np.float64)
        if self.evidence:
            self.arrays["evidence"] = np.array(list(self.evidence.items()), dtype=np.int64)
        if self.likelihoods:
            self.arrays["likelihood_variables"] = np.array(list(self.likelihoods), dtype=np.int64)
            self.arrays["likelihood_values"] = np.concatenate([np.asarray(t, float) for t in self.likelihoods.values()])
        if self.order is not None:
            self.arrays["order"] = np.asarray(self.order, dtype=np.int64)

    def step(self, kind: str, arrays: Mapping[str, Array] | None = None) -> int:
        """Add a step with its arrays; returns its number."""
        number = len(self.steps)
        self.steps.append({"kind": kind})
        for name, array in (arrays or {}).items():
            self.arrays[f"{number}/{name}"] = array
        return number

    def head(self) -> dict[str, Any]:
        head = {
            "format": "powersum-certificate",
            "version": 6,
            "model": digest(self.model),
            "claim": self.claim,
            "steps": self.steps,
        }
        if self.assignment is not None:
            head["assignment"] = self.assignment
        if self.best is not None:
            head["best"] = self.best
        return head

    def zip(self, head: Mapping[str, Any] | None = None) -> bytes:
        """The file."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("head.json", json.dumps(self.head() if head is None else head))
            for name, array in self.arrays.items():
                one = io.BytesIO()
                np.lib.format.write_array(one, array, allow_pickle=False)
                archive.writestr(name + ".npy", one.getvalue())
        return buffer.getvalue()


@dataclass
class Setting:
    """A question and a box, with the scopes that are left in it."""

    draft: Draft
    domains: list[list[int]]
    scopes: list[list[int]]
    free: list[int]

    @classmethod
    def of(cls, draft: Draft, domains: list[list[int]] | None = None) -> Setting:
        model = draft.model
        if domains is None:
            domains = [list(range(c)) for c in model.cardinalities.tolist()]
        for v, s in draft.evidence.items():
            domains[v] = [s] if s in domains[v] else []
        free = [v for v, d in enumerate(domains) if len(d) > 1]
        scopes = [[v for v in model.scope(k).tolist() if v in free] for k in range(model.n_factors)]
        scopes += [[v] if v in free else [] for v in sorted(draft.likelihoods)]
        return cls(draft, domains, scopes, free)

    def box_rows(self) -> Array:
        """Rows of the ``box`` array that restricts every variable to its domain."""
        return np.array([(v, s) for v, d in enumerate(self.domains) for s in d], dtype=np.int64).reshape(-1, 2)

    def random_order(self, rng: np.random.Generator) -> list[int]:
        """An order that the question allows."""
        draft = self.draft
        if draft.order is not None:
            return [v for v in draft.order if v in self.free]
        keys = rng.random(len(draft.weights))
        return sorted(self.free, key=lambda v: (-draft.weights[v], keys[v]))


def tree_arrays(
    rng: np.random.Generator,
    setting: Setting,
    order: Sequence[int],
    *,
    exact: bool = False,
    strict: bool = False,
    scale: float = 1.0,
    temperature: float = 0.0,
) -> dict[str, Array]:
    """A random mini-bucket tree: random partitions, extensions, weights and shifts.

    With ``exact`` one node for each variable. With ``strict`` what contexts ask for: messages to the next variable's
    bucket, none dropped, shifts within a bucket.
    """
    draft = setting.draft
    position = {v: p for p, v in enumerate(order)}
    home = [-1] * len(setting.scopes)
    waiting: dict[int, list[tuple[str, int, list[int]]]] = {v: [] for v in order}
    for k, scope in enumerate(setting.scopes):
        if scope and (exact or strict or rng.random() < 0.95):
            first = min(position[v] for v in scope)
            if rng.random() < 0.15:
                first = int(rng.integers(0, first + 1))
            waiting[order[first]].append(("factor", k, scope))
    scopes: list[list[int]] = []
    parent: list[int] = []
    weight: list[float] = []
    edges: list[tuple[int, int]] = []
    edge_scopes: list[list[int]] = []
    for v in order:
        items = waiting[v]
        groups = np.zeros(len(items), int) if exact else rng.integers(0, max(1, int(rng.integers(1, 4))), len(items))
        nodes = []
        union = {u for _, _, scope in items for u in scope} | {v}
        for group in np.unique(groups).tolist():
            node = len(scopes)
            nodes.append(node)
            members = [item for item, g in zip(items, groups.tolist(), strict=True) if g == group]
            held = {v} | {u for _, _, s in members for u in s}
            if not exact:
                held |= {u for u in union if rng.random() < 0.4}
            for kind, number, _ in members:
                if kind == "factor":
                    home[number] = node
                else:
                    parent[number] = node
            ordered = sorted(held, key=lambda u: position[u])
            scopes.append(ordered)
            parent.append(-1)
            message = ordered[1:]
            if message:
                first = position[message[0]]
                if not strict and not exact and rng.random() < 0.1:
                    first = int(rng.integers(position[v] + 1, first + 1))
                if strict or exact or rng.random() < 0.9:
                    waiting[order[first]].append(("message", node, message))
        tau = draft.weights[v]
        weight += split_weights(rng, tau if tau > 0.0 else temperature, tau, len(nodes))
        for a, b in pairwise(nodes):
            edges.append((a, b))
            shared = [u for u in scopes[a] if u in scopes[b]]
            edge_scopes.append(shared if rng.random() < 0.7 else shared[:1])
    if not strict and not exact and len(scopes) > 1:
        for _ in range(3):
            a, b = rng.integers(0, len(scopes), 2).tolist()
            edges.append((a, b))
            edge_scopes.append([u for u in scopes[a] if u in scopes[b] and rng.random() < 0.7])
    sizes = [math.prod(len(setting.domains[u]) for u in s) for s in edge_scopes]
    arrays = {
        "order": np.array(order, dtype=np.int32),
        "node_starts": starts(scopes),
        "node_variables": np.array([u for s in scopes for u in s], dtype=np.int64),
        "parent": np.array(parent, dtype=np.int64),
        "weight": np.array(weight, dtype=np.float64),
        "home": np.array(home, dtype=np.int64),
    }
    if edges:
        arrays |= {
            "edges": np.array(edges, dtype=np.int64),
            "edge_starts": starts(edge_scopes),
            "edge_variables": np.array([u for s in edge_scopes for u in s], dtype=np.int64),
            "shifts": rng.normal(0.0, scale, sum(sizes)).astype(rng.choice(["<f4", "<f8"])),
        }
    return arrays


def no_tree(draft: Draft) -> dict[str, Array]:
    """The tree of nothing: the core of a mean field in which every variable has a distribution."""
    none = np.zeros(0, dtype=np.int64)
    home = np.full(draft.model.n_factors + len(draft.likelihoods), -1)
    return {
        "order": none,
        "node_starts": np.zeros(1, np.int64),
        "node_variables": none,
        "parent": none,
        "weight": np.zeros(0),
        "home": home,
    }


def parts_by(v: int, boxes: Mapping[int, Sequence[int]], rest: int = -1) -> Array:
    """The rows of a cover by states of a variable: for each step the states that it bounds, and a step for others."""
    halves = [((v, s, -1), (-1, -1, step)) for step, states in boxes.items() for s in states]
    return np.array([row for pair in halves for row in pair] + [(-1, -1, rest)])


def core_arrays(
    rng: np.random.Generator, setting: Setting, core: Sequence[int], q: Sequence[float] | None = None
) -> dict[str, Array]:
    """A mean field with a core that is eliminated exactly, and random distributions of all others unless given."""
    inner = Setting(setting.draft, setting.domains, [[v for v in s if v in core] for s in setting.scopes], list(core))
    arrays = tree_arrays(rng, inner, inner.random_order(rng), exact=True)
    count = sum(len(d) for v, d in enumerate(setting.domains) if v not in core)
    return {**arrays, "q": rng.random(count) if q is None else np.array(q)}


def starts(parts: Sequence[Sequence[Any]]) -> Array:
    """Where parts begin."""
    return np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)


def split_weights(rng: np.random.Generator, total: float, least: float, count: int) -> list[float]:
    """Weights that add up to at least ``least``, exactly."""
    if count == 1:
        return [total]
    shares = rng.dirichlet(np.ones(count)) if count else np.zeros(0)
    weights: list[float] = (total * np.where(shares < 1e-3, 0.0, shares)).tolist()
    while weights and math.fsum([*weights, -least]) < 0.0:
        weights[int(rng.integers(0, count))] += 1e-3 * total if rng.random() < 0.1 else 1e-16 * total
    return weights


def contexts_of(setting: Setting, order: Sequence[int], tree: Mapping[str, Array]) -> dict[int, list[int]]:
    """The context of each variable that has nodes in the exact elimination of factors at their homes."""
    position = {v: p for p, v in enumerate(order)}
    firsts = tree["node_variables"][tree["node_starts"][:-1]].tolist()
    tables = [set(s) | {firsts[h]} for s, h in zip(setting.scopes, tree["home"].tolist(), strict=True) if h >= 0]
    contexts = {}
    for v in (v for v in order if v in firsts):
        joined = set().union(*(t for t in tables if v in t)) - {v}
        tables = [t for t in tables if v not in t] + [joined]
        contexts[v] = sorted(joined, key=lambda u: position[u])
    return contexts


def context_arrays(
    rng: np.random.Generator,
    setting: Setting,
    order: Sequence[int],
    tree: Mapping[str, Array],
    *,
    share: float,
    settled: float,
) -> dict[str, Array]:
    """A random share of all contexts of a tree, some of them settled."""
    contexts = contexts_of(setting, order, tree)
    variables, counts, rows, flags = [], [], [], []
    for v in contexts:
        every = list(product(*(setting.domains[u] for u in contexts[v])))
        chosen = [row for row in every if rng.random() < share]
        if chosen:
            variables.append(v)
            counts.append(len(chosen))
            rows += [s for row in chosen for s in row]
            flags += (rng.random(len(chosen)) < settled).tolist()
    return {
        "context_variables": np.array(variables, dtype=np.int64),
        "context_counts": np.array(counts, dtype=np.int64),
        "context_states": np.array(rows, dtype=np.uint8),
        "context_settled": np.array(flags, dtype=np.uint8),
    }
