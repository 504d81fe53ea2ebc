"""The truth by brute force in plain NumPy, with a bound on its own error. Shares no code with powersum.

Logs of the joint table are added up in extended precision where the machine has it; ``error`` bounds what rounding
can have done, by the machine's own unit, so that a claim is false only if it is false beyond that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

LongArray = npt.NDArray[np.longdouble]
UNIT = float(np.finfo(np.longdouble).eps)
DOUBLE = float(np.finfo(np.float64).eps)


class Truth:
    """The value of a question, of its assignments, and its marginals.

    Parameters
    ----------
    cards
        Number of states of each variable.
    factors
        Scope and table of natural logs of each factor.
    weights
        Weight of each variable: 1 sums, 0 maximises.
    evidence
        Observed states, or likelihoods of all states.
    order
        Order of elimination; larger weights first where there is none.
    """

    def __init__(
        self,
        cards: Sequence[int],
        factors: Iterable[tuple[Sequence[int], npt.NDArray[np.float64]]],
        weights: Sequence[float],
        evidence: Mapping[int, int | tuple[float, ...]],
        order: Sequence[int] | None = None,
    ) -> None:
        self.cards, self.weights = list(cards), list(weights)
        self.observed = {v: seen for v, seen in evidence.items() if isinstance(seen, int)}
        self.order = sorted(range(len(cards)), key=lambda v: -weights[v]) if order is None else list(order)
        tables = [(list(scope), np.asarray(table)) for scope, table in factors]
        rounded = 0.0
        for v, seen in evidence.items():
            if not isinstance(seen, int):
                with np.errstate(divide="ignore"):
                    likelihood = np.log(np.asarray(seen, dtype=np.longdouble))
                # The model holds logs in double precision: those are the numbers the claim is about.
                rounded += DOUBLE * _largest(likelihood)
                tables.append(([v], likelihood))
        shape = [1 if v in self.observed else card for v, card in enumerate(cards)]
        joint: LongArray = np.zeros(shape, dtype=np.longdouble)
        partial = 0.0
        for scope, table in tables:
            for axis, v in enumerate(scope):
                if v in self.observed:
                    table = np.take(table, [self.observed[v]], axis=axis)
            partial += _largest(table)
            place = [1] * len(shape)
            for v in scope:
                place[v] = shape[v]
            joint = joint + np.transpose(table, np.argsort(scope)).reshape(place)
        self.joint = joint
        self._joint_error = rounded + (len(tables) + 1) * UNIT * partial
        self.value, self.error = self._eliminated(joint)

    def _eliminated(self, table: LongArray) -> tuple[float, float]:
        """The power sum over all variables, in their order, and a bound on its error."""
        error = self._joint_error
        for v in self.order:
            error += (table.shape[v] + 8) * UNIT * max(self.weights[v], 1.0) + 4 * UNIT * _largest(table)
            table = _power_sum(table, v, self.weights[v])
        value = float(table.reshape(()))
        # The value is handed over in double precision.
        return value, error + (DOUBLE * abs(value) if np.isfinite(value) else 0.0)

    def assigned(self, states: Mapping[int, int]) -> tuple[float, float]:
        """The value with some variables set, and a bound on its error; -inf where evidence says otherwise."""
        table = self.joint
        for v, state in states.items():
            if v in self.observed:
                if self.observed[v] != state:
                    return -np.inf, 0.0
            else:
                table = np.take(table, [state], axis=v)
        return self._eliminated(table)

    def of_assignments(self) -> tuple[LongArray, float]:
        """The values of all assignments of the max variables, and a bound on their error; other axes have length 1."""
        table, error = self.joint, self._joint_error
        for v in self.order:
            if self.weights[v] != 0.0:
                error += (table.shape[v] + 8) * UNIT * max(self.weights[v], 1.0) + 4 * UNIT * _largest(table)
                table = _power_sum(table, v, self.weights[v])
        return table, error + DOUBLE * _largest(table)

    def marginals(self) -> list[npt.NDArray[np.float64]]:
        """The distribution of every variable, all others summed out."""
        mass = np.exp(self.joint - self.joint.max())
        total = mass.sum()
        found = []
        for v, card in enumerate(self.cards):
            belief = np.zeros(card)
            summed = mass.sum(axis=tuple(u for u in range(len(self.cards)) if u != v)) / total
            belief[self.observed[v] if v in self.observed else slice(None)] = (
                summed[0] if v in self.observed else summed
            )
            found.append(belief)
        return found


def _largest(table: npt.NDArray[np.floating]) -> float:
    """The largest finite size of an entry."""
    finite = table[np.isfinite(table)]
    return float(np.abs(finite).max(initial=0.0))


def _power_sum(table: LongArray, axis: int, weight: float) -> LongArray:
    """``weight · log Σ exp(t / weight)`` over one axis, which stays with length 1; the maximum for weight 0."""
    top = table.max(axis=axis, keepdims=True)
    if weight == 0.0 or table.shape[axis] == 1:
        return np.asarray(top)
    safe = np.where(np.isneginf(top), np.longdouble(0.0), top)
    with np.errstate(divide="ignore", under="ignore"):
        inner = np.exp((table - safe) / np.longdouble(weight)).sum(axis=axis, keepdims=True)
        return np.asarray(np.where(np.isneginf(top), -np.inf, safe + np.longdouble(weight) * np.log(inner)))
