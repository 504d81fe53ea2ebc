"""The arrays that a certificate may have (docs/certificates.md), and how long: the checker reads no others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from powersum_check.model import Model

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

N_VARIABLES, N_STATES, N_FACTORS, ANY = "variables", "states of all variables", "factors", "any"
"""What limits the number of rows of an array; of any number, as many as there is memory for."""

ROWS: Mapping[str, str] = MappingProxyType(
    {
        # Of the whole certificate.
        "weights": N_VARIABLES,
        "evidence": N_VARIABLES,
        "likelihood_variables": N_VARIABLES,
        "likelihood_values": N_STATES,
        "best_variables": N_VARIABLES,
        "best_states": ANY,
        "best_parts": ANY,
        # Of a step, and the first one of the question too.
        "order": N_VARIABLES,
        "box": N_STATES,
        "removed": N_STATES,
        "groups": N_FACTORS,
        "home": N_FACTORS,
        "q": N_STATES,
        "node_starts": ANY,
        "node_variables": ANY,
        "parent": ANY,
        "weight": ANY,
        "edges": ANY,
        "edge_starts": ANY,
        "edge_variables": ANY,
        "shifts": ANY,
        "context_variables": N_VARIABLES,
        "context_counts": N_VARIABLES,
        "context_states": ANY,
        "context_settled": ANY,
        "table_of": N_FACTORS,
        "table_starts": N_FACTORS,
        "table_variables": ANY,
        "branching": ANY,
        "child_counts": ANY,
        "child_nodes": ANY,
        "gone_counts": ANY,
        "settled_counts": ANY,
        "settled": ANY,
        "rounds": ANY,
        "move_starts": ANY,
        "move_places": ANY,
        "moves": ANY,
        "gone_starts": ANY,
        "gone": ANY,
        "branches": ANY,
    }
)
"""How many rows each array has at most."""


def longest(model: Model) -> dict[str, int]:
    """The numbers of rows that a certificate about a model may have."""
    n = len(model.cardinalities)
    # Likelihoods are factors too, and starts are one more than what starts there.
    most = {N_VARIABLES: n, N_STATES: sum(model.cardinalities), N_FACTORS: len(model.factors) + n + 1}
    return {name: most[rows] for name, rows in ROWS.items() if rows != ANY}
