"""Formulas in DIMACS files: model counting with weights and shown variables, exist-random, maximum counts.

A formula is a model with a table for each clause and each weight, and blocks of sums and maxima. Its question is in
``c p weight`` and ``c p show`` lines of the model counting competitions, ``c max`` and ``c ind`` of maximum counting,
or ``e`` and ``r`` blocks of ``.sdimacs``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import BoolArray, FloatArray, IntArray, starts_of
from powersum.core.errors import InputError
from powersum.core.files import PathLike, shown
from powersum.formats import titled
from powersum.formats.tokens import load_text, readable
from powersum.model.keys import Place
from powersum.model.model import Model
from powersum.model.query import Query

LONGEST = 8
"""Literals of the longest clause that is one table; longer ones are chained."""

LINK = 5
"""Literals that one table of a chain takes."""

MOST_VARIABLES = 50_000_000
"""More are refused: no machine of today holds their tables."""

DEFINITION_SECONDS = 10.0
"""How long it is tried to show that a block is defined by the others."""

Blocks = tuple[tuple[str, tuple[int, ...]], ...]
"""Pairs of ``"max"`` or ``"sum"`` and variables, the outermost first."""


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A formula as a model, and its question.

    Parameters
    ----------
    model
        A table for each clause and each weight. The variables of the file come first, under
        their numbers. Variables that chain long clauses follow, each a function of the others.
    blocks
        Pairs of ``"max"`` or ``"sum"`` and variables of the model, the outermost first, as :meth:`Query.along` has
        them.
    kind
        ``mc``, ``wmc``, ``pmc``, ``pwmc``, ``ssat`` or ``maxcount``.
    n_variables
        Variables of the file.
    starts, literals
        The clauses: literal ``2 v`` says that variable ``v`` is true, ``2 v + 1`` that it is false.
    """

    model: Model
    blocks: Blocks
    kind: str
    n_variables: int
    starts: IntArray
    literals: IntArray

    @property
    def query(self) -> Query:
        """The question. A maximum inside of all sums becomes a sum where it is shown to have one term.

        Where the other blocks do not define each variable of the last one, sums and maxima alternate in the query.
        """
        blocks = list(self.blocks)
        if len(blocks) > 1 and blocks[-1][0] == "max" and self.undefined(seconds=DEFINITION_SECONDS) == []:
            blocks[-1] = "sum", blocks[-1][1]
        return Query.along(self.model, [(kind, list(map(Place, variables))) for kind, variables in blocks])

    def undefined(self, *, seconds: float = np.inf) -> list[int] | None:
        """A list with a variable of the last block that the others do not define, or ``[]``.

        A variable is defined if no two solutions that agree outside of the block differ in it. None if time was over.
        """
        from powersum.core.clauses import Clauses, Ended

        own = [v for v in self.blocks[-1][1] if v < self.n_variables]
        n, k = self.n_variables, len(own)
        twin = np.arange(n)
        twin[own] = n + np.arange(k)
        starts, literals = self.starts, self.literals
        lengths = np.diff(starts)
        touched = np.repeat(np.arange(len(lengths)), lengths)[np.isin(literals >> 1, own)]
        again = np.unique(touched)
        copies = [2 * twin[c >> 1] + (c & 1) for c in (literals[starts[i] : starts[i + 1]] for i in again)]
        # Markers: the two copies of a variable differ.
        marked = [
            clause
            for i, v in enumerate(own)
            for clause in (
                (2 * (n + k + i) + 1, 2 * v, 2 * (n + i)),
                (2 * (n + k + i) + 1, 2 * v + 1, 2 * (n + i) + 1),
                (2 * (n + k + i), 2 * v, 2 * (n + i) + 1),
                (2 * (n + k + i), 2 * v + 1, 2 * (n + i)),
            )
        ]
        every = np.concatenate([literals, *copies, np.array(marked, dtype=np.int64).ravel()])
        sizes = np.concatenate([lengths, [len(c) for c in copies], np.full(len(marked), 3)]).astype(np.int64)
        solver = Clauses(n + 2 * k, starts_of(sizes), every.astype(np.int64))
        deadline = time.monotonic() + seconds
        for i, v in enumerate(own):
            ended = solver.search(np.array([2 * (n + k + i)]), deadline=deadline)
            if ended is Ended.GIVEN_UP:
                return None
            if ended is Ended.SATISFIED:
                return [v]
        return []


def read_formula(path: PathLike) -> Formula:
    """Read a formula, plain or compressed, with its question.

    Faults are refused in one line that names the place. A weight that is given for one literal only makes that of the
    opposite literal 1 less it, with a note.
    """
    file = _File(path)
    n = file.n
    kept = [clause for clause in map(_plain, file.clauses) if clause is not None]
    factors: list[tuple[tuple[int, ...], FloatArray]] = []
    factors += [((v,), np.array([_log(low), _log(high)])) for v, (low, high) in sorted(file.weights.items())]
    free = n
    for clause in kept:
        for scope, table in _tables(clause, free):
            free = max(free, max(scope, default=0) + 1)
            factors.append((scope, table))
    blocks = file.blocks
    if free > n:
        # Each is a function of what it is chained to, so that it has one state, summed or maximised.
        *outer, (kind, variables) = blocks
        blocks = (*outer, (kind, (*variables, *range(n, free))))
    names = [str(v + 1) for v in range(n)] + [f"part {i + 1}" for i in range(free - n)]
    model = Model.from_factors([2] * free, factors, log=True, names=names)
    flat = np.array([literal for clause in kept for literal in clause], dtype=np.int64)
    return Formula(
        model=replace(titled(model, path), notes=tuple(f"{shown(path)}: {note}" for note in file.notes)),
        blocks=blocks,
        kind=file.kind,
        n_variables=n,
        starts=starts_of([len(clause) for clause in kept]),
        literals=flat,
    )


def read_formula_model(path: PathLike) -> Model:
    """The model of a formula, without its question."""
    return read_formula(path).model


def kind_of(path: PathLike) -> str:
    """The kind of a formula's question."""
    return _File(path).kind


def _log(weight: Fraction) -> float:
    """The log of a weight; of one beyond all doubles, too."""
    if 1e-300 < weight < 1e300:
        return math.log(float(weight))
    return math.log(weight.numerator) - math.log(weight.denominator) if weight else -math.inf


def _plain(clause: tuple[int, ...]) -> tuple[int, ...] | None:
    """Literals as numbers from 0 on, each once; None for a clause that always holds."""
    literals = sorted({2 * abs(x) - 2 + (x < 0) for x in clause})
    return None if len({x >> 1 for x in literals}) < len(literals) else tuple(literals)


def _tables(clause: tuple[int, ...], free: int) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
    """Tables whose product is a clause; variables from ``free`` on chain a long one, true where a literal before is."""
    rest: tuple[int, ...] = clause
    carry: tuple[int, ...] = ()
    while len(carry) + len(rest) > LONGEST:
        head, rest = (*carry, *rest[:LINK]), rest[LINK:]
        fails = _fails(head)
        # The state of the new variable, the last axis, is the value of the literals before.
        yield (*(x >> 1 for x in head), free), np.where(np.stack([fails, ~fails], axis=-1), 0.0, -np.inf)
        carry, free = (2 * free,), free + 1
    literals = (*carry, *rest)
    yield tuple(x >> 1 for x in literals), np.where(_fails(literals), -np.inf, 0.0)


def _fails(literals: tuple[int, ...]) -> BoolArray:
    """Where none of the literals holds: one axis for each."""
    fails = np.zeros((2,) * len(literals), dtype=np.bool_)
    fails[tuple(x & 1 for x in literals)] = True
    return fails


_COMMENT = re.compile(r"c\s+(p\s+weight|p\s+show|t|max|ind)\s+(.*)$")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,4})?|[-+]?\d+/0*[1-9]\d*", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,15}", re.ASCII)


class _File:
    """What the lines of a file say: clauses as they are written, weights and blocks with variables from 0 on."""

    def __init__(self, path: PathLike) -> None:
        self._path = path
        self.n, declared = -1, 0
        self.clauses: list[tuple[int, ...]] = []
        self.notes: list[str] = []
        self._given: dict[int, Fraction] = {}
        self._chances: dict[int, Fraction] = {}
        self._nested: list[tuple[str, list[int]]] = []
        self._lists: dict[str, list[int]] = {}
        self._type = ""
        self._line = 0
        self._open: list[int] = []
        lines = load_text(path).decode("utf-8", "backslashreplace").split("\n")
        comments: list[tuple[int, str]] = []
        for self._line, line in enumerate(lines, 1):
            words = line.split()
            if not words:
                continue
            if words[0][0] == "c":
                comments.append((self._line, line.strip()))
            elif words[0] == "p":
                if self.n >= 0:
                    raise self._error("a second line 'p cnf'")
                self.n, declared = self._header(words)
            elif self.n < 0:
                raise self._error(f"expected 'p cnf VARIABLES CLAUSES', found {_quoted(words)}")
            elif words[0] == "%":
                # Some collections end with this.
                break
            elif words[0][0] in "era":
                self._block(words)
            else:
                self._literals(words)
        if self.n < 0:
            raise InputError(f"{shown(path)}: has no line 'p cnf VARIABLES CLAUSES'")
        if self._open:
            raise self._error("the last clause does not end with 0")
        if len(self.clauses) != declared:
            raise InputError(f"{shown(path)}: declares {declared} clauses, but has {len(self.clauses)}")
        # They may stand before the line that says how many variables there are.
        for self._line, line in comments:
            self._comment(line)
        self.weights = self._weights()
        self.blocks, self.kind = self._question()

    def _error(self, message: str) -> InputError:
        return InputError(f"{shown(self._path)}: line {self._line}: {message}")

    def _header(self, words: list[str]) -> tuple[int, int]:
        """The numbers of variables and clauses."""
        counts = [int(word) for word in words[2:] if _WHOLE.fullmatch(word)]
        if len(words) != 4 or words[1] != "cnf" or len(counts) != 2 or min(counts) < 0:
            raise self._error(f"expected 'p cnf VARIABLES CLAUSES', found {_quoted(words)}")
        if counts[0] > MOST_VARIABLES:
            raise self._error(f"{counts[0]} variables are more than {MOST_VARIABLES}")
        return counts[0], counts[1]

    def _literal(self, word: str, what: str) -> int:
        if _WHOLE.fullmatch(word) is None:
            raise self._error(f"{what}: {_quoted([word])} is not a whole number")
        if abs(int(word)) > self.n:
            raise self._error(f"{what}: variable {abs(int(word))} is out of range 1 to {self.n}")
        return int(word)

    def _literals(self, words: list[str]) -> None:
        """Clauses end with 0, and may go over several lines."""
        for word in words:
            literal = self._literal(word, "a clause")
            if literal:
                self._open.append(literal)
            else:
                self.clauses.append(tuple(self._open))
                self._open = []

    def _variables(self, words: list[str], what: str) -> list[int]:
        """Variables up to the 0 at the end, from 0 on."""
        found = [self._literal(word, what) for word in words]
        if not found or found[-1] != 0:
            raise self._error(f"{what} does not end with 0")
        if min(found[:-1], default=1) < 1:
            raise self._error(f"{what}: {min(found[:-1])} is not a variable")
        return [v - 1 for v in found[:-1]]

    def _block(self, words: list[str]) -> None:
        if self.clauses or self._open:
            raise self._error("a block behind the first clause: blocks stand before all clauses")
        if words[0] not in ("e", "r"):
            raise self._error(f"expected a block 'e' or 'r', found {_quoted(words)}: no other is answered")
        following: list[str] = []
        for place, word in enumerate(words):
            if word in ("0e", "0r"):
                # Files are known in which the break behind 0 is missing.
                self.notes.append(f"line {self._line}: a break is missing behind 0")
                words, following = [*words[:place], "0"], [word[1], *words[place + 1 :]]
                break
        if words[0] == "r":
            chance = self._number(words[1] if len(words) > 1 else "", "the chance of a random block")
            if not 0 <= chance <= 1:
                raise self._error(f"the chance of a random block is {words[1]}: expected 0 to 1")
            variables = self._variables(words[2:], "a random block")
            self._chances |= dict.fromkeys(variables, chance)
        else:
            variables = self._variables(words[1:], "a block")
        self._nested.append(({"e": "max", "r": "sum"}[words[0]], variables))
        if following:
            self._block(following)

    def _number(self, word: str, what: str) -> Fraction:
        """A decimal number, with an exponent or not, or a ratio of whole numbers."""
        if _NUMBER.fullmatch(word) is None:
            raise self._error(f"{what}: {_quoted([word])} is not a number")
        return Fraction(word)

    def _comment(self, line: str) -> None:
        found = _COMMENT.match(line)
        if found is None:
            return
        what, words = " ".join(found[1].split()), found[2].split()
        if what == "t":
            self._type = words[0].lower()
        elif what == "p weight":
            if len(words) not in (2, 3) or words[2:] not in ([], ["0"]):
                raise self._error(f"expected 'c p weight LITERAL WEIGHT 0', found {_quoted(line.split())}")
            literal, weight = self._literal(words[0], "a weight"), self._number(words[1], "a weight")
            if literal == 0:
                raise self._error("a weight of literal 0")
            if weight < 0:
                raise self._error(f"the weight {words[1]} of literal {literal} is negative")
            if self._given.setdefault(literal, weight) != weight:
                raise self._error(f"literal {literal} has two weights")
        elif what == "p show" or all(_WHOLE.fullmatch(word) for word in words):
            # The other words may begin a remark as well.
            self._lists.setdefault(what, []).extend(self._variables(words, f"'c {what}'"))

    def _weights(self) -> dict[int, tuple[Fraction, Fraction]]:
        """For each variable with weights that of false and of true."""
        found = {v: (1 - chance, chance) for v, chance in self._chances.items()}
        alone = 0
        for v in sorted({abs(literal) for literal in self._given}):
            if v - 1 in found:
                raise InputError(f"{shown(self._path)}: variable {v} is random, and has a weight beside")
            known = [self._given[literal] for literal in (-v, v) if literal in self._given]
            if len(known) == 1 and known[0] > 1:
                weight = f"{float(known[0]):g}"
                raise InputError(
                    f"{shown(self._path)}: variable {v} has one weight, {weight}: give those of {v} and -{v}"
                )
            alone += len(known) == 1
            found[v - 1] = self._given.get(-v, 1 - known[0]), self._given.get(v, 1 - known[0])
        if alone:
            self.notes.append(f"{alone} variables have the weight of one literal: the other one has 1 less it")
        return found

    def _question(self) -> tuple[Blocks, str]:
        """The blocks, outermost first, and the kind of the question."""
        every, lists = range(self.n), self._lists
        asked = {"blocks": bool(self._nested), "'c p show'": "p show" in lists, "'c max'": "max" in lists}
        names = [name for name, there in asked.items() if there]
        if len(names) > 1:
            raise InputError(f"{shown(self._path)}: has {names[0]} and {names[1]}: ask one question")
        if self._nested:
            named = {v for _, variables in self._nested for v in variables}
            free = [v for v in every if v not in named]
            if free:
                self.notes.append(f"{len(free)} variables are in no block: they count as an outermost block 'e'")
            return self._checked([("max", free), *self._nested]), "ssat"
        if "max" in lists:
            # The variables that count are those of 'c ind', or all others.
            named = {*lists["max"], *lists.get("ind", ())}
            rest = [v for v in every if v not in named]
            inner = [("sum", lists["ind"]), ("max", rest)] if "ind" in lists else [("sum", rest)]
            return self._checked([("max", lists["max"]), *inner]), "maxcount"
        # 'c ind' is the older way to name shown variables.
        shown_ones = lists.get("p show", lists.get("ind"))
        weighted = "w" if self.weights else ""
        if self._type in ("mc", "pmc") and weighted:
            raise InputError(f"{shown(self._path)}: says 'c t {self._type}', but has weights")
        if self._type in ("mc", "wmc") or shown_ones is None:
            return self._checked([("sum", list(every))]), f"{weighted}mc"
        hidden = sorted(set(every) - set(shown_ones))
        lost = [v for v in hidden if self.weights.get(v, (1, 1)) != (1, 1)]
        if lost:
            raise InputError(f"{shown(self._path)}: variable {lost[0] + 1} has a weight, but is not shown")
        return self._checked([("sum", list(dict.fromkeys(shown_ones))), ("max", hidden)]), f"p{weighted}mc"

    def _checked(self, blocks: list[tuple[str, list[int]]]) -> Blocks:
        """Blocks with each variable once, neighbours of one kind as one."""
        seen: set[int] = set()
        merged: list[tuple[str, tuple[int, ...]]] = []
        for kind, variables in blocks:
            for v in variables:
                if v in seen:
                    raise InputError(f"{shown(self._path)}: variable {v + 1} is in two blocks, or twice in one")
                seen.add(v)
            if variables and merged and merged[-1][0] == kind:
                merged[-1] = kind, (*merged[-1][1], *variables)
            elif variables:
                merged.append((kind, tuple(variables)))
        return tuple(merged)


def _quoted(words: list[str]) -> str:
    return readable(" ".join(words).encode("utf-8", "replace"))
