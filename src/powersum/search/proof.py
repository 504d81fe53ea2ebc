"""What AND/OR search has found, as contexts of a certificate (docs/certificates.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powersum.core import work_time as time
from powersum.core.arrays import IntArray, starts_of
from powersum.core.speed import SEARCH_STEP
from powersum.prepare.problem import Problem
from powersum.proof.format import Array, small
from powersum.search.and_or import AndOr
from powersum.search.trail import ARRIVED, FULL, LATE, UNSEEN, follow, new_trail
from powersum.search.values import new_values, roomy

ROOM = 1 << 18
"""Contexts, and states of contexts, that are listed between two looks at the outside."""

REMEMBERED, FOUND_AGAIN = 0.3, 0.3
"""Shares of the memory for remembering what is listed, and for what is searched for again; the rest is for lists."""

SHARES = (0.5, 0.75, 0.9, 1.0)
"""Shares of what the search has proven that are listed one after another."""

STEPS = 20000
"""Nodes that are visited between two looks at the clock."""


class SearchProof:
    """One walk through what a search knows, from the root, that lists the contexts its bound rests on.

    Parameters
    ----------
    search, problem
        A search that has been left, and its problem.
    memory
        Bytes for what is listed, for remembering what is, and for what the search has to find out again, if it has not
        more itself; where that is not enough, less is proven.

    Attributes
    ----------
    log_upper
        The bound that they prove, without the problem's constant.
    """

    def __init__(self, search: AndOr, problem: Problem, *, memory: float) -> None:
        self._search, self._problem = search, problem
        self._memory, self._listed = memory, 0
        # What is found out once more must stay.
        search.memory = max(search.memory, FOUND_AGAIN * memory)
        self._need = search.log_root - search.log_upper
        self.log_upper = search.log_root
        self._missing = 0.0
        contexts = search.shape.contexts
        self._contexts = [*contexts, np.zeros(0, dtype=np.int64)]
        self._trail = new_trail(
            search.shape.tree,
            starts_of([len(context) for context in self._contexts]),
            np.concatenate([*self._contexts]).astype(np.int64),
            ROOM,
        )
        self._pieces: list[tuple[IntArray, NDArray[np.bool_], NDArray[np.int32]]] = []
        self._proven = new_values(min(2.0**20, REMEMBERED * memory))
        # Nothing is to be done yet: it is compiled before any time counts.
        self._follow()

    def run(self, deadline: float = np.inf) -> bool:
        """List contexts for a larger and larger part of the bound; False if time or memory end before any is proven.

        What is listed for less serves for more: little is done twice, and a proof that is cut short proves something.
        """
        self._search.walk_down()
        listed: list[int] = []
        for share in SHARES:
            if not self._list_for(share * self._need, deadline):
                break
            listed.append(len(self._pieces))
            self.log_upper = min(self.log_upper, self._search.log_root - share * self._need + self._missing)
        # What was listed for more than could be shown proves nothing beyond.
        del self._pieces[max(listed, default=0) :]
        return bool(listed)

    def _list_for(self, need: float, deadline: float) -> bool:
        """List what the root needs to cost so much; False if time or memory end before."""
        search, trail = self._search, self._trail
        tried = -1
        trail.nodes[0], trail.needs[0], trail.states[0] = search.shape.root, need, UNSEEN
        trail.counts[0] = int(need > 0.0)
        while True:
            met = self._follow()
            # Where it is full a context may be listed twice, which proves nothing else.
            self._proven = roomy(self._proven, REMEMBERED * self._memory)
            if met == ARRIVED:
                self._flush()
                return self._fits
            if met == FULL:
                self._flush()
            elif met != LATE:
                top, visit = int(trail.counts[0]) - 1, int(trail.counts[3])
                if tried != visit - 1:
                    # What was known had to make room: it is searched for once more.
                    search.work_below(met, float(trail.needs[top]), deadline)
                    tried = visit
                else:
                    # Less is left by rounding, or because there is no room: the bound is what can be shown.
                    self._missing += float(trail.needs[top] - trail.left[top])
                    trail.needs[top] = trail.left[top]
            if time.monotonic() >= deadline or not self._fits:
                return False

    @property
    def _fits(self) -> bool:
        """Whether what is listed leaves room for the rest."""
        return self._listed <= (1.0 - REMEMBERED - FOUND_AGAIN) * self._memory

    def _follow(self) -> int:
        search, counts = self._search, self._trail.counts
        before = int(counts[3])
        met = follow(search.losses, search.shape.tree, search.values, search.walk, self._proven, self._trail, STEPS)
        time.spend(SEARCH_STEP * (int(counts[3]) - before))
        return int(met)

    def arrays(self) -> dict[str, Array]:
        """The arrays of the step."""
        if not self._pieces:
            return {}
        nodes = np.concatenate([piece[0] for piece in self._pieces])
        settled = np.concatenate([piece[1] for piece in self._pieces])
        rows = np.concatenate([piece[2] for piece in self._pieces])
        lengths = np.array([len(context) for context in self._contexts], dtype=np.int64)
        starts = starts_of(lengths[nodes])
        listed = np.unique(nodes)
        variables, counts, states, flags = [], [], [], []
        for node in listed.tolist():
            at = np.flatnonzero(nodes == node)
            variables.append(self._variable(node))
            counts.append(len(at))
            flags.append(settled[at])
            columns = rows[starts[at][:, None] + np.arange(lengths[node])]
            states.append(self._original(columns, node).ravel())
        return {
            "context_variables": small(np.array(variables, dtype=np.int64)),
            "context_counts": small(np.array(counts, dtype=np.int64)),
            "context_states": small(np.concatenate(states)),
            "context_settled": np.concatenate(flags).astype("u1"),
        }

    def _flush(self) -> None:
        """Put what is listed aside."""
        trail = self._trail
        listed, used = int(trail.counts[1]), int(trail.counts[2])
        if listed:
            self._pieces.append((trail.listed[:listed].copy(), trail.settled[:listed].copy(), trail.rows[:used].copy()))
            # Once listed, once by variables, and once in the smallest type that holds them.
            self._listed += 3 * sum(array.nbytes for array in self._pieces[-1])
        trail.counts[1:3] = 0

    def _variable(self, node: int) -> int:
        """The original number of the variable whose bucket a node is."""
        shape = self._search.shape
        return int(self._problem.variables[shape.order[shape.positions[node]]])

    def _original(self, columns: NDArray[np.int32], node: int) -> IntArray:
        """Contexts of a node by the original numbers of states."""
        problem = self._problem
        variables = self._search.losses.variables[self._contexts[node]]
        return np.asarray(problem.kept_states[problem.kept_state_starts[variables] + columns])
