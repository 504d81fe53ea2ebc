"""Utilities that add up as one product: a chain of variables that tells whether a utility was taken already.

The chain has a variable between every two utilities. Its state is 0 before a utility was taken and 1 after. Each
utility's table has 1 for 0 → 0, the utility for 0 → 1 and 1 for 1 → 1. The sum over the chain is the sum of all
utilities: so the value of a policy is a log partition function, and the best rules are a marginal MAP question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.decisions.stages import Stages
from powersum.model.diagram import Diagram
from powersum.model.model import Model, log_of_probabilities

Table = tuple[tuple[int, ...], FloatArray]
"""A scope and the numbers of its table."""


@dataclass(frozen=True, slots=True, eq=False)
class Accumulated:
    """A diagram whose utilities are one product of tables.

    Parameters
    ----------
    cardinalities
        Number of states of all variables of the diagram, then of those of the chain.
    chance, links
        Log tables of the chance variables, and of the utilities.
    shift, scale
        Total utility = ``scale`` times the sum over all variables, plus ``shift``.
    """

    cardinalities: tuple[int, ...]
    chance: tuple[Table, ...]
    links: tuple[Table, ...]
    shift: float
    scale: float

    @classmethod
    def of(cls, diagram: Diagram, observed: Mapping[int, int] | None = None) -> Accumulated:
        """The diagram, with these states observed and decided already, as one product."""
        stages = Stages.of(diagram, {} if observed is None else observed)
        n = diagram.model.n_variables
        lows = [float(u.table.min()) for u in diagram.utilities]
        scale = max(float(u.table.max()) - low for u, low in zip(diagram.utilities, lows, strict=True)) or 1.0
        stage_of = [max((stages.influenced[v] for v in u.scope), default=-1) for u in diagram.utilities]
        order = sorted(range(len(diagram.utilities)), key=lambda k: stage_of[k])
        links: list[Table] = []
        for place, k in enumerate(order):
            first, last = place == 0, place == len(order) - 1
            utility = diagram.utilities[k]
            chain = (n + place - 1, n + place)[int(first) : 2 - int(last)]
            links.append(((*chain, *utility.scope), _link((utility.table - lows[k]) / scale, first, last)))
        return cls(
            cardinalities=(*diagram.model.cardinalities.tolist(), *[2] * (len(order) - 1)),
            chance=tuple((scope, table) for scope, table in diagram.model.factors()),
            links=tuple(links),
            shift=math.fsum(lows),
            scale=scale,
        )

    def model(self, more: tuple[Table, ...] = ()) -> Model:
        """All tables, and some more: those of policies."""
        return Model.from_factors(self.cardinalities, [*self.chance, *self.links, *more], log=True)

    def utility(self, log_value: float, log_given: float, side: float) -> float:
        """The utility in the user's units, rounded outward.

        Parameters
        ----------
        log_value
            The log of a bound on the sum.
        log_given
            The log of a bound on the probability of what is observed, on the other side.
        side
            1 for an upper bound, -1 for a lower one.
        """
        # Tables are logs of numbers that are rounded: one of each table is in every product.
        logs = [table[np.isfinite(table)] for _, table in (*self.chance, *self.links)]
        room = math.fsum(1.0 + float(np.abs(log).max(initial=0.0)) for log in logs) * 2.0**-50
        log_ratio = -math.inf
        if log_value > -math.inf:
            if log_given == -math.inf:
                return math.inf
            log_ratio = log_value - log_given
            log_ratio += side * (room + 2.0**-50 * (abs(log_value) + abs(log_given)))
            if log_ratio > LARGEST:
                return math.inf
        product = self.scale * math.exp(log_ratio)
        value = product * (1.0 + side * 2.0**-50) + self.shift
        return value + side * 2.0**-50 * (abs(product) + abs(self.shift))


LARGEST = 700.0
"""Logs beyond this are of no use in the user's units."""


def _link(scaled: FloatArray, first: bool, last: bool) -> FloatArray:
    """The log table of a utility with a variable of the chain on each side; the chain begins with 0 and ends with 1."""
    table = np.zeros((2, 2, *scaled.shape))
    table[0, 0] = table[1, 1] = 1.0
    table[0, 1] = scaled
    return log_of_probabilities(table[0 if first else slice(None), 1 if last else slice(None)])
