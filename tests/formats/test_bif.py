"""BIF files: the dialects that people share, every digit of every number, and errors that say where and what."""

from __future__ import annotations

import gzip
import lzma
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from powersum.formats import network, read, write
from tests.formats.helpers import by_child, random_network, refusal, saved

HEAD = """network "a b" { property author = 3/4 of "us; and {them}" ; property url http://a.b/*c ; } // a <comment>
/* variable ghost { type discrete [ 1 ] { x }; } */
variable age { type discrete [ 3 ] { <5, 3-4, "old & wise" }; property position = (1, 2); }
variable Größe { // two
  property "x";
  type discrete[2] {0 a/b}; }
"""
AGE = "probability ( age ) { table 0.25, 2.5e-1, .5; }\n"
NAMED = {"age": ("<5", "3-4", "old & wise"), "Größe": ("0", "a/b")}


def tables(model: ps.Model) -> list[list[float]]:
    return [np.exp(table).ravel().tolist() for _, table in model.factors()]


@pytest.mark.parametrize(
    "body",
    [
        'probability ( Größe | age ) { ( <5 ) 0.1, 0.9; ( 3-4 ) 0.2, 0.8; ( "old & wise" ) 0.3, 0.7; }',
        'probability(Größe|age){("old & wise")0.3 0.7;(<5)1e-1 9E-1;(3-4).2,.8;}',
        "probability ( Größe age ) {\n (3-4)\n .2,\n 0.8; (old & wise) .3 0.7; // (<5) 1 0;\n (<5) 0.1 /* , */ 0.9; }",
        'probability ( "Größe" | "age" ) { default 0.1, 0.9; (3-4) 0.2, 0.8; (old & wise) 0.3, 0.7; property x = 1; }',
        "probability ( Größe | age ) { table 0.1, 0.2, 0.3, 0.9, 0.8, 0.7; }",
        "probability ( Größe , age ) { table 0.1 0.2 0.3 // b=0\n 0.9 0.8 0.7; }",
    ],
)
def test_dialects(tmp_path: Path, body: str) -> None:
    for text in (
        HEAD + AGE + body,
        HEAD + body + AGE,
        (HEAD + AGE + body).replace("\n", "\r\n"),
        "\ufeff" + HEAD + AGE + body,
    ):
        model = read(saved(tmp_path, text, "m.bif"))
        assert dict(zip(model.names or (), model.states or (), strict=True)) == NAMED
        assert model.directed
        assert model.notes == ()
        np.testing.assert_allclose(tables(model)[0], [0.25, 0.25, 0.5], rtol=1e-15)
        np.testing.assert_allclose(tables(model)[1], [0.1, 0.9, 0.2, 0.8, 0.3, 0.7], rtol=1e-15)


def test_names_of_older_files(tmp_path: Path) -> None:
    model = read(saved(tmp_path, (HEAD + AGE + "probability (Größe) { table 0.5 0.5; }").encode("latin-1"), "m.bif"))
    assert model.names == ("age", "Größe")


def test_blanks_in_names_where_the_number_of_states_says_so(tmp_path: Path) -> None:
    text = """network x {} variable a { type discrete [ 2 ] { very  low, high }; } probability (a) { table 0 1; }
    variable b { type discrete [ 2 ] { x y }; } probability (b | a) { (high) 1 0; (very low) 0 1; }"""
    model = read(saved(tmp_path, text, "m.bif"))
    assert model.states == (("very low", "high"), ("x", "y"))
    assert tables(model)[1] == [0, 1, 1, 0]


def test_tiny_numbers_are_no_zeros(tmp_path: Path) -> None:
    text = "network x {} variable a { type discrete [ 3 ] { x, y, z }; } probability (a) { table 1e-50, 1e-4000, 1; }"
    model = read(saved(tmp_path, text, "m.bif"))
    np.testing.assert_allclose(model.log_values, [-50 * math.log(10), -4000 * math.log(10), 0.0], rtol=1e-15)
    answer = ps.solve(model, maximize="all", evidence={"a": "y"})
    assert answer.log_upper == pytest.approx(-4000 * math.log(10))
    assert answer.status != ps.Status.INFEASIBLE


@pytest.mark.parametrize("packed", ["", ".gz", ".xz"])
@pytest.mark.parametrize("suffix", [".bif", ".xmlbif", ".bifxml"])
def test_round_trips_are_exact(tmp_path: Path, suffix: str, packed: str) -> None:
    unpack: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.decompress, ".xz": lzma.decompress}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        model = random_network(rng, n_variables=1 + 2 * seed, odd_names=seed % 2 == 1, tiny=seed % 3 == 2)
        # What is written exactly is what can be read: logs of doubles and of decimals.
        write(model, tmp_path / "first.uai")
        model = read(tmp_path / "first.uai").with_names(model.names or (), model.states)
        path = tmp_path / f"m{suffix}{packed}"
        write(model, path)
        again = read(path)
        assert again.names == model.names
        assert again.directed
        assert by_child(again) == by_child(model)
        assert unpack[packed](path.read_bytes()).startswith((b"network", b"<?xml"))


def test_rows_in_any_order_and_any_default(tmp_path: Path) -> None:
    """Against a writer of its own: rows shuffled, repeated ones left to the default, comments between."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        model = random_network(rng, n_variables=5)
        assert model.names is not None
        assert model.states is not None
        lines = ["network n { }"]
        for name, labels in zip(model.names, model.states, strict=True):
            lines.append(f"variable {name} {{ type discrete [ {len(labels)} ] {{ {' , '.join(labels)} }}; }}")
        for k in rng.permutation(model.n_factors).tolist():
            scope, log_table = model.factor(k)
            rows = np.exp(log_table).reshape(-1, log_table.shape[-1])
            default = rows[int(rng.integers(len(rows)))]
            body = []
            for place, row in enumerate(rows):
                states = np.unravel_index(place, log_table.shape[:-1])
                own = ", ".join(model.states[u][int(x)] for u, x in zip(scope[:-1], states, strict=True))
                if not np.array_equal(row, default) or rng.random() < 0.3:
                    body.append(f"({own}) {', '.join(repr(float(p)) for p in row)}; // {place}")
            body.append(f"default {' '.join(repr(float(p)) for p in default)}; /* the rest */ property p {k};")
            given = ", ".join(model.names[u] for u in scope[:-1])
            lines.append(f"probability ( {model.names[scope[-1]]} {'|' if given else ''} {given} ) {{")
            lines += [body[i] for i in rng.permutation(len(body))] + ["}"]
        found, expected = by_child(read(saved(tmp_path, "\n".join(lines), "m.bif"))), by_child(model)
        for child, whole in expected.items():
            assert found[child][:2] == whole[:2]
            np.testing.assert_allclose(np.frombuffer(found[child][2]), np.frombuffer(whole[2]), rtol=1e-15, atol=1e-15)


TWO = "network n {}\nvariable a { type discrete [ 2 ] { x, y }; }\nvariable b { type discrete [ 2 ] { u, v }; }\n"
A = "probability (a) { table 0.5, 0.5; }\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no variables"),
        ("network x {}", "holds no variables"),
        ("rubbish", "line 1: expected network, variable or probability, found rubbish"),
        ("\n\nnetwork x {", "line 3: the file ends where a property or } is expected"),
        ("network x { a }", "line 1: expected a property or }, found a"),
        ("variable a { }", "line 1: variable a: expected type discrete"),
        ("variable a { type discrete [ 2 ] { x }; }", "line 1: variable a has 2 states, but 1 are listed"),
        ("variable a { type discrete [ 99999999999 ] { x }; }", "has 99999999999 states, but 1 are listed"),
        ("variable a { type discrete [ 0 ] { }; }", "variable a has no states"),
        ("variable a { type continuous [ 2 ] { x y }; }", "variable a is continuous: only discrete ones"),
        ("variable a { type continuous; }", "variable a: expected type discrete"),
        ("variable a { type discrete [ 2 ] { x, x }; }", "variable a has two states called x"),
        (TWO + "variable a { type discrete [ 1 ] { x }; }", "line 4: variable a is declared twice"),
        (TWO + A, "line 3: variable b has no distribution"),
        (TWO + A + "probability (c) { table 1; }", "line 5: variable c is not declared"),
        (TWO + A + A, "line 5: variable a has two distributions"),
        (
            TWO + A + "probability (b | a, a) { default 1 0; }",
            "line 5: the distribution of variable b names a variable",
        ),
        (TWO + A + "probability (a, b | a) { default 1 0; }", "line 5: a distribution must be of one variable"),
        (TWO + A + "probability (b) {\n table 0.5, 1e999; }", "line 6: variable b: 1e999 is not a finite number"),
        (TWO + A + "probability (b) {\n table 0.5,\n -0.5; }", "line 7: variable b: -0.5 is negative"),
        (TWO + A + "probability (b) {\n table 0.5, /*\n*/ 0x1; }", "line 7: variable b: 0x1 is not a finite number"),
        (TWO + A + "probability (b) { table 1e-9999999, 1; }", "1e-9999999 is too small, but not zero"),
        (TWO + A + "probability (b) { table 0.5, 0.5, 0.5; }", "line 5: variable b: 3 numbers where 2 are needed"),
        (TWO + A + "probability (b | a) {\n (x) 1 0; }", "line 5: the distribution of variable b lacks its row (y)"),
        (TWO + A + "probability (b | a) { }", "line 5: the distribution of variable b lacks its row (x)"),
        (TWO + A + "probability (b) { }", "line 5: the distribution of variable b lacks its table"),
        (TWO + A + "probability (b | a) {\n (x) 1 0;\n (x) 1 0; }", "line 7: variable b has two rows (x)"),
        (TWO + A + "probability (b | a) {\n (x) 1 0;\n (z) 1 0; }", "line 7: variable b: z is no state of a"),
        (
            TWO + A + "probability (b | a) {\n (x, y) 1 0; }",
            "line 6: variable b: row (x, y) has 2 states for 1 parents",
        ),
        (TWO + A + "probability (b | a) {\n (x) 1;\n (y) 1 0 0; }", "line 6: variable b: 1 numbers where 2 are needed"),
        (TWO + A + "probability (b | a) { table 1 0 0 1; (x) 1 0; }", "line 5: variable b has a whole table and rows"),
        (TWO + A + "probability (b | a) { default 1 0;\n default 1 0; }", "line 6: variable b has two entries default"),
        (TWO + A + "probability (b | a) { (x) 1 0; (y) 1 0", "line 5: expected a row, table, default or property"),
        (TWO + "probability (a | b) { default 1 0; } probability (b | a) { default 1 0; }", "among its own ancestors"),
        ('variable "" { type discrete [ 1 ] { x }; }', "is empty"),
        ("variable a\x07 { type discrete [ 1 ] { x }; }", "holds what cannot be shown"),
    ],
)
def test_refusals(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(read, saved(tmp_path, text, "m.bif"))


def test_a_default_cannot_ask_for_all_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"v{k}" for k in range(70)]
    text = "".join(f"variable {name} {{ type discrete [ 2 ] {{ x, y }}; }}" for name in names)
    wide = text + f"probability ( v0 | {', '.join(names[1:])} ) {{ default 0.5 0.5; }}"
    assert f"tables of more than {1 << 28} entries" in refusal(read, saved(tmp_path, wide, "m.bif"))
    monkeypatch.setattr(network, "MAX_ENTRIES", 7)
    many = text + "".join(f"probability ( v{k} | v{k + 1} ) {{ default 0.5 0.5; }}" for k in range(20))
    assert "tables of more than 7 entries" in refusal(read, saved(tmp_path, many, "m.bif"))


@pytest.mark.parametrize("suffix", [".bif", ".xmlbif"])
def test_models_that_are_no_bayesian_networks_are_not_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m{suffix}"
    for model, message in (
        (ps.Model.from_factors([2], []), "write a Markov network as .uai"),
        (ps.Model.from_factors([2], [((), 1.0)], directed=True), "needs exactly one table"),
        (ps.Model.from_factors([2, 2], [((0,), [0.5, 0.5])], directed=True), "variable 1 has no table"),
        (ps.Model.from_tables({'a"': [1.0]}, states={'a"': ["\n"]}, directed=True), "has no place for the word"),
        (ps.Model.from_tables({"": [1.0]}, directed=True), "has no place for the word"),
    ):
        assert message in refusal(lambda place, model=model: write(model, place), path)
    assert not list(tmp_path.iterdir())


def test_neither_a_compiler_nor_pyagrum_is_needed(tmp_path: Path) -> None:
    write(random_network(np.random.default_rng(0)), tmp_path / "m.bif")
    write(read(tmp_path / "m.bif"), tmp_path / "m.xmlbif")
    code = (
        "import sys, powersum.formats as f; [f.read(p) for p in sys.argv[1:]]; "
        "assert not {'numba', 'pyagrum', 'pyAgrum'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.bif"), str(tmp_path / "m.xmlbif")], check=True)


def test_whole_tables_in_the_other_order(tmp_path: Path) -> None:
    """Some programs let the child run fastest: only then do such tables sum to one, and a note says so."""
    text = TWO + A + "probability (b | a) { table 0.1 0.9 0.2 0.8; }"
    model = read(saved(tmp_path, text, "m.bif"))
    np.testing.assert_allclose(tables(model)[1], [0.1, 0.9, 0.2, 0.8])
    assert model.notes == (
        f"{tmp_path / 'm.bif'}: the tables sum to 1 only if their own variable runs fastest, and are read so, "
        "against the format",
    )
    neither = read(saved(tmp_path, text.replace("0.8", "0.7"), "m.bif"))
    np.testing.assert_allclose(tables(neither)[1], [0.1, 0.2, 0.9, 0.7])
    assert "variable b given a = x sums to 0.3, not to 1" in neither.notes[0]
