"""XDSL of GeNIe: Bayesian networks at full precision, with deterministic and noisy-max nodes as tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.core.files import PathLike, load, shown
from powersum.formats.decimals import logs_of
from powersum.formats.network import Network, short
from powersum.formats.xml import walk
from powersum.formats.xmlbif import read_xmlbif
from powersum.interop.checks import INFLUENCE_DIAGRAM
from powersum.model.model import Model

DECISIONS = ("decision", "utility", "mau")

MOST_ENTRIES = 1 << 24
"""Entries of the table that a noisy-max node becomes, at most."""

_ROOT = re.compile(rb"<([A-Za-z_][\w.-]*)")


def read_genie(path: PathLike) -> Model:
    """Read a network of GeNIe, plain or compressed: node ids are names, display names are found, too."""
    return _GenieTables(path).model()


def read_xml(path: PathLike) -> Model:
    """Read a file ``.xml`` by its first element: XMLBIF or XDSL."""
    # A comment may hold what looks like an element.
    match = _ROOT.search(re.sub(rb"<!--.*?-->", b"", load(path), flags=re.DOTALL))
    root = "" if match is None else match.group(1).decode("ascii", "replace")
    readers = {"bif": read_xmlbif, "smile": read_genie}
    if root.lower() not in readers:
        raise InputError(f"{shown(path)}: the first element is {short(root)!r}: read are XMLBIF (BIF) and XDSL (smile)")
    return readers[root.lower()](path)


@dataclass(slots=True)
class GenieNode:
    """A node as the file has it.

    Parameters
    ----------
    kind, name, line
        Its element, its id, and where it begins.
    states
        Labels.
    texts
        Text and line of each element inside, such as ``parents``.
    """

    kind: str
    name: str
    line: int
    states: list[str] = field(default_factory=list)
    texts: dict[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def parents(self) -> list[str]:
        """The ids of its parents."""
        return self.texts.get("parents", ("", 0))[0].split()


class GenieNodes:
    """The nodes of an XDSL file, of networks and of influence diagrams.

    Parameters
    ----------
    path, data
        The file, for messages, and its bytes.

    Attributes
    ----------
    nodes
        The nodes in their order.
    labels
        What GeNIe shows for a node, by its id.
    program
        The program that wrote the file.
    """

    def __init__(self, path: PathLike, data: bytes) -> None:
        self._path = path
        self._stack: list[str] = []
        self._labelled = ""
        self.nodes: list[GenieNode] = []
        self.labels: dict[str, str] = {}
        self.program = ""
        walk(path, data, self._start, self._end)

    def error(self, line: int, message: str) -> InputError:
        """The error that says ``message`` about a line."""
        return InputError(f"{shown(self._path)}: line {line}: {message}")

    @property
    def _in_node(self) -> bool:
        return self._stack[-2:-1] == ["nodes"]

    def _start(self, tag: str, attributes: dict[str, str], line: int) -> None:
        if not self._stack and tag != "smile":
            raise self.error(line, f"expected the element smile, found {short(tag)}")
        if self._stack[-1:] == ["nodes"]:
            self.nodes.append(GenieNode(tag, attributes.get("id", ""), line))
        elif tag == "state" and self._in_node:
            self.nodes[-1].states.append(attributes.get("id", ""))
        elif tag == "genie":
            self.program = attributes.get("app", "")
        elif tag == "node" and "genie" in self._stack:
            self._labelled = attributes.get("id", "")
        self._stack.append(tag)

    def _end(self, tag: str, text: str, line: int) -> None:
        self._stack.pop()
        if self._in_node:
            self.nodes[-1].texts[tag] = text, line
        elif tag == "name" and self._stack[-1:] == ["node"]:
            self.labels[self._labelled] = " ".join(text.split())


class _GenieTables:
    """The tables of the nodes of a network."""

    def __init__(self, path: PathLike) -> None:
        self._read = GenieNodes(path, load(path))
        self._network = Network(path, child_first=False, line_of=int)

    def model(self) -> Model:
        """The model."""
        tables = {"cpt": self._table, "deterministic": self._function, "noisymax": self._noisy}
        for node in self._read.nodes:
            if node.kind not in tables:
                kinds = ", ".join(tables)
                what = f"a node of type {short(node.kind)!r} is not read, only {kinds}: in GeNIe, make it General"
                raise self._network.error(node.line, INFLUENCE_DIAGRAM if node.kind in DECISIONS else what)
            self._network.declare(node.name, node.states, node.line)
        for node in self._read.nodes:
            scope = self._network.scope(node.name, node.parents, node.line)
            self._network.size(scope, node.line)
            self._network.add(scope, tables[node.kind](node, scope), certain=True)
        model, labels = self._network.model(), self._read.labels
        return replace(model, aliases=tuple(labels.get(name, name) for name in model.names or ()))

    def _numbers(self, node: GenieNode, tag: str, size: int) -> FloatArray:
        """The logs of the numbers of an element."""
        text, line = node.texts.get(tag, ("", node.line))
        words = text.encode("ascii", "replace").split()
        if len(words) != size:
            message = f"variable {short(node.name)}: {len(words)} numbers where {size} are needed"
            raise self._network.error(line, message)

        def complain(index: int, message: str) -> InputError:
            word = short(words[index].decode("ascii", "replace"))
            return self._network.error(line, f"variable {short(node.name)}: {message.replace('{}', word)}")

        return logs_of(words, complain)

    def _sizes(self, scope: tuple[int, ...]) -> list[int]:
        return [len(self._network.states[v]) for v in scope]

    def _table(self, node: GenieNode, scope: tuple[int, ...]) -> FloatArray:
        """A table: the first parent is slowest in files of GeNIe, and the last one in those of aGrUM (pyAgrum)."""
        *sizes, states = self._sizes(scope)
        found = self._numbers(node, "probabilities", prod(sizes) * states)
        if not self._read.program.lower().startswith("agrum"):
            return found
        axes = range(len(sizes))
        return found.reshape([*reversed(sizes), states]).transpose([*reversed(axes), len(sizes)]).ravel()

    def _function(self, node: GenieNode, scope: tuple[int, ...]) -> FloatArray:
        """The table of a node that its parents determine: a state for each of their configurations."""
        text, line = node.texts.get("resultingstates", ("", node.line))
        labels, size = text.split(), prod(self._sizes(scope[:-1]))
        if len(labels) != size:
            message = f"variable {short(node.name)}: {len(labels)} states where {size} are needed"
            raise self._network.error(line, message)
        wrong = next((label for label in labels if label not in node.states), None)
        if wrong is not None:
            raise self._network.error(line, f"variable {short(node.name)} has no state {short(wrong)}")
        table = np.full((size, len(node.states)), -np.inf)
        table[np.arange(size), [node.states.index(label) for label in labels]] = 0.0
        return table.ravel()

    def _noisy(self, node: GenieNode, scope: tuple[int, ...]) -> FloatArray:
        """The table of a noisy-max node.

        Each parent causes a state by itself, with the probabilities of the column of its own state; so does the leak.
        The node is in the strongest of these, the first in the order of its states. It is no stronger than state k if
        none of them is: products of tails, whose differences are the probabilities.
        """
        *sizes, states = self._sizes(scope)
        if prod(sizes) * states > MOST_ENTRIES:
            message = f"variable {short(node.name)}: a noisy-max table of more than {MOST_ENTRIES} entries is not read"
            raise self._network.error(node.line, message)
        columns = np.exp(self._numbers(node, "parameters", states * (sum(sizes) + 1))).reshape(-1, states)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        tails = np.cumsum(columns[:, ::-1], axis=1)[:, ::-1]
        joint = tails[-1]
        for parent, size in enumerate(sizes):
            own = slice(starts[parent], starts[parent + 1])
            order = self._states_of_columns(node, parent, starts, columns[own])
            by_state = np.empty((size, states))
            by_state[order] = tails[own]
            joint = joint[..., None, :] * by_state
        table = joint - np.concatenate([joint[..., 1:], np.zeros((*joint.shape[:-1], 1))], axis=-1)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(table, 0.0))).ravel()

    def _states_of_columns(self, node: GenieNode, parent: int, starts: FloatArray, columns: FloatArray) -> list[int]:
        """The parent's state that each of its columns is about.

        GeNIe orders states by strength. Columns are in that order or in that of the states; the column of the weakest
        state, in which nothing is caused, tells which.
        """
        size = len(columns)
        text, line = node.texts.get("strengths", ("", node.line))
        words = text.split() or [str(k) for n in np.diff(starts).tolist() for k in range(int(n))]
        own = [int(word) if word.isdecimal() else -1 for word in words[int(starts[parent]) : int(starts[parent + 1])]]
        if len(words) != int(starts[-1]) or sorted(own) != list(range(size)):
            message = f"variable {short(node.name)}: the strengths do not order the states of each parent"
            raise self._network.error(line, message)
        nothing = [k for k in range(size) if columns[k, -1] >= 1.0 - 1e-9]
        by_strength, by_state = size - 1 in nothing, own[-1] in nothing
        if by_strength and (own == list(range(size)) or not by_state):
            return own
        if by_state and not by_strength:
            return list(range(size))
        message = f"variable {short(node.name)}: it cannot be told which state of parent {parent + 1} causes nothing"
        raise self._network.error(line, f"{message}; in GeNIe, change the node to General")
