"""How many rows the arrays of a certificate may have: they are told before anything is unpacked.

Of arrays that are not named here, there may be as many rows as there is memory for.
"""

from __future__ import annotations

from powersum_check.model import Model


def longest(model: Model) -> dict[str, int]:
    """The numbers of rows that arrays of a certificate about a model may have."""
    n, states = len(model.cardinalities), sum(model.cardinalities)
    # Likelihoods are factors too, and starts are one more than what starts there.
    factors = len(model.factors) + n + 1
    return {
        **dict.fromkeys(("weights", "evidence", "order", "likelihood_variables", "best_variables"), n),
        **dict.fromkeys(("context_variables", "context_counts"), n),
        **dict.fromkeys(("likelihood_values", "box", "removed", "q"), states),
        **dict.fromkeys(("groups", "home", "table_of", "table_starts"), factors),
    }
