"""The arrays that a step of each kind may have (docs/certificates.md): the checker reads no others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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
            "levels": WHOLE,
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
