"""What the tests of files share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powersum.core.errors import InputError
from powersum.model.model import Model


def saved(folder: Path, content: str | bytes, name: str = "m.uai") -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(action: Callable[..., Any], path: Path, *arguments: Any) -> str:
    """The message with which ``action`` refuses a file: one line that begins with the file."""
    with pytest.raises(InputError) as caught:
        action(path, *arguments)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message.splitlines()) == 1
    return message.removeprefix(f"{path}: ")


def assert_same(one: Model, other: Model) -> None:
    """Equal in every array, to the last bit."""
    assert one.directed == other.directed
    for field in ("cardinalities", "scope_starts", "scope_variables", "table_starts", "log_values"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)


def random_network(
    rng: np.random.Generator, *, n_variables: int = 6, odd_names: bool = False, tiny: bool = False
) -> Model:
    """A random Bayesian network with names and labels; the odd ones hold whatever is hard to read."""
    marks = ["", "-", ".5", " b", "/c", "<", ">=", "é", "'", "&", "(d)", ", e", ";", "{", "]", "|", "//f", "/*g"]
    parts = marks if odd_names else ["", "_", "b"]
    names = [f"v{v}{parts[int(rng.integers(len(parts)))]}" for v in range(n_variables)]
    sizes = rng.integers(1, 5, n_variables).tolist()
    states = [[f"{parts[int(rng.integers(len(parts)))].strip()}{x}" for x in range(size)] for size in sizes]
    factors = []
    for v in rng.permutation(n_variables).tolist():
        parents = rng.permutation(v)[: int(rng.integers(0, 4))].tolist() if v else []
        table = rng.dirichlet(np.full(sizes[v], 0.7), [sizes[u] for u in parents])
        with np.errstate(divide="ignore"):
            logs = np.log(table)
        logs[rng.random(table.shape) < 0.1] = -np.inf
        if tiny:
            logs[rng.random(table.shape) < 0.2] = -2000.0 * float(rng.random()) - 700.0
        factors.append(([*parents, v], logs))
    return Model.from_factors(sizes, factors, log=True, directed=True, names=names, states=states)


def by_child(model: Model) -> dict[str, tuple[tuple[str, ...], tuple[tuple[str, ...], ...], bytes]]:
    """All of a Bayesian network under the names of its variables: parents, labels, and the table to the last bit."""
    assert model.names is not None
    assert model.states is not None
    found = {}
    for scope, log_table in model.factors():
        parents = tuple(model.names[u] for u in scope[:-1])
        labels = tuple(model.states[u] for u in scope)
        found[model.names[scope[-1]]] = (parents, labels, (log_table + 0.0).tobytes())
    assert len(found) == model.n_variables
    return found
