"""Problem: what is left of a model and a query after simplification, and the way back to the original."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, positions_of, starts_of
from powersum.model.model import Model
from powersum.model.query import weight_ranks
from powersum.prepare.fates import Fates


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A simplified problem: every variable has at least two possible states and lies in at least one factor.

    The value of the original question is the value of ``model`` under ``tau`` plus ``log_constant``.

    Parameters
    ----------
    model
        The reduced model; its variables are numbered anew. No scope is a subset of another, no state is impossible.
    tau
        Weight of each reduced variable.
    log_constant
        What the removed parts contribute; ``-inf`` where evidence has probability zero.
    log_error
        How far rounding during simplification can have moved the value: bounds on the original question count it in.
    variables
        Original index of each reduced variable.
    kept_state_starts, kept_states
        State ``s`` of reduced variable ``i`` is the original state ``kept_states[kept_state_starts[i] + s]``.
    fixed_states
        For each original variable that is not in the reduced model its state (evidence, the only possible one, or any
        of several equally good ones); -1 for reduced variables and for removed sum variables, which have none.
    component
        Number of the connected component of each reduced variable.
    original_tau
        Weight of each original variable.
    possible
        For each state of each original variable, variable after variable, False where evidence or zeros were found to
        exclude it. The possible states of a removed variable are equally likely, unless it was barren.
    fates
        What became of each factor of the original model.
    blocks
        The block of each reduced variable, 0 is eliminated first; None for the order of the weights.
    """

    model: Model
    tau: FloatArray
    log_constant: float
    log_error: float
    variables: IntArray
    kept_state_starts: IntArray
    kept_states: IntArray
    fixed_states: IntArray
    component: IntArray
    original_tau: FloatArray
    possible: BoolArray
    fates: Fates
    blocks: IntArray | None = None

    @classmethod
    def whole(cls, model: Model, tau: FloatArray, evidence: Mapping[int, int]) -> Problem:
        """The question as it is, nothing simplified: for answers in the model's own variables.

        Variables may have one state, or lie in no factor.
        """
        fixed = np.full(model.n_variables, -1, dtype=np.int64)
        fixed[list(evidence)] = list(evidence.values())
        starts = starts_of(model.cardinalities)
        return cls(
            model=model,
            tau=tau,
            log_constant=0.0,
            log_error=0.0,
            variables=np.arange(model.n_variables),
            kept_state_starts=starts,
            kept_states=np.arange(starts[-1]) - np.repeat(starts[:-1], model.cardinalities),
            fixed_states=fixed,
            component=np.zeros(model.n_variables, dtype=np.int64),
            original_tau=tau,
            possible=np.ones(int(starts[-1]), dtype=np.bool_),
            fates=Fates.of(model),
        )

    @property
    def rank(self) -> IntArray:
        """The number of each reduced variable's block, as :attr:`powersum.model.query.Query.rank` has it."""
        return weight_ranks(self.tau) if self.blocks is None else self.blocks

    @property
    def feasible(self) -> bool:
        """False when simplification already showed that nothing has positive probability."""
        return self.log_constant != -np.inf

    @property
    def n_components(self) -> int:
        """Number of connected components of the reduced model."""
        return int(self.component.max(initial=-1)) + 1

    def restore(self, states: IntArray) -> IntArray:
        """Original states of all original variables from reduced ones; -1 where a variable has none (summed out)."""
        restored = self.fixed_states.copy()
        known = states >= 0
        restored[self.variables[known]] = self.kept_states[self.kept_state_starts[:-1][known] + states[known]]
        return restored

    def reduced_states(self, states: IntArray) -> IntArray:
        """Reduced states of max variables from original ones, the other way round than :meth:`restore`.

        -1 where a variable has none, or one that is not possible.
        """
        reduced = np.full(len(self.variables), -1, dtype=np.int64)
        owner = np.repeat(np.arange(len(self.variables)), np.diff(self.kept_state_starts))
        places = np.flatnonzero(self.kept_states == states[self.variables[owner]])
        reduced[owner[places]] = places - self.kept_state_starts[:-1][owner[places]]
        return np.where(self.tau == 0.0, reduced, -1)

    def reduced_order(self, order: IntArray) -> IntArray:
        """An elimination order of the original variables as one of the reduced variables."""
        position = positions_of(self.variables, len(self.original_tau))
        reduced = position[order]
        return reduced[reduced >= 0]
