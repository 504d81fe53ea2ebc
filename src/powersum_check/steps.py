"""The steps of a certificate: each proves bounds on the value of a box, from the model or from earlier steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersum_check.archive import Archive
from powersum_check.box import Domains, is_empty, restricted, root_box, without_removed
from powersum_check.contexts import evaluate
from powersum_check.errors import BadFile, Rejected
from powersum_check.mean_field import mean_field
from powersum_check.model import Model, Question
from powersum_check.numbers import Table, outward, power_sum
from powersum_check.tree import Tree, read_tree, run


@dataclass(frozen=True, slots=True)
class Proven:
    """Bounds on the value of a box."""

    box: Domains
    is_root: bool
    """Whether the box has all states that the evidence allows."""
    log_lower: float
    log_upper: float


class Steps:
    """Steps checked so far."""

    def __init__(self, archive: Archive, model: Model, question: Question, memory: int) -> None:
        self._archive, self._model, self._question, self._memory = archive, model, question, memory
        self._root = root_box(model, question)
        self._trees: dict[int, Tree] = {}
        self.proven: list[Proven] = []

    def check(self, step: Any) -> None:
        """Check the next step."""
        if not isinstance(step, dict):
            raise BadFile("a step is not an object")
        number = len(self.proven)
        kinds = {"tree": self._tree, "split": self._split, "mean-field": self._mean_field, "propagation": self._empty}
        kind = step.get("kind")
        if not isinstance(kind, str) or kind not in kinds:
            raise BadFile(f"step {number} is of no known kind: {str(kind)[:40]!r}")
        box = restricted(self._root, self._archive, f"{number}/box", self._model)
        lower, upper = (-math.inf, -math.inf) if is_empty(box) else kinds[kind](step, number, box)
        is_root = all(len(a) == len(b) for a, b in zip(box, self._root, strict=True))
        self.proven.append(Proven(box, is_root, lower, upper))

    def _tree(self, step: dict[str, Any], number: int, box: Domains) -> tuple[float, float]:
        """A tree of its own, or that of an earlier step in a smaller box; contexts, if there are any."""
        prefix = f"{number}/"
        domains = without_removed(box, self._archive, prefix, self._model, self._memory)
        if is_empty(domains):
            return -math.inf, -math.inf
        if "tree" in step:
            tree = self._trees.get(self._earlier(step["tree"], number))
            if tree is None:
                raise Rejected("it refers to a step that has no tree")
            if not _within(box, self.proven[step["tree"]].box, None):
                raise Rejected("its box does not lie within that of its tree")
            # What is impossible in the larger box is so in the smaller one.
            pairs = zip(domains, tree.domains, strict=True)
            domains = [d if d is own else np.intersect1d(d, own) for d, own in pairs]
            if is_empty(domains):
                return -math.inf, -math.inf
        else:
            tree = self._trees[number] = read_tree(self._archive, prefix, self._model, self._question, domains)
        keep = prefix + "context_variables" in self._archive
        found = run(tree, self._model, self._question, domains, self._memory, keep=keep)
        if found.dead:
            return -math.inf, -math.inf
        if keep:
            low, high, down, up = evaluate(self._archive, prefix, tree, found, self._question, domains, self._memory)
            return outward(low, 0.0, down)[0], outward(high, up, 0.0)[1]
        lower, upper = outward(found.constants, found.fixed_up + found.up, found.fixed_down + found.down)
        return lower if tree.exact(self._question, domains) else -math.inf, upper

    def _empty(self, step: dict[str, Any], number: int, box: Domains) -> tuple[float, float]:
        """Propagation that leaves some variable without a state."""
        domains = without_removed(box, self._archive, f"{number}/", self._model, self._memory)
        if not is_empty(domains):
            raise Rejected("propagation leaves every variable a state")
        return -math.inf, -math.inf

    def _mean_field(self, step: dict[str, Any], number: int, box: Domains) -> tuple[float, float]:
        """A lower bound by Jensen's inequality."""
        return mean_field(self._archive, f"{number}/", self._model, self._question, box, self._memory), math.inf

    def _split(self, step: dict[str, Any], number: int, box: Domains) -> tuple[float, float]:
        """The box divided by the states of one variable, its parts proven by earlier steps.

        Above: the power sum of the parts is a bound if every state is in some part, each part has all of the box beside
        the variable, and no variable of larger weight is eliminated later (Minkowski's inequality). Below: the same if
        the parts are disjoint and lie within the box, and no other variable is eliminated later; else the best part.
        """
        v = step.get("variable")
        children = step.get("children")
        if type(v) is not int or not 0 <= v < len(box) or not isinstance(children, list) or not children:
            raise BadFile("a split needs a variable and children")
        parts = [self.proven[self._earlier(child, number)] for child in children]
        ranks, weights = self._question.ranks(), self._question.weights
        later = [u for u, d in enumerate(box) if len(d) > 1 and ranks[u] > ranks[v]]
        upper = math.inf
        covers = all(_within(box, part.box, v) for part in parts)
        states = np.concatenate([part.box[v] for part in parts])
        if covers and not len(np.setdiff1d(box[v], states)) and all(weights[u] <= weights[v] for u in later):
            upper = _joined([part.log_upper for part in parts], weights[v])[1]
        inside = [part for part in parts if _within(part.box, box, None)]
        lower = max((part.log_lower for part in inside), default=-math.inf)
        states = np.concatenate([part.box[v] for part in inside] or [np.zeros(0, np.int64)])
        if inside and not later and len(np.unique(states)) == len(states):
            lower = _joined([part.log_lower for part in inside], weights[v])[0]
        return lower, upper

    def _earlier(self, other: Any, number: int) -> int:
        """The number of an earlier step."""
        if type(other) is not int or not 0 <= other < number:
            raise BadFile(f"{str(other)[:40]!r} is not the number of an earlier step")
        return other


def _within(inner: Domains, outer: Domains, but: int | None) -> bool:
    """Whether a box lies within another, of one variable apart."""
    return all(
        a is b or v == but or not len(np.setdiff1d(a, b)) for v, (a, b) in enumerate(zip(inner, outer, strict=True))
    )


def _joined(values: list[float], weight: float) -> tuple[float, float]:
    """Bounds on the power sum of exact numbers."""
    if math.inf in values:
        return math.inf, math.inf
    table = power_sum(Table(np.array(values)), weight)
    return outward([float(table.values)], table.up, table.down)
