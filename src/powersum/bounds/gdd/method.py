"""Algorithm 1 of the paper, generalised dual decomposition: monotone block descent on the decomposed bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from powersum.bounds.gdd.blocks import update_batches
from powersum.bounds.gdd.join_graph import join_graph
from powersum.bounds.gdd.proof import region_forest
from powersum.bounds.gdd.regions import JunctionGraph, factor_graph, own_tables
from powersum.bounds.gdd.state import DescentState, Rules, Workspace, new_workspace
from powersum.bounds.gdd.weights import STARTS, start_weights
from powersum.bounds.gdd.whole import apply_shifts, evaluate_regions, gradients, max_marginals, rounding_units
from powersum.bounds.protocol import check_choices
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray, starts_of
from powersum.core.errors import InputError
from powersum.core.speed import DECOMPOSED_SWEEP
from powersum.model.result import Residuals
from powersum.model.rounding import UNIT, certain, elimination_error
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest

DIRECTIONS = ("matching", "gradient")
BATCHES_AT_ONCE = 16
"""Batches updated between two looks at the clock: some hundredths of a second."""

REBUILD_EVERY = 25
"""Sweeps between two rebuildings of the tables from the model's own numbers, which stop rounding from piling up."""


class GDD:
    """The decomposed bound of eq. 5 (or eq. 14, given another wiring) and its block coordinate descent.

    Parameters
    ----------
    problem, order
        The simplified problem and an elimination order of its variables, max variables last.
    threads
        Threads that share each colour of independent blocks; the results do not depend on it.
    seed
        Unused: the method has no random choice. It is accepted because every method accepts it.
    start
        First weights: ``uniform`` over all regions, ``wmb`` as in the supplement (nothing on child cliques), or
        ``share``, which is ``wmb`` with a small part everywhere.
    direction
        ``matching`` (see :mod:`powersum.bounds.gdd.directions`) or the paper's plain ``gradient``.
    inner_steps
        Steps on shifts and on weights in each visit of a block.
    ibound
        Clusters of at most ``ibound + 1`` variables with separators of any size (supplement D) in place of the
        model's factors.
    wiring
        Clusters and separators of one's own, in place of both.
    """

    exact = False
    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = MappingProxyType({"start": STARTS, "direction": DIRECTIONS})
    """Options that take one of a few words."""

    def __init__(
        self,
        problem: Problem,
        order: IntArray,
        *,
        threads: int = 1,
        seed: int = 0,
        start: str = "share",
        direction: str = "matching",
        inner_steps: int = 2,
        ibound: int | None = None,
        wiring: JunctionGraph | None = None,
    ) -> None:
        check_choices(type(self), {"start": start, "direction": direction})
        if inner_steps < 1:
            raise InputError(f"inner_steps is {inner_steps}: it must be 1 or more")
        if ibound is not None and ibound < 0:
            raise InputError(f"ibound is {ibound}: it must be 0 or more")
        del seed
        self._problem, self._order = problem, order
        if wiring is None:
            wiring = factor_graph(problem, order) if ibound is None else join_graph(problem, order, ibound)
        self._wiring = wiring
        regions = self._wiring.regions
        n_blocks = len(regions.block_size)
        self._state = DescentState(
            tables=self._own_tables(),
            delta=np.zeros(self._wiring.n_shifts),
            weights=start_weights(regions, problem.tau, start),
            log_values=np.zeros(len(regions.table_start) - 1),
            shift_step=np.ones(n_blocks),
            weight_step=np.ones(n_blocks),
        )
        self._rules = Rules(
            inner_steps=inner_steps,
            backtracks=12,
            armijo=1e-4,
            gradient=int(direction == "gradient"),
            # The supplement's start keeps its zeros; the others must be able to come back from near zero.
            least_share=0.0 if start == "wmb" else 1e-6,
        )
        self._threads = threads
        self._block_seconds = DECOMPOSED_SWEEP * float(regions.table_start[-1]) / max(n_blocks, 1)
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._workspaces = [new_workspace(wiring) for _ in range(threads)]
        evaluate_regions(regions, wiring.shapes, self._state, self._workspaces[0])
        # Several of the model's factors may be added up in one table.
        self._adding = elimination_error(problem.model, float(problem.tau.max(initial=1.0)))
        self._sweeps = 0
        self._value = float(self._state.log_values.sum())
        self.log_error = self._error(0)
        self.log_upper = certain(self._value, self.log_error)

    def step(self, deadline: float) -> bool:
        """One sweep over all blocks, colour by colour."""
        for first, last in self._portions():
            self._update(first, last)
            if time.monotonic() > deadline:
                break
        self._sweeps += 1
        if self._sweeps % REBUILD_EVERY == 0:
            self._rebuilt()
        value = float(self._state.log_values.sum())
        fallen = value < self._value
        self._value = min(self._value, value)
        error = self._error(self._sweeps % REBUILD_EVERY)
        log_upper = certain(value, error)
        if log_upper < self.log_upper:
            self.log_upper, self.log_error = log_upper, error
        return fallen

    def _portions(self) -> Iterator[tuple[int, int]]:
        """The batches of a sweep in portions of one colour each, small enough to look at the clock in between."""
        at_once = BATCHES_AT_ONCE * self._threads
        for first, last in pairwise(self._wiring.colour_start.tolist()):
            for at in range(first, last, at_once):
                yield at, min(at + at_once, last)

    def _update(self, first: int, last: int) -> None:
        wiring, pool = self._wiring, self._pool
        time.spend(self._block_seconds * int(wiring.batch_start[last] - wiring.batch_start[first]))

        def update(first: int, last: int, work: Workspace) -> None:
            update_batches(
                first, last, wiring.batch_start, wiring.sweep, self._problem.tau, wiring.regions, wiring.shapes,
                self._state, work, self._rules,
            )  # fmt: skip

        if pool is None or last - first == 1:
            update(first, last, self._workspaces[0])
            return
        ends = np.linspace(first, last, self._threads + 1).astype(int).tolist()
        parts = zip(pairwise(ends), self._workspaces, strict=True)
        jobs = [pool.submit(update, start, end, work) for (start, end), work in parts]
        for job in jobs:
            job.result()

    def _own_tables(self, target: FloatArray | None = None) -> FloatArray:
        """The clusters' own tables, without any shift."""
        theta = self._wiring.theta
        if theta is None:
            return own_tables(self._problem.model, self._wiring, target)
        if target is None:
            return theta.copy()
        target[:] = theta
        return target

    def bound(self) -> float:
        """The bound at the present point, from the model's own tables, the shifts and the weights."""
        return certain(self._rebuilt(), self._error(0))

    def certified(self) -> tuple[Forest, float]:
        """See :class:`powersum.bounds.protocol.Provable`."""
        self.bound()
        wiring, state = self._wiring, self._state
        forest = region_forest(
            self._problem, self._order, wiring.regions, wiring.factor_cluster, state.delta, state.weights
        )
        if wiring.theta is not None:
            # The certificate does not know of tuples that were made impossible.
            own_tables(self._problem.model, wiring, state.tables)
            self._shift_and_evaluate()
        return forest, certain(float(state.log_values.sum()), self._error(0))

    def _rebuilt(self) -> float:
        self._own_tables(self._state.tables)
        self._shift_and_evaluate()
        return float(self._state.log_values.sum())

    def _shift_and_evaluate(self) -> None:
        wiring = self._wiring
        apply_shifts(wiring.regions, wiring.shapes, self._state)
        evaluate_regions(wiring.regions, wiring.shapes, self._state, self._workspaces[0])

    def _error(self, sweeps: int) -> float:
        """How far rounding can have moved the value, so many sweeps after the tables were built from the model's."""
        if not len(self._state.log_values):
            return 0.0
        n_variables = len(self._problem.tau)
        regions, shapes = self._wiring.regions, self._wiring.shapes
        return self._adding + UNIT * float(rounding_units(n_variables, regions, shapes, self._state, float(sweeps)))

    def decode(self) -> IntArray:
        """Round the beliefs of the max variables, each by itself."""
        model, tau = self._problem.model, self._problem.tau
        starts = starts_of(model.cardinalities)
        scores = self.scores()
        states = np.full(model.n_variables, -1, dtype=np.int64)
        for variable in np.flatnonzero(tau == 0):
            states[variable] = int(np.argmax(scores[starts[variable] : starts[variable + 1]]))
        return states

    def scores(self) -> FloatArray:
        """For every state of every max variable the sum of its max-marginals, flat; 0 for other variables."""
        model = self._problem.model
        starts = starts_of(model.cardinalities)
        wiring = self._wiring
        return max_marginals(starts, self._problem.tau, wiring.regions, wiring.shapes, self._state, self._workspaces[0])

    def gradients(self) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the bound at the present point by every shift and by every weight."""
        of_delta, of_weights = np.zeros_like(self._state.delta), np.zeros_like(self._state.weights)
        wiring = self._wiring
        gradients(
            wiring.batch_start, wiring.sweep, wiring.regions, wiring.shapes, self._state, self._workspaces[0],
            of_delta, of_weights,
        )  # fmt: skip
        return of_delta, of_weights

    def residuals(self) -> Residuals:
        """Violation of moment matching (eq. 8) and of entropy matching (eq. 10) at the present point."""
        of_delta, mismatch = self.gradients()
        variable, weights = self._wiring.regions.axis_variable, self._state.weights
        tau = self._problem.tau
        total = np.bincount(variable, weights * mismatch, minlength=len(tau))
        mean = np.divide(total, tau, out=np.zeros_like(tau), where=tau > 0)
        # In place: these arrays are as large as all that the bound itself needs.
        mismatch -= mean[variable]
        np.abs(mismatch, out=mismatch)
        mismatch *= weights
        np.abs(of_delta, out=of_delta)
        return Residuals(float(of_delta.max(initial=0.0)), float(mismatch.max(initial=0.0)))

    def sizes(self) -> dict[str, int | float]:
        """Numbers of regions, table entries and parameters, and the bytes of all arrays."""
        regions, state = self._wiring.regions, self._state
        parts: tuple[Any, ...] = (*regions, *self._wiring.shapes, *self._wiring, *state)
        parts += tuple(a for work in self._workspaces for a in work)
        arrays = [a for a in parts if isinstance(a, np.ndarray)]
        return {
            "clusters": regions.n_clusters,
            "separators": len(regions.table_start) - 1 - regions.n_clusters,
            "table_entries": int(regions.table_start[-1]),
            "shifts": self._wiring.n_shifts,
            "weights": len(regions.axis_variable),
            "colours": len(self._wiring.colour_start) - 1,
            "bytes": int(sum(a.nbytes for a in arrays)),
        }
