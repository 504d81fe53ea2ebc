"""Model: variables and factors of a graphical model, immutable, in a few flat arrays."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray, given_up, owned, starts_of
from powersum.core.errors import InputError
from powersum.model.above import above
from powersum.model.keys import (
    as_text,
    label_text,
    number_of,
    numbered,
    pairs_of,
    place_of,
    whole,
    whole_value,
)
from powersum.model.log_values import check_log_values, log_values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VariableKey = int | str
StateKey = int | str

MOST_LISTED = 8
"""States that a message lists; more would bury what it says."""


class Factor(NamedTuple):
    """A view of one factor: its variables and its table of natural logs, one axis a variable."""

    scope: tuple[int, ...]
    log_table: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A discrete graphical model: the product of non-negative factors over finite variables.

    All tables lie one after another in ``log_values``. A million factors are a few arrays, without a Python object
    for each. Build one with :meth:`from_factors`, or read a file with
    :func:`powersum.read`. Arrays are read-only.

    Parameters
    ----------
    cardinalities
        Number of states of each variable.
    scope_starts, scope_variables
        The scope of factor ``k`` is ``scope_variables[scope_starts[k]:scope_starts[k + 1]]``.
    table_starts, log_values
        Its table, as natural logs, is ``log_values[table_starts[k]:table_starts[k + 1]]``: the first variable of the
        scope varies slowest, the last fastest. Zero probability is ``-inf``.
    directed
        True for a Bayesian network: each factor is the distribution of the last variable of its scope.
    names, states
        Names of the variables and labels of their states; ``None`` means the numbers 0, 1, 2, ….
    notes
        What the reader of the model found odd, such as distributions that do not sum to one. The command line
        prints them.
    title
        What the model is called, such as the name of its file; nothing but people reads it.
    aliases
        For each variable another name by which it is found, such as the text that GeNIe shows for it.
    """

    cardinalities: IntArray
    scope_starts: IntArray
    scope_variables: IntArray
    table_starts: IntArray
    log_values: FloatArray
    directed: bool = False
    names: tuple[str, ...] | None = None
    states: tuple[tuple[str, ...], ...] | None = None
    notes: tuple[str, ...] = ()
    title: str = ""
    aliases: tuple[str, ...] | None = None
    _digests: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _numbers: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("cardinalities", "scope_starts", "scope_variables", "table_starts"):
            object.__setattr__(self, name, owned(whole_numbers(getattr(self, name), name), np.int64))
        object.__setattr__(self, "log_values", owned(self.log_values, np.float64))
        _check(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Made anew in the process that it travels to: arrays come out of a pickle writable, and to compiled code an
        # array that may be written to is of another type.
        return Model, tuple(getattr(self, item.name) for item in fields(self) if item.init)

    @classmethod
    def from_factors(
        cls,
        cardinalities: Sequence[int],
        factors: Iterable[tuple[Iterable[int], Any]],
        *,
        log: bool = False,
        directed: bool = False,
        names: Sequence[str] | None = None,
        states: Sequence[Sequence[str]] | None = None,
    ) -> Model:
        """Build a model from ``(scope, table)`` pairs; tables hold probabilities, or their logs with ``log=True``.

        Examples
        --------
        >>> import powersum as ps
        >>> model = ps.Model.from_factors([2, 2], [((0,), [0.6, 0.4]), ((0, 1), [[0.9, 0.1], [0.2, 0.8]])])
        >>> model.n_variables, model.n_factors
        (2, 2)
        """
        sizes = [whole(size, f"the number of states of variable {v}") for v, size in enumerate(cardinalities)]
        scopes: list[tuple[int, ...]] = []
        tables: list[FloatArray] = []
        for number, (scope, table) in enumerate(factors):
            values = np.asarray(table, dtype=np.float64)
            axes = tuple(whole(v, f"factor {number}: a variable of its scope") for v in scope)
            expected = tuple(sizes[v] if 0 <= v < len(sizes) else -1 for v in axes)
            if values.size != math.prod(expected) or (values.ndim > 1 and values.shape != expected):
                raise InputError(f"factor {number}: table of shape {values.shape} does not fit scope {axes}")
            tables.append(values.ravel())
            scopes.append(axes)
        flat = np.concatenate(tables) if tables else np.zeros(0)
        if not log:
            flat = log_of_probabilities(flat)
        return cls(
            cardinalities=np.asarray(sizes, dtype=np.int64),
            scope_starts=starts_of([len(s) for s in scopes]),
            scope_variables=np.asarray([v for s in scopes for v in s], dtype=np.int64),
            table_starts=starts_of([t.size for t in tables]),
            log_values=given_up(flat),
            directed=directed,
            names=None if names is None else tuple(names),
            states=None if states is None else tuple(tuple(s) for s in states),
        )

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
        *,
        states: Mapping[str, Sequence[str] | int] | None = None,
        log: bool = False,
        directed: bool = False,
    ) -> Model:
        """Build a model by hand from a dictionary of tables; variables are numbered as they first appear.

        Parameters
        ----------
        tables
            For each variable, or tuple of variables, an array with one axis for each, or dictionaries of the states'
            labels nested as deep. Pairs do as well as a dictionary where a scope occurs twice.
        states
            Labels of a variable's states, or only their number; what is left out is read off the tables.
        log
            True if the tables hold natural logs.
        directed
            True for a Bayesian network: each table is the distribution of the last variable of its key given the rest.

        Examples
        --------
        >>> import powersum as ps
        >>> model = ps.Model.from_tables(
        ...     {"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]},
        ...     states={"wet": ["dry", "wet"]}, directed=True)
        >>> model.names, model.states
        (('rain', 'wet'), (('no', 'yes'), ('dry', 'wet')))
        """
        found: Model = above("model_from_tables")(tables, states, log=log, directed=directed)
        return found

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.cardinalities)

    @property
    def n_factors(self) -> int:
        """Number of factors, constants included."""
        return len(self.scope_starts) - 1

    @property
    def identity(self) -> str:
        """SHA-256 of numbers, names, labels and notes: equal for models that give each question the same result."""
        if "identity" not in self._digests:
            said = repr((self.digest, self.names, self.states, self.directed, self.notes, self.title))
            self._digests["identity"] = hashlib.sha256(said.encode()).hexdigest()
        return self._digests["identity"]

    @property
    def digest(self) -> str:
        """SHA-256 of all numbers of the model: see :func:`powersum.model.digest.values_digest`."""
        if "values" not in self._digests:
            from powersum.model.digest import values_digest

            self._digests["values"] = values_digest(self)
        return self._digests["values"]

    @property
    def structure(self) -> str:
        """SHA-256 of states, scopes and zeros, as in certificates: :func:`powersum.model.digest.structure_digest`."""
        if "structure" not in self._digests:
            from powersum.model.digest import structure_digest

            self._digests["structure"] = structure_digest(self)
        return self._digests["structure"]

    def scope(self, factor: int) -> IntArray:
        """Variables of one factor, as in the file."""
        return self.scope_variables[self.scope_starts[factor] : self.scope_starts[factor + 1]]

    def factor(self, factor: int) -> Factor:
        """Scope and log table of one factor, as views."""
        scope = self.scope(factor)
        flat = self.log_values[self.table_starts[factor] : self.table_starts[factor + 1]]
        return Factor(tuple(int(v) for v in scope), flat.reshape(self.cardinalities[scope]))

    def factors(self) -> Iterator[Factor]:
        """All factors in turn, as views made on the way."""
        return (self.factor(k) for k in range(self.n_factors))

    def name(self, variable: int) -> str:
        """Name of a variable; its number where the model has no names."""
        return str(variable) if self.names is None else self.names[variable]

    def label(self, variable: int, state: int) -> StateKey:
        """Label of a state; its number where the model has no labels."""
        return state if self.states is None else self.states[variable][state]

    def variable(self, key: VariableKey, *, argument: str = "key") -> int:
        """Index of the variable with this name or number; messages name ``argument``."""
        if self.names is not None and not self._numbers:
            for v, alias in enumerate(self.aliases or ()):
                # An alias of two variables names neither; one in digits would be taken for a place.
                if not alias.isdecimal():
                    self._numbers[alias] = -1 if alias in self._numbers else v
            self._numbers.update((name, v) for v, name in enumerate(self.names))
        if isinstance(key, str) and key in self._numbers:
            found = self._numbers[key]
            if found < 0:
                own = [name for name, alias in zip(self.names or (), self.aliases or (), strict=True) if alias == key]
                raise InputError(f"{argument}: {len(own)} variables are shown as {key!r}: name one of {', '.join(own)}")
            return found
        index = place_of(key)
        if index is None:
            index = number_of(key, argument, "variable")
            if index is None or (isinstance(key, str) and numbered(self.names or ())):
                raise InputError(f"no variable is called {as_text(key)}{_closest(str(key), self.names or ())}")
            called = None if isinstance(key, str) else self._numbers.get(str(index))
            if called is not None:
                if called != index and 0 <= index < self.n_variables:
                    raise _two_meanings(argument, f"variable {index}", index, str(index))
                return called
        if not 0 <= index < self.n_variables:
            raise InputError(f"variable {key} is out of range: the model has variables 0 to {self.n_variables - 1}")
        return index

    def state(self, variable: int, key: StateKey, *, argument: str = "key") -> int:
        """Index of the state of ``variable`` with this label or number.

        Where labels begin like numbers, text names labels only, and a place is written ``"#0"``. A whole number that
        could be a label and the place of another state is refused. ``1.0`` counts as 1 where no label is ``"1.0"``.
        """
        labels = self.states[variable] if self.states is not None else ()
        text = label_text(key)
        if text is not None and text in labels:
            return labels.index(text)
        cardinality = int(self.cardinalities[variable])
        index = place_of(key)
        if index is None:
            kind, is_text = f"state of variable {self.name(variable)}", isinstance(key, str)
            index = None if text is None else whole_value(text)
            if index is None:
                # Refuses what is neither text nor a whole number.
                index = number_of(key, argument, kind)
            called = [] if index is None else [x for x, label in enumerate(labels) if whole_value(label) == index]
            # A number with a point counts no places where labels are numbers.
            if index is None or (text is not None and numbered(labels) and len(called) != 1):
                if not is_text:
                    number_of(key, argument, kind)
                hint = _closest(str(key), labels) or _all_of(labels)
                raise InputError(f"variable {self.name(variable)} has no state {as_text(key)}{hint}")
            if called:
                if not is_text and called != [index] and (len(called) > 1 or 0 <= index < cardinality):
                    what = f"state {index} of variable {self.name(variable)}"
                    raise _two_meanings(argument, what, index, labels[called[0]])
                return called[0]
        if not 0 <= index < cardinality:
            raise InputError(
                f"state {key} of variable {self.name(variable)} is out of range: it has states 0 to {cardinality - 1}"
            )
        return index

    def evidence(self, evidence: Any) -> dict[int, int]:
        """Translate evidence by names or numbers to ``{variable index: state index}``.

        It may be a dictionary, a list of pairs, or a row of a table: a pandas Series or a named tuple. Missing values
        are not observed.
        """
        found: dict[int, int] = {}
        for key, value in pairs_of(evidence, "evidence"):
            variable = self.variable(key, argument="evidence")
            state = self.state(variable, value, argument="evidence")
            if found.setdefault(variable, state) != state:
                both = f"{self.label(variable, found[variable])}, {self.label(variable, state)}"
                raise InputError(f"evidence gives variable {self.name(variable)} two states: {both}")
        return found

    def with_names(self, names: Sequence[str], states: Sequence[Sequence[str]] | None = None) -> Model:
        """The same model with other names; arrays are shared."""
        return replace(
            self, names=tuple(names), states=None if states is None else tuple(tuple(s) for s in states), aliases=None
        )

    def with_log_values(self, log_values: Any) -> Model:
        """The same structure with other table entries, as natural logs like ``log_values``.

        Structure and names are shared and not checked again. Notes, which are about the old numbers, are left behind.

        Examples
        --------
        >>> import powersum as ps
        >>> coin = ps.Model.from_tables({"side": {"heads": 0.5, "tails": 0.5}})
        >>> biased = coin.with_log_values([-0.1, -2.4])
        """
        values = owned(log_values_of(log_values, self.log_values.shape), np.float64)
        new = {"log_values": values, "notes": (), "_digests": {}, "_numbers": {}}
        other = object.__new__(Model)
        for item in fields(self):
            object.__setattr__(other, item.name, new.get(item.name, getattr(self, item.name)))
        return other

    def plot(
        self,
        maximize: Iterable[VariableKey] | str | None = None,
        evidence: Mapping[Any, Any] | None = None,
        *,
        assignment: Mapping[Any, Any] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the graph, with maximised, summed and observed variables apart; returns the axes.

        Parameters
        ----------
        maximize, evidence
            As in :func:`powersum.solve`.
        assignment
            States to write beside their variables, such as ``result.assignment``.
        ax
            Where to draw; a new figure if not given. Of a large model only what is nearest to the query is drawn.
        """
        found: Axes = above("plot_model")(self, maximize, evidence, assignment=assignment, ax=ax)
        return found

    def _repr_html_(self) -> str:
        found: str = above("model_html")(self)
        return found

    def __str__(self) -> str:
        """Size, width and cost: what summing everything out would take. Found anew each time, unlike ``repr``."""
        found: str = above("model_text")(self)
        return found

    def __repr__(self) -> str:
        kind = "Bayesian network" if self.directed else "Markov network"
        largest = int(self.cardinalities.max(initial=0))
        widest = int(np.diff(self.scope_starts).max(initial=0))
        return (
            f"<powersum.Model: {kind}, {self.n_variables} variables of up to {largest} states, "
            f"{self.n_factors} factors of up to {widest} variables, {self.log_values.size} table entries>"
        )


def log_of_probabilities(values: FloatArray) -> FloatArray:
    """Natural logs of table entries: 0 becomes ``-inf``; what is not a finite number ≥ 0 is refused."""
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        raise InputError(
            f"table entry {int(np.argmax(bad))} is {values[bad][0]}: entries must be finite and not negative"
        )
    logs = np.full(values.shape, -np.inf)
    np.log(values, out=logs, where=values > 0)
    return logs


def whole_numbers(values: Any, what: str) -> IntArray:
    """An array of whole numbers as it is; floats and truth values are refused, and not rounded."""
    array: IntArray = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{what} must hold whole numbers, not {as_text(array.ravel()[0])}")
    return array


def _check(model: Model) -> None:
    """Refuse arrays that do not describe a model; in NumPy throughout, for a million factors take no Python loop."""
    cardinalities, variables = model.cardinalities, model.scope_variables
    if len(model.table_starts) != len(model.scope_starts):
        raise InputError(f"{len(model.scope_starts)} starts of scopes, but {len(model.table_starts)} starts of tables")
    for starts, end, what in (
        (model.scope_starts, len(variables), "scopes"),
        (model.table_starts, len(model.log_values), "tables"),
    ):
        if not len(starts) or starts[0] != 0 or starts[-1] != end or (np.diff(starts) < 0).any():
            raise InputError(f"the starts of {what} must rise from 0 to {end}")
    if cardinalities.size and int(cardinalities.min()) < 1:
        raise InputError(f"variable {int(np.argmin(cardinalities))} has {int(cardinalities.min())} states")
    if variables.size and (int(variables.min()) < 0 or int(variables.max()) >= model.n_variables):
        place = int(np.argmax((variables < 0) | (variables >= model.n_variables)))
        factor = int(np.searchsorted(model.scope_starts, place, side="right")) - 1
        raise InputError(
            f"factor {factor}: variable {int(variables[place])} is out of range 0 to {model.n_variables - 1}"
        )
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    pairs = np.sort(owner * max(model.n_variables, 1) + variables)
    if pairs.size and (twice := pairs[:-1] == pairs[1:]).any():
        factor, variable = divmod(int(pairs[:-1][twice][0]), model.n_variables)
        raise InputError(f"factor {factor}: variable {variable} appears twice in its scope")
    log_sizes = np.zeros(model.n_factors)
    np.add.at(log_sizes, owner, np.log2(cardinalities[variables]))
    products = np.ones(model.n_factors, dtype=np.int64)
    np.multiply.at(products, owner, cardinalities[variables])
    sizes = np.diff(model.table_starts)
    # A product beyond the integers wraps: it may then be any number, but its logarithm shows it.
    wrong = (products != sizes) | (log_sizes > 62.5)
    if wrong.any():
        factor = int(np.argmax(wrong))
        raise InputError(f"factor {factor}: table has {int(sizes[factor])} entries, its scope asks for another number")
    check_log_values(model.log_values)
    if model.names is not None and not all(isinstance(name, str) for name in model.names):
        raise InputError("the names of variables must be strings")
    # Many variables may share one tuple of labels.
    different = {id(labels): labels for labels in model.states or ()}.values()
    if not all(isinstance(label, str) for labels in different for label in labels):
        raise InputError("the labels of states must be strings")
    if model.names is not None and len(set(model.names)) != model.n_variables:
        raise InputError(f"{model.n_variables} variables need as many different names")
    if model.states is not None and [len(s) for s in model.states] != cardinalities.tolist():
        raise InputError("the state labels do not fit the numbers of states")


def _two_meanings(argument: str, what: str, index: int, word: str) -> InputError:
    """The error of a whole number that is a name or label and the place of something else."""
    return InputError(
        f"{argument}: {what} could be the one called {word!r} or the one at place {index}: write {word!r} or '#{index}'"
    )


def _closest(word: str, words: Sequence[str]) -> str:
    """A hint «, did you mean …» when a known word is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, words, n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def _all_of(words: Sequence[str]) -> str:
    """A hint with all that there is, where that is not much."""
    return f": it has {', '.join(map(repr, words))}" if 0 < len(words) <= MOST_LISTED else ""
