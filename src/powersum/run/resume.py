"""Going on from a checkpoint, which is a certificate (docs/certificates.md): what of it helps a question.

The file is input like any other: it may be damaged, from elsewhere, or made to deceive. No number of it is taken for a
bound. The tree is built anew and evaluated, the assignment is evaluated, and where the file proves more than these two
its proof is checked by ``powersum_check``, which believes nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from itertools import pairwise
from os import PathLike

import numpy as np

from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.rebuilding import Edge, Saved, rebuilt
from powersum.core.arrays import IntArray
from powersum.core.errors import InputError
from powersum.model.question import Question
from powersum.prepare.problem import Problem
from powersum.proof.boxes import NOTHING_PROVEN, BoxProof
from powersum.proof.format import Proof, Step
from powersum.run.board import FROM_FILE, Board, one_number
from powersum.run.inheritance import Inherited, states_within
from powersum.search.recall import ListedContexts
from powersum_check import check
from powersum_check.archive import Archive
from powersum_check.check import VERSION, question_of
from powersum_check.errors import CheckError
from powersum_check.model import Factor
from powersum_check.model import Model as Checked
from powersum_check.model import Question as Asked
from powersum_check.numbers import Table

MOST_BYTES = 4e9
"""Bytes that a checkpoint may take unpacked, where the question allows more."""


class Resumed:
    """A checkpoint, as a question looks at it.

    Parameters
    ----------
    path
        The file.
    question
        What is asked now; the checkpoint may be about another question on the same model.

    Attributes
    ----------
    same
        True where the checkpoint is about this very question.

    Raises
    ------
    InputError
        Where the file is none, or is about another model.
    """

    def __init__(self, path: str | PathLike[str], question: Question) -> None:
        self._path, self._question = path, question
        self._limit = int(min(question.limits.bytes, MOST_BYTES))
        try:
            # The whole file, until it is verified: its place may be that of the next checkpoint.
            self._data = _bytes_of(path, self._limit)
            self._archive = Archive(self._data, self._limit)
            self._head = self._archive.json("head")
            if self._head.get("format") != "powersum-certificate" or self._head.get("version") != VERSION:
                raise InputError(f"{os.fspath(path)}: not a checkpoint of powersum")
            if self._head.get("model") != question.model.structure:
                raise InputError(f"{os.fspath(path)}: is about another model")
            self._steps = self._listed_steps()
            self._asked = question_of(self._archive, _only_sizes(question))
            self._saved = self._saved_tree()
        except CheckError as error:
            words = str(error).removeprefix("certificate: ").splitlines()[0]
            raise InputError(f"{os.fspath(path)}: {words}") from None
        self.same = self._asked == _as_asked(question)

    def tree(self, problem: Problem, *, threads: int, memory: float) -> FixedTree | None:
        """The tree of the checkpoint for a problem; None where there is none, or none that fits."""
        return None if self._saved is None else rebuilt(self._saved, problem, threads=threads, memory=memory)

    def states(self, problem: Problem) -> IntArray | None:
        """The assignment in the problem's variables, -1 where it says nothing; None where there is none."""
        return states_within(problem, self.pairs)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The assignment of the file."""
        pairs = self._head.get("assignment")
        given = pairs if isinstance(pairs, list) else []
        for pair in given:
            if not (isinstance(pair, list) and len(pair) == 2 and all(type(x) is int for x in pair)):
                raise InputError(f"{os.fspath(self._path)}: the assignment is not a list of pairs (variable, state)")
        return [(v, state) for v, state in given]

    @property
    def proves_more(self) -> bool:
        """True where the file may prove more than its tree and its assignment do: by search, or by partial sums."""
        return self.same and any(
            step.kind != "tree" or "context_variables" in step.arrays or "order" not in step.arrays
            for step in self._steps
        )

    def listed(self) -> ListedContexts | None:
        """The contexts of everything that the file lists: hints where a search may look first; None if it has none."""
        for number, step in enumerate(self._steps):
            if "context_variables" in step.arrays and "box" not in step.arrays:
                names = ("context_variables", "context_counts", "context_states")
                try:
                    return ListedContexts(*(self._archive.integers(f"{number}/{name}") for name in names))
                except CheckError:
                    return None
        return None

    @property
    def inherited(self) -> Inherited:
        """The tree and the assignment alone, for runs on parts of the question, in other processes too."""
        return Inherited(self._saved, self.pairs)

    def checked(self) -> BoxProof:
        """Check the proof of the file; what it proves of the whole question, which may be nothing."""
        data, self._data = self._data, b""
        try:
            # It was made to be checked in a fraction of its run, however long that was.
            found = check(_to_check(self._question), self._asked, data, work=math.inf)
        except CheckError:
            return NOTHING_PROVEN
        below, above = found.sides
        return BoxProof(tuple(self._steps), found.log_upper, found.log_lower, above, below)

    def verify(self, board: Board, problem: Problem) -> None:
        """Check the proof of the file, and report the bounds that it proves; nothing where it proves nothing."""
        found = self.checked()
        # What is verified has its rounding counted already, and the problem's constant in it.
        above = found.log_upper - problem.log_constant
        if found.log_upper == -math.inf:
            board.impossible(lambda _: Proof(self._steps, -math.inf))
            return
        # It is kept at once: checkpoints to come prove no less, whatever else has a proof in between.
        board.offer_upper(problem, above, 0.0)
        board.offer_proof(Proof(self._steps, found.log_upper))
        states = self.states(problem)
        complete = states is not None and (states[problem.tau == 0.0] >= 0).all()
        if complete or not (problem.tau == 0.0).any():
            given = np.full(len(problem.variables), -1, dtype=np.int64) if states is None else states
            if board.offer_lower(problem, found.log_lower - problem.log_constant, 0.0, given):
                board.offer_below(problem, found.log_lower - problem.log_constant, 0.0, self._steps)
                if not one_number(found.log_lower, found.log_upper) and (problem.tau > 0.0).any():
                    # The sum that the assignment leaves may have been too wide.
                    board.notes = (FROM_FILE,)

    def _listed_steps(self) -> list[Step]:
        """The steps of the file, as they are."""
        listed = self._head.get("steps")
        if not isinstance(listed, list) or not all(isinstance(step, dict) for step in listed):
            raise InputError(f"{os.fspath(self._path)}: steps is not a list of objects")
        steps = []
        for number, step in enumerate(listed):
            if not isinstance(kind := step.get("kind"), str):
                raise InputError(f"{os.fspath(self._path)}: step {number} is of no kind")
            # All its arrays: as part of another certificate it proves what it proves in the file.
            names = self._archive.names(f"{number}/")
            arrays = {name.partition("/")[2]: self._archive.array(name, None) for name in names}
            steps.append(Step(kind, arrays))
        return steps

    def _saved_tree(self) -> Saved | None:
        """The first tree of everything in the file."""
        for number, step in enumerate(self._steps):
            if step.kind == "tree" and "order" in step.arrays and "box" not in step.arrays:
                return self._read_tree(f"{number}/")
        return None

    def _read_tree(self, prefix: str) -> Saved:
        archive, cards = self._archive, self._question.model.cardinalities
        n = len(cards)
        states = self._states_of(prefix)
        scopes = self._scopes(prefix + "node_starts", prefix + "node_variables")
        n_nodes = len(scopes)
        parent = archive.integers(prefix + "parent", low=-1, high=max(n_nodes, 1)).tolist()
        weight = archive.floats(prefix + "weight")
        home = archive.integers(prefix + "home", low=-1, high=max(n_nodes, 1)).tolist()
        order = archive.integers(prefix + "order", high=max(n, 1)).tolist()
        n_factors = self._question.model.n_factors
        if not all(len(states[v]) for scope in scopes for v in scope):
            raise InputError(f"{os.fspath(self._path)}: the tree has a variable without states")
        if not len(parent) == len(weight) == n_nodes or (weight < 0.0).any() or len(home) < n_factors:
            raise InputError(f"{os.fspath(self._path)}: parent, weight or home does not fit the tree")
        edges = list(self._edges(prefix, states, n_nodes)) if prefix + "edges" in archive else []
        # Likelihoods come after the model's own factors, and may be others now.
        likelihoods = home[n_factors:] if self.about_same_likelihoods else []
        unique = list(dict.fromkeys(order))
        return Saved(unique, scopes, parent, weight.tolist(), home[:n_factors] + likelihoods, edges, states)

    @property
    def about_same_likelihoods(self) -> bool:
        """True where the factors that stand for likelihoods are the same."""
        return list(self._asked.likelihoods) == list(_as_asked(self._question).likelihoods)

    def _states_of(self, prefix: str) -> list[IntArray]:
        """The states that each variable had: all that the evidence allows, but for those removed."""
        cards = self._question.model.cardinalities.tolist()
        left = [set(range(card)) for card in cards]
        for v, state in self._asked.evidence.items():
            left[v] = {state}
        if prefix + "removed" in self._archive:
            for v, state in self._archive.integers(prefix + "removed", columns=2).tolist():
                if v < len(left):
                    left[v].discard(state)
        return [np.array(sorted(own), dtype=np.int64) for own in left]

    def _scopes(self, starts_name: str, variables_name: str) -> list[tuple[int, ...]]:
        """Scopes of nodes or edges; each names a variable once."""
        n = max(self._question.model.n_variables, 1)
        variables = self._archive.integers(variables_name, high=n).tolist()
        starts = self._archive.starts(starts_name, len(variables)).tolist()
        scopes = [tuple(variables[a:b]) for a, b in pairwise(starts)]
        if any(len(set(scope)) < len(scope) for scope in scopes):
            raise InputError(f"{os.fspath(self._path)}: {variables_name} names a variable twice in one scope")
        return scopes

    def _edges(self, prefix: str, states: list[IntArray], n_nodes: int) -> Iterator[Edge]:
        archive = self._archive
        pairs = archive.integers(prefix + "edges", high=max(n_nodes, 1), columns=2).tolist()
        scopes = self._scopes(prefix + "edge_starts", prefix + "edge_variables")
        if not all(len(states[v]) for scope in scopes for v in scope):
            raise InputError(f"{os.fspath(self._path)}: a shift has a variable without states")
        shifts = archive.floats(prefix + "shifts")
        sizes = [math.prod(len(states[v]) for v in scope) for scope in scopes]
        if len(scopes) != len(pairs) or sum(sizes) != len(shifts) or max(map(len, scopes), default=0) > 30:
            raise InputError(f"{os.fspath(self._path)}: shifts do not fit the edges")
        at = 0
        for (a, b), scope, size in zip(pairs, scopes, sizes, strict=True):
            yield Edge(a, b, scope, shifts[at : at + size].reshape([len(states[v]) for v in scope]))
            at += size


def _bytes_of(path: str | PathLike[str], limit: int) -> bytes:
    """The whole file, at once: it may be replaced while the run goes on."""
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"{os.fspath(path)}: cannot be read ({type(error).__name__})") from None
    if len(data) > limit:
        raise InputError(f"{os.fspath(path)}: is larger than the memory allowed")
    return data


def _as_asked(question: Question) -> Asked:
    """The question as the checker has it."""
    known = question.evidence
    likelihoods = {v: tuple(float(x) for x in row) for v, row in known.likelihoods.items()}
    return Asked(tuple(question.query.weights.tolist()), dict(known.states), likelihoods, None)


def _only_sizes(question: Question) -> Checked:
    """The model as far as the checker needs it to read a question."""
    return Checked(tuple(question.model.cardinalities.tolist()), ())


def _to_check(question: Question) -> Checked:
    """The model as the checker has it, its logs taken for exact."""
    factors = tuple(Factor(f.scope, Table(np.array(f.log_table))) for f in question.model.factors())
    return Checked(tuple(question.model.cardinalities.tolist()), factors)
