"""What an objective takes the difference of: a question with the labels free, and one with the labels given.

Each is a model whose log tables are linear in the parameters, with a query and evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from powersum.core.arrays import starts_of
from powersum.learn.example import Example
from powersum.model.graph import components
from powersum.model.model import Model
from powersum.model.query import Query


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One question of an example; ``maximize`` as everywhere."""

    model: Model
    features: Any
    evidence: dict[int, int]
    maximize: Any = None

    @property
    def weights(self) -> Any:
        """The weight of each variable."""
        return Query.of(self.model, self.maximize).weights

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for terms that one tree serves: the same scopes, the same variables observed, the same query."""
        model = self.model
        return (
            model.cardinalities.tobytes(),
            model.scope_starts.tobytes(),
            model.scope_variables.tobytes(),
            self.weights.tobytes(),
            tuple(sorted(self.evidence)),
        )


def likelihood_terms(example: Example) -> tuple[Term, Term]:
    """Log Z, and log Z with the labels given: their difference is minus the log of the labels' probability."""
    free = Term(example.model, example.features, example.evidence)
    return free, replace(free, evidence={**example.evidence, **example.labels})


def margin_terms(example: Example, margin: float) -> tuple[Term, Term]:
    """The best labels, each wrong one worth ``margin`` more, hidden variables summed; the same for the right ones.

    The marginal structured SVM (Ping, Liu and Ihler 2014).
    """
    free = replace(_with_losses(example, margin), maximize=list(example.labels))
    given = Term(example.model, example.features, {**example.evidence, **example.labels})
    return free, given


def joint_terms(example: Example, margin: float) -> tuple[Term, Term]:
    """The same with hidden variables maximised as well: the latent structured SVM (Yu and Joachims 2009)."""
    free = replace(_with_losses(example, margin), maximize="all")
    given = Term(example.model, example.features, {**example.evidence, **example.labels}, "all")
    return free, given


def pseudo_terms(example: Example) -> tuple[Term, Term]:
    """Log Z of each label's surroundings, all other labels given, side by side in one model.

    Their difference is minus the log of the pseudo-likelihood: the product of each label's probability given all
    others, hidden variables summed.
    """
    model = example.model
    known = {**example.evidence, **example.labels}
    observed = np.zeros(model.n_variables, dtype=np.bool_)
    observed[list(known)] = True
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    by_variable = np.argsort(model.scope_variables, kind="stable")
    starts = starts_of(np.bincount(model.scope_variables, minlength=model.n_variables))
    factors_of = [owner[by_variable[starts[v] : starts[v + 1]]] for v in range(model.n_variables)]
    hidden = ~observed[model.scope_variables]
    # Hidden variables that hang together without any label in between belong to the surroundings together.
    part = components(
        model.n_variables,
        starts_of(np.bincount(owner[hidden], minlength=model.n_factors)),
        model.scope_variables[hidden],
    )
    hidden_of_part: dict[int, list[int]] = {}
    for v in np.flatnonzero(~observed).tolist():
        hidden_of_part.setdefault(int(part[v]), []).append(v)

    scopes: list[np.ndarray[Any, Any]] = []
    entries: list[np.ndarray[Any, Any]] = []
    cardinalities: list[int] = []
    free: dict[int, int] = {}
    given: dict[int, int] = {}
    for label in example.labels:
        near = {int(part[u]) for f in factors_of[label].tolist() for u in model.scope(f).tolist() if not observed[u]}
        inside = [label, *(u for p in sorted(near) for u in hidden_of_part[p])]
        number: dict[int, int] = {}
        for factor in np.unique(np.concatenate([factors_of[u] for u in inside])).tolist():
            for u in model.scope(factor).tolist():
                if u not in number:
                    number[u] = len(cardinalities)
                    cardinalities.append(int(model.cardinalities[u]))
            scopes.append(np.array([number[u] for u in model.scope(factor).tolist()]))
            entries.append(np.arange(model.table_starts[factor], model.table_starts[factor + 1]))
        given |= {place: known[u] for u, place in number.items() if u in known}
        free |= {place: known[u] for u, place in number.items() if u in known and u != label}
    every = np.concatenate([*entries, np.zeros(0, dtype=np.int64)])
    union = Model(
        cardinalities=np.array(cardinalities, dtype=np.int64),
        scope_starts=starts_of([len(scope) for scope in scopes]),
        scope_variables=np.concatenate([*scopes, np.zeros(0, dtype=np.int64)]),
        table_starts=starts_of([len(own) for own in entries]),
        log_values=model.log_values[every],
    )
    term = Term(union, example.features[every], free)
    return term, replace(term, evidence=given)


def _with_losses(example: Example, margin: float) -> Term:
    """The example with one more factor for each label, worth ``margin`` for each state that is wrong."""
    model = example.model
    labels = np.fromiter(example.labels, dtype=np.int64)
    sizes = model.cardinalities[labels]
    losses = np.full(int(sizes.sum()), margin)
    losses[starts_of(sizes)[:-1] + np.fromiter(example.labels.values(), dtype=np.int64)] = 0.0
    together = replace(
        model,
        scope_starts=np.append(model.scope_starts, model.scope_starts[-1] + np.arange(1, len(labels) + 1)),
        scope_variables=np.append(model.scope_variables, labels),
        table_starts=np.append(model.table_starts, model.table_starts[-1] + np.cumsum(sizes)),
        log_values=np.concatenate([model.log_values, losses]),
        directed=False,
    )
    none = sparse.csr_array((len(losses), example.n_parameters))
    return Term(together, sparse.vstack([example.features, none], format="csr"), dict(example.evidence))
