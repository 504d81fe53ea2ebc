"""The second reading of boxes, trees, contexts and mean fields (see :mod:`tests.check.slow`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import (
    Context,
    Decimal,
    localcontext,
)
from typing import Any

from tests.check.slow_tables import (
    ONE,
    ZERO,
    Arrays,
    Asked,
    Beyond,
    Box,
    Found,
    States,
    Table,
    need,
    over,
    power_sum,
)


class Trees:
    """One step of a certificate: boxes, trees, and what is built on trees alone."""

    def __init__(
        self, arrays: Arrays, asked: Asked, root: Box, found: list[Found], number: int, head: dict[str, Any]
    ) -> None:
        self.arrays, self.asked, self.found, self.number, self.head = arrays, asked, found, number, head
        self.factors, self.lossy = asked.factors, False
        self.box = [list(d) for d in root]
        for v, states in self.named("box").items():
            self.box[v] = [s for s in self.box[v] if s in states]

    def __contains__(self, name: str) -> bool:
        return f"{self.number}/{name}" in self.arrays

    def wholes(self, name: str, high: int = 1 << 53, low: int = 0) -> list[int]:
        return self.arrays.wholes(f"{self.number}/{name}", high, low)

    def rows(self, name: str, high: int = 1 << 53, columns: int = 2, low: int = 0) -> list[list[int]]:
        return self.arrays.rows(f"{self.number}/{name}", high, columns, low)

    def reals(self, name: str) -> list[float]:
        return self.arrays.reals(f"{self.number}/{name}")

    def pieces(self, starts: str, things: Sequence[Any]) -> list[list[Any]]:
        return self.arrays.pieces(f"{self.number}/{starts}", things)

    def named(self, name: str) -> dict[int, list[int]]:
        states: dict[int, list[int]] = {}
        for v, s in self.rows(name) if name in self else []:
            need(v < len(self.asked.cards) and s < self.asked.cards[v], f"{name} names a state that does not exist")
            states.setdefault(v, []).append(s)
        return states

    def groups(self) -> list[list[int]]:
        n = len(self.asked.factors)
        numbers = self.wholes("groups", max(n, 1)) if "groups" in self else list(range(n))
        need(len(numbers) == n, "groups")
        return [[k for k in range(n) if numbers[k] == g] for g in sorted(set(numbers))]

    def remove(self) -> None:
        """Removed states must be impossible by propagation: over single factors, then over groups."""
        removed = self.named("removed")
        if not removed:
            return
        left = self.propagated([[k] for k in range(len(self.factors))], self.box)
        groups = self.groups()
        if any(len(g) > 1 for g in groups) and all(left):
            left = self.propagated(groups, left)
        need(all(not set(states) & set(left[v]) for v, states in removed.items()), "a removed state is possible")
        self.box = [[s for s in d if s not in removed.get(v, ())] for v, d in enumerate(self.box)]

    def propagated(self, groups: list[list[int]], box: Box) -> Box:
        while True:
            smaller = [list(d) for d in box]
            for group in groups:
                scope = sorted({v for k in group for v in self.factors[k].scope})
                possible = [x for x in over(scope, smaller) if all(self.factors[k].at(x) for k in group)]
                if not possible:
                    return [[] for _ in box]
                for v in scope:
                    smaller[v] = [s for s in smaller[v] if any(x[v] == s for x in possible)]
            if smaller == box:
                return box
            box = smaller

    # Trees.

    def read_tree(self) -> None:
        n, weights = len(self.box), self.asked.weights
        self.order = order = self.wholes("order", n)
        need(len(set(order)) == len(order), "order names a variable twice")
        need(all(v in order for v, d in enumerate(self.box) if len(d) > 1), "order lacks a variable")
        ranks = self.asked.ranks()
        need(all(ranks[u] <= ranks[v] for u, v in itertools.pairwise(order)), "order is not that of the question")
        self.scopes = self.pieces("node_starts", self.wholes("node_variables"))
        nodes = range(len(self.scopes))
        need(all(self.ordered(scope) and scope for scope in self.scopes), "a scope is not in order")
        self.parent, self.weight = self.wholes("parent", len(nodes), -1), self.reals("weight")
        self.home = self.wholes("home", len(nodes), -1)
        need(len(self.parent) == len(self.weight) == len(nodes) and len(self.home) == len(self.factors), "lengths")
        for node, above in enumerate(self.parent):
            later = above > node and order.index(self.scopes[above][0]) > order.index(self.scopes[node][0])
            need(above < 0 or later, "a message goes to an earlier node")
            need(0.0 <= self.weight[node] <= 1e6, "a weight is out of range")
            if 0.0 < self.weight[node] < 1e-300:
                raise Beyond
        self.nodes_of = {v: [k for k in nodes if self.scopes[k][0] == v] for v in order}
        self.exact = {}
        for v, own in self.nodes_of.items():
            with localcontext(Context(prec=2000)):
                total = sum((Decimal(self.weight[k]) for k in own), ZERO)
            need(not own or total >= Decimal(weights[v]), "weights add up to too little")
            same = len(own) == 1 and self.weight[own[0]] == weights[v]
            self.exact[v] = len(self.box[v]) == 1 or not own or same
        self.edges: list[tuple[int, int, Table]] = []
        if "edges" in self:
            pairs, shared = self.rows("edges", len(nodes)), self.pieces("edge_starts", self.wholes("edge_variables"))
            need(len(pairs) == len(shared) and all(self.ordered(scope) for scope in shared), "edges")
            shifts = iter(self.reals("shifts"))
            for (a, b), scope in zip(pairs, shared, strict=True):
                need(set(scope) <= set(self.scopes[a]) & set(self.scopes[b]), "a shift lies in one node only")
                values = {}
                for x in over(scope, self.box):
                    shift: Any = next(shifts, None)
                    need(shift is not None, "shifts end too early")
                    if abs(shift) > 1e15:
                        raise Beyond
                    values[tuple(x[v] for v in scope)] = Decimal(shift).exp()
                self.edges.append((a, b, Table(tuple(scope), values)))
            need(next(shifts, None) is None, "there are too many shifts")

    def ordered(self, scope: list[int]) -> bool:
        return all(v in self.order for v in scope) and scope == sorted(set(scope), key=self.order.index)

    def at_home(self) -> list[tuple[int, Table]]:
        """What each node holds: the largest entries of products of a group over what it lacks, and the least."""
        tables = []
        for group in self.groups():
            for node in sorted({self.home[k] for k in group}):
                own = [self.factors[k] for k in group if self.home[k] == node]
                tables.append((node, self.maximised(own, self.scopes[node] if node >= 0 else [])))
        return tables

    def maximised(self, own: list[Table], kept: Sequence[int]) -> Table:
        """The product of tables over some variables, of the others the largest and the least."""
        scope = sorted({v for t in own for v in t.scope})
        held = tuple(v for v in scope if v in kept)
        result = Table(held, {}, {})
        for x in over(scope, self.box):
            place, value = tuple(x[v] for v in held), math.prod((t.at(x) for t in own), start=ONE)
            below = math.prod((t.at(x, True) for t in own), start=ONE)
            result.values[place] = max(result.values.get(place, ZERO), value)
            result.low[place] = min(result.low.get(place, below), below)
        # What is lost by less than any rounding is not lost: sums to one, for instance.
        self.lossy |= any(result.low[p] < f * (1 - Decimal("1e-12")) for p, f in result.values.items())
        return result

    def messages(self, homes: list[tuple[int, Table]]) -> list[Table]:
        """The message of each node, over what its parent has of it."""
        inputs: list[list[Table]] = [[table for k, table in homes if k == node] for node in range(len(self.scopes))]
        for a, b, shift in self.edges:
            inputs[a].append(shift)
            inputs[b].append(Table(shift.scope, {place: ONE / f for place, f in shift.values.items()}))
        result = []
        for node, scope in enumerate(self.scopes):
            v, above = scope[0], self.parent[node]
            whole = Table(tuple(scope[1:]), {}, {})
            for x in over(scope[1:], self.box):
                for values, below in ((whole.values, False), (whole.low, True)):
                    column = [
                        math.prod((t.at({**x, v: s}, below) for t in inputs[node]), start=ONE) for s in self.box[v]
                    ]
                    values[tuple(x.values())] = power_sum(column, self.weight[node])
            result.append(self.maximised([whole], self.scopes[above] if above >= 0 else []))
            if not self.ends(node):
                inputs[above].append(result[-1])
        return result

    def tree(self) -> tuple[Decimal, Decimal]:
        self.read_tree()
        homes = self.at_home()
        messages = self.messages(homes)
        numbers = [t for node, t in homes if node < 0]
        if not all(any(t.values.values()) for t in [*messages, *numbers]):
            return ZERO, ZERO
        return self.contexts(homes, messages) if "context_variables" in self else self.eliminated(homes, messages)

    def eliminated(self, homes: list[tuple[int, Table]], messages: list[Table]) -> tuple[Decimal, Decimal]:
        """The value of a tree: of all that goes nowhere, from below only if nothing is split."""
        ends = [t for node, t in homes if node < 0]
        ends += [messages[k] for k in range(len(messages)) if self.ends(k)]
        free = [power_sum([ONE] * len(self.box[v]), self.asked.weights[v]) for v in self.order if not self.nodes_of[v]]
        below = ONE if all(self.exact.values()) else ZERO
        for numbers in (free, [t.at({}, True) for t in ends]):
            below = math.prod(numbers, start=below)
        return below, math.prod((t.at({}) for t in ends), start=math.prod(free, start=ONE))

    def ends(self, node: int) -> bool:
        """Whether a node's message has no variables left, or goes nowhere: it is a number."""
        return self.parent[node] < 0 or len(self.scopes[node]) == 1

    # Contexts.

    def contexts(self, homes: list[tuple[int, Table]], messages: list[Table]) -> tuple[Decimal, Decimal]:
        alone = [nodes[0] for nodes in self.nodes_of.values() if len(nodes) == 1]
        barren = {k for k in alone if self.parent[k] < 0 and len(self.scopes[k]) > 1}
        buckets = [v for v in self.order if self.nodes_of[v] and self.nodes_of[v][0] not in barren]
        factors: dict[int, list[Table]] = {v: [] for v in buckets}
        context: dict[int, list[int]] = {v: [] for v in buckets}
        for node, table in homes:
            if node >= 0 and node not in barren:
                need(set(table.scope) <= set(buckets), "a factor has a barren variable")
                v = self.scopes[node][0]
                factors[v].append(table)
                context[v] += [u for u in table.scope if u != v]
        children: dict[int, list[int]] = {v: [] for v in buckets}
        below: dict[int, set[int]] = {}
        for v in buckets:
            context[v] = sorted(set(context[v]), key=self.order.index)
            below[v] = {v}.union(*(below[c] for c in children[v]))
            if context[v]:
                children[context[v][0]].append(v)
                context[context[v][0]] += context[v][1:]
        for a, b, _ in self.edges:
            need(self.scopes[a][0] == self.scopes[b][0], "a shift joins different variables")
        nodes = [k for k in range(len(self.scopes)) if k not in barren]
        for node in nodes:
            v, *sent = self.scopes[node]
            target = self.scopes[self.parent[node]] if self.parent[node] >= 0 else []
            need(set(sent) <= set(context[v]) and set(sent) <= set(target), "a node has too many variables, or drops")
            need(not sent or target[0] == sent[0], "a message goes past a bucket")
        leaving = {
            v: [
                messages[k]
                for k in nodes
                if self.scopes[k][0] in below[v] and (self.ends(k) or self.scopes[self.parent[k]][0] not in below[v])
            ]
            for v in buckets
        }
        listed, settled = self.listed(buckets, context)
        for v in reversed(buckets):
            for place in sorted(settled[v]):
                for s in self.box[v]:
                    x = {**dict(zip(context[v], place, strict=True)), v: s}
                    for c in children[v]:
                        listed[c].add(tuple(x[u] for u in context[c]))
                        settled[c].add(tuple(x[u] for u in context[c]))

        def value(v: int, x: dict[int, int], low: bool) -> Decimal:
            exact = all(self.exact[u] for u in below[v])
            of_tree = math.prod((m.at(x, low) for m in leaving[v]), start=ONE)
            if tuple(x[u] for u in context[v]) not in listed[v]:
                return ZERO if low and not exact else of_tree
            terms = []
            for s in self.box[v]:
                here = {**x, v: s}
                own = math.prod((f.at(here, low) for f in factors[v]), start=ONE)
                terms.append(math.prod((value(c, here, low) for c in children[v]), start=own) if own else ZERO)
            result = power_sum(terms, self.asked.weights[v])
            return result if low else min(result, of_tree)

        found = []
        free = [power_sum([ONE] * len(self.box[v]), self.asked.weights[v]) for v in self.order if not self.nodes_of[v]]
        for low in (True, False):
            lost = low and not all(self.exact[self.scopes[k][0]] for k in barren)
            total = math.prod(free, start=ZERO if lost else ONE)
            numbers = [t.at({}, low) for node, t in homes if node < 0] + [messages[k].at({}, low) for k in barren]
            total = math.prod(numbers, start=total)
            found.append(math.prod((value(v, {}, low) for v in buckets if not context[v]), start=total))
        return found[0], found[1]

    def listed(self, buckets: list[int], context: dict[int, list[int]]) -> tuple[dict[int, set[States]], ...]:
        """The contexts that the certificate lists, and those of them that are settled."""
        variables, counts = self.wholes("context_variables", len(self.box)), self.wholes("context_counts")
        states, flags = iter(self.wholes("context_states")), self.wholes("context_settled", 2)
        need(len(variables) == len(counts) == len(set(variables)) and sum(counts) == len(flags), "contexts")
        need(set(variables) <= set(buckets), "contexts of another variable")
        listed: dict[int, set[States]] = {v: set() for v in buckets}
        settled: dict[int, set[States]] = {v: set() for v in buckets}
        for v, count in zip(variables, counts, strict=True):
            for _ in range(count):
                place = tuple(next(states, -1) for _ in context[v])
                need(
                    all(s in self.box[u] for u, s in zip(context[v], place, strict=True)), "a context is not in the box"
                )
                listed[v].add(place)
                if flags.pop(0):
                    settled[v].add(place)
        need(next(states, None) is None, "context_states is too long")
        return listed, settled

    # Jensen's inequality.

    def mean_field(self) -> Decimal:
        core, numbers = set(self.wholes("order", len(self.box))), self.reals("q")
        outside = [v for v in range(len(self.box)) if v not in core]
        need(len(numbers) == sum(len(self.box[v]) for v in outside), "q")
        q: dict[int, dict[int, Decimal]] = {}
        entropy = ZERO
        for v in outside:
            row, numbers = numbers[: len(self.box[v])], numbers[len(self.box[v]) :]
            total = math.fsum(row)
            need(all(x >= 0.0 for x in row) and 1e-200 < total < 1e200, "q is not a distribution")
            shares = [Decimal(x / total) for x in row]
            if any(0 < x < 1e-60 for x in shares):
                raise Beyond
            q[v] = dict(zip(self.box[v], (x / sum(shares) for x in shares), strict=True))
            entropy -= Decimal(self.asked.weights[v]) * sum((p * p.ln() for p in q[v].values() if p), ZERO)
        means = []
        for factor in self.factors:
            mean = Table(tuple(v for v in factor.scope if v in core), {})
            for x in over(mean.scope, self.box):
                rest = [v for v in factor.scope if v not in core]
                terms = [
                    (math.prod((q[v][y[v]] for v in rest), start=ONE), factor.at({**x, **y}))
                    for y in over(rest, self.box)
                ]
                dead = any(p and not f for p, f in terms)
                logs = ZERO if dead else sum((p * f.ln() for p, f in terms if p), ZERO)
                mean.values[tuple(x.values())] = ZERO if dead else logs.exp()
            means.append(mean)
        self.factors = means
        self.box = [d if v in core else d[:1] for v, d in enumerate(self.box)]
        self.read_tree()
        need(all(self.exact.values()), "the core is not eliminated exactly")
        homes = self.at_home()
        return self.eliminated(homes, self.messages(homes))[0] * entropy.exp()
