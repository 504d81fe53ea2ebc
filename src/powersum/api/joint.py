"""Joint distributions: one more variable, whose state says those of several, has them as its own distribution."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, starts_of
from powersum.core.errors import InputError
from powersum.model.interval import Interval
from powersum.model.keys import as_text, listed
from powersum.model.model import Model, StateKey
from powersum.model.simplex import Sides, entropy, expected
from powersum.run.distributions import exactly_known

MOST_STATES = 2_000
"""States that a joint distribution may have: its square is a table."""

Group = tuple[int, ...]


class Shares:
    """What distributions of one and of several variables have in common: both sides of each probability, as logs."""

    __slots__ = ()

    log_lower: FloatArray
    log_upper: FloatArray

    def at(self, *places: int) -> Interval:
        """The probability of a state, or of one for each variable, at places that are counted from 0."""
        return Interval(float(self.log_lower[places]), float(self.log_upper[places]))

    def __len__(self) -> int:
        return int(self.log_lower.size)

    @property
    def exact(self) -> bool:
        """True where every probability is known exactly."""
        return bool(exactly_known(self.log_lower, self.log_upper).all())

    @property
    def unknown(self) -> bool:
        """True where nothing is known of any probability."""
        return bool((self.log_lower == -np.inf).all() and (self.log_upper == 0.0).all())

    def entropy(self) -> Sides:
        """The entropy, in nats, from both sides."""
        return entropy(*self._sides())

    def expected(self, values: Any) -> Sides:
        """The expected value of numbers, one for each state with an axis for each variable, from both sides."""
        return expected(*self._sides(), numbers(values, self.log_lower.shape))

    def _sides(self) -> tuple[FloatArray, FloatArray]:
        found = [self.at(*places) for places in np.ndindex(self.log_lower.shape)]
        return np.array([one.lower for one in found]), np.array([one.upper for one in found])


@dataclass(frozen=True, slots=True, eq=False)
class Joint(Shares, Mapping[tuple[StateKey, ...], Interval]):
    """The probability of each combination of states of several variables: ``m["a", "b"]["yes", "no"]``.

    Parameters
    ----------
    model
        The model that it is about.
    variables
        The variables, by number.
    log_lower, log_upper
        Both sides as natural logs, with an axis for each variable.
    beliefs
        One number for each, within its interval.
    """

    model: Model
    variables: Group
    log_lower: FloatArray
    log_upper: FloatArray
    beliefs: FloatArray

    def __getitem__(self, key: Any) -> Interval:
        if not isinstance(key, tuple) or len(key) != len(self.variables):
            raise InputError(f"states: {as_text(key)} is no combination of {len(self.variables)} states")
        return self.at(
            *(self.model.state(v, one, argument="state") for v, one in zip(self.variables, key, strict=True))
        )

    def __iter__(self) -> Iterator[tuple[StateKey, ...]]:
        for places in np.ndindex(self.log_lower.shape):
            yield tuple(self.model.label(v, s) for v, s in zip(self.variables, places, strict=True))

    def mutual_information(self) -> Sides:
        """How much the first variable tells about the others, in nats, from both sides."""
        lower, upper = self._sides()
        whole = entropy(lower, upper)
        shape = self.log_lower.shape
        first, others = (
            entropy(*(np.minimum(side.reshape(shape[0], -1).sum(axis=axis), 1.0) for side in (lower, upper)))
            for axis in (1, 0)
        )
        most = min(first.upper + others.upper - whole.lower, first.upper, others.upper)
        return Sides(max(min(first.lower + others.lower - whole.upper, most), 0.0), max(most, 0.0))

    def __repr__(self) -> str:
        names = ", ".join(self.model.name(v) for v in self.variables)
        return f"<{names}: {len(self)} combinations>"


def numbers(values: Any, shape: tuple[int, ...]) -> FloatArray:
    """Finite numbers, one for each state; or a refusal."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"values is {as_text(values)}: give a number for each state") from None
    if found.shape != shape and found.size != math.prod(shape):
        raise InputError(f"values has the shape {found.shape}: it must be {shape}")
    if not np.isfinite(found).all():
        raise InputError("values must be finite numbers")
    return found.ravel()


def asked_variables(model: Model, of: Iterable[Any]) -> tuple[list[int], list[Group]]:
    """The variables of ``of``, and those that are asked for together."""
    single, groups = [], []
    for key in listed(of, "of", "a list of variables, or of tuples of variables"):
        if not isinstance(key, (tuple, list)):
            single.append(model.variable(key, argument="of"))
            continue
        group = tuple(model.variable(one, argument="of") for one in key)
        names = ", ".join(model.name(v) for v in group)
        if len(set(group)) < len(group):
            raise InputError(f"of: ({names}) has a variable twice")
        if len(group) < 2:
            raise InputError(f"of: ({names}) is a single variable: give it alone, or two and more together")
        states = math.prod(model.cardinalities[list(group)].tolist())
        if states > MOST_STATES:
            raise InputError(
                f"of: the joint table of ({names}) has {states} entries, and at most {MOST_STATES} can be had"
            )
        if group not in groups:
            groups.append(group)
    return single, groups


def with_joints(model: Model, groups: Sequence[Group]) -> Model:
    """The model with a variable more for each group, whose state is the combination of theirs."""
    if not groups:
        return model
    sizes, scopes, tables = model.cardinalities.tolist(), [], []
    names = None if model.names is None else list(model.names)
    states = None if model.states is None else list(model.states)
    for group in groups:
        cards = [sizes[v] for v in group]
        combinations = np.indices(cards).reshape(len(group), -1)
        for v, own in zip(group, combinations, strict=True):
            scopes.append((len(sizes), v))
            tables.append(np.where(own[:, None] == np.arange(sizes[v])[None, :], 0.0, -np.inf).ravel())
        sizes.append(combinations.shape[1])
        if names is not None:
            name = f"({', '.join(names[v] for v in group)})"
            while name in names:
                name += "'"
            names.append(name)
        if states is not None:
            states.append(tuple(", ".join(labels) for labels in product(*(states[v] for v in group))))
    return Model(
        cardinalities=np.array(sizes),
        scope_starts=np.concatenate([model.scope_starts[:-1], model.scope_starts[-1] + starts_of([2] * len(scopes))]),
        scope_variables=np.concatenate([model.scope_variables, np.array(scopes).ravel()]),
        table_starts=np.concatenate(
            [model.table_starts[:-1], model.table_starts[-1] + starts_of([len(table) for table in tables])]
        ),
        log_values=np.concatenate([model.log_values, *tables]),
        names=None if names is None else tuple(names),
        states=None if states is None else tuple(states),
        title=model.title,
    )
