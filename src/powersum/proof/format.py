"""What certificates say of preparation, in terms of the original model: the ground that every proof stands on.

``docs/certificates.md`` is the format. A *forest* is a piece of a tree of mini-buckets over some of the variables; the
ground adds what simplification took out:

================================  ==================================================================================
evidence                          ``evidence``; observed variables are in no scope
states without support            ``removed``; ``groups``, where a state fell only after factors were absorbed
variables of one state            nothing: they are not free and leave all scopes
absorbed factors, constants       ``home`` is that of the host; -1
axes that a table ignores         the node lacks the variable; ``groups``, where only a product ignores it
barren variables                  first in the order, one node each with weight τ, parent -1
isolated variables                in the order, without a node
infeasible                        a step with all states of a variable in ``removed``
================================  ==================================================================================

In gdd a region (a, b, c) is a chain of nodes (a, b, c) → (b, c) → (c), a separator one without factors, a shift an edge
between the first nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.core.arrays import FloatArray, IntArray, starts_of
from powersum.model.model import Model
from powersum.prepare.problem import Problem

Array = NDArray[Any]

LEAST_WEIGHT = 1e-300
"""The format has no smaller weights, but 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of a certificate: its kind and its arrays."""

    kind: str
    arrays: Mapping[str, Array]


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Mini-buckets over some variables, by their original numbers; messages go to larger numbers.

    Edges join two mini-buckets that exchange a shift: added at the first, taken away at the second.
    """

    order: IntArray
    """The variables, first eliminated first."""
    node_starts: IntArray
    node_variables: IntArray
    parent: IntArray
    weight: FloatArray
    home: IntArray
    """Mini-bucket of each factor of the original model, -1 for all that have none here."""
    edges: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    edge_starts: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    edge_variables: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    shifts: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def n_nodes(self) -> int:
        """Number of mini-buckets."""
        return len(self.parent)


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """A question as certificates see it.

    Parameters
    ----------
    model
        The original model with likelihoods beside its factors.
    weights
        Weight of each variable.
    evidence
        Observed states.
    order
        The order of elimination where it is part of the question (weights other than 0 and 1), else None.
    problem
        What simplification made of it.
    """

    model: Model
    weights: FloatArray
    evidence: Mapping[int, int]
    order: IntArray | None
    problem: Problem

    def tree(
        self,
        forests: Sequence[Forest],
        more: Mapping[str, Array] | None = None,
        *,
        box: bool = False,
        kind: str = "tree",
    ) -> Step:
        """A tree over all variables from forests that hold those of the reduced problem.

        A step of another ``kind`` has a tree too, and ``more`` arrays.
        With ``box`` the possible states are a restriction, which needs no reason where only a lower bound is wanted.
        """
        order = self._order([forest.order for forest in forests])
        forest = joined([self._barren(order), *forests])
        # Groups tell, too, which factors together do not depend on a variable that their table has lost.
        arrays: dict[str, Array] = (self.box() if box else self.removed()) | self._groups()
        arrays |= {
            "order": small(order),
            "node_starts": small(forest.node_starts),
            "node_variables": small(forest.node_variables),
            "parent": small(forest.parent),
            "weight": forest.weight,
            "home": small(forest.home),
        }
        if len(forest.edges):
            arrays |= {
                "edges": small(forest.edges),
                "edge_starts": small(forest.edge_starts),
                "edge_variables": small(forest.edge_variables),
                "shifts": forest.shifts,
            }
        return Step(kind, arrays | dict(more or {}))

    def given(self, step: Step, states: IntArray, more: Mapping[str, Array]) -> Step:
        """A tree where max variables have one state, -1 where they have none: a box, and shifts for no other states."""
        held = (self.weights == 0.0) & (states >= 0)
        chosen = np.flatnonzero(held)
        arrays = {**step.arrays, "box": small(np.stack([chosen, states[chosen]], axis=1)), **more}
        if "shifts" in step.arrays:
            possible, starts = self.problem.possible, starts_of(self.model.cardinalities)
            counts = _counts(self.model, possible)
            place = [int(possible[a : a + max(s, 0)].sum()) for a, s in zip(starts[:-1], states, strict=True)]
            pieces, at = [], 0
            for scope in np.split(step.arrays["edge_variables"], step.arrays["edge_starts"][1:-1]):
                size = math.prod(counts[scope].tolist())
                table = step.arrays["shifts"][at : at + size].reshape(counts[scope])
                left = (slice(place[v], place[v] + 1) if held[v] else slice(None) for v in scope.tolist())
                pieces.append(table[tuple(left)].ravel())
                at += size
            arrays["shifts"] = np.concatenate(pieces)
        return replace(step, arrays=arrays)

    def contradiction(self) -> Step:
        """That propagation leaves nothing."""
        if not self.model.n_variables:
            # A constant of zero: there is nothing to propagate.
            return self.tree([])
        first = np.zeros(int(self.model.cardinalities.sum()), dtype=np.bool_)
        first[: self.model.cardinalities[0]] = True
        arrays = {"removed": _pairs(self.model, first)}
        return Step("tree", arrays | self._groups())

    def removed(self) -> dict[str, Array]:
        """The states that were found impossible."""
        gone = ~self.problem.possible
        starts = starts_of(self.model.cardinalities)
        for variable in self.evidence:
            gone[starts[variable] : starts[variable + 1]] = False
        if not gone.any():
            return {}
        return {"removed": _pairs(self.model, gone)}

    def box(self) -> dict[str, Array]:
        """The possible states of all variables that have not all of them."""
        possible = self.problem.possible.copy()
        counts = _counts(self.model, possible)
        possible &= np.repeat(counts < self.model.cardinalities, self.model.cardinalities)
        return {"box": _pairs(self.model, possible)}

    def _groups(self) -> dict[str, Array]:
        """Which factors were looked at together, if any."""
        groups = self.problem.fates.groups
        return {"groups": small(groups)} if (groups != np.arange(len(groups))).any() else {}

    def _order(self, orders: Sequence[IntArray]) -> IntArray:
        """All variables with several states: barren ones first, then the orders given, then those in no factor.

        Where variables of other weights come between, they are put where the question wants them.
        """
        barren = np.array([scope[0] for scope in self.problem.fates.barren], dtype=np.int64)
        order = np.concatenate([barren, *orders])
        others = _counts(self.model, self.problem.possible) > 1
        others[order] = False
        order = np.concatenate([order, np.flatnonzero(others)])
        return order[np.argsort(ranks(self.weights, self.order)[order], kind="stable")]

    def _barren(self, order: IntArray) -> Forest:
        """A mini-bucket for each barren leaf; its message, the same for all states of its parents, goes nowhere."""
        position = np.full(self.model.n_variables, -1, dtype=np.int64)
        position[order] = np.arange(len(order))
        fates = self.problem.fates
        scopes = []
        for scope in fates.barren:
            places = np.sort(position[scope])
            scopes.append(order[places[places >= 0]])
        n = len(scopes)
        return Forest(
            order=np.array([scope[0] for scope in scopes], dtype=np.int64),
            node_starts=starts_of([len(scope) for scope in scopes]),
            node_variables=np.concatenate([np.zeros(0, dtype=np.int64), *scopes]),
            parent=np.full(n, -1, dtype=np.int64),
            weight=np.ones(n),
            home=fates.barren_of,
        )


class Proof(NamedTuple):
    """Steps of a certificate, and the upper bound that they prove, with the problem's constant.

    An ``exact`` proof is one of the value itself: from below as well, if not for any assignment.
    """

    steps: Sequence[Step]
    log_upper: float
    exact: bool = False


Prover = Callable[[Ground], Proof]
"""What comes to the board with an upper bound, and is called only if a certificate is wanted."""


def joined(forests: Sequence[Forest]) -> Forest:
    """Forests over different variables as one."""
    nodes = starts_of([forest.n_nodes for forest in forests])[:-1].tolist()

    def shifted(numbers: IntArray, first: int) -> IntArray:
        return np.where(numbers < 0, -1, numbers + first)

    def starts(parts: Sequence[IntArray]) -> IntArray:
        return starts_of(np.concatenate([np.diff(part) for part in parts]))

    homes = np.stack([shifted(forest.home, first) for forest, first in zip(forests, nodes, strict=True)])
    return Forest(
        order=np.concatenate([forest.order for forest in forests]),
        node_starts=starts([forest.node_starts for forest in forests]),
        node_variables=np.concatenate([forest.node_variables for forest in forests]),
        parent=np.concatenate([shifted(forest.parent, first) for forest, first in zip(forests, nodes, strict=True)]),
        weight=np.concatenate([forest.weight for forest in forests]),
        home=homes.max(axis=0),
        edges=np.concatenate([forest.edges + first for forest, first in zip(forests, nodes, strict=True)]),
        edge_starts=starts([forest.edge_starts for forest in forests]),
        edge_variables=np.concatenate([forest.edge_variables for forest in forests]),
        shifts=np.concatenate([forest.shifts for forest in forests]),
    )


def homes_of(problem: Problem, home: IntArray) -> IntArray:
    """The home of each original factor from those of the reduced problem's factors."""
    return np.asarray(np.append(home, -1)[problem.fates.table_of])


def ranks(weights: FloatArray, order: IntArray | None) -> IntArray:
    """The place of each variable in the elimination; neighbours in it of equal weight have the same."""
    if order is None:
        return np.unique(-weights, return_inverse=True)[1].astype(np.int64)
    rank = np.zeros(len(order), dtype=np.int64)
    rank[order[1:]] = np.cumsum(np.diff(weights[order]) != 0.0)
    return rank


def enough(weights: FloatArray, tau: float) -> None:
    """Raise weights by as little as makes them add up to ``tau`` at least, exactly; tiny ones become 0."""
    weights[weights < LEAST_WEIGHT] = 0.0
    largest = int(np.argmax(weights))
    while (missing := -math.fsum([*weights.tolist(), -tau])) > 0.0:
        weights[largest] = max(np.nextafter(weights[largest], np.inf), weights[largest] + missing)


def small(numbers: IntArray) -> Array:
    """Whole numbers in as few bytes as the format has for them."""
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    for kind in ("<i1", "<i2", "<i4"):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return numbers.astype(kind)
    return numbers.astype("<i8")


def _counts(model: Model, possible: NDArray[np.bool_]) -> IntArray:
    """Number of possible states of each variable."""
    owner = np.repeat(np.arange(model.n_variables), model.cardinalities)
    return np.bincount(owner[possible], minlength=model.n_variables)


def _pairs(model: Model, chosen: NDArray[np.bool_]) -> Array:
    """Rows (variable, state) of the states chosen, one flag for each state of each variable in turn."""
    at = np.flatnonzero(chosen)
    owner = np.repeat(np.arange(model.n_variables), model.cardinalities)[at]
    return small(np.stack([owner, at - starts_of(model.cardinalities)[owner]], axis=1))
