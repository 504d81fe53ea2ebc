"""Mini-buckets along an order, as all the elimination rivals use them: wiring, tables, one forward pass, decoding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from powersum.bounds.buckets.decoding import decode
from powersum.bounds.buckets.kernels import forward, send, workspace_size
from powersum.bounds.buckets.partition import SizeLimits, partition_by_ibound
from powersum.bounds.buckets.passes import Passes, total_of
from powersum.bounds.buckets.proof import bucket_forest
from powersum.bounds.buckets.scopes import scopes_in_order
from powersum.bounds.buckets.wiring import lay_out
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.core.lanes import roomy
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest

NOTHING_KEPT = np.empty(0)


class MiniBuckets:
    """The covering tree of one partition, with weights given from outside.

    Mini-buckets are not extended by variables of their siblings: that came after the methods compared here.

    Parameters
    ----------
    problem, order
        The simplified problem and any elimination order of its variables.
    ibound
        At most ``ibound + 1`` variables in a mini-bucket, unless a factor alone has more. With 1, the mini-buckets are
        no larger than the factors: the paper's ``ibound = 1``.
    """

    def __init__(self, problem: Problem, order: IntArray, ibound: int) -> None:
        if ibound < 0:
            raise InputError(f"ibound is {ibound}: it must be 0 or more")
        self._problem = problem
        self._order = np.ascontiguousarray(order, dtype=np.int64)
        model = problem.model
        scopes = scopes_in_order(model, self._order)
        self.parts = partition_by_ibound(scopes, SizeLimits(ibound + 1, np.inf, 0, np.inf))
        self.layout = lay_out(self.parts, scopes, model.cardinalities[self._order])
        self.passes = Passes(self.layout, model, self._order, problem.tau)
        self.pool: FloatArray = self.passes.pool
        self.tau: FloatArray = np.ascontiguousarray(problem.tau[self._order][self.layout.bucket])
        self.workspace = roomy(workspace_size(self.layout.wiring), np.float64)
        """Scratch memory of a forward pass."""
        self.starts: IntArray = np.flatnonzero(np.diff(self.layout.bucket, prepend=-1)).astype(np.int64)
        """First mini-bucket of each variable."""
        self._nodes = np.arange(self.layout.n_nodes)
        self._roots = self.layout.wiring.message[np.flatnonzero(self.layout.parent < 0)]
        alone = np.flatnonzero(np.diff(model.scope_starts) == 0)
        self._constant = float(model.log_values[model.table_starts[alone]].sum())

    def first_takes_all(self) -> FloatArray:
        """Weights of plain mini-bucket elimination: the first of each variable's mini-buckets sums, the others max."""
        weights = np.zeros_like(self.tau)
        weights[self.starts] = self.tau[self.starts]
        return weights

    def shared_evenly(self) -> FloatArray:
        """Every variable's weight divided evenly among its mini-buckets."""
        sizes = np.diff(self.starts, append=self.layout.n_nodes)
        return np.asarray(self.tau / np.repeat(sizes, sizes))

    def value(self, weights: FloatArray) -> float:
        """The bound at the present shifts, by one forward pass."""
        send(self.layout.wiring, self._nodes, weights, self.pool, self.workspace)
        return self.total()

    def run(self, nodes: IntArray, weights: FloatArray, tables: FloatArray, entropies: FloatArray) -> None:
        """Messages of some nodes; see :func:`powersum.bounds.buckets.kernels.forward`."""
        forward(self.layout.wiring, nodes, weights, self.pool, tables, entropies, NOTHING_KEPT, self.workspace)

    def total(self) -> float:
        """The bound that the present messages make, before rounding is counted."""
        return total_of(self.pool[self._roots], self._constant)

    def error(self) -> float:
        """How far rounding can have moved it."""
        return self.passes.error()

    def forest(self, weights: FloatArray) -> Forest:
        """The mini-buckets with these weights and the present shifts, as a certificate has them."""
        shifts = self.passes.parameters[: self.layout.n_shifts].copy()
        return bucket_forest(self._problem, self._order, self.parts, self.layout, shifts, weights)

    def decode(self) -> IntArray:
        """States of max variables from the messages of the last pass, last eliminated first.

        Where sum variables come after max variables, they take their best states on the way.
        """
        is_max = self._problem.tau == 0.0
        states = decode(self.passes, replace(self._problem, tau=np.zeros_like(self._problem.tau)), self._order)
        return np.where(is_max, states, -1)

    def sizes(self) -> dict[str, int | float]:
        """Mini-buckets, table entries, parameters of shifts over one variable, and weights."""
        layout = self.layout
        split = self.parts.edges[:, 0]
        return {
            "mini_buckets": layout.n_nodes,
            "split_variables": len(layout.shared_starts) - 1,
            "table_entries": layout.n_entries,
            "largest_mini_bucket": int((layout.wiring.states * layout.wiring.columns).max(initial=0)),
            "shifts": int(layout.wiring.states[split].sum()),
            "weights": len(layout.shared_nodes),
        }
