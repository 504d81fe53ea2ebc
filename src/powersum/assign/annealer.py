"""Simulated annealing over all variables at once: starts for local search where exact blocks are small.

On dense graphs with large domains a block that elimination can maximise is a handful of variables, and local search
from anywhere ends far from the best. A heat bath costs no more than a look at the factors of one variable. Max
variables are cooled, sum variables stay at temperature 1 once they are that cool: their states are then drawn as they
occur. Zeros count as a large penalty, so that the walk can pass through them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.core.random import following, seeded, share_of_one
from powersum.core.speed import ANNEALING_LOOK
from powersum.core.work_time import spend
from powersum.model.factors import configuration_value, factors_of
from powersum.model.graph import incidence
from powersum.model.model import Model
from powersum.prepare.problem import Problem

HOTTEST, COLDEST = (2.0, 20.0), 0.1
"""First temperature, from which range it is drawn, and the last."""

SWEEPS = (500.0, 5000.0)
"""From which range the number of sweeps is drawn."""

MOST_LOOKS = 0.05 / ANNEALING_LOOK
"""Looks into tables that one run may take: about a twentieth of a second."""

LOOKS_PER_BLOCK = 1e5
"""Looks that take about as long as the maximisation of a block."""

RUNS = 5
"""Runs of which the best is taken: they cost less than the local search that follows."""

PENALTY = -50.0
"""What a zero counts, and all that is less."""

STRONG = 25.0
"""Where the tables of a variable move its states by more than this (natural logs), most runs have temperatures of that
size, and all tables as they are."""

HOTTEST_OF_STRONG, COLDEST_OF_STRONG = (0.4, 2.5), 1e-3
"""First temperature then, from which range it is drawn, and the last: shares of that size."""

PER_PAIR, PER_STATE = 1.8, 0.1
"""Looks that count for a variable and one of its tables, and for each state: the states of a row are read together."""


class Annealer:
    """Heat-bath annealing of one problem.

    Parameters
    ----------
    problem
        The simplified problem.

    Attributes
    ----------
    cost
        What the latest draw took, as a number of blocks of local search that take as long.
    strong
        Whether tables are strong: dense models with entries of hundreds, where nothing else finds as much.
    """

    def __init__(self, problem: Problem) -> None:
        model = problem.model
        places = incidence(model.n_variables, model.scope_starts, model.scope_variables)
        self._model, self._factors_of = model, factors_of(model)
        self._weights: FloatArray = np.ascontiguousarray(problem.tau, dtype=np.float64)
        self.cost = 0.0
        self._starts, self._factors = places.starts, places.factors
        self._log_values: FloatArray = np.maximum(model.log_values, PENALTY)
        self._looks = float((np.diff(places.starts) * (PER_PAIR + PER_STATE * model.cardinalities)).sum())
        self._field = _field(model)
        self._strong_values = self._log_values
        self.strong = self._field > STRONG
        if self.strong:
            lowest = min(PENALTY, float(model.log_values[np.isfinite(model.log_values)].min()))
            self._strong_values = np.maximum(model.log_values, lowest)
        self._strides: IntArray = self._factors_of.strides[model.scope_starts[places.factors] + places.positions]

    def draw(self, rng: np.random.Generator) -> IntArray:
        """The best of a few runs from random states, each with a first temperature and a length drawn at random."""
        most = max(1.0, MOST_LOOKS / max(self._looks, 1.0))
        self.cost = 0.0
        best: tuple[float, IntArray] | None = None
        for number in range(RUNS):
            states = rng.integers(self._model.cardinalities)
            # One of the runs is for models in which a few entries alone are as good as zeros.
            scale = self._field if self.strong and number > 0 else 0.0
            limits = np.multiply(HOTTEST_OF_STRONG, scale) if scale else np.array(HOTTEST)
            sweeps, hottest = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in (SWEEPS, limits))
            found = self.run(
                states,
                int(min(sweeps, most)),
                int(rng.integers(1, 2**31)),
                hottest,
                COLDEST_OF_STRONG * scale if scale else COLDEST,
            )
            self.cost += min(sweeps, most) * self._looks / LOOKS_PER_BLOCK
            if self.strong and not scale:
                # Its value is one of other tables.
                found = configuration_value(self._model, found[1]), found[1]
            if best is None or found[0] > best[0]:
                best = found
        assert best is not None
        return best[1]

    def run(
        self, states: IntArray, sweeps: int, seed: int, hottest: float, coldest: float = COLDEST
    ) -> tuple[float, IntArray]:
        """Anneal from ``states``, of which none may be -1: states of all variables, and the sum of their factors."""
        model = self._model
        walked = states.copy()
        value = _anneal(
            walked,
            self._weights,
            model.cardinalities,
            self._starts,
            self._factors,
            self._strides,
            model.scope_starts,
            model.scope_variables,
            self._factors_of.strides,
            model.table_starts,
            self._log_values if coldest == COLDEST else self._strong_values,
            hottest,
            coldest,
            sweeps,
            seed,
        )
        spend(ANNEALING_LOOK * sweeps * self._looks)
        return value, walked


def _field(model: Model) -> float:
    """How far the tables of a variable move its states, about: zeros aside, and over all variables."""
    if not model.n_factors or not model.n_variables:
        return 0.0
    possible = np.isfinite(model.log_values)
    values = np.where(possible, model.log_values, 0.0)
    counts, sums, squares = (
        np.add.reduceat(each, model.table_starts[:-1]) for each in (possible.astype(float), values, values**2)
    )
    counts = np.maximum(counts, 1.0)
    variances = np.maximum(squares / counts - (sums / counts) ** 2, 0.0)
    return float(np.sqrt((variances * np.diff(model.scope_starts)).sum() / model.n_variables))


@compiled
def _anneal(
    states: IntArray,
    weights: FloatArray,
    cardinalities: IntArray,
    starts: IntArray,
    factors: IntArray,
    strides: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    scope_strides: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    hottest: float,
    coldest: float,
    sweeps: int,
    seed: int,
) -> float:
    """Sweeps of heat-bath steps at falling temperature; ``states`` is changed in place. The sum of all factors."""
    random = seeded(seed, np.int64(0))
    places = np.empty(len(scope_starts) - 1, np.int64)
    for f in range(len(places)):
        place = table_starts[f]
        for i in range(scope_starts[f], scope_starts[f + 1]):
            place += states[scope_variables[i]] * scope_strides[i]
        places[f] = place
    widest: Any = np.int64(1)
    for v in range(len(states)):
        widest = max(widest, cardinalities[v])
    score = np.empty(widest)
    temperature = hottest
    factor = (coldest / hottest) ** (1.0 / max(sweeps - 1, 1))
    for _ in range(sweeps):
        for v in range(len(states)):
            card = cardinalities[v]
            here = states[v]
            for s in range(card):
                score[s] = 0.0
            for at in range(starts[v], starts[v + 1]):
                place = places[factors[at]] - here * strides[at]
                for s in range(card):
                    score[s] += log_values[place + s * strides[at]]
            top = score[0]
            for s in range(1, card):
                top = max(top, score[s])
            heat = temperature if weights[v] == 0.0 else max(temperature, 1.0)
            total = 0.0
            for s in range(card):
                score[s] = math.exp((score[s] - top) / heat)
                total += score[s]
            random = following(random)
            drawn = total * share_of_one(random)
            new = 0
            while new < card - 1 and drawn >= score[new]:
                drawn -= score[new]
                new += 1
            if new != here:
                states[v] = new
                for at in range(starts[v], starts[v + 1]):
                    places[factors[at]] += (new - here) * strides[at]
        temperature *= factor
    value = 0.0
    for f in range(len(places)):
        value += log_values[places[f]]
    return value
