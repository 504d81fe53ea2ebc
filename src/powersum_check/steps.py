"""The steps of a certificate: each proves bounds on the value of a box, from the model or from earlier steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from powersum_check.box import Step, is_empty, without_removed
from powersum_check.branching import branching
from powersum_check.conditioning import conditioning
from powersum_check.contexts import evaluate
from powersum_check.cover import Proven, cover
from powersum_check.errors import BadFile
from powersum_check.tree import Tree, read_tree, value

Rule = Callable[[Step], tuple[float, float]]
"""The lower and the upper bound that a step proves on the value of its box, which has states of all variables."""


def prove(step: Step, earlier: Sequence[Proven], more: Mapping[str, Rule] | None = None) -> tuple[float, float]:
    """The lower and the upper bound that a step proves on its box; ``more`` are rules beyond the kernel."""
    if is_empty(step.domains):
        return -math.inf, -math.inf
    if step.kind == "cover":
        rows = step.integers("parts", low=-1, columns=3).tolist()
        lower, uppers = cover(rows, step.domains, earlier, step.question, step.memory)
        return lower, float(uppers[0])
    if more and step.kind in more:
        return more[step.kind](step)
    rules: Mapping[str, Rule] = {"tree": _tree, "conditioning": conditioning, "branching": branching}
    if step.kind not in rules:
        raise BadFile(f"step {step.number} is of no kind that is known here: {step.kind[:40]!r}")
    step = replace(step, domains=without_removed(step))
    if is_empty(step.domains):
        return -math.inf, -math.inf
    return rules[step.kind](step)


def _tree(step: Step) -> tuple[float, float]:
    """A tree as the step has it."""
    return bounds_of_tree(step, read_tree(step))


def bounds_of_tree(step: Step, tree: Tree) -> tuple[float, float]:
    """The bounds by a tree over the states that are possible, with contexts if there are any."""
    return evaluate(step, tree) if "context_variables" in step else value(step, tree)
