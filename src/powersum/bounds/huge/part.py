"""One part of a model on a worker: the decomposed bound of its own factors, with what the seam gives and takes.

A variable at the seam has a separator in each of its parts. The seam adds a table to each of these, and divides the
variable's weight among the parts; tables add up to zero (or more) and weights to the variable's own, so that the sum of
the parts' bounds is a bound whatever each of them does inside.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from powersum.bounds.gdd.method import GDD, REBUILD_EVERY
from powersum.bounds.gdd.regions import factor_graph
from powersum.bounds.gdd.whole import evaluate_regions
from powersum.cluster.store import forget, kept
from powersum.core.arrays import FloatArray, IntArray, given_up, starts_of
from powersum.core.memory import most_bytes_held
from powersum.model.mapped import map_arrays
from powersum.model.model import Model
from powersum.model.rounding import UNIT, magnitudes
from powersum.prepare.problem import Problem
from powersum.prepare.simplify.absorption import absorb
from powersum.prepare.simplify.tables import Tables


class PartPlan(NamedTuple):
    """What all workers of a run know: where its files are, and how its parts begin."""

    run: str  # a name of its own among all runs
    folder: str  # which all workers see
    model: str  # the mapped file
    start: str
    direction: str
    inner_steps: int


class Seam(NamedTuple):
    """What a part has at the seam: for its variables there, in rising order, state after state."""

    shifts: FloatArray  # added to the separators' tables
    weights: FloatArray  # the part's share of each variable's weight


class SweepReport(NamedTuple):
    """A part after its sweeps, all of it at one point."""

    value: float  # the sum of its regions
    error: float  # how far rounding may have moved it
    tables: FloatArray  # of the separators at the seam
    weights: FloatArray  # of the same
    sweeps: int  # that this process has done of the part; fewer than before where it began anew
    largest: float  # bytes that the process has held at most


class Loaded(NamedTuple):
    """The factors of one part, without variables of one state; those inside others are added to them."""

    model: Model
    variables: IntArray  # their numbers in the whole
    log_constants: FloatArray  # factors that have no variables left
    log_error: float  # what rounding may have taken from factors that were added up


def load_part(plan: PartPlan, number: int) -> Loaded:
    """The factors of one part; reads nothing but these."""
    whole = map_arrays(plan.model)[1]
    factors = np.load(Path(plan.folder) / f"factors-{number}.npy")
    lengths = (whole.scope_starts[factors + 1] - whole.scope_starts[factors]).astype(np.int64)
    scopes = np.asarray(whole.scope_variables[_places(whole.scope_starts[factors], lengths)])
    owner = np.repeat(np.arange(len(factors)), lengths)
    chosen = whole.cardinalities[scopes] > 1
    alone = np.bincount(owner[chosen], minlength=len(factors)) == 0
    constants = np.asarray(whole.log_values[whole.table_starts[factors[alone]]])
    factors = factors[~alone]
    owner = (np.cumsum(~alone) - 1)[owner]
    variables, local = np.unique(scopes[chosen], return_inverse=True)
    sizes = (whole.table_starts[factors + 1] - whole.table_starts[factors]).astype(np.int64)
    tables = Tables(
        np.asarray(whole.cardinalities[variables]),
        starts_of(np.bincount(owner[chosen], minlength=len(factors))),
        local,
        starts_of(sizes),
        np.asarray(whole.log_values[_places(whole.table_starts[factors], sizes)]),
        np.arange(len(factors)),
    )
    # A mapped file was never simplified, and tables inside others make a bound weaker and a sweep longer.
    absorbed = absorb(tables)
    most = int(np.bincount(absorbed.table_of, minlength=1).max())
    log_error = 0.0
    if most > 1:
        log_error = 2.0 * UNIT * most * float(magnitudes(tables.log_values, tables.table_starts[:-1]).sum())
    model = Model(
        absorbed.cardinalities,
        absorbed.scope_starts,
        given_up(absorbed.scope_variables),
        absorbed.table_starts,
        given_up(absorbed.log_values),
    )
    return Loaded(model, variables, constants, log_error)


def _places(starts: IntArray, lengths: IntArray) -> IntArray:
    """All places of stretches that start there and are so long."""
    ends = starts_of(lengths)
    return np.arange(int(ends[-1])) + np.repeat(np.asarray(starts) - ends[:-1], lengths)


class ModelPart(GDD):
    """The decomposed bound of one part.

    Parameters
    ----------
    plan, number
        The run, and which part of it.
    """

    def __init__(self, plan: PartPlan, number: int) -> None:
        folder = Path(plan.folder)
        model, self.variables, constants, log_error = load_part(plan, number)
        self._constant = float(constants.sum())
        self._loading_error = log_error + UNIT * len(constants) * float(np.abs(constants[np.isfinite(constants)]).sum())
        self._file = folder / f"part-{number}.npz"
        seam = np.load(folder / f"seam-{number}.npz")
        self._seam = np.searchsorted(self.variables, seam["variables"])
        tau = np.asarray(np.load(folder / "tau.npy", mmap_mode="r")[self.variables])
        self.original_tau = tau.copy()
        tau[self._seam] = seam["weights"]
        position = np.load(folder / "position.npy", mmap_mode="r")[self.variables]
        order = np.argsort(position, kind="stable")
        problem = Problem.whole(model, tau, {})
        self._entries = np.zeros(0, dtype=np.int64)
        self._shifts = np.zeros(0)
        wiring = factor_graph(problem, order, at_seam=self._seam)
        super().__init__(
            problem, order, start=plan.start, direction=plan.direction, inner_steps=plan.inner_steps, wiring=wiring
        )
        regions = wiring.regions
        separators = np.arange(regions.n_clusters, len(regions.shape))
        of_variable = regions.axis_variable[regions.axis_start[separators]]
        region_of = np.full(len(tau), -1, dtype=np.int64)
        region_of[of_variable] = separators
        self._regions = region_of[self._seam]
        self._axes = regions.axis_start[self._regions].astype(np.int64)
        cards = model.cardinalities[self._seam]
        self._entries = _places(regions.table_start[self._regions], cards)
        self._owner = np.repeat(np.arange(len(cards)), cards)
        self._shifts = np.zeros(len(self._entries))
        if self._file.exists():
            self._restore()

    def _own_tables(self, target: FloatArray | None = None) -> FloatArray:
        tables = super()._own_tables(target)
        if len(self._entries):
            tables[self._entries] += self._shifts
        return tables

    def _error(self, sweeps: int) -> float:
        # Each exchange changes the tables at the seam once more, and they are sums of what it has given and taken.
        return (
            super()._error(sweeps)
            + self._loading_error
            + 4.0 * (1.0 + sweeps) * UNIT * float(np.abs(self._shifts).sum())
        )

    def apply(self, seam: Seam) -> None:
        """Go on with these tables and weights at the seam, whatever was there before."""
        state, tau = self._state, self._problem.tau
        state.tables[self._entries] += seam.shifts - self._shifts
        self._shifts = seam.shifts.copy()
        moved = state.weights[self._axes] + (seam.weights - tau[self._seam])
        if (moved >= 0).all():
            state.weights[self._axes] = moved
            tau[self._seam] = seam.weights
        else:
            # The point is an older one than that which the seam was made for: all weights of a variable change alike.
            factor = np.ones(len(tau))
            ratio = np.ones(len(seam.weights))
            np.divide(seam.weights, tau[self._seam], out=ratio, where=tau[self._seam] > 0)
            factor[self._seam] = ratio
            state.weights[:] *= factor[self._wiring.regions.axis_variable]
            tau[self._seam] = seam.weights
        evaluate_regions(self._wiring.regions, self._wiring.shapes, state, self._workspaces[0])

    def report(self) -> SweepReport:
        """Value and seam at the present point."""
        state = self._state
        error = self._error(self._sweeps % REBUILD_EVERY)
        tables, weights = state.tables[self._entries], state.weights[self._axes]
        value = float(state.log_values.sum()) + self._constant
        return SweepReport(value, error, tables, weights, self._sweeps, float(most_bytes_held()))

    def save(self) -> None:
        """Keep the point for whoever takes this part over."""
        state = self._state
        target = self._file.with_suffix(f".{os.getpid()}.npz")
        np.savez(
            target, delta=state.delta, weights=state.weights, shift_step=state.shift_step,
            weight_step=state.weight_step, shifts=self._shifts, tau=self._problem.tau,
        )  # fmt: skip
        os.replace(target, self._file)

    def _restore(self) -> None:
        saved = np.load(self._file)
        state = self._state
        for name in ("delta", "weights", "shift_step", "weight_step"):
            getattr(state, name)[:] = saved[name]
        self._problem.tau[:] = saved["tau"]
        self._shifts = saved["shifts"]
        self._rebuilt()


def _part(plan: PartPlan, number: int) -> ModelPart:
    """The part as this process keeps it from task to task; where it does not, made from the last checkpoint."""
    part: ModelPart = kept(f"{plan.run}/{number}", lambda: ModelPart(plan, number))
    return part


def sweep(plan: PartPlan, number: int, seam: Seam, sweeps: int, save: bool) -> SweepReport:
    """On a worker: take over the seam, sweep the part so often, and report. Doing it twice does no harm."""
    part = _part(plan, number)
    part.apply(seam)
    for _ in range(sweeps):
        part.step(math.inf)
    if save:
        part.save()
    return part.report()


def decode(plan: PartPlan, number: int) -> tuple[IntArray, FloatArray, IntArray]:
    """On a worker: its max variables as the whole numbers them, their states' scores, and where each one's start."""
    part = _part(plan, number)
    scores, cards = part.scores(), part._problem.model.cardinalities
    chosen = part.original_tau == 0
    starts = starts_of(cards)
    places = _places(starts[:-1][chosen], cards[chosen])
    return part.variables[chosen], scores[places], starts_of(cards[chosen])


def end(plan: PartPlan, number: int) -> None:
    """On a worker: let go of the part."""
    forget(f"{plan.run}/{number}")
