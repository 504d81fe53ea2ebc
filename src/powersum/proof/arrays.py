"""The arrays that a step of each kind may have (docs/certificates.md), for all that write steps or read them back.

``powersum_check`` is independent and has a list of its own; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

WHOLE, REAL = "whole numbers", "real numbers"
PAIRS, TRIPLES = "rows of two whole numbers", "rows of three whole numbers"
"""What an array holds."""

COLUMNS = {PAIRS: 2, TRIPLES: 3}
"""Arrays with two axes, and their lengths along the second."""

_BOX = {"box": PAIRS}
_TREE = {
    **_BOX,
    "removed": PAIRS,
    "groups": WHOLE,
    "order": WHOLE,
    "node_starts": WHOLE,
    "node_variables": WHOLE,
    "parent": WHOLE,
    "weight": REAL,
    "home": WHOLE,
    "edges": PAIRS,
    "edge_starts": WHOLE,
    "edge_variables": WHOLE,
    "shifts": REAL,
}
_TABLES = {"table_of": WHOLE, "table_starts": WHOLE, "table_variables": WHOLE}

ARRAYS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "cover": {**_BOX, "parts": TRIPLES},
        "mean-field": {**_TREE, "q": REAL},
        "tree": {
            **_TREE,
            "context_variables": WHOLE,
            "context_counts": WHOLE,
            "context_states": WHOLE,
            "context_settled": WHOLE,
        },
        "conditioning": {
            **_TREE,
            **_TABLES,
            "branching": WHOLE,
            "child_counts": WHOLE,
            "child_nodes": WHOLE,
            "gone_counts": WHOLE,
            "gone": WHOLE,
            "settled_counts": WHOLE,
            "settled": WHOLE,
        },
        "branching": {
            **_TREE,
            **_TABLES,
            "parts": TRIPLES,
            "move_starts": WHOLE,
            "move_places": WHOLE,
            "moves": REAL,
        },
    }
)


def misfit(kind: str, name: str, array: NDArray[Any]) -> str | None:
    """What is wrong with an array of a step, in a few words; None where it fits."""
    holds = ARRAYS[kind].get(name)
    if holds is None:
        return f"is no array of a {kind} step"
    fits = array.dtype.kind == "f" if holds == REAL else array.dtype.kind in "iub"
    columns = COLUMNS.get(holds)
    shaped = array.ndim == 1 if columns is None else array.ndim == 2 and array.shape[1] == columns
    return None if fits and shaped else f"does not hold {holds}"
