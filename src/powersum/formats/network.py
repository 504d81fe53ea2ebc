"""A Bayesian network as its file tells it, variable by variable and table by table, and the model that comes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

import numpy as np

from powersum.core.arrays import FloatArray, starts_of
from powersum.core.errors import InputError
from powersum.core.files import PathLike, shown
from powersum.interop.distributions import MAX_ENTRIES, sums_to_one, with_sum_note
from powersum.model.model import Model


@dataclass(frozen=True, slots=True)
class _Table:
    """The distribution of a variable: logs in the order of the file, and whether that order is to be believed."""

    parents: tuple[int, ...]
    log_values: FloatArray
    certain: bool


@dataclass(slots=True)
class Network:
    """Collects variables and tables, and refuses in one line what does not fit together.

    Parameters
    ----------
    path
        The file, for messages.
    child_first
        In which order the format has a whole table: its own variable slowest, before the parents, or fastest, behind
        them. Parents are in their order, the last of them faster than the first.
    line_of
        The line of a place in the file, asked for by errors alone. What a place is, is up to the reader.
    """

    path: PathLike
    child_first: bool
    line_of: Callable[[int], int]
    numbers: dict[str, int] = field(default_factory=dict)
    states: list[tuple[str, ...]] = field(default_factory=list)
    _places: list[int] = field(default_factory=list)
    _tables: dict[int, _Table] = field(default_factory=dict)
    _entries: int = 0

    def error(self, place: int, message: str) -> InputError:
        """The error that says ``message`` about a place."""
        return InputError(f"{shown(self.path)}: line {self.line_of(place)}: {message}")

    def declare(self, name: str, labels: Sequence[str], place: int) -> None:
        """A variable and its states."""
        for word in (name, *labels):
            if not word:
                raise self.error(place, f"a name of variable {short(name)} is empty")
            if not word.isprintable():
                raise self.error(place, f"the name {short(word)} holds what cannot be shown")
        if name in self.numbers:
            raise self.error(place, f"variable {short(name)} is declared twice")
        if not labels:
            raise self.error(place, f"variable {short(name)} has no states")
        if len(set(labels)) < len(labels):
            twice = next(label for k, label in enumerate(labels) if label in labels[:k])
            raise self.error(place, f"variable {short(name)} has two states called {short(twice)}")
        self.numbers[name] = len(self.numbers)
        self.states.append(tuple(labels))
        self._places.append(place)

    def scope(self, child: str, parents: Sequence[str], place: int) -> tuple[int, ...]:
        """The variables of a table, parents first; refuses those that are not known, repeated, or have a table."""
        for name in (child, *parents):
            if name not in self.numbers:
                raise self.error(place, f"variable {short(name)} is not declared")
        numbers = [self.numbers[name] for name in (*parents, child)]
        if len(set(numbers)) < len(numbers):
            raise self.error(place, f"the distribution of variable {short(child)} names a variable twice")
        if numbers[-1] in self._tables:
            raise self.error(place, f"variable {short(child)} has two distributions")
        return tuple(numbers)

    def size(self, variables: Sequence[int], place: int) -> int:
        """Number of joint states; refuses more than a model can have."""
        size = math.prod(len(self.states[v]) for v in variables)
        if self._entries + size > MAX_ENTRIES:
            raise self.error(place, f"tables of more than {MAX_ENTRIES} entries are too much for one model")
        return size

    def add(self, scope: Sequence[int], log_values: FloatArray, *, certain: bool) -> None:
        """A table over ``scope``, whose last variable is the child.

        ``certain`` if the entries are known to be in the order of the scope; otherwise they are in that of the format,
        and the sums will tell.
        """
        self._entries += log_values.size
        self._tables[scope[-1]] = _Table(tuple(scope[:-1]), log_values, certain or len(scope) == 1)

    def model(self) -> Model:
        """The model, once everything has been told."""
        names = list(self.numbers)
        if not names:
            raise InputError(f"{shown(self.path)}: holds no variables")
        for v, name in enumerate(names):
            if v not in self._tables:
                raise self.error(self._places[v], f"variable {short(name)} has no distribution")
        tables = [self._tables[v] for v in range(len(names))]
        try:
            TopologicalSorter({v: table.parents for v, table in enumerate(tables)}).prepare()
        except CycleError as error:
            name = names[error.args[1][0]]
            raise InputError(f"{shown(self.path)}: variable {short(name)} is among its own ancestors") from None
        child_first, notes = self._order(tables)
        values = [
            table.log_values
            if table.certain or not child_first
            else table.log_values.reshape(len(self.states[v]), -1).T.ravel()
            for v, table in enumerate(tables)
        ]
        model = Model(
            cardinalities=np.array([len(labels) for labels in self.states]),
            scope_starts=starts_of([len(table.parents) + 1 for table in tables]),
            scope_variables=np.array([u for v, table in enumerate(tables) for u in (*table.parents, v)]),
            table_starts=starts_of([own.size for own in values]),
            log_values=np.concatenate(values),
            directed=True,
            names=tuple(names),
            states=tuple(self.states),
            notes=notes,
        )
        return with_sum_note(model, f"{shown(self.path)}: ")

    def _order(self, tables: list[_Table]) -> tuple[bool, tuple[str, ...]]:
        """Whether whole tables have their own variable first, and what to say about it.

        Programs disagree about the order. That of the format is taken unless every table of the file is a set of
        distributions in the other one, and not every table in its own.
        """
        uncertain = [(len(self.states[v]), table) for v, table in enumerate(tables) if not table.certain]
        if all(_is_normal(size, table, self.child_first) for size, table in uncertain):
            return self.child_first, ()
        if not all(_is_normal(size, table, not self.child_first) for size, table in uncertain):
            return self.child_first, ()
        speed = "fastest" if self.child_first else "slowest"
        note = f"{shown(self.path)}: the tables sum to 1 only if their own variable runs {speed}, and are read so"
        return not self.child_first, (f"{note}, against the format",)


def _is_normal(size: int, table: _Table, child_first: bool) -> bool:
    with np.errstate(over="ignore", under="ignore"):
        values = np.exp(table.log_values)
    sums = values.reshape(size, -1).sum(axis=0) if child_first else values.reshape(-1, size).sum(axis=1)
    return bool(sums_to_one(sums, size).all())


def short(word: str) -> str:
    """A name as messages show it: on one line and not too long."""
    cut = word if len(word) <= 40 else word[:40] + "…"
    return cut if cut.isprintable() and cut else repr(cut)
