"""Graphs of conditioning, written in plain Python and at random: for the checker's tests only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable

import numpy as np

from tests.check.writer import Array, Setting, no_tree

Box = dict[int, tuple[int, ...]]
"""The states that are left of each variable, as places in its domain."""
Lane = tuple[list[int], list[int], list[int]]
"""Places at which states go, tables that are settled, and nodes."""

FORGET = ("nothing", "own states", "other states")
"""What a graph may forget to tell nodes apart by: it is a proof if that is nothing."""


class Graph:
    """Conditioning of everything, with variables and the extent of propagation chosen at random.

    Parameters
    ----------
    rng
        Chooses.
    setting
        The question and the box; all free variables must have the same weight.
    forget
        One of :data:`FORGET`.
    """

    def __init__(self, rng: np.random.Generator, setting: Setting, forget: str = "nothing") -> None:
        self.rng, self.forget = rng, forget
        model = setting.draft.model
        self.domains, self.scopes = setting.domains, setting.scopes
        self.tables = []
        for factor in model.factors():
            inside = np.ix_(*(setting.domains[v] for v in factor.scope))
            shape = [len(setting.domains[v]) for v in factor.scope if v in setting.free]
            self.tables.append(np.asarray(factor.log_table)[inside].reshape(shape))
        for v, row in sorted(setting.draft.likelihoods.items()):
            self.tables.append(np.log(np.array(row))[setting.domains[v]] if v in setting.free else np.zeros(()))
        lengths = [len(setting.domains[v]) for scope in self.scopes for v in scope]
        self.places = iter(np.concatenate([[0], np.cumsum(lengths)]).tolist())
        self.first = [[next(self.places) for _ in scope] for scope in self.scopes]
        self.nodes: list[tuple[int, list[Lane]]] = [(-1, [])]
        self.known: dict[Hashable, int] = {}
        whole = {v: tuple(range(len(setting.domains[v]))) for v in setting.free}
        self.nodes[0] = -1, [self.lane(whole, set(range(len(self.tables))))]

    def tuples(self, t: int, box: Box) -> list[tuple[int, ...]]:
        return list(itertools.product(*(box[v] for v in self.scopes[t])))

    def lane(self, box: Box, tables: set[int]) -> Lane:
        """Propagate for a while, settle what is settled, and go on with the components."""
        box, gone = dict(box), []
        for t in [*self.rng.permutation(sorted(tables)).tolist()] * int(self.rng.integers(0, 4)):
            alive = [row for row in self.tuples(t, box) if self.tables[t][row] > -math.inf]
            for axis, v in enumerate(self.scopes[t]):
                supported = {row[axis] for row in alive}
                gone += [self.first[t][axis] + s for s in box[v] if s not in supported]
                box[v] = tuple(s for s in box[v] if s in supported)
        values = {t: {float(self.tables[t][row]) for row in self.tuples(t, box)} for t in tables}
        for t in (t for t in sorted(tables) if values[t] <= {-math.inf}):
            # Nothing is left, of this table or of one of its variables.
            gone += [self.first[t][axis] + s for axis, v in enumerate(self.scopes[t]) for s in box[v]]
            return gone, [], []
        settled = [t for t in sorted(tables) if len(values[t]) == 1]
        left, children = tables - set(settled), []
        while left:
            part, variables = {left.pop()}, set[int]()
            while True:
                variables = {v for t in part for v in self.scopes[t] if len(box[v]) > 1}
                more = {t for t in left if variables & set(self.scopes[t])}
                if not more:
                    break
                part, left = part | more, left - more
            children.append(self.node(box, part, variables))
        return gone, settled, children

    def node(self, box: Box, tables: set[int], variables: set[int]) -> int:
        around = {v for t in tables for v in self.scopes[t]}
        own = tuple(sorted((v, box[v]) for v in variables))
        other = tuple(sorted((v, box[v]) for v in around - variables))
        key = (
            tuple(sorted(tables)),
            tuple(sorted(variables)),
            () if self.forget == "own states" else own,
            () if self.forget == "other states" else other,
        )
        if key not in self.known:
            number = self.known[key] = len(self.nodes)
            v = int(self.rng.choice(sorted(variables)))
            self.nodes.append((v, []))
            for s in range(len(self.domains[v])):
                self.nodes[number][1].append(self.lane({**box, v: (s,)}, tables) if s in box[v] else ([], [], []))
        return self.known[key]

    def arrays(self, setting: Setting) -> dict[str, Array]:
        """The arrays of a step."""
        level = {0: 0}
        for _ in self.nodes:
            for n, (_, lanes) in enumerate(self.nodes):
                for child in (c for _, _, children in lanes for c in children if n in level):
                    level[child] = max(level.get(child, 0), level[n] + 1)
        order = sorted(range(len(self.nodes)), key=lambda n: level[n])
        number = {n: k for k, n in enumerate(order)}
        lanes = [lane for n in order for lane in self.nodes[n][1]]
        flat = {
            "branching": [self.nodes[n][0] for n in order[1:]],
            "gone_counts": [len(gone) for gone, _, _ in lanes],
            "gone": [place for gone, _, _ in lanes for place in gone],
            "settled_counts": [len(settled) for _, settled, _ in lanes],
            "settled": [t for _, settled, _ in lanes for t in settled],
            "child_counts": [len(children) for _, _, children in lanes],
            "child_nodes": [number[c] for _, _, children in lanes for c in children],
            "table_of": list(range(len(self.tables))),
            "table_starts": np.cumsum([0, *map(len, self.scopes)]).tolist(),
            "table_variables": [v for scope in self.scopes for v in scope],
        }
        # Variables of one state and another weight may stand between, where the question has an order.
        flat["order"] = [v for v in setting.draft.order or setting.free if v in setting.free]
        return no_tree(setting.draft) | {name: np.array(numbers, np.int64) for name, numbers in flat.items()}
