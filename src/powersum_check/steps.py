"""The steps of a certificate: each proves bounds on the value of a box, from the model or from earlier steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from powersum_check.arrays import ARRAYS
from powersum_check.box import Domains, Step, is_empty, within, without_removed
from powersum_check.branching import branching
from powersum_check.conditioning import conditioning
from powersum_check.contexts import evaluate
from powersum_check.errors import BadFile
from powersum_check.limits import spend
from powersum_check.numbers import Table, outward, power_sum
from powersum_check.tree import read_tree, value


@dataclass(frozen=True, slots=True)
class Proven:
    """Bounds on the value of a box."""

    box: Domains
    log_lower: float
    log_upper: float


def lower_bound(proven: Sequence[Proven], assignment: Mapping[int, int]) -> float:
    """The largest lower bound of all steps whose box has no other states of the variables that are assigned."""
    spend(20 * len(proven) * (5 + len(assignment)))
    fitting = (p for p in proven if all(len(d := p.box[v]) <= 1 and not (d != s).any() for v, s in assignment.items()))
    return max((p.log_lower for p in fitting), default=-math.inf)


def known_kind(number: int, head: dict[str, Any]) -> str:
    """The kind of a step."""
    kind = head.get("kind")
    if not isinstance(kind, str) or kind not in ARRAYS:
        raise BadFile(f"step {number} is of no known kind: {str(kind)[:40]!r}")
    return kind


Rule = Callable[[Step], tuple[float, float]]
"""The lower and the upper bound that a step proves on the value of its box, which has states of all variables."""


def prove(
    step: Step, head: dict[str, Any], earlier: Sequence[Proven], more: Mapping[str, Rule] | None = None
) -> tuple[float, float]:
    """The lower and the upper bound that a step proves on its box; ``more`` are rules beyond the kernel."""
    if is_empty(step.domains):
        return -math.inf, -math.inf
    if step.kind == "split":
        return _split(step, head, earlier)
    if more and step.kind in more:
        return more[step.kind](step)
    step = replace(step, domains=without_removed(step))
    if is_empty(step.domains):
        return -math.inf, -math.inf
    rules: Mapping[str, Rule] = {"tree": _tree, "conditioning": conditioning, "branching": branching}
    if step.kind not in rules:
        raise BadFile(f"steps of kind {step.kind!r} are not checked here")
    return rules[step.kind](step)


def _tree(step: Step) -> tuple[float, float]:
    """A tree over the states that are possible, with contexts if there are any."""
    tree = read_tree(step)
    return evaluate(step, tree) if "context_variables" in step else value(step, tree)


def _split(step: Step, head: dict[str, Any], earlier: Sequence[Proven]) -> tuple[float, float]:
    """The box divided by the states of one variable, its parts proven by earlier steps.

    Above: the power sum of the parts is a bound if every state is in some part, each part has all of the box beside the
    variable, and no variable of larger weight is eliminated later (Minkowski's inequality) or nothing is possible in
    any part. Below: the same if the parts are disjoint and lie within the box, and no other is eliminated later.
    """
    v, children, box = head.get("variable"), head.get("children"), step.domains
    if type(v) is not int or not 0 <= v < len(box) or not isinstance(children, list) or not children:
        raise BadFile("a split needs a variable and children")
    if not all(type(child) is int and 0 <= child < step.number for child in children):
        raise BadFile("children of a split are not numbers of earlier steps")
    # All boxes are compared with this one, twice.
    spend(100 * len(children) * (10 + len(box)))
    parts = [earlier[child] for child in children]
    ranks, weights = step.question.ranks(), step.question.weights
    later = [u for u, d in enumerate(box) if len(d) > 1 and ranks[u] > ranks[v]]
    states = np.concatenate([part.box[v] for part in parts])
    covers = all(within(box, part.box, but=v) for part in parts) and not len(np.setdiff1d(box[v], states))
    divides = all(within(part.box, box) for part in parts) and len(np.unique(states)) == len(states)
    lower, upper = -math.inf, math.inf
    uppers = [part.log_upper for part in parts]
    if covers and (max(uppers) == -math.inf or all(weights[u] <= weights[v] for u in later)):
        upper = _joined(uppers, weights[v])[1]
    if divides and not later:
        lower = _joined([part.log_lower for part in parts], weights[v])[0]
    return lower, upper


def _joined(values: list[float], weight: float) -> tuple[float, float]:
    """Bounds on the power sum of exact numbers."""
    if math.inf in values:
        return math.inf, math.inf
    table = power_sum(Table(np.array(values)), weight)
    return outward([float(table.values)], table.up, table.down)
