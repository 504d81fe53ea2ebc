"""Algorithm 1 of the paper, generalised dual decomposition: monotone block descent on the decomposed bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from powersum.bounds.gdd.blocks import update_blocks
from powersum.bounds.gdd.join_graph import join_graph
from powersum.bounds.gdd.proof import region_forest
from powersum.bounds.gdd.regions import JunctionGraph, factor_graph, own_tables
from powersum.bounds.gdd.state import DescentState, Rules, new_workspace
from powersum.bounds.gdd.weights import STARTS, start_weights
from powersum.bounds.gdd.whole import evaluate_regions, gradients, max_marginals, rebuild_tables
from powersum.bounds.protocol import check_choices
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray, starts_of
from powersum.core.errors import InputError
from powersum.core.speed import DECOMPOSED_SWEEP
from powersum.model.result import Residuals
from powersum.model.rounding import EXPONENTIAL, UNIT, certain, elimination_error, magnitudes
from powersum.prepare.problem import Problem
from powersum.prepare.proof import Forest

DIRECTIONS = ("matching", "gradient")
SMALLEST_PARALLEL_COLOUR = 64
"""Fewer blocks than this are quicker on one thread than handed out to several."""

BLOCKS_AT_ONCE = 8192
"""Blocks updated between two looks at the clock: some hundredths of a second."""

MOVES = 4.0
"""Changes of a table by one of its separators in one sweep, at most."""

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
        ``matching`` (see :mod:`powersum.bounds.gdd.blocks`) or the paper's plain ``gradient``.
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
            tables=self._wiring.theta.copy(),
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
        self._workspaces = [new_workspace(regions) for _ in range(threads)]
        largest = int(np.diff(regions.table_start).max(initial=1))
        self._scratch = np.empty(largest)
        evaluate_regions(regions, self._state, self._scratch)
        # Several of the model's factors may be added up in one table.
        self._adding = elimination_error(problem.model, float(problem.tau.max(initial=1.0)))
        self._sweeps = 0
        self._value = float(self._state.log_values.sum())
        self.log_error = self._error(0)
        self.log_upper = certain(self._value, self.log_error)

    def step(self, deadline: float) -> bool:
        """One sweep over all blocks, colour by colour."""
        wiring = self._wiring
        for blocks in self._portions():
            self._update(blocks)
            if time.monotonic() > deadline:
                break
        self._sweeps += 1
        if self._sweeps % REBUILD_EVERY == 0:
            rebuild_tables(wiring.regions, wiring.theta, self._state)
            evaluate_regions(wiring.regions, self._state, self._scratch)
        value = float(self._state.log_values.sum())
        fallen = value < self._value
        self._value = min(self._value, value)
        error = self._error(self._sweeps % REBUILD_EVERY)
        log_upper = certain(value, error)
        if log_upper < self.log_upper:
            self.log_upper, self.log_error = log_upper, error
        return fallen

    def _portions(self) -> Iterator[IntArray]:
        """The blocks of a sweep in portions of one colour each, small enough to look at the clock in between."""
        starts, sweep = self._wiring.colour_start, self._wiring.sweep
        for first, last in pairwise(starts.tolist()):
            for at in range(first, last, BLOCKS_AT_ONCE):
                yield sweep[at : min(at + BLOCKS_AT_ONCE, last)]

    def _update(self, blocks: IntArray) -> None:
        regions, tau = self._wiring.regions, self._problem.tau
        pool = self._pool
        time.spend(self._block_seconds * len(blocks))
        if pool is None or len(blocks) < SMALLEST_PARALLEL_COLOUR:
            update_blocks(blocks, tau, regions, self._state, self._workspaces[0], self._rules)
            return
        parts = np.array_split(blocks, self._threads)
        jobs = [
            pool.submit(update_blocks, part, tau, regions, self._state, work, self._rules)
            for part, work in zip(parts, self._workspaces, strict=True)
        ]
        for job in jobs:
            job.result()

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
        theta = own_tables(self._problem.model, wiring) if wiring.excluded else None
        return forest, certain(self._rebuilt(theta), self._error(0))

    def _rebuilt(self, theta: FloatArray | None = None) -> float:
        rebuild_tables(self._wiring.regions, self._wiring.theta if theta is None else theta, self._state)
        evaluate_regions(self._wiring.regions, self._state, self._scratch)
        return float(self._state.log_values.sum())

    def _error(self, sweeps: int) -> float:
        """How far rounding can have moved the value, so many sweeps after the tables were built from the model's.

        Each table is the sum of the model's own and of its shifts, to which every sweep adds a move for each separator;
        :mod:`powersum.model.rounding` says why errors add up.
        """
        regions, state = self._wiring.regions, self._state
        n_regions = len(regions.table_start) - 1
        if not n_regions:
            return 0.0
        moved = regions.member_delta >= 0
        separators = regions.member_region[regions.block_start[:-1]]
        in_block = np.diff(regions.block_start)
        shifts = np.zeros(n_regions)
        if moved.any():
            starts, place = np.unique(regions.member_delta[moved], return_inverse=True)
            sizes = magnitudes(state.delta, starts)[place]
            np.add.at(shifts, regions.member_region[moved], sizes)
            np.add.at(shifts, np.repeat(separators, in_block)[moved], sizes)
        number = np.bincount(regions.member_region, minlength=n_regions)
        np.add.at(number, separators, in_block)
        largest = magnitudes(state.tables, regions.table_start[:-1]) + shifts
        additions = number * (2.0 + MOVES * sweeps) + np.diff(regions.axis_start) * 3.0 + 4.0
        card = regions.axis_card.astype(np.float64)
        parts = np.bincount(regions.axis_variable)[regions.axis_variable]
        sums = np.maximum(state.weights, 1e-3) * (2.0 * card + EXPONENTIAL + (parts + 8.0) * np.log(card))
        total = np.abs(state.log_values[np.isfinite(state.log_values)]).sum()
        return self._adding + float(UNIT * ((additions * largest).sum() + sums.sum() + n_regions * total))

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
        return max_marginals(
            model.n_variables, starts, self._problem.tau, self._wiring.regions, self._state, self._scratch
        )

    def gradients(self) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the bound at the present point by every shift and by every weight."""
        of_delta, of_weights = np.zeros_like(self._state.delta), np.zeros_like(self._state.weights)
        gradients(self._wiring.regions, self._state, self._workspaces[0], of_delta, of_weights)
        return of_delta, of_weights

    def residuals(self) -> Residuals:
        """Violation of moment matching (eq. 8) and of entropy matching (eq. 10) at the present point."""
        of_delta, entropies = self.gradients()
        variable, weights = self._wiring.regions.axis_variable, self._state.weights
        tau = self._problem.tau
        total = np.bincount(variable, weights * entropies, minlength=len(tau))
        mean = np.divide(total, tau, out=np.zeros_like(tau), where=tau > 0)
        mismatch = weights * np.abs(entropies - mean[variable])
        return Residuals(float(np.abs(of_delta).max(initial=0.0)), float(mismatch.max(initial=0.0)))

    def sizes(self) -> dict[str, int | float]:
        """Numbers of regions, table entries and parameters, and the bytes of all arrays."""
        regions, state = self._wiring.regions, self._state
        arrays = [a for a in (*regions, *state, self._wiring.theta, self._wiring.sweep) if isinstance(a, np.ndarray)]
        arrays += [a for work in self._workspaces for a in work]
        return {
            "clusters": regions.n_clusters,
            "separators": len(regions.table_start) - 1 - regions.n_clusters,
            "table_entries": int(regions.table_start[-1]),
            "shifts": self._wiring.n_shifts,
            "weights": len(regions.axis_variable),
            "colours": len(self._wiring.colour_start) - 1,
            "bytes": int(sum(a.nbytes for a in arrays)),
        }
