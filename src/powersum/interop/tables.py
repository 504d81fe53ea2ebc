"""Models written down by hand: a dictionary of tables, with names for the variables and labels for their states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.interop.distributions import with_sum_note
from powersum.model.keys import as_text, is_whole, listed, whole
from powersum.model.model import Model

Labels = Sequence[str] | int


def model_from_tables(
    tables: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
    states: Mapping[str, Labels] | None,
    *,
    log: bool,
    directed: bool,
) -> Model:
    """See :meth:`powersum.model.model.Model.from_tables`."""
    pairs = list(tables.items()) if isinstance(tables, Mapping) else list(tables)
    labels: dict[str, list[str] | None] = {}
    sizes: dict[str, int] = {}
    for name, given in (states or {}).items():
        if is_whole(given):
            labels[name], sizes[name] = None, whole(given, "states")
        else:
            found = listed(given, f"states: what is given for {as_text(name)}", "labels or a number")
            labels[name], sizes[name] = [str(label) for label in found], len(found)
    scopes = [_scope(key) for key, _ in pairs]
    # Labels that only a nested dictionary tells are needed for tables that come before it.
    for scope, (_, table) in zip(scopes, pairs, strict=True):
        for name, found in zip(scope, _labels_of(table), strict=False):
            labels[name] = labels.get(name) or found
    factors = []
    for scope, (_, table) in zip(scopes, pairs, strict=True):
        values = np.asarray(_by_labels(scope, table, labels), dtype=np.float64)
        if values.ndim != len(scope):
            raise InputError(f"table of {_named(scope)}: {values.ndim} axes for {len(scope)} variables")
        _agree(scope, values, sizes)
        factors.append((scope, values))
    names = list(dict.fromkeys(name for scope in (*scopes, sizes) for name in scope))
    number = {name: index for index, name in enumerate(names)}
    model = Model.from_factors(
        [sizes[name] for name in names],
        [([number[name] for name in scope], values) for scope, values in factors],
        log=log,
        directed=directed,
        names=names,
        states=None if not any(labels.values()) else [_labelled(labels.get(name), sizes[name]) for name in names],
    )
    return with_sum_note(model)


def _scope(key: Any) -> tuple[str, ...]:
    """The variables of one table: a name, or several."""
    names = (
        (key,) if isinstance(key, str) else tuple(listed(key, "tables: a key", "the name of a variable, or several"))
    )
    for name in names:
        if not isinstance(name, str):
            raise InputError(
                f"tables: {as_text(name)} in key {as_text(key)} is no name: variables are named by strings"
            )
    return names


def _labels_of(table: Any) -> Iterator[list[str]]:
    """Labels at each depth of a nested dictionary, as its first branch has them."""
    while isinstance(table, Mapping) and table:
        yield [str(label) for label in table]
        table = next(iter(table.values()))


def _by_labels(scope: tuple[str, ...], table: Any, labels: Mapping[str, list[str] | None], depth: int = 0) -> Any:
    """A nested dictionary as nested lists, states in the order of their labels; anything else as it is."""
    if not isinstance(table, Mapping):
        return table
    if depth >= len(scope):
        raise InputError(f"table of {_named(scope)}: is nested deeper than its {len(scope)} variables")
    wanted = labels[scope[depth]] or []
    found = {str(label): branch for label, branch in table.items()}
    if set(found) != set(wanted):
        raise InputError(
            f"table of {_named(scope)}: has states {', '.join(found)} where {scope[depth]} has {', '.join(wanted)}"
        )
    return [_by_labels(scope, found[label], labels, depth + 1) for label in wanted]


def _agree(scope: tuple[str, ...], values: FloatArray, sizes: dict[str, int]) -> None:
    """Refuse a table whose size contradicts what is known of its variables, and learn from it what is not."""
    for name, size in zip(scope, values.shape, strict=True):
        if sizes.setdefault(name, size) != size:
            raise InputError(f"table of {_named(scope)}: has {size} states of {name}, which has {sizes[name]}")


def _labelled(labels: list[str] | None, size: int) -> list[str]:
    return labels or [str(state) for state in range(size)]


def _named(scope: tuple[str, ...]) -> str:
    return ", ".join(scope) or "no variables"
