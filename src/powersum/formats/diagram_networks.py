"""Influence diagrams of GeNIe (``.xdsl``), Hugin (``.net``) and pyAgrum (``.bifxml``), at full precision."""

from __future__ import annotations

import math
import re
from types import MappingProxyType

from powersum.core.errors import InputError
from powersum.core.files import PathLike, load, shown
from powersum.formats.genie import GenieNode, GenieNodes
from powersum.formats.xml import walk
from powersum.interop.diagrams import AgrumNode, diagram_of
from powersum.model.diagram import Diagram

Nodes = dict[str, AgrumNode]

_TOKEN = re.compile(r'%[^\n]*|"(?:[^"\\]|\\.)*"|[^\s(){}=;|"%]+|[(){}=;|]')


def read_diagram_network(path: PathLike, suffix: str) -> Diagram:
    """Read an influence diagram of another tool; decisions remember what was seen and decided before."""
    data = load(path)
    try:
        if suffix == ".net":
            nodes = _Hugin(data.decode("utf-8", "replace")).nodes()
        elif suffix == ".xdsl":
            nodes = _of_genie(GenieNodes(path, data))
        else:
            read = _Agrum()
            walk(path, data, read.start, read.end)
            nodes = read.nodes
        if not nodes:
            raise InputError("no diagram: it has no nodes")
        return diagram_of(nodes)
    except _Bad as error:
        raise InputError(f"{shown(path)}: {error}") from None
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(shown(path)) else f"{shown(path)}: {text}") from None


_GENIE = MappingProxyType({"cpt": "chance", "deterministic": "chance", "decision": "decision", "utility": "utility"})


class _Bad(Exception):
    """What is wrong with a file, and where."""


def _numbers(text: str, where: str) -> list[float]:
    found = []
    for word in text.split():
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise _Bad(f"{where}: {word[:40]!r} is not a number")
        found.append(value)
    return found


def _of_genie(read: GenieNodes) -> Nodes:
    """GeNIe: the first parent is slowest; a node may add the utilities up, with weights."""
    nodes: Nodes = {}
    total: GenieNode | None = None
    for node in read.nodes:
        if node.kind == "mau":
            if total is not None:
                raise read.error(node.line, "two nodes add up utilities, only one is read")
            if "expressions" in node.texts:
                raise read.error(node.texts["expressions"][1], "a utility by a formula is not read")
            total = node
            continue
        if node.kind not in _GENIE:
            what = f"a node of type {node.kind[:40]!r} is not read: only cpt, decision, utility, mau"
            raise read.error(node.line, what)
        if not node.name or node.name in nodes:
            raise read.error(node.line, f"the node {node.name!r} has no name of its own")
        nodes[node.name] = AgrumNode(_GENIE[node.kind], node.states, node.parents, _numbers_of(read, node))
    if total is not None:
        _weigh(nodes, total)
    return nodes


def _numbers_of(read: GenieNodes, node: GenieNode) -> list[float]:
    """The table of a node."""
    for tag in ("probabilities", "utilities"):
        if tag in node.texts:
            text, line = node.texts[tag]
            return _numbers(text, f"line {line}")
    text, line = node.texts.get("resultingstates", ("", node.line))
    labels = text.split()
    wrong = next((label for label in labels if label not in node.states), None)
    if wrong is not None:
        raise read.error(line, f"{node.name} has no state {wrong[:40]!r}")
    return [float(label == state) for label in labels for state in node.states]


def _weigh(nodes: Nodes, total: GenieNode) -> None:
    """Put the weights of a sum of utilities into these."""
    names = total.parents
    text, line = total.texts.get("weights", ("", total.line))
    weights = _numbers(text, f"line {line}") or [1.0] * len(names)
    utilities = {name for name, node in nodes.items() if node.kind == "utility"}
    if set(names) != utilities or len(set(names)) < len(names) or len(weights) != len(names):
        raise _Bad("the node that adds up utilities does not name each utility once, with a weight")
    for name, weight in zip(names, weights, strict=True):
        nodes[name].numbers = [weight * number for number in nodes[name].numbers]


class _Agrum:
    """pyAgrum: XMLBIF with types of variables, GIVEN slowest first."""

    def __init__(self) -> None:
        self.nodes: Nodes = {}
        self._stack: list[str] = []
        self._type = ""
        self._words: dict[str, list[str]] = {}

    def start(self, tag: str, attributes: dict[str, str], line: int) -> None:
        kind = tag.upper()
        if not self._stack and kind != "BIF":
            raise _Bad(f"line {line}: expected the element BIF, found {tag[:40]!r}")
        self._stack.append(kind)
        if kind in ("VARIABLE", "DEFINITION", "PROBABILITY"):
            self._words = {}
            self._type = {name.upper(): value for name, value in attributes.items()}.get("TYPE", "nature").lower()

    def end(self, tag: str, text: str, line: int) -> None:
        kind = self._stack.pop()
        if kind in ("NAME", "OUTCOME", "VALUE", "FOR", "GIVEN", "TABLE"):
            self._words.setdefault("OUTCOME" if kind == "VALUE" else kind, []).append(text.strip())
        elif kind == "VARIABLE":
            type_ = {"nature": "chance"}.get(self._type, self._type)
            names = self._words.get("NAME", [])
            if len(names) != 1 or names[0] in self.nodes or type_ not in ("chance", "decision", "utility"):
                raise _Bad(f"line {line}: a variable of type {self._type[:40]!r} has no name of its own")
            states = self._words.get("OUTCOME", [])
            self.nodes[names[0]] = AgrumNode(type_, [] if type_ == "utility" else states)
        elif kind in ("DEFINITION", "PROBABILITY"):
            children = self._words.get("FOR", [])
            if len(children) != 1 or children[0] not in self.nodes:
                raise _Bad(f"line {line}: a table is not for one variable of the diagram")
            node = self.nodes[children[0]]
            node.parents = self._words.get("GIVEN", [])
            node.numbers = _numbers(" ".join(self._words.get("TABLE", [])), f"line {line}")


class _Hugin:
    """Hugin: nodes, then a potential for each, the first parent slowest."""

    def __init__(self, text: str) -> None:
        self._found: Nodes = {}
        self._words = (m for m in _TOKEN.finditer(text) if not m.group().startswith("%"))
        self._text = text
        self._at = 0

    def nodes(self) -> Nodes:
        """All nodes of the file."""
        kinds = {"node": "chance", "discrete": "chance", "decision": "decision", "utility": "utility"}
        while (word := self._next(end=True)) != "":
            if word == "net":
                self._block()
            elif word in kinds:
                name = self._next()
                if word == "discrete":
                    name = self._next() if name == "node" else self._fail(name)
                if name in self._found:
                    raise _Bad(f"line {self._line}: the node {name[:40]!r} is there twice")
                fields = self._block()
                self._found[name] = AgrumNode(kinds[word], fields.get("states", []))
            elif word == "potential":
                self._potential()
            else:
                self._fail(word)
        return self._found

    def _potential(self) -> None:
        self._expect("(")
        child, parents = self._next(), []
        while (word := self._next()) != ")":
            if word != "|":
                parents.append(word)
        if child not in self._found:
            raise _Bad(f"line {self._line}: a potential of {child[:40]!r}, which is no node")
        fields = self._block()
        if "model_data" in fields or "model_nodes" in fields:
            raise _Bad(f"line {self._line}: the table of {child[:40]!r} is a formula, which is not read")
        node = self._found[child]
        node.parents = parents
        node.numbers = _numbers(" ".join(fields.get("data", [])), f"line {self._line}")

    def _block(self) -> dict[str, list[str]]:
        """Fields in braces: words and numbers without their brackets."""
        self._expect("{")
        fields: dict[str, list[str]] = {}
        while (name := self._next()) != "}":
            self._expect("=")
            words = []
            while (word := self._next()) != ";":
                if word not in "()":
                    words.append(word)
            fields[name] = words
        return fields

    @property
    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _next(self, *, end: bool = False) -> str:
        match = next(self._words, None)
        if match is None:
            if end:
                return ""
            raise _Bad("the file ends in the middle of a node")
        self._at = match.start()
        word = match.group()
        return word[1:-1] if word.startswith('"') else word

    def _expect(self, sign: str) -> None:
        word = self._next()
        if word != sign:
            raise _Bad(f"line {self._line}: expected {sign!r}, found {word[:40]!r}")

    def _fail(self, word: str) -> str:
        raise _Bad(f"line {self._line}: {word[:40]!r} is not read: only net, node, decision, utility, potential")
