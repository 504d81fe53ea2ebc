"""Diagram: an influence diagram: chance variables with tables, decisions, and utilities that add up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.model.keys import as_text, listed
from powersum.model.model import Model, VariableKey

ROUNDING = 1e-6
"""How far the sum of a row of a table may be from one: rows are made to sum to one."""


@dataclass(frozen=True, slots=True, eq=False)
class Utility:
    """A part of the utility: all parts are added.

    Parameters
    ----------
    scope
        The variables that it depends on.
    table
        Its numbers, one axis a variable.
    """

    scope: tuple[int, ...]
    table: FloatArray


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision and the variables whose states are newly seen before it is made."""

    variable: int
    sees: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Diagram:
    """An influence diagram, made by :meth:`of` or read by :func:`powersum.read_diagram`.

    Parameters
    ----------
    model
        Chance variables and decisions. A factor for each chance variable: its distribution, it being the last of the
        scope.
    utilities
        Parts of the utility, which are added.
    choices
        The decisions in the order in which they are made, and what is seen before each.
    recall
        Whether what was seen and decided before is remembered (perfect recall). Else a decision knows what it sees.
    """

    model: Model
    utilities: tuple[Utility, ...]
    choices: tuple[Choice, ...]
    recall: bool = True

    @classmethod
    def of(
        cls,
        model: Model,
        utilities: Iterable[tuple[Iterable[VariableKey], Any]],
        decisions: Iterable[tuple[VariableKey, Iterable[VariableKey]]],
        *,
        recall: bool = True,
    ) -> Diagram:
        """Check an influence diagram.

        Parameters
        ----------
        model
            All variables, and a table for each chance variable with that variable last, as
            ``Model.from_tables(…, directed=True)`` makes them. Decisions have no table.
        utilities
            Pairs of the variables that a utility depends on and its table; all utilities are added.
        decisions
            Pairs of a decision and the variables that are seen before it is made, in the order of the decisions.
        recall
            Whether a decision also knows what was seen and decided before it.

        Examples
        --------
        >>> import powersum as ps
        >>> chance = ps.Model.from_factors(
        ...     [2, 2, 2], [((0,), [0.6, 0.4]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])],
        ...     names=["oil", "test", "drill"], states=[["dry", "wet"], ["bad", "good"], ["no", "yes"]])
        >>> diagram = ps.Diagram.of(chance, [(["oil", "drill"], [[0, -70], [0, 120]])], [("drill", ["test"])])
        >>> diagram
        <powersum.Diagram: 2 chance variables, 1 decision, 1 utility, perfect recall>
        """
        choices = []
        for decision, seen in decisions:
            variable = model.variable(decision, argument="decisions")
            keys = listed(seen, f"what is seen before {model.name(variable)}", "a list of variables")
            choices.append(Choice(variable, tuple(dict.fromkeys(model.variable(k, argument="seen") for k in keys))))
        parts = []
        for number, (keys_of, table) in enumerate(utilities):
            scope = tuple(model.variable(key, argument="utilities") for key in keys_of)
            if len(set(scope)) < len(scope):
                raise InputError(f"utility {number} names a variable twice")
            parts.append(Utility(scope, _table(number, model, scope, table)))
        diagram = cls(_with_normal_rows(model, {c.variable for c in choices}), tuple(parts), tuple(choices), recall)
        _check(diagram)
        return diagram

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[Any, Any],
        decisions: Mapping[str, tuple[Sequence[str], Sequence[str]]],
        utilities: Mapping[Any, Any],
        *,
        states: Mapping[str, Sequence[str] | int] | None = None,
        recall: bool = True,
    ) -> Diagram:
        """Build a diagram by hand, by names.

        Parameters
        ----------
        tables
            The distribution of each chance variable, as for :meth:`Model.from_tables`: the last variable of a key is
            the one that it is of.
        decisions
            For each decision, in their order, its states and what is seen before it.
        utilities
            For each variable, or tuple of variables, an array with one axis for each; all are added.
        states
            Labels of the states of chance variables, where tables do not tell them.
        recall
            Whether a decision also knows what was seen and decided before it.

        Examples
        --------
        >>> import powersum as ps
        >>> diagram = ps.Diagram.from_tables(
        ...     {"oil": {"dry": 0.6, "wet": 0.4}, ("oil", "test"): [[0.9, 0.1], [0.3, 0.7]]},
        ...     decisions={"drill": (["no", "yes"], ["test"])},
        ...     utilities={("oil", "drill"): [[0, -70], [0, 120]]},
        ...     states={"test": ["bad", "good"]})
        >>> print(ps.decide(diagram).rule("drill")({"test": "good"}))
        yes
        """
        labels = {**({} if states is None else states), **{name: options for name, (options, _) in decisions.items()}}
        # Decisions have no table; for a moment they have one, so that they are variables of the model.
        placeholders = {name: np.full(len(options), 1.0) for name, (options, _) in decisions.items()}
        whole = Model.from_tables({**placeholders, **tables}, states=labels, directed=True)
        model = Model.from_factors(
            whole.cardinalities.tolist(),
            list(whole.factors())[len(placeholders) :],
            log=True,
            directed=True,
            names=whole.names,
            states=whole.states,
        )
        parts = [((key,) if isinstance(key, str) else key, table) for key, table in utilities.items()]
        return cls.of(model, parts, [(name, seen) for name, (_, seen) in decisions.items()], recall=recall)

    @property
    def decisions(self) -> tuple[int, ...]:
        """The decisions in the order in which they are made."""
        return tuple(choice.variable for choice in self.choices)

    @property
    def parents(self) -> dict[int, tuple[int, ...]]:
        """The parents of each chance variable."""
        return {scope[-1]: scope[:-1] for scope, _ in self.model.factors()}

    def known(self, number: int) -> tuple[int, ...]:
        """What a decision knows, in the order in which it was seen: decisions and chance variables."""
        if not self.recall:
            return self.choices[number].sees
        known: dict[int, None] = {}
        for earlier in self.choices[:number]:
            known.update(dict.fromkeys([*earlier.sees, earlier.variable]))
        known.update(dict.fromkeys(self.choices[number].sees))
        return tuple(known)

    def __repr__(self) -> str:
        def some(n: int, what: str, many: str) -> str:
            return f"{n} {what if n == 1 else many}"

        chance = self.model.n_variables - len(self.choices)
        return (
            f"<powersum.Diagram: {some(chance, 'chance variable', 'chance variables')}, "
            f"{some(len(self.choices), 'decision', 'decisions')}, "
            f"{some(len(self.utilities), 'utility', 'utilities')}, "
            f"{'perfect recall' if self.recall else 'limited memory'}>"
        )


def _table(number: int, model: Model, scope: Sequence[int], table: Any) -> FloatArray:
    """The numbers of a utility, one axis a variable."""
    shape = tuple(int(model.cardinalities[v]) for v in scope)
    try:
        values = np.array(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"utility {number} is {as_text(table)}: give numbers") from None
    if values.size != int(np.prod(shape)) or (values.ndim > 1 and values.shape != shape):
        raise InputError(f"utility {number}: a table of shape {values.shape}, but its variables ask for {shape}")
    if not np.isfinite(values).all():
        raise InputError(f"utility {number} has an entry that is not finite")
    values = values.reshape(shape)
    values.flags.writeable = False
    return values


def _with_normal_rows(model: Model, decisions: set[int]) -> Model:
    """The model with rows that sum to one; refuses tables that are no distributions of chance variables."""
    owner: dict[int, int] = {}
    logs = model.log_values.copy()
    for number in range(model.n_factors):
        scope = model.scope(number).tolist()
        if not scope:
            raise InputError(f"factor {number} has no variable: an influence diagram has a table for each of its own")
        child = scope[-1]
        if child in decisions:
            raise InputError(f"factor {number} is a table of the decision {model.name(child)}: decisions have none")
        if child in owner:
            raise InputError(f"variable {model.name(child)} has two tables: factors {owner[child]} and {number}")
        owner[child] = number
        begin, end = int(model.table_starts[number]), int(model.table_starts[number + 1])
        rows = np.exp(logs[begin:end]).reshape(-1, int(model.cardinalities[child]))
        sums = rows.sum(axis=1)
        bad = ~(np.abs(sums - 1.0) <= ROUNDING * max(2, rows.shape[1]))
        if bad.any():
            raise InputError(
                f"factor {number}: a row of the table of variable {model.name(child)} sums to "
                f"{sums[bad][0]:.10g}, not to 1"
            )
        logs[begin:end] -= np.repeat(np.log(sums), rows.shape[1])
    return model.with_log_values(logs)


def _check(diagram: Diagram) -> None:
    """Refuse a diagram without decisions or utilities, without a table, or with a cyclic order."""
    model = diagram.model
    if not diagram.choices:
        raise InputError("the diagram has no decision")
    if not diagram.utilities:
        raise InputError("the diagram has no utility")
    decisions = diagram.decisions
    if len(set(decisions)) < len(decisions):
        raise InputError("a decision is listed twice")
    parents = diagram.parents
    missing = [v for v in range(model.n_variables) if v not in parents and v not in set(decisions)]
    if missing:
        raise InputError(f"chance variable {model.name(missing[0])} has no table")
    graph: dict[int, set[int]] = {v: set(above) for v, above in parents.items()}
    for number, choice in enumerate(diagram.choices):
        seen = diagram.known(number)
        if choice.variable in seen:
            raise InputError(f"decision {model.name(choice.variable)} sees itself")
        # A decision comes after the one before it, also where it does not remember it.
        graph[choice.variable] = {*seen, *decisions[max(number - 1, 0) : number]}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        names = " → ".join(model.name(v) for v in error.args[1])
        raise InputError(f"the order of what is seen and decided is cyclic: {names}") from None
