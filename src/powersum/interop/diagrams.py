"""Influence diagrams from named nodes: of files of other tools, and of pyAgrum objects."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.interop.distributions import MAX_ENTRIES
from powersum.model.diagram import Diagram
from powersum.model.model import Model

KINDS = ("chance", "decision", "utility")


@dataclass(slots=True, eq=False)
class AgrumNode:
    """A node of an influence diagram.

    Parameters
    ----------
    kind
        One of :data:`KINDS`.
    states
        Labels; a utility has none.
    parents
        Names; those of a decision are seen before it.
    numbers
        The table of a chance variable or a utility: the first parent slowest, the node's own states fastest.
    """

    kind: str
    states: list[str] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    numbers: Sequence[float] | FloatArray = ()


def diagram_of(nodes: dict[str, AgrumNode], *, recall: bool = True) -> Diagram:
    """The diagram of named nodes; decisions in the order of the arcs."""
    variables = {name: node for name, node in nodes.items() if node.kind != "utility"}
    number = {name: v for v, name in enumerate(variables)}
    for name, node in nodes.items():
        for parent in node.parents:
            if parent not in number:
                why = "a utility" if parent in nodes else "not in the diagram"
                raise InputError(f"{name} has the parent {parent!r}, which is {why}")
        if len(set(node.parents)) < len(node.parents):
            raise InputError(f"{name} has a parent twice")
        if node.kind != "utility" and not node.states:
            raise InputError(f"{name} has no states")
    cards = [len(node.states) for node in variables.values()]

    def table(name: str) -> FloatArray:
        node = nodes[name]
        scope = [*node.parents, *([name] if node.kind == "chance" else [])]
        shape = [cards[number[v]] for v in scope]
        if math.prod(shape) > MAX_ENTRIES:
            raise InputError(f"the table of {name} would have more than {MAX_ENTRIES} entries")
        if len(node.numbers) != math.prod(shape):
            raise InputError(f"the table of {name} has {len(node.numbers)} numbers, its variables ask for {shape}")
        return np.asarray(node.numbers, dtype=np.float64).reshape(shape)

    def scope_of(name: str) -> list[int]:
        return [number[parent] for parent in nodes[name].parents]

    chance = [name for name, node in variables.items() if node.kind == "chance"]
    for name in chance:
        if (low := float(table(name).min(initial=0.0))) < 0.0:
            raise InputError(f"the distribution of {name} has the entry {low}")
    model = Model.from_factors(
        cards,
        [([*scope_of(name), number[name]], table(name)) for name in chance],
        names=list(variables),
        states=[node.states for node in variables.values()],
        directed=True,
    )
    utilities = [(scope_of(name), table(name)) for name, node in nodes.items() if node.kind == "utility"]
    decisions = [(name, nodes[name].parents) for name in _in_order(variables, recall)]
    return Diagram.of(model, utilities, decisions, recall=recall)


def _in_order(variables: dict[str, AgrumNode], recall: bool) -> list[str]:
    """The decisions in the order of the arcs; where these leave it open and it matters, an error."""
    place = {name: at for at, name in enumerate(variables)}
    above: dict[str, set[str]] = {}
    waiting = {name: len(node.parents) for name, node in variables.items()}
    children: dict[str, list[str]] = {}
    for name, node in variables.items():
        for parent in node.parents:
            children.setdefault(parent, []).append(name)
    ready = [(place[name], name) for name, n in waiting.items() if n == 0]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, name = heapq.heappop(ready)
        parents = variables[name].parents
        above[name] = {*parents, *(v for parent in parents for v in above[parent])}
        order.append(name)
        for child in children.get(name, ()):
            waiting[child] -= 1
            if waiting[child] == 0:
                heapq.heappush(ready, (place[child], child))
    if len(order) < len(variables):
        raise InputError(f"the arcs have a cycle through {next(name for name in variables if name not in above)}")
    decisions = [name for name in order if variables[name].kind == "decision"]
    for first, second in pairwise(decisions):
        # Who comes second would remember what the first has seen.
        if recall and first not in above[second] and variables[first].parents:
            raise InputError(
                f"the arcs do not say which of the decisions {first} and {second} comes first: "
                f"add an arc from one to the other"
            )
    return decisions


def diagram_from_pyagrum(network: Any, *, recall: bool = True) -> Diagram:
    """An influence diagram from an ``InfluenceDiagram`` of pyAgrum, with its names and labels.

    Parameters
    ----------
    network
        The diagram. Decisions come in the order of its arcs.
    recall
        Whether decisions remember what was seen and decided before (pyAgrum calls this no-forgetting).

    Examples
    --------
    With ``network = pyagrum.loadID("diagram.bifxml")``::

        print(ps.decide(ps.diagram_from_pyagrum(network)))
    """
    if not hasattr(network, "isDecisionNode"):
        raise InputError(f"{type(network).__name__} is no influence diagram of pyAgrum: it has no isDecisionNode()")
    nodes = {}
    for number in sorted(network.nodes()):
        variable = network.variable(number)
        parents = [network.variable(parent).name() for parent in sorted(network.parents(number))]
        if network.isDecisionNode(number):
            nodes[variable.name()] = AgrumNode("decision", list(variable.labels()), parents)
            continue
        utility = network.isUtilityNode(number)
        tensor = network.utility(number) if utility else network.cpt(number)
        # The first variable of a tensor runs fastest and is the last axis of its array: the node itself.
        own = list(reversed(tensor.names))[:-1]
        kind, states = ("utility", []) if utility else ("chance", list(variable.labels()))
        nodes[variable.name()] = AgrumNode(kind, states, own, np.asarray(tensor.toarray(), dtype=np.float64).ravel())
    return diagram_of(nodes, recall=recall)
