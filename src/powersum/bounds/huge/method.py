"""The decomposed bound in parts: rounds of sweeps inside the parts, and of moves at the seam between them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from powersum.bounds.gdd import DIRECTIONS, STARTS
from powersum.bounds.huge.crew import PartWorkers, crew_of
from powersum.bounds.huge.cut import cut_factors
from powersum.bounds.huge.part import PartPlan, decode, end, sweep
from powersum.bounds.huge.seam import Ledger, total_of
from powersum.cluster.errors import ClusterError
from powersum.cluster.executor import WorkersLike
from powersum.cluster.run_folder import RunFolder
from powersum.core.arrays import IntArray, positions_of, starts_of
from powersum.core.errors import InputError
from powersum.model.mapped import mapped_file, write_arrays
from powersum.model.rounding import UNIT, certain
from powersum.prepare.problem import Problem

CHECKPOINT_SECONDS = 30.0
"""Seconds between two checkpoints of the parts."""


@contextmanager
def in_parts(
    problem: Problem, order: IntArray, executor: WorkersLike, *, seed: int, options: Mapping[str, Any]
) -> Iterator[PartedGDD]:
    """The decomposed bound on an executor's workers, for the length of a block."""
    with crew_of(executor) as crew:
        method = PartedGDD(problem, order, crew=crew, seed=seed, model_file=mapped_file(problem.model), **options)
        try:
            yield method
        finally:
            method.close()


class PartedGDD:
    """The decomposed bound of a problem in parts, on the workers of a crew; the protocol is that of all methods.

    Parameters
    ----------
    problem, order
        The problem and an elimination order of its variables, max variables last.
    crew
        Who works.
    parts
        Number of parts; one for each worker if not given.
    folder
        A folder that all workers see, for the model and the checkpoints; a temporary one if not given.
    model_file
        The problem's model as a mapped file, where there is one already.
    seed, start, direction, inner_steps
        As for :class:`~powersum.bounds.gdd.method.GDD`; the seed is that of the cut.
    """

    exact = False

    def __init__(
        self,
        problem: Problem,
        order: IntArray,
        *,
        crew: PartWorkers,
        parts: int | None = None,
        folder: str | None = None,
        model_file: str | None = None,
        seed: int = 0,
        start: str = "share",
        direction: str = "matching",
        inner_steps: int = 2,
    ) -> None:
        if start not in STARTS or direction not in DIRECTIONS:
            raise InputError(f"start is {start!r}, direction {direction!r}: give {STARTS} and {DIRECTIONS}")
        model, tau = problem.model, problem.tau
        self._problem, self._crew = problem, crew
        self._run_folder = RunFolder(folder)
        self._folder = self._run_folder.path
        try:
            self._n = min(crew.size if parts is None else parts, max(1, model.n_factors))
            if model_file is None:
                model_file = str(self._folder / "model.psm")
                with open(model_file, "wb") as file:
                    write_arrays(model, file)
            run = secrets.token_hex(8)
            self._plan = PartPlan(run, str(self._folder), model_file, start, direction, inner_steps)
            np.save(self._folder / "tau.npy", tau)
            np.save(self._folder / "position.npy", positions_of(order))
            self._ledger = self._cut(seed)
            alone = np.bincount(model.scope_variables, minlength=model.n_variables) == 0
            alone_logs = np.log(model.cardinalities[alone])
            self._alone = float((tau[alone] * alone_logs).sum())
            self._alone_error = UNIT * (len(alone_logs) + 4.0) * self._alone
            self.largest_held = 0.0
            self.log_upper, self.log_error = np.inf, 0.0
            self._saved = time.monotonic()
            self._value = np.inf
            self._round(0)
        except BaseException:
            self._run_folder.remove()
            raise

    def _cut(self, seed: int) -> Ledger:
        model, tau, n = self._problem.model, self._problem.tau, self._n
        part = cut_factors(model.n_variables, model.scope_starts, model.scope_variables, n, seed)
        owner = np.repeat(part, np.diff(model.scope_starts))
        chosen = model.cardinalities[model.scope_variables] > 1
        # Sorted by variable, then by part.
        pairs, counts = np.unique(model.scope_variables[chosen] * n + owner[chosen], return_counts=True)
        variable, of_part = pairs // n, pairs % n
        several = np.bincount(variable, minlength=model.n_variables)[variable] > 1
        variable, of_part, counts = variable[several], of_part[several], counts[several]
        at_seam, number = np.unique(variable, return_inverse=True)
        shares = counts / np.bincount(number, counts)[number] if len(number) else np.zeros(0)
        ledger = Ledger(model.cardinalities[at_seam], tau[at_seam], of_part, number, shares, n)
        for p in range(n):
            np.save(self._folder / f"factors-{p}.npy", np.flatnonzero(part == p))
            own = of_part == p
            weights = ledger.of_part(p).weights
            np.savez(self._folder / f"seam-{p}.npz", variables=variable[own], weights=weights)
        self._at_seam = at_seam
        self._pairs = len(variable)
        self._entries = int(model.cardinalities[variable].sum())
        return ledger

    def _ask(self, function: Callable[..., Any], *given: Any, seam: bool = True) -> list[Any]:
        arguments = [((self._ledger.of_part(p), *given) if seam else given) for p in range(self._n)]
        return self._crew.map(function, self._plan, arguments)

    def _round(self, sweeps: int) -> None:
        save = time.monotonic() - self._saved > CHECKPOINT_SECONDS
        self._reports = self._ask(sweep, sweeps, save)
        if save:
            self._saved = time.monotonic()
        self._claim()

    def _claim(self) -> None:
        """Take the bound at the point of all reports, which are of one ledger, if it is the best so far."""
        value, error = total_of(self._reports, self._ledger)
        self._latest = value + self._alone
        self.largest_held = max([self.largest_held, *(report.largest for report in self._reports)])
        claim = certain(self._latest, error + self._alone_error)
        if claim < self.log_upper:
            self.log_upper, self.log_error = claim, error + self._alone_error

    def step(self, deadline: float) -> bool:
        """Moves at the seam, then one sweep inside each part."""
        del deadline
        before = self._reports
        self._ledger.exchange(before)
        self._round(1)
        anew = any(report.sweeps <= old.sweeps for report, old in zip(self._reports, before, strict=True))
        if anew:
            # A worker was lost, and its part stands where the last checkpoint left it: there is something to gain.
            self._value = np.inf
        fallen = self._latest < self._value
        self._value = min(self._value, self._latest)
        return fallen

    def bound(self) -> float:
        """The best bound so far: after a worker was lost, no part may stand at its point any more."""
        return self.log_upper

    def decode(self) -> IntArray:
        """Round the beliefs of the max variables, each by itself; at the seam those of all parts together."""
        cardinalities = self._problem.model.cardinalities
        states = np.where(self._problem.tau == 0, 0, -1)
        position = positions_of(self._at_seam, len(cardinalities))
        starts = starts_of(cardinalities[self._at_seam])
        shared = np.zeros(int(starts[-1]))
        for variables, scores, ends in self._ask(decode, seam=False):
            for k in range(len(variables)):
                own, v = scores[ends[k] : ends[k + 1]], int(variables[k])
                if position[v] >= 0:
                    shared[starts[position[v]] : starts[position[v] + 1]] += own
                else:
                    states[v] = int(np.argmax(own))
        for k in np.flatnonzero(self._problem.tau[self._at_seam] == 0).tolist():
            states[self._at_seam[k]] = int(np.argmax(shared[starts[k] : starts[k + 1]]))
        return states

    def residuals(self) -> None:
        """None: the parts know their own, nobody that of the whole."""

    def sizes(self) -> dict[str, int | float]:
        """Parts, variables at their seam, bytes that go to and fro in each round, and what a worker held at most."""
        return {
            "parts": self._n,
            "seam_variables": len(self._at_seam),
            "bytes_exchanged": 16 * (self._entries + self._pairs),
            "worker_bytes": int(self.largest_held),
        }

    def close(self) -> None:
        """Let the workers forget their parts, and remove the files of the run."""
        try:
            # Workers that are gone have nothing left to forget.
            with suppress(ClusterError):
                self._ask(end, seam=False)
        finally:
            self._run_folder.remove()
