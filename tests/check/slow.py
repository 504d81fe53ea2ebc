"""A second reading of certificates: the same rules in plain Python, without a line of the checker.

Tables are dictionaries from states to decimal numbers of fifty digits, not logs in doubles: errors are not bounded but
so small that nothing within 1e-9 hangs on them. Everything is looked up again where it is needed; only small
certificates can be read in this way. What the checker does for speed (keys, bits, batches, lists of tuples) is absent.
Where maximising over variables loses something, the lower bound here takes the minimum instead, which is at least as
good as the checker's: `Found.lossy` says so.
"""

from __future__ import annotations

import itertools
import math
import zipfile
from collections.abc import Sequence
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    Context,
    Decimal,
    InvalidOperation,
    Overflow,
    Underflow,
    localcontext,
)
from typing import Any

import numpy as np

from tests.check.slow_tables import (
    ONE,
    ZERO,
    Arrays,
    Asked,
    Beyond,
    Box,
    Found,
    Refused,
    States,
    Table,
    inside,
    least,
    need,
    over,
    power_sum,
)
from tests.check.slow_trees import Trees


class Cover:
    """A decision tree over states, read from its rows; with ``listed`` assignments it bounds single assignments."""

    def __init__(
        self,
        rows: list[list[int]],
        asked: Asked,
        found: list[Found],
        listed: list[dict[int, int]] | None = None,
        distinct: int = 0,
    ) -> None:
        self.rows, self.asked, self.found, self.listed, self.distinct = iter(rows), asked, found, listed, distinct

    def bounds(self, box: Box) -> tuple[list[Decimal | None], Decimal, bool]:
        """Upper bounds for each place, the lower bound, and whether that may be better than the checker's."""
        result = self.part(box)
        need(next(self.rows, None) is None, "a cover has too many rows")
        return result

    def part(self, part: Box) -> tuple[list[Decimal | None], Decimal, bool]:
        listed = self.listed or []
        row: Any = next(self.rows, None)
        need(row is not None, "a cover ends early")
        v, s, j = row
        need(v < len(part) and j < len(self.found) and (v >= 0 or s < len(listed)), "a cover names what is not there")
        uppers: list[Decimal | None] = [None] * (len(listed) + 1)
        lower, lossy, step = ZERO, False, self.found[j] if j >= 0 else None
        if not all(part):
            uppers = [ZERO for _ in uppers]
        elif step is not None:
            lossy = step.lossy
            uppers = [step.upper if inside(part, step.box) else None for _ in uppers]
            lower = step.lower if inside(step.box, part) else ZERO
        if v < 0:
            if s >= 0:
                near = sum(set(part[u]) != {t} for u, t in listed[s].items()) < self.distinct
                need(self.listed is not None and near, "a part is not near an assignment")
                uppers = [ZERO if place > s else x for place, x in enumerate(uppers)]
            return uppers, lower, lossy
        ranks, weights = self.asked.ranks(), self.asked.weights
        need(self.listed is None or weights[v] == 0.0, "a part of assignments is divided by a sum variable")
        later = [weights[u] for u, d in enumerate(part) if len(d) > 1 and ranks[u] > ranks[v]]
        may = self.listed is not None or all(w <= weights[v] for w in later)
        same, other = (
            self.part([*part[:v], half, *part[v + 1 :]])
            for half in ([t for t in part[v] if t == s], [t for t in part[v] if t != s])
        )
        for place, (x, y) in enumerate(zip(same[0], other[0], strict=True)):
            if x is not None and y is not None and (may or x == y == 0):
                uppers[place] = least(uppers[place], power_sum([x, y], weights[v]))
        if not later:
            lower = max(lower, power_sum([same[1], other[1]], weights[v]))
        return uppers, lower, lossy or same[2] or other[2]


class Step(Trees):
    """One step of a certificate, of any kind."""

    def prove(self) -> Found:
        box, kind = list(self.box), self.head["kind"]
        if not all(self.box):
            return Found(box, ZERO, ZERO)
        if kind == "cover":
            rows = self.rows("parts", 1 << 53, 3, -1)
            (upper,), lower, lossy = Cover(rows, self.asked, self.found).bounds(box)
            return Found(box, lower, upper, lossy)
        if kind == "mean-field":
            lower, upper = self.mean_field(), None
        else:
            self.remove()
            if not all(self.box):
                return Found(box, ZERO, ZERO)
            lower, upper = {"tree": self.tree, "conditioning": self.conditioning, "branching": self.branching}[kind]()
        return Found(box, lower, upper, self.lossy)

    # What a tree leaves.

    def remainder(self) -> tuple[Decimal, Decimal]:
        """The value of the tree; what it leaves are tables, variables, and their weights."""
        n = len(self.factors)
        table_of = self.wholes("table_of", max(n, 1), -1)
        need(len(table_of) == n, "table_of")
        whole, self.factors = (
            self.factors,
            [Table((), {(): ONE}) if t >= 0 else f for t, f in zip(table_of, self.factors, strict=True)],
        )
        self.read_tree()
        named = self.wholes("table_variables", len(self.box))
        self.left = [v for v, d in enumerate(self.box) if len(d) > 1 and v in named and not self.nodes_of[v]]
        self.weights = {self.asked.weights[v] for v in self.left}
        need(len(self.weights) <= 1 or self.asked.order is None, "variables have different weights")
        need(set(table_of) - {-1} == set(range(max(table_of, default=-1) + 1)), "table_of")
        members = [
            [f for k, f in zip(table_of, whole, strict=True) if k == t] for t in range(max(table_of, default=-1) + 1)
        ]
        self.tables = [self.maximised(own, self.left) for own in members]
        homes = self.at_home()
        return self.eliminated(homes, self.messages(homes))

    def read_places(self) -> None:
        """Places as the certificate counts them: states of variables of tables."""
        scopes = self.pieces("table_starts", self.wholes("table_variables", len(self.box)))
        need(len(scopes) == len(self.tables), "table_starts")
        self.places: list[tuple[int, int, int]] = []
        for t, scope in enumerate(scopes):
            need(len(set(scope)) == len(scope) and set(scope) <= set(self.tables[t].scope), "table_variables")
            self.places += [(t, v, s) for v in scope for s in self.box[v]]

    def lists(self, counts: str, items: str, lanes: int, high: int, low: int = 0) -> list[list[int]]:
        numbers, things = self.wholes(counts, high + 1), iter(self.wholes(items, max(high, low), low))
        need(len(numbers) == lanes, counts)
        result = [list(itertools.islice(things, count)) for count in numbers]
        need(sum(map(len, result)) == sum(numbers) and next(things, None) is None, items)
        return result

    def conditioning(self) -> tuple[Decimal, Decimal]:
        low, high = self.remainder()
        self.read_places()
        if any(not any(t.values.values()) for t in self.tables):
            return ZERO, ZERO
        named = self.wholes("branching", len(self.box))
        need(set(named) <= set(self.left), "a node branches on another variable")
        variable, n_nodes = [-1, *named], len(named) + 1
        lanes = [(k, s) for k, v in enumerate(variable) for s in ([-1] if v < 0 else self.box[v])]
        of = {k: [at for at, (node, _) in enumerate(lanes) if node == k] for k in range(n_nodes)}
        gone = self.lists("gone_counts", "gone", len(lanes), len(self.places))
        settled = self.lists("settled_counts", "settled", len(lanes), len(self.tables))
        leads = self.lists("child_counts", "child_nodes", len(lanes), n_nodes, 1)
        # Down: what is left in each lane.
        left_in: dict[int, list[set[tuple[int, int]]]] = {0: [set(self.all_states())]}
        own: dict[int, tuple[Decimal, Decimal] | None] = {}
        variables: list[set[int]] = [set() for _ in range(n_nodes)]
        for node in range(n_nodes):
            possible, v = set().union(*left_in.get(node, [])), variable[node]
            for at in of[node]:
                state = lanes[at][1]
                own[at] = None
                if v >= 0 and (v, state) not in possible:
                    continue
                # What is there, and what went when.
                there = {p for p in possible if p[0] != v or p[1] == state}
                when: dict[tuple[int, int], int] = {}
                for k, p in enumerate(gone[at]):
                    when.setdefault(self.places[p][1:], k)
                for k, p in enumerate(gone[at]):
                    self.need_impossible(self.places[p], k, there, when)
                left, loses = there - set(when), {u for u, _ in when} | ({v} if v >= 0 else set())
                are, were = ({u: sum(p[0] == u for p in states) for u in loses} for states in (left, possible))
                if not all(are.values()):
                    continue
                numbers = [ONE, ONE]
                for u in loses:
                    tau = self.asked.weights[u]
                    ratio = power_sum([ONE] * are[u], tau) / power_sum([ONE] * were[u], tau)
                    numbers = [x * ratio for x in numbers]
                for t in settled[at]:
                    some = {u: [s for w, s in left if w == u] for u in self.tables[t].scope}
                    rows = [dict(zip(some, states, strict=True)) for states in itertools.product(*some.values())]
                    values = [self.tables[t].at(x) for x in rows]
                    need(all(values), "a table is called settled where it can be 0")
                    self.lossy |= min(values) < max(values) * (1 - Decimal("1e-12"))
                    numbers = [numbers[0] * min(self.tables[t].at(x, True) for x in rows), numbers[1] * max(values)]
                own[at] = numbers[0], numbers[1]
                variables[node] |= loses
                for c in leads[at]:
                    need(c > node, "a node is not below the one that leads to it")
                    left_in.setdefault(c, []).append(left)
        # Up: values, and that nothing counts twice.
        value: dict[int, tuple[Decimal, Decimal]] = {}
        has: list[set[int]] = [set() for _ in range(n_nodes)]
        for node in reversed(range(n_nodes)):
            found, tables = [], []
            for at in of[node]:
                here = own[at]
                found.append((ZERO, ZERO))
                if here is None:
                    continue
                parts = [variables[c] for c in leads[at]]
                need(len(set().union(*parts)) == sum(map(len, parts)), "a lane has a variable twice")
                sets = [{t} for t in settled[at]] + [has[c] for c in leads[at]]
                need(len(set().union(*sets)) == sum(map(len, sets)), "a lane settles a table twice")
                if not all(value[c][1] for c in leads[at]):
                    continue
                products = [math.prod((value[c][k] for c in leads[at]), start=here[k]) for k in range(2)]
                found.append((products[0], products[1]))
                tables.append(set().union(*sets))
                variables[node] |= set().union(*parts)
            need(all(x == tables[0] for x in tables), "lanes settle different tables")
            has[node] = tables[0] if tables else set()
            tau = self.asked.weights[variable[node]] if node else 0.0
            value[node] = (power_sum([x for x, _ in found], tau), power_sum([x for _, x in found], tau))
            mine = [{p for p in left if p[0] in variables[node]} for left in left_in.get(node, [])]
            need(all(x == mine[0] for x in mine), "a node is led to with other states of its variables")
        need(not value[0][1] or has[0] == set(range(len(self.tables))), "a table is not settled")
        # To set a variable of a larger weight outside one of a smaller weight may gain something.
        return low * value[0][0] if len(self.weights) <= 1 else ZERO, high * value[0][1]

    def need_impossible(
        self, place: tuple[int, int, int], k: int, there: set[tuple[int, int]], when: dict[tuple[int, int], int]
    ) -> None:
        """Each tuple of the table that is not 0 and has the state has one that is not there, or went before."""
        t, u, s = place
        for x in over(self.tables[t].scope, self.box):
            if x[u] == s and self.tables[t].at(x):
                before = (p not in there or (p in when and when[p] < k) for p in x.items())
                need(any(before), "a state goes that is not shown to be impossible")

    def branching(self) -> tuple[Decimal, Decimal]:
        _, high = self.remainder()
        need(self.weights <= {0.0}, "only a maximum is bounded by branching")
        self.read_places()
        places, moves = self.wholes("move_places", len(self.places)), self.reals("moves")
        if any(abs(x) > 1e15 for x in moves):
            raise Beyond
        need(len(places) == len(moves), "moves")
        groups = self.pieces("move_starts", list(zip(places, moves, strict=True)))
        logs = [{p: f.ln() for p, f in t.values.items() if f} for t in self.tables]
        rows = iter(self.rows("parts", 1 << 53, 3, -1))

        def largest(t: int, alive: Box, moved: dict[tuple[int, int, int], Decimal]) -> Decimal | None:
            pairs = [(list(zip(self.tables[t].scope, p, strict=True)), f) for p, f in logs[t].items()]
            left = [(x, f) for x, f in pairs if all(s in alive[v] for v, s in x)]
            return max((f - sum((moved.get((t, *p), ZERO) for p in x), ZERO) for x, f in left), default=None)

        def highest(
            alive: Box, moved: dict[tuple[int, int, int], Decimal], maxima: list[Decimal | None]
        ) -> Decimal | None:
            """The largest bound of all parts of a part that are not divided; None where nothing is possible."""
            row: Any = next(rows, None)
            need(row is not None, "the rows end before every part is bounded")
            v, s, m = row
            need(m < len(groups), "a row names a move that does not exist")
            for p, number in groups[m] if m >= 0 else []:
                moved = {**moved, self.places[p]: Decimal(number)}
            for t in {self.places[p][0] for p, _ in groups[m]} if m >= 0 else set():
                # Others keep what they had: with fewer states that is still a bound.
                maxima = [largest(t, alive, moved) if u == t else x for u, x in enumerate(maxima)]
            if v >= 0:
                need(v in self.left and s in self.box[v], "a state is not left")
                halves = [t for t in alive[v] if t == s], [t for t in alive[v] if t != s]
                found = [highest([*alive[:v], half, *alive[v + 1 :]], moved, maxima) for half in halves]
                return max((x for x in found if x is not None), default=None)
            own = {p: sum((x for (_, *q), x in moved.items() if tuple(q) == p), ZERO) for p in self.all_states()}
            best = [max((own[u, t] for t in alive[u]), default=None) for u in self.left]
            numbers = [x for x in [*maxima, *best] if x is not None]
            return sum(numbers, ZERO) if len(numbers) == len(maxima) + len(best) else None

        every = [list(d) for d in self.box]
        found = highest(every, {}, [largest(t, every, {}) for t in range(len(self.tables))])
        need(next(rows, None) is None, "rows go on after the last part")
        return ZERO, ZERO if found is None else high * found.exp()

    def all_states(self) -> list[tuple[int, int]]:
        return [(v, s) for v in self.left for s in self.box[v]]


class Reading:
    """One certificate."""

    def __init__(self, cards: Sequence[int], factors: Sequence[tuple[States, Any]], data: bytes) -> None:
        self.arrays = a = Arrays(data)
        n = len(cards)
        tables = [
            Table(tuple(scope), {s: Decimal(float(logs[s])).exp() for s in np.ndindex(logs.shape)})
            for scope, logs in factors
        ]
        weights = a.reals("weights")
        evidence: dict[int, int] = {}
        for v, s in a.rows("evidence", 1 << 53) if "evidence" in a else []:
            need(evidence.setdefault(v, s) == s, "evidence")
        if "likelihood_variables" in a:
            left, likely = a.reals("likelihood_values"), {}
            for v in a.wholes("likelihood_variables", n):
                need(v not in likely and len(left) >= cards[v], "likelihoods")
                likely[v], left = left[: cards[v]], left[cards[v] :]
            need(not left and all(x >= 0.0 for row in likely.values() for x in row), "likelihoods")
            tables += [Table((v,), {(s,): Decimal(x) for s, x in enumerate(row)}) for v, row in sorted(likely.items())]
        order = a.wholes("order", n) if "order" in a else None
        need(len(weights) == n and all(0.0 <= w <= 1e6 for w in weights), "weights")
        need(all(v < n and s < cards[v] for v, s in evidence.items()), "evidence")
        need(order is None or sorted(order) == list(range(n)), "order")
        self.asked = Asked(list(cards), tables, weights, evidence, order)
        self.root: Box = [[evidence[v]] if v in evidence else list(range(c)) for v, c in enumerate(cards)]
        self.found: list[Found] = []

    def run(self) -> tuple[Decimal, Decimal | None, bool, list[tuple[Decimal, Decimal | None]]]:
        """The bounds of the question, whether the lower one may be better than the checker's, and of the k best."""
        a = self.arrays
        head = a.head
        need(isinstance(head["steps"], list) and all(isinstance(s, dict) for s in head["steps"]), "steps")
        for number, step in enumerate(head["steps"]):
            kinds = ("tree", "cover", "mean-field", "conditioning", "branching")
            need(isinstance(step.get("kind"), str) and step["kind"] in kinds, "kind")
            self.found.append(Step(a, self.asked, self.root, self.found, number, step).prove())
        assignment = {}
        if (pairs := head.get("assignment")) is not None:
            need(isinstance(pairs, list) and all(isinstance(p, list) and len(p) == 2 for p in pairs), "assignment")
            need(all(type(x) is int for p in pairs for x in p) and len(dict(pairs)) == len(pairs), "assignment")
            assignment = dict(pairs)
            need(set(assignment) == {v for v, w in enumerate(self.asked.weights) if w == 0.0}, "assignment")
            need(all(0 <= s < self.asked.cards[v] for v, s in assignment.items()), "assignment")
        uppers = [f.upper for f in self.found if f.box == self.root and f.upper is not None]
        upper = min(uppers, default=None)
        return self.below(assignment), upper, any(f.lossy for f in self.found), self.best()

    def below(self, assignment: dict[int, int]) -> Decimal:
        fitting = (f for f in self.found if all(set(f.box[v]) <= {s} for v, s in assignment.items()))
        return max((f.lower for f in fitting), default=ZERO)

    def best(self) -> list[tuple[Decimal, Decimal | None]]:
        told, a, n = self.arrays.head.get("best"), self.arrays, len(self.root)
        if told is None:
            return []
        need(isinstance(told, dict) and type(told.get("distinct")) is int and told["distinct"] >= 1, "distinct")
        distinct = told["distinct"]
        variables = a.wholes("best_variables", n)
        free = {v for v, w in enumerate(self.asked.weights) if w == 0.0} - set(self.asked.evidence)
        need(len(set(variables)) == len(variables) and set(variables) == free, "best_variables")
        listed = a.rows("best_states", 1 << 53, len(variables))
        need(all(s < len(self.root[v]) for row in listed for v, s in zip(variables, row, strict=True)), "best_states")
        apart = (sum(x != y for x, y in zip(p, q, strict=True)) for p, q in itertools.combinations(listed, 2))
        need(all(number >= distinct for number in apart), "distinct")
        need(isinstance(told.get("claims"), list) and len(told["claims"]) == len(listed) + 1, "claims")
        named = [dict(zip(variables, row, strict=True)) for row in listed]
        rows = a.rows("best_parts", 1 << 53, 3, -1)
        uppers, _, _ = Cover(rows, self.asked, self.found, named, distinct).bounds(self.root)
        observed = {v: s for v, s in self.asked.evidence.items() if self.asked.weights[v] == 0.0}
        lowers = [self.below({**observed, **dict(zip(variables, row, strict=True))}) for row in listed]
        return list(zip([*lowers, ZERO], uppers, strict=True))


def read_slowly(
    cards: Sequence[int], factors: Sequence[tuple[States, Any]], data: bytes
) -> tuple[Decimal, Decimal | None, bool, list[tuple[Decimal, Decimal | None]]]:
    """What a certificate proves: lower and upper bound, whether the lower is better than the checker's, the k best.

    Values are numbers, not logs; ``None`` is infinity. Factors are scopes and tables of exact logs.
    """
    with localcontext(Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Overflow, Underflow, InvalidOperation])):
        try:
            return Reading(cards, factors, data).run()
        except (Overflow, Underflow, InvalidOperation):
            raise Beyond from None
        except (KeyError, ValueError, zipfile.BadZipFile) as error:
            raise Refused(str(error)) from None
