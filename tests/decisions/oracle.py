"""The best expected utility by brute force over histories (perfect recall) or over all policies (limited memory).

Shares no code with what it checks but the data of a diagram.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.model.diagram import Diagram


def joint(diagram: Diagram, observed: Mapping[int, int]) -> tuple[FloatArray, FloatArray]:
    """Product of the chance tables and total utility, one axis a variable; evidence puts weights to zero."""
    n = diagram.model.n_variables
    shape = tuple(int(c) for c in diagram.model.cardinalities)
    weight, utility = np.ones(shape), np.zeros(shape)

    def spread(scope: tuple[int, ...], table: FloatArray) -> FloatArray:
        by_axis = np.argsort(scope)
        sizes = [shape[v] if v in scope else 1 for v in range(n)]
        return np.transpose(table, by_axis).reshape(sizes)

    for scope, table in diagram.model.factors():
        weight = weight * spread(scope, np.exp(table))
    for part in diagram.utilities:
        utility = utility + spread(part.scope, part.table)
    for v, state in observed.items():
        weight = weight * spread((v,), (np.arange(shape[v]) == state).astype(np.float64))
    return weight, utility


def best_with_recall(diagram: Diagram, observed: Mapping[int, int]) -> float:
    """Sums over what is seen and maxima over what is decided, in the order of time."""
    weight, utility = joint(diagram, observed)
    value = weight * utility
    steps: list[tuple[str, int]] = []
    seen: set[int] = set()
    for choice in diagram.choices:
        steps += [("sum", v) for v in choice.sees if v not in seen and v not in diagram.decisions]
        seen |= set(choice.sees)
        steps.append(("sum" if choice.variable in observed else "max", choice.variable))
        seen.add(choice.variable)
    steps += [("sum", v) for v in range(diagram.model.n_variables) if v not in seen]
    for kind, axis in reversed(steps):
        value = value.sum(axis, keepdims=True) if kind == "sum" else value.max(axis, keepdims=True)
    return float(value.ravel()[0]) / given(diagram, observed, weight)


def given(diagram: Diagram, observed: Mapping[int, int], weight: FloatArray) -> float:
    """The probability of what is observed, whatever the open decisions are: here all are at random."""
    n_open = [int(diagram.model.cardinalities[v]) for v in diagram.decisions if v not in observed]
    return float(weight.sum()) / float(np.prod(n_open)) if n_open else float(weight.sum())


def best_of_all_policies(diagram: Diagram, observed: Mapping[int, int]) -> float:
    """The best of all tables of all decisions, each of which sees what it knows and nothing else."""
    weight, utility = joint(diagram, observed)
    cards = diagram.model.cardinalities
    value = weight * utility
    best = -np.inf
    choices = [(k, c.variable) for k, c in enumerate(diagram.choices) if c.variable not in observed]
    rules = []
    for k, decision in choices:
        known = [v for v in diagram.known(k) if v not in observed]
        cases = list(itertools.product(*(range(int(cards[v])) for v in known)))
        rules.append(
            [
                (known, dict(zip(cases, r, strict=True)))
                for r in itertools.product(range(int(cards[decision])), repeat=len(cases))
            ]
        )
    states = list(np.ndindex(*value.shape))
    for policy in itertools.product(*rules):
        total = 0.0
        for state in states:
            follows = all(
                rule[tuple(state[v] for v in known)] == state[decision]
                for (known, rule), (_, decision) in zip(policy, choices, strict=True)
            )
            total += float(value[state]) if follows else 0.0
        best = max(best, total)
    return best / given(diagram, observed, weight)


def value_of_policy(
    diagram: Diagram, observed: Mapping[int, int], policy: Mapping[int, tuple[tuple[int, ...], FloatArray]]
) -> float:
    """The expected utility of rules: for each decision what it goes by and its state in each case."""
    weight, utility = joint(diagram, observed)
    value = weight * utility
    total = 0.0
    for state in np.ndindex(*value.shape):
        if all(chosen[tuple(state[v] for v in view)] == state[d] for d, (view, chosen) in policy.items()):
            total += float(value[state])
    return total / given(diagram, observed, weight)
