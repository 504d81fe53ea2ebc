"""Formulas: every kind of question agrees with counting by hand, and what is wrong with a file is told in one line."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.core.errors import InputError
from powersum.formats.formula_answers import answer_lines
from powersum.formats.formulas import kind_of
from tests.check.helpers import to_check

KINDS = ("mc", "wmc", "pmc", "pwmc", "maxcount", "ssat")


class Drawn:
    """A random formula of one kind, its text, and its value by hand."""

    def __init__(self, rng: np.random.Generator, kind: str, *, longest: int = 4) -> None:
        n = int(rng.integers(2, 8)) if longest < 9 else 13
        self.clauses = []
        for _ in range(int(rng.integers(0, 2 * n) if longest < 9 else 3)):
            length = int(rng.integers(1, min(longest, n) + 1)) if longest < 9 else int(rng.integers(9, n + 1))
            variables = rng.choice(n, length, replace=False) + 1
            self.clauses.append([int(v) * int(rng.choice([-1, 1])) for v in variables])
        self.weights = {v: (Fraction(1), Fraction(1)) for v in range(1, n + 1)}
        lines = [f"p cnf {n} {len(self.clauses)}"]
        some = sorted((rng.choice(n, int(rng.integers(0, n + 1)), replace=False) + 1).tolist())
        rest = [v for v in range(1, n + 1) if v not in some]
        self.blocks = [("sum", [*some, *rest])]
        if kind in ("wmc", "pwmc"):
            # A kind with weights has one at least.
            some = some or [1]
            rest = [v for v in range(1, n + 1) if v not in some]
            for v in some:
                pair = Fraction(int(rng.integers(0, 30)), 10), Fraction(int(rng.integers(1, 9)), 7)
                self.weights[v] = pair
                lines += [f"c p weight {v} {pair[1]} 0", f"c p weight -{v} {float(pair[0])} 0"]
        if kind in ("pmc", "pwmc"):
            lines.insert(0, f"c p show {' '.join(map(str, some))} 0")
            self.blocks = [("sum", some), ("max", rest)]
        if kind == "maxcount":
            some, rest = some or [1], rest or [2]
            some = [v for v in some if v not in rest]
            counted = rest[::2]
            self.blocks = [("max", some), ("sum", counted), ("max", rest[1::2])]
            lines += [f"c max {' '.join(map(str, some))} 0", f"c ind {' '.join(map(str, counted))} 0"]
        if kind == "ssat":
            left = (rng.permutation(n) + 1).tolist()
            self.blocks = []
            while left:
                size = int(rng.integers(1, len(left) + 1))
                block, left = left[:size], left[size:]
                if rng.random() < 0.5:
                    chance = Fraction(int(rng.integers(0, 11)), 10)
                    self.weights |= dict.fromkeys(block, (1 - chance, chance))
                    lines.append(f"r {float(chance)} {' '.join(map(str, block))} 0")
                    self.blocks.append(("sum", block))
                else:
                    lines.append(f"e {' '.join(map(str, block))} 0")
                    self.blocks.append(("max", block))
        self.text = "\n".join([*lines, *(f"{' '.join(map(str, c))} 0" for c in self.clauses), ""])

    @property
    def value(self) -> Fraction:
        return self._value([(kind, v) for kind, block in self.blocks for v in block], {})

    def _value(self, left: list[tuple[str, int]], set_to: dict[int, int]) -> Fraction:
        if not left:
            holds = all(any(set_to[abs(x)] == (x > 0) for x in clause) for clause in self.clauses)
            return math.prod((self.weights[v][s] for v, s in set_to.items()), start=Fraction(1)) * holds
        (kind, v), *rest = left
        both = [self._value(rest, {**set_to, v: s}) for s in (0, 1)]
        return max(both) if kind == "max" else both[0] + both[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(40))
def test_agrees_with_counting_by_hand(kind: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    drawn = Drawn(rng, kind)
    path = tmp_path / "f.sdimacs"
    path.write_text(drawn.text)
    formula = ps.read_formula(path)
    if not (kind == "ssat" and not formula.blocks):
        assert formula.kind == kind
    value = drawn.value
    found = ps.bound(formula.model, weights=formula.query, method="tree", sweeps=3)
    assert found.log_upper == pytest.approx(math.log(value) if value else -math.inf, abs=1e-9)
    solved = ps.solve(formula.model, weights=formula.query)
    assert solved.log_lower == pytest.approx(found.log_upper, abs=1e-9)
    if kind in ("mc", "pmc", "maxcount") and (value or formula.query.blocks is None):
        lines = answer_lines(kind, solved.log_lower, solved.log_upper, solved.assignment)
        assert f"c s exact arb int {value}" in lines


@pytest.mark.parametrize("kind", ["mc", "pmc", "wmc"])
@pytest.mark.parametrize("seed", range(4))
def test_long_clauses_are_chained(kind: str, seed: int, tmp_path: Path) -> None:
    drawn = Drawn(np.random.default_rng(seed), kind, longest=13)
    path = tmp_path / "f.cnf"
    path.write_text(drawn.text)
    formula = ps.read_formula(path)
    assert formula.model.n_variables > formula.n_variables
    assert int(np.diff(formula.model.table_starts).max()) <= 2**8
    value = drawn.value
    found = ps.bound(formula.model, weights=formula.query, method="tree", sweeps=3)
    assert found.log_upper == pytest.approx(math.log(value) if value else -math.inf, abs=1e-9)


def test_a_clause_of_sixty_literals_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "f.cnf"
    path.write_text(f"p cnf 60 1\n{' '.join(map(str, range(1, 61)))} 0\n")
    formula = ps.read_formula(path)
    found = ps.solve(formula.model, weights=formula.query)
    assert found.log_upper == pytest.approx(60.0 * math.log(2.0), abs=1e-9)


def test_what_is_not_defined_is_maximised_inside_the_sum(tmp_path: Path) -> None:
    path = tmp_path / "f.cnf"
    # 3 is free where 1 holds: it is counted once.
    path.write_text("c p show 1 2 0\np cnf 3 2\n1 3 0\n1 -2 0\n")
    formula = ps.read_formula(path)
    assert formula.undefined() == [2]
    assert formula.query.blocks is not None
    assert ps.bound(formula.model, weights=formula.query).log_upper == pytest.approx(math.log(3.0))
    path.write_text("c p show 1 2 0\np cnf 3 3\n1 3 0\n-1 -3 0\n1 -2 0\n")
    formula = ps.read_formula(path)
    assert formula.undefined() == []
    assert formula.query.task == "PR"
    assert ps.solve(formula.model, weights=formula.query).log_upper == pytest.approx(math.log(3.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no line 'p cnf VARIABLES CLAUSES'"),
        ("1 2 0\n", "line 1: expected 'p cnf VARIABLES CLAUSES', found 1 2 0"),
        ("p cnf 2\n", "line 1: expected 'p cnf VARIABLES CLAUSES', found p cnf 2"),
        ("p cnf 2 1\np cnf 2 1\n1 0\n", "line 2: a second line 'p cnf'"),
        ("p cnf 2 1\n1 3 0\n", "line 2: a clause: variable 3 is out of range 1 to 2"),
        ("p cnf 2 1\n1 x 0\n", "line 2: a clause: x is not a whole number"),
        ("p cnf 2 1\n1 2\n", "the last clause does not end with 0"),
        ("p cnf 2 2\n1 2 0\n", "declares 2 clauses, but has 1"),
        ("p cnf 2 0\n1 2 0\n", "declares 0 clauses, but has 1"),
        ("p cnf 99999999999 0\n", "line 1: 99999999999 variables are more than 50000000"),
        ("p cnf 2 1\na 1 0\n1 0\n", "line 2: expected a block 'e' or 'r', found a 1 0: no other is answered"),
        ("p cnf 2 1\nr 1.5 1 0\n1 0\n", "line 2: the chance of a random block is 1.5: expected 0 to 1"),
        ("p cnf 2 1\nr x 1 0\n1 0\n", "line 2: the chance of a random block: x is not a number"),
        ("p cnf 2 1\ne 1 0\ne 1 0\n1 0\n", "variable 1 is in two blocks, or twice in one"),
        ("p cnf 2 1\n1 0\ne 1 0\n", "line 3: a block behind the first clause: blocks stand before all clauses"),
        ("p cnf 2 1\ne 1\n1 0\n", "line 2: a block does not end with 0"),
        ("p cnf 2 1\ne -1 0\n1 0\n", "line 2: a block: -1 is not a variable"),
        ("p cnf 2 1\nc p weight 1 0.5 7 0\n1 0\n", "line 2: expected 'c p weight LITERAL WEIGHT 0'"),
        ("p cnf 2 1\nc p weight 1 -0.5 0\n1 0\n", "line 2: the weight -0.5 of literal 1 is negative"),
        ("p cnf 2 1\nc p weight 1 nan 0\n1 0\n", "line 2: a weight: nan is not a number"),
        ("p cnf 2 1\nc p weight 1 1/0 0\n1 0\n", "line 2: a weight: 1/0 is not a number"),
        ("p cnf 2 1\nc p weight 1 2 0\n1 0\n", "variable 1 has one weight, 2: give those of 1 and -1"),
        ("p cnf 2 1\nc p weight 1 0.2 0\nc p weight 1 0.3 0\n1 0\n", "line 3: literal 1 has two weights"),
        ("p cnf 2 1\nc p show 1\n1 0\n", "line 2: 'c p show' does not end with 0"),
        ("p cnf 2 1\nc p show 1 0\nc p weight 2 0.2 0\n1 0\n", "variable 2 has a weight, but is not shown"),
        ("p cnf 2 1\nc p show 1 0\ne 1 0\n1 0\n", "has blocks and 'c p show': ask one question"),
        ("c t mc\np cnf 2 1\nc p weight 2 0.2 0\n1 0\n", "says 'c t mc', but has weights"),
        ("p cnf 2 1\nr 0.3 1 0\nc p weight 1 0.2 0\n1 0\n", "variable 1 is random, and has a weight beside"),
    ],
)
def test_faults_are_told_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.cnf"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        ps.read_formula(path)
    told = str(caught.value)
    assert "\n" not in told
    assert told.startswith(f"{path}: ")
    assert message in told


def test_lenient_where_the_meaning_is_clear(tmp_path: Path) -> None:
    path = tmp_path / "f.sdimacs"
    path.write_text("c any remark\np cnf 4 2\ne 1 0\nr 0.5 2 0r 0.25 3 0\n1 2\n0 -3 3 0\n%\n0\n")
    formula = ps.read_formula(path)
    assert [kind for kind, _ in formula.blocks] == ["max", "sum"]
    assert formula.blocks[0][1] == (3, 0)
    assert len(formula.model.notes) == 2
    assert all(str(path) in note for note in formula.model.notes)
    path.write_text("p cnf 1 0\nc p weight 1 0.25 0\n")
    assert ps.read_formula(path).model.log_values.tolist() == [math.log(0.75), math.log(0.25)]
    assert kind_of(path) == "wmc"


def test_weights_beyond_all_doubles_keep_their_log(tmp_path: Path) -> None:
    path = tmp_path / "f.cnf"
    path.write_text("p cnf 1 1\nc p weight 1 1e-2000 0\nc p weight -1 1e2000 0\n1 0\n")
    formula = ps.read_formula(path)
    found = ps.solve(formula.model, weights=formula.query)
    assert found.log_upper == pytest.approx(-2000.0 * math.log(10.0))
    assert "c s exact double prec-sci 1.0000000000e-2000" in answer_lines("wmc", found.log_lower, found.log_upper, {})


def test_only_what_is_proven_is_called_exact() -> None:
    assert "c s exact arb int 12" in answer_lines("mc", math.log(11.99), math.log(12.01), {})
    assert "c s approx arb prec-sci 1.1999999999e+1" not in answer_lines("mc", math.log(11.99), math.log(12.01), {})
    apart = answer_lines("mc", math.log(11.0), math.log(13.0), {})
    assert not any("exact" in line for line in apart)
    assert answer_lines("mc", -math.inf, -math.inf, {})[1:] == [
        "s UNSATISFIABLE",
        "c s type mc",
        "c s log10-estimate -inf",
        "c s exact arb int 0",
    ]
    assert answer_lines("mc", -math.inf, 3.0, {})[1:] == ["s UNKNOWN", "c s type mc"]
    assert answer_lines("ssat", 0.0, 0.0, {"3": 1, "10": 0, "part 1": 1})[-1] == "v 3 -10 0"


def test_answers_have_certificates(tmp_path: Path) -> None:
    """The names of a formula are other numbers than its places."""
    path = tmp_path / "f.sdimacs"
    path.write_text("p cnf 4 3\ne 3 4 0\nr 0.3 1 0\ne 2 0\n1 -2 0\n-1 2 0\n2 3 -4 0\n")
    formula = ps.read_formula(path)
    found = ps.solve(formula.model, weights=formula.query, certificate=True)
    assert found.certificate is not None
    found.certificate.save(tmp_path / "proof.zip")
    verified = pc.check(to_check(formula.model), None, tmp_path / "proof.zip")
    assert verified.log_lower == pytest.approx(0.0, abs=1e-9)
    assert verified.log_upper == pytest.approx(0.0, abs=1e-9)
