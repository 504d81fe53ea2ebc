"""The arrays that a step of each kind may have (docs/certificates.md), for all that write steps or read them back.

``powersum_check`` is independent and has a list of its own; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

WHOLE, PAIRS, REAL = "whole numbers", "rows of two whole numbers", "real numbers"
"""What an array holds."""

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
        "split": _BOX,
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
            "rounds": WHOLE,
            "move_starts": WHOLE,
            "move_places": WHOLE,
            "moves": REAL,
            "gone_starts": WHOLE,
            "gone": PAIRS,
            "branches": PAIRS,
        },
    }
)


def misfit(kind: str, name: str, array: NDArray[Any]) -> str | None:
    """What is wrong with an array of a step, in a few words; None where it fits."""
    holds = ARRAYS[kind].get(name)
    if holds is None:
        return f"is no array of a {kind} step"
    fits = array.dtype.kind == "f" if holds == REAL else array.dtype.kind in "iub"
    shaped = array.ndim == 2 and array.shape[1] == 2 if holds == PAIRS else array.ndim == 1
    return None if fits and shaped else f"does not hold {holds}"
