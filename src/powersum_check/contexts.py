"""Contexts: AND/OR search and partial sums, as elimination of only those contexts that matter.

Given its *context*, the variables that its message would have in exact elimination, what is below a variable in the
bucket tree depends on nothing else. So the value below variable v given context c is

    V(v, c) = power sum over the states s of v:  factors of v at (s, c)  +  Σ over children b of V(b, (s, c) on b)

and a certificate lists the contexts (v, c) to be computed in this way. All others are taken from the mini-bucket tree:
the sum of the messages that leave the subtree of b is an upper bound on V(b, ·), and where the tree splits none of the
subtree's variables, its value. Below a context that is marked *settled* everything is computed, listed or not.

Values are kept relative to the tree: V(b, c) less the constants of the nodes in the subtree of b. So all numbers are
small, and so are their errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from powersum_check.archive import Archive
from powersum_check.box import Domains
from powersum_check.errors import BadFile, Rejected
from powersum_check.model import IntArray, Question
from powersum_check.numbers import FloatArray, Table, U, add, power_sum
from powersum_check.tree import Pass, Tree, is_exact

Columns = NDArray[np.int32]

LARGEST_WORD = 2**62
"""Keys of contexts have words below this."""


@dataclass(slots=True)
class Bucket:
    """What hangs on one variable."""

    context: tuple[int, ...] = ()
    children: list[int] = field(default_factory=list)
    factors: list[tuple[tuple[int, ...], Table]] = field(default_factory=list)
    leaving: list[tuple[tuple[int, ...], Table]] = field(default_factory=list)
    """Messages with variables that leave the subtree."""
    up: float = 0.0
    down: float = 0.0
    """Errors of the sum of all messages that leave the subtree."""
    exact: bool = True
    """Whether that sum is the value."""
    constant: float = 0.0
    """Of the variable's own nodes."""
    columns: Columns = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    """Contexts to compute, one a column, as places of states in the box; rows are the variables of the context."""
    keys: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    words: list[IntArray] = field(default_factory=list)
    """Their keys, rising, and what the keys are made of."""
    settled: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    high: Table | None = None
    low: Table | None = None


def evaluate(
    archive: Archive, prefix: str, tree: Tree, found: Pass, question: Question, domains: Domains, memory: int
) -> tuple[list[float], list[float], float, float]:
    """Constants of the lower and of the upper bound, and the errors of both: down, up."""
    buckets, up, down = _buckets(tree, found, question, domains)
    _read(archive, prefix, buckets, domains)
    held = sum(bucket.columns.size for bucket in buckets.values())
    for v in reversed(tree.order):
        if v in buckets and buckets[v].settled.any():
            _settle(v, buckets, domains, memory)
            held += sum(buckets[b].columns.size for b in buckets[v].children)
            _afford(held, memory)
    high, low = [], []
    for v in tree.order:
        if v not in buckets:
            continue
        bucket = buckets[v]
        if len(bucket.keys):
            _compute(v, buckets, question, domains, memory)
        if not bucket.context:
            table = bucket.high or Table(np.zeros(1), bucket.up)
            high.append(float(table.values[0]))
            up += table.up
            table = bucket.low or Table(np.zeros(1) if bucket.exact else np.full(1, -math.inf), 0.0, bucket.down)
            low.append(float(table.values[0]))
            down += table.down
    return [*found.constants, *low], [*found.constants, *high], found.fixed_down + down, found.fixed_up + up


def _buckets(tree: Tree, found: Pass, question: Question, domains: Domains) -> tuple[dict[int, Bucket], float, float]:
    """The bucket tree of exact elimination, with what leaves each subtree of the mini-bucket tree; errors of the rest.

    A variable whose only node drops its message is summed out for itself (a barren leaf): it and its node's factors are
    not part of the bucket tree. What it loses is in the error of its node. No other table may have it.
    """
    up = down = 0.0
    barren: set[int] = set()
    for v, nodes in tree.nodes_of.items():
        if len(nodes) == 1 and tree.parent[nodes[0]] < 0 and len(tree.scopes[nodes[0]]) > 1:
            barren.add(nodes[0])
            up += found.messages[nodes[0]].up
            down += found.messages[nodes[0]].down if is_exact(tree, question, domains, v) else math.inf
    active = {v for v, nodes in tree.nodes_of.items() if nodes and nodes[0] not in barren}
    buckets = {v: Bucket() for v in tree.order if v in active}
    context: dict[int, set[int]] = {v: set() for v in buckets}
    for k, (scope, table) in enumerate(found.factors):
        if tree.home[k] < 0 or tree.home[k] in barren:
            continue
        first = tree.scopes[tree.home[k]][0]
        if not set(scope) <= active:
            raise Rejected(f"factor {k} has a barren variable, but is not given to its node")
        buckets[first].factors.append((scope, table))
        context[first].update(v for v in scope if v != first)
    for v, bucket in buckets.items():
        bucket.context = tuple(sorted(context[v], key=lambda u: tree.position[u]))
        if bucket.context:
            above = bucket.context[0]
            buckets[above].children.append(v)
            context[above].update(bucket.context[1:])
        bucket.exact = is_exact(tree, question, domains, v) and all(buckets[b].exact for b in bucket.children)
        bucket.constant = math.fsum(found.node_constants[node] for node in tree.nodes_of[v])
    for a, b, _, _ in tree.edges:
        if tree.scopes[a][0] != tree.scopes[b][0]:
            raise Rejected(f"a shift joins nodes {a} and {b} of different variables, which contexts do not allow")
    for node, scope in enumerate(tree.scopes):
        if node in barren:
            continue
        message = found.messages[node]
        target = tree.scopes[tree.parent[node]] if tree.parent[node] >= 0 else ()
        if not set(scope[1:]) <= context[scope[0]] or not set(scope[1:]) <= set(target):
            raise Rejected(f"node {node} has variables beyond the context of its own, or drops some")
        if scope[1:] and target[0] != scope[1]:
            raise Rejected(f"node {node} sends its message past the bucket of its next variable, which contexts forbid")
        # The message leaves every subtree from that of its own variable up to its parent's, or to the root.
        v, end = scope[0], scope[1] if scope[1:] else None
        while True:
            bucket = buckets[v]
            bucket.up += message.up
            bucket.down += message.down
            if scope[1:]:
                bucket.leaving.append((scope[1:], message))
            if not bucket.context or bucket.context[0] == end:
                break
            v = bucket.context[0]
    return buckets, up, down


def _read(archive: Archive, prefix: str, buckets: dict[int, Bucket], domains: Domains) -> None:
    """The contexts of the certificate: for some variables, rows of states in the order of elimination."""
    variables = archive.integers(prefix + "context_variables", high=len(domains)).tolist()
    counts = archive.integers(prefix + "context_counts").tolist()
    states = archive.integers(prefix + "context_states")
    settled = archive.integers(prefix + "context_settled", high=2).astype(np.bool_)
    if len(counts) != len(variables) or len(set(variables)) < len(variables) or sum(counts) != len(settled):
        raise BadFile(f"{prefix}context_variables, context_counts and context_settled do not fit together")
    at = first = 0
    for v, count in zip(variables, counts, strict=True):
        if v not in buckets:
            raise Rejected(f"contexts of variable {v}, which is not part of the search")
        context = buckets[v].context
        size = count * len(context)
        if at + size > len(states):
            raise BadFile(f"{prefix}context_states ends too early")
        rows = states[at : at + size].reshape(count, len(context)).T
        places = np.empty(rows.shape, np.int32)
        for k, u in enumerate(context):
            places[k] = np.minimum(np.searchsorted(domains[u], rows[k]), len(domains[u]) - 1)
            if (domains[u][places[k]] != rows[k]).any():
                raise Rejected(f"a context of variable {v} has a state of variable {u} that is not in the box")
        _merge(buckets[v], places, settled[first : first + count], domains)
        at += size
        first += count
    if at != len(states):
        raise BadFile(f"{prefix}context_states has {len(states) - at} numbers too many")


def _plan(context: tuple[int, ...], domains: Domains) -> list[tuple[int, int]]:
    """For each variable of a context the word of the key that it is part of, and its factor there: mixed radix."""
    plan, word, radix = [], 0, 1
    for v in context:
        if radix > LARGEST_WORD // len(domains[v]):
            word, radix = word + 1, 1
        plan.append((word, radix))
        radix *= len(domains[v])
    return plan


def _keys(words: list[IntArray]) -> IntArray:
    """One number for each context. If there are several words, different ones may get the same number by bad luck.

    Whoever looks up compares the words themselves. Contexts that are lost by bad luck are taken from the tree.
    """
    if len(words) == 1:
        return words[0]
    mixed = np.zeros(len(words[0]), np.uint64)
    for word in words:
        mixed = (mixed ^ word.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


def _merge(bucket: Bucket, columns: Columns, settled: NDArray[np.bool_], domains: Domains) -> None:
    """Add contexts to a bucket, each once."""
    columns = np.concatenate([bucket.columns.reshape(len(bucket.context), len(bucket.keys)), columns], axis=1)
    settled = np.concatenate([bucket.settled, settled])
    plan = _plan(bucket.context, domains)
    words = [np.zeros(columns.shape[1], np.int64) for _ in range(plan[-1][0] + 1 if plan else 1)]
    for column, (word, factor) in zip(columns, plan, strict=True):
        words[word] += column.astype(np.int64) * factor
    bucket.keys, first, inverse = np.unique(_keys(words), return_index=True, return_inverse=True)
    bucket.words = [word[first] for word in words]
    bucket.columns = columns[:, first]
    bucket.settled = np.zeros(len(first), np.bool_)
    bucket.settled[inverse[settled]] = True


def _below(v: int, child: Bucket, bucket: Bucket, chosen: NDArray[np.bool_] | None, domains: Domains) -> list[IntArray]:
    """The words of the contexts of a child for each state of v (slowest) and each of the bucket's (chosen) contexts."""
    m = len(domains[v])
    columns = bucket.columns if chosen is None else bucket.columns[:, chosen]
    place = {u: k for k, u in enumerate(bucket.context)}
    plan = _plan(child.context, domains)
    words: list[IntArray] = [np.zeros((m, columns.shape[1]), np.int64) for _ in range(plan[-1][0] + 1)]
    for u, (word, factor) in zip(child.context, plan, strict=True):
        if u == v:
            words[word] += factor * np.arange(m)[:, None]
        else:
            words[word] += columns[place[u]].astype(np.int64) * factor
    return [word.ravel() for word in words]


def _gathered(
    v: int, bucket: Bucket, columns: Columns, tables: list[tuple[tuple[int, ...], Table]], domains: Domains
) -> list[Table]:
    """Tables looked up at all states of v and the given contexts: one row a state, one column a context."""
    place = {u: k for k, u in enumerate(bucket.context)}
    result = []
    for scope, table in tables:
        flat: IntArray = np.zeros(columns.shape[1], np.int64)
        for u in scope:
            if u != v:
                flat = flat * len(domains[u]) + columns[place[u]]
        values = table.values.reshape(len(domains[v]) if v in scope else 1, -1)
        result.append(Table(values[:, flat], table.up, table.down))
    return result


def _afford(entries: int, memory: int) -> None:
    if 8 * entries > memory:
        raise BadFile(f"contexts take {8 * entries} bytes, and --memory allows {memory}")


def _settle(v: int, buckets: dict[int, Bucket], domains: Domains, memory: int) -> None:
    """Put all below the settled contexts of v that is possible among the settled contexts of its children."""
    bucket = buckets[v]
    chosen = bucket.settled
    columns = bucket.columns[:, chosen]
    m, count = len(domains[v]), columns.shape[1]
    children = [buckets[b] for b in bucket.children if not buckets[b].exact]
    widest = max((6 + len(c.context) for c in children), default=0)
    tables = bucket.factors + [t for b in bucket.children for t in buckets[b].leaving]
    _afford(m * count * (2 + len(tables) + widest), memory)
    possible = np.ones((m, count), np.bool_)
    for table in _gathered(v, bucket, columns, tables, domains):
        possible &= table.values > -math.inf
    alive = np.flatnonzero(possible)
    place = {u: k for k, u in enumerate(bucket.context)}
    for child in children:
        _, first = np.unique(_keys(_below(v, child, bucket, chosen, domains))[alive], return_index=True)
        state, number = np.divmod(alive[first], max(count, 1))
        below = [state if u == v else columns[place[u], number] for u in child.context]
        _merge(child, np.array(below, np.int32), np.ones(len(first), np.bool_), domains)


def _compute(v: int, buckets: dict[int, Bucket], question: Question, domains: Domains, memory: int) -> None:
    """The values of all listed contexts of v."""
    bucket = buckets[v]
    columns, count, m = bucket.columns, len(bucket.keys), len(domains[v])
    widest = max((8 + len(buckets[b].leaving) for b in bucket.children), default=0)
    _afford(m * count * (8 + len(bucket.factors) + len(bucket.leaving) + 2 * len(bucket.children) + widest), memory)
    factors = _gathered(v, bucket, columns, bucket.factors, domains)
    high, low = list(factors), list(factors)
    shape = (m, count)
    for b in bucket.children:
        child = buckets[b]
        from_tree = add(shape, _gathered(v, bucket, columns, child.leaving, domains))
        # The errors of the messages count once for each child, as they do for the messages of its whole subtree.
        rounding = from_tree.up - sum(t.up for _, t in child.leaving)
        values, up, down = from_tree.values.ravel(), child.up + rounding, child.down + rounding
        lower = values.copy() if child.exact else np.full(len(values), -math.inf)
        values = values.copy()
        if child.high is not None and child.low is not None:
            place = _places(child, _below(v, child, bucket, None, domains))
            known = place >= 0
            values[known] = child.high.values[place[known]]
            lower[known] = child.low.values[place[known]]
            up, down = max(up, child.high.up), max(down, child.low.down)
        high.append(Table(values.reshape(shape), up, up))
        low.append(Table(lower.reshape(shape), down, down))
    taken_off = Table(np.array([-bucket.constant]), U * abs(bucket.constant), U * abs(bucket.constant))
    weight = question.weights[v]
    of_sums = [add((count,), [power_sum(add(shape, tables), weight), taken_off]) for tables in (high, low)]
    leaving = _gathered(v, bucket, columns, bucket.leaving, domains)
    of_tree = add((1, count), leaving)
    rounding = of_tree.up - sum(t.up for t in leaving)
    better: FloatArray = np.minimum(of_sums[0].values, of_tree.values[0])
    bucket.high = Table(better, max(of_sums[0].up, bucket.up + rounding))
    bucket.low = of_sums[1]


def _places(child: Bucket, words: list[IntArray]) -> IntArray:
    """Where contexts are among those of a child; -1 where they are not."""
    place = np.minimum(np.searchsorted(child.keys, _keys(words)), len(child.keys) - 1)
    same = np.ones(len(place), np.bool_)
    for known, word in zip(child.words, words, strict=True):
        same &= known[place] == word
    return np.where(same, place, -1)
