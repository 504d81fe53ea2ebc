"""Faults planted in the checker, one at a time; each must be seen by a test: ``python -m tests.check.mutants --all``.

Faults are generated from the source (comparisons, signs, conditions, numbers that are a little off, statements that are
left out) and written by hand (:data:`BY_HAND`). A fault is seen where the checker disagrees with the second reading on
one of many small certificates, or where a test of ``tests/check`` fails. ``--all`` plants all of them, ``--count N`` a
sample; what is not seen is printed, with its line.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import powersum_check
from tests.check.planted import BY_HAND, SAME

SOURCE = Path(powersum_check.__file__).resolve().parent
ROOT = Path(__file__).resolve().parents[2]
TESTS: dict[str, tuple[str, ...]] = {
    "archive.py": ("check/test_files.py", "check/test_limits.py"),
    "balls.py": ("check/test_rounding.py",),
    "best.py": ("check/test_covers.py", "run/test_best_proofs.py"),
    "cover.py": ("check/test_covers.py", "check/test_conditions.py", "check/test_kinds.py"),
    "branching.py": ("search/test_cost_proof.py", "check/test_kinds.py"),
    "conditioning.py": ("proof/test_conditioning.py", "check/test_graphs.py"),
    "marginals.py": ("check/test_marginals.py",),
    "mean_field.py": ("check/test_conditions.py", "check/test_kinds.py"),
    "model.py": ("check/test_alone.py", "check/test_conditions.py", "check/test_files.py", "check/test_reading.py"),
    "numbers.py": ("check/test_rounding.py", "check/test_conditions.py"),
    "reading.py": ("check/test_reading.py", "check/test_readers.py", "check/test_limits.py"),
    "remainder.py": ("proof/test_conditioning.py", "search/test_cost_proof.py", "check/test_graphs.py"),
}
"""Tests of each file, for what the certificates do not show."""
OTHERS = ("check/test_conditions.py", "check/test_contexts.py", "check/test_alone.py", "check/test_files.py")
"""Tests of all other files."""
LAST = ("check/test_kinds.py", "check/test_mutations.py")
"""Tests of every file, in the end."""
UNTOUCHED = {"__init__.py", "errors.py"}
UNCOUNTED = {"spend", "afford", "take", "BadFile", "Rejected", "len_hint"}
"""Calls whose arguments are messages, or how much something costs: tests of limits look at the order of magnitude."""


@dataclass(frozen=True)
class Mutant:
    """A planted fault."""

    file: str
    line: int
    what: str
    text: str
    """All of the file."""

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.what}"


COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {"max": "min", "min": "max", "any": "all", "all": "any", "up": "down", "down": "up"}


class _Planter(ast.NodeTransformer):
    """Counts the places where a fault can be planted, and plants the one that is asked for."""

    def __init__(self, wanted: int = -1) -> None:
        self.wanted, self.seen, self.what, self.line = wanted, 0, "", 0

    def _here(self, node: ast.AST, what: str) -> bool:
        self.seen += 1
        if self.seen - 1 != self.wanted:
            return False
        self.what, self.line = what, getattr(node, "lineno", 0)
        return True

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in UNCOUNTED:
            return node
        if isinstance(node.func, ast.Name) and name in NAMES and self._here(node, f"{name} for {NAMES[name]}"):
            node.func.id = NAMES[name]
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr in NAMES and isinstance(node.ctx, ast.Load) and self._here(node, f".{node.attr} swapped"):
            node.attr = NAMES[node.attr]
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        for k, operator in enumerate(node.ops):
            if self._here(node, f"{type(operator).__name__} turned"):
                node.ops[k] = COMPARISONS[type(operator)]()
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if self._here(node, "and, or swapped"):
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        for k in range(len(node.values)):
            if self._here(node, f"term {k} left out"):
                node.values = node.values[:k] + node.values[k + 1 :]
                break
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not | ast.USub) and self._here(node, f"{type(node.op).__name__} left out"):
            return node.operand
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if type(node.op) in OPERATORS and self._here(node, f"{type(node.op).__name__} turned"):
            node.op = OPERATORS[type(node.op)]()
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is int and abs(node.value) < 100 and self._here(node, f"{node.value} one more"):
            return ast.copy_location(ast.Constant(node.value + 1), node)
        if type(node.value) is bool and self._here(node, f"{node.value} turned"):
            return ast.copy_location(ast.Constant(not node.value), node)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        if self._here(node, "condition never holds"):
            node.test = ast.copy_location(ast.Constant(False), node.test)
        return self.generic_visit(node)

    def _statement(self, node: ast.stmt) -> ast.AST:
        if self._here(node, "left out"):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        return self._statement(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant):
            return node
        call = node.value
        name = getattr(call, "func", None)
        if isinstance(name, ast.Name | ast.Attribute) and getattr(name, "id", getattr(name, "attr", "")) in UNCOUNTED:
            return node
        return self._statement(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        # Types and defaults of arguments say nothing about what is checked.
        node.body = [self.visit(one) for one in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node


def generated() -> Iterator[Mutant]:
    """All faults that can be generated."""
    for path in sorted(SOURCE.glob("*.py")):
        if path.name in UNTOUCHED:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        counter = _Planter()
        counter.visit(copy.deepcopy(tree))
        for wanted in range(counter.seen):
            planter = _Planter(wanted)
            changed = ast.fix_missing_locations(planter.visit(copy.deepcopy(tree)))
            yield Mutant(path.name, planter.line, planter.what, ast.unparse(changed))


def by_hand() -> Iterator[Mutant]:
    """All faults that were written by hand."""
    for file, old, new in BY_HAND:
        text = (SOURCE / file).read_text(encoding="utf-8")
        assert text.count(old) == 1, (file, old)
        yield Mutant(file, text[: text.index(old)].count("\n") + 1, f"{old!r} is {new!r}", text.replace(old, new))


def is_same(mutant: Mutant) -> bool:
    """Whether the fault is known to change nothing that is proven (:data:`SAME` says why)."""
    line = (SOURCE / mutant.file).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
    return any(mutant.file == file and line.startswith(words) and kind in mutant.what for file, words, kind, _ in SAME)


Case = tuple[Any, bytes, Any]
"""A draft, its file, and what the second reading says of it."""


def battery(count: int, seed: int, path: Path) -> None:
    """Write small certificates, honest and forged, to a file, with what is true of them."""
    from tests.check.agreement import slow_outcome
    from tests.check.forgeries import forged, honest

    cases: list[Case] = []
    case = 0
    while len(cases) < count:
        rng = np.random.default_rng([seed, case])
        case += 1
        draft = honest(rng)
        for number in range(4):
            one = forged(rng, draft) if number else draft
            data = one.zip()
            cases.append((one, data, slow_outcome(one, data)))
    with path.open("wb") as file:
        pickle.dump(cases, file)


def seen_by_certificates(folder: Path, cases: Path, seconds: float = 120.0) -> bool:
    """Whether the checker in a folder says something else of a certificate, or stops; in a process of its own."""
    command = [sys.executable, "-m", "tests.check.mutants", "--judge", str(cases)]
    try:
        done = subprocess.run(command, cwd=ROOT, env=_with(folder), capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def _with(folder: Path) -> dict[str, str]:
    """The environment in which the checker of a folder is imported."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "POWERSUM_PLANTED": str(folder)}


def judge(path: Path) -> None:
    """Look at all cases of a file with the checker that is imported; exit code 1 if one is wrong."""
    from tests.check.agreement import disagreement, quick_outcome
    from tests.check.helpers import to_check

    assert os.environ["POWERSUM_PLANTED"] in str(SOURCE)
    with path.open("rb") as file:
        cases: list[Case] = pickle.load(file)
    for draft, data, slow in cases:
        if disagreement(draft, quick_outcome(to_check(draft.model), data), slow):
            sys.exit(1)


def seen_by_tests(folder: Path, file: str) -> bool:
    """Whether a test of the file that was changed fails."""
    names = [f"tests/{name}" for name in (*TESTS.get(file, OTHERS), *LAST)]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *dict.fromkeys(names)]
    try:
        done = subprocess.run(command, cwd=ROOT, env=_with(folder), capture_output=True, timeout=1200, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def is_seen(mutant: Mutant, cases: Path, *, tests: bool = True) -> bool:
    """Whether a fault is seen: by the cases of a file, or by a test."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(SOURCE, folder / "powersum_check", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "powersum_check" / mutant.file).write_text(mutant.text, encoding="utf-8")
        return seen_by_certificates(folder, cases) or (tests and seen_by_tests(folder, mutant.file))


def main() -> None:
    """Plant faults; print those that are not seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="plant all faults")
    parser.add_argument("--count", type=int, default=150, help="how many generated ones to plant, besides all by hand")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--match", default="", help="only faults in files whose name contains this")
    parser.add_argument("--quick", action="store_true", help="look at certificates alone, and run no tests")
    parser.add_argument("--certificates", type=int, default=2000, help="how many certificates to look at")
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.judge:
        judge(options.judge)
        return
    faults = [mutant for mutant in generated() if options.match in mutant.file]
    if not options.all:
        faults = random.Random(options.seed).sample(faults, min(options.count, len(faults)))
    faults = [mutant for mutant in by_hand() if options.match in mutant.file] + faults
    counts = {"seen": 0, "same": 0, "not seen": 0}
    with tempfile.TemporaryDirectory() as name:
        cases = Path(name) / "cases"
        battery(options.certificates, options.seed, cases)
        for number, mutant in enumerate(faults, 1):
            seen = is_same(mutant) or is_seen(mutant, cases, tests=not options.quick)
            how = "same" if is_same(mutant) else "seen" if seen else "not seen"
            counts[how] += 1
            if how == "not seen":
                print(f"{number}/{len(faults)} not seen: {mutant.name}", flush=True)
    print(counts)
    sys.exit(1 if counts["not seen"] else 0)


if __name__ == "__main__":
    main()
