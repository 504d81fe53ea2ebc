"""Damaged files: whatever happens to a file, it is read as something valid or refused in one line."""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.instances import DATA

from powersum.core.errors import InputError
from powersum.formats import (
    formulas,
    read,
    read_evidence,
    read_formula,
    read_order,
    read_query,
    read_result,
    tokens,
    write,
    write_order,
)
from powersum.model.model import Model
from tests.formats.helpers import by_child, random_network
from tests.strategies import random_model

# fmt: off
ODD_WORDS = (
    "-1", "0", "1", "2", "3", "0.5", "-0.5", "1.5", "1e12", "1e-400", "1e400", "nan", "-inf", "1e", "0x10", "1_0", "+",
    "-", ".", ",", "c", "#", "MARKOV", "BAYES", "-BEGIN-", "\x00", "é", "1000000000000", "99999999999999999999",
    "2147483648", "4294967296", "9223372036854775807", "18446744073709551616",
)
# fmt: on
N_MUTANTS = 600
"""For each kind of file."""


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with one to three accidents."""
    for _ in range(int(rng.integers(1, 4))):
        words = content.split(b" ") if rng.random() < 0.5 else content.split(b"\n")
        at = int(rng.integers(len(words)))
        place = int(rng.integers(len(content) + 1))
        odd = ODD_WORDS[int(rng.integers(len(ODD_WORDS)))].encode()
        match int(rng.integers(9)):
            case 0:
                del words[at]
                content = b" ".join(words)
            case 1:
                words.insert(at, words[at])
                content = b" ".join(words)
            case 2:
                words[at] = odd
                content = b"\n".join(words)
            case 3:
                content = content[:place]
            case 4:
                content = content[:place] + bytes([int(rng.integers(256))]) + content[place + 1 :]
            case 5:
                content = content[:place] + b" " + odd + b" " + content[place:]
            case 6:
                content = content[:place] + content[place + int(rng.integers(1, 40)) :]
            case 7:
                other = int(rng.integers(len(words)))
                words[at], words[other] = words[other], words[at]
                content = b" ".join(words)
            case _:
                # Numbers at the head of a file are its counts: change one of them.
                head = content.split(maxsplit=6) or [b""]
                head[int(rng.integers(len(head)))] = odd
                content = b" ".join(head)
    return content


def real(pattern: str, largest: int = 12_000) -> list[bytes]:
    """A few small real files of a kind."""
    small = [path for path in sorted(DATA.glob(pattern)) if path.stat().st_size < largest]
    return [path.read_bytes() for path in small[:: max(1, len(small) // 12)]]


def made(folder: Path) -> list[bytes]:
    """Models made here, for want of real ones and beside them."""
    rng = np.random.default_rng(7)
    found = []
    for number in range(6):
        path = folder / f"made{number}.uai"
        write(random_model(rng, n_variables=3 + 4 * number, n_factors=2 + 6 * number, zeros=0.2), path)
        found.append(path.read_bytes())
    return found


def outcome(action: Callable[..., Any], path: Path, *arguments: Any) -> Any:
    """What reading gives; ``None`` where the file is refused as it should be."""
    try:
        return action(path, *arguments)
    except InputError as error:
        message = str(error)
        assert message.startswith(f"{path}: "), message
        assert message.isprintable(), message
        assert len(message) < len(str(path)) + 300, message
        return None


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("packed", ["", ".gz", ".xz"])
def test_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: str, compiled: bool) -> None:
    monkeypatch.setattr(tokens, "COMPILED_FROM_BYTES", 0 if compiled else 1 << 60)
    originals = [*real("*/*.uai"), *made(tmp_path)]
    rng = np.random.default_rng(11)
    path = tmp_path / f"m.uai{packed}"
    packers: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
    pack = packers[packed]
    n_read = 0
    for number in range(N_MUTANTS if not packed else N_MUTANTS // 4):
        original = originals[number % len(originals)]
        # Of packed files the outside suffers; that their inside is read like a plain file is tested elsewhere.
        content = mutated(pack(original) if packed else original, rng)
        path.write_bytes(content)
        model = outcome(read, path)
        if model is not None:
            n_read += 1
            assert isinstance(model, Model)
            write(model, tmp_path / "copy.uai")
            again = read(tmp_path / "copy.uai")
            np.testing.assert_array_equal(again.log_values, model.log_values)
    assert packed or 0 < n_read < N_MUTANTS


def test_both_ways_agree_on_damaged_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    originals = [*real("*/*.uai", 4000), *made(tmp_path)]
    rng = np.random.default_rng(12)
    path = tmp_path / "m.uai"
    for number in range(N_MUTANTS):
        path.write_bytes(mutated(originals[number % len(originals)], rng))
        said = []
        for threshold in (0, 1 << 60):
            monkeypatch.setattr(tokens, "COMPILED_FROM_BYTES", threshold)
            try:
                said.append(read(path).log_values.tobytes().hex())
            except InputError as error:
                said.append(str(error))
        assert said[0] == said[1]


# fmt: off
NETWORK_WORDS = (
    "variable", "probability", "network", "property", "table", "default", "type discrete", "{", "}", "(", ")", ";", "|",
    '"', "//", "/*", "*/", "[ 2 ]", "[ 99999999999999999999 ]", "1e999", "-0.5", "1e-400", "nan", "<TABLE>", "</TABLE>",
    "<!--", "-->", "<![CDATA[", "]]>", "&amp;", "&x;", "<GIVEN>v0</GIVEN>", "<!DOCTYPE BIF [ <!ENTITY x '1 1'> ]>", "<",
    "</DEFINITION>", "<DEFINITION>", "v0", "v1", "0", "\x00", "\xff", "é", "\u0664",
)
# fmt: on


def mixed_up(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with one to three accidents that such a format knows: marks and words added, changed, gone."""
    for _ in range(int(rng.integers(1, 4))):
        pieces = re.split(rb"([\s(){}\[\];,|<>]+)", content)
        at, other = int(rng.integers(len(pieces))), int(rng.integers(len(pieces)))
        odd = NETWORK_WORDS[int(rng.integers(len(NETWORK_WORDS)))].encode("utf-8")
        match int(rng.integers(6)):
            case 0:
                del pieces[at]
            case 1:
                pieces.insert(at, b" " + odd + b" ")
            case 2:
                pieces[at] = odd
            case 3:
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case 4:
                pieces.insert(at, pieces[other])
            case _:
                pieces[at] = mutated(pieces[at] + b" ", rng)
        content = b"".join(pieces)
    return content


@pytest.mark.parametrize("suffix", [".bif", ".xmlbif"])
def test_networks(tmp_path: Path, suffix: str) -> None:
    rng = np.random.default_rng(17)
    originals = []
    for number in range(8):
        write(random_network(rng, n_variables=1 + number, odd_names=number > 3), tmp_path / f"made{suffix}")
        originals.append((tmp_path / f"made{suffix}").read_bytes())
    path = tmp_path / f"m{suffix}"
    n_read = 0
    for number in range(3 * N_MUTANTS):
        path.write_bytes((mixed_up if number % 3 else mutated)(originals[number % len(originals)], rng))
        model = outcome(read, path)
        if model is None:
            continue
        n_read += 1
        assert isinstance(model, Model)
        for note in model.notes:
            assert note.startswith(f"{path}: ")
            assert note.isprintable()
        write(model, tmp_path / f"copy{suffix}")
        assert by_child(read(tmp_path / f"copy{suffix}")) == by_child(model)
    assert 20 < n_read < 2 * N_MUTANTS


MODEL = Model.from_factors([2, 3, 2, 2, 2, 2, 4, 2, 2, 2], [])


@pytest.mark.parametrize("model", [None, MODEL], ids=["alone", "checked"])
def test_evidence(tmp_path: Path, model: Model | None) -> None:
    originals = [*real("*/*.evid"), b"3 1 2 3 0 6 3\n", b"1\n3 1 2 3 0 6 3\n", b"3\n1 0 1\n0\n2 4 1 5 0\n", b"0\n"]
    rng = np.random.default_rng(13)
    path = tmp_path / "m.uai.evid"
    for number in range(N_MUTANTS):
        path.write_bytes(mutated(originals[number % len(originals)], rng))
        evidence = outcome(read_evidence, path, model)
        if evidence is not None:
            assert all(isinstance(v, int) and isinstance(x, int) and v >= 0 and x >= 0 for v, x in evidence.items())
            if model is not None:
                assert model.evidence(evidence) == evidence


@pytest.mark.parametrize("model", [None, MODEL], ids=["alone", "checked"])
def test_queries(tmp_path: Path, model: Model | None) -> None:
    originals = [*real("*/*.query"), *real("*/*.map"), b"4 0 9 3 5\n", b"# MAP\n3\n1\n2\n8\n"]
    rng = np.random.default_rng(14)
    path = tmp_path / "m.uai.query"
    for number in range(N_MUTANTS):
        path.write_bytes(mutated(originals[number % len(originals)], rng))
        query = outcome(read_query, path, model)
        if query is not None:
            assert len(set(query)) == len(query)
            assert all(0 <= v < (10 if model else 1 << 60) for v in query)


def test_orders(tmp_path: Path) -> None:
    write_order(np.random.default_rng(3).permutation(20).tolist(), tmp_path / "made.vo")
    originals = [*real("*/*.vo"), (tmp_path / "made.vo").read_bytes()]
    rng = np.random.default_rng(15)
    path = tmp_path / "m.vo"
    for number in range(N_MUTANTS):
        path.write_bytes(mutated(originals[number % len(originals)], rng))
        order = outcome(read_order, path)
        if order is not None:
            assert sorted(order.tolist()) == list(range(len(order)))


def test_results(tmp_path: Path) -> None:
    originals = [
        b"PR\n-12.5\n-BEGIN-\n-11.5\n",
        b"MAR\n2 2 0.25 0.75 1 1.0\n",
        b"MAP\n3 1 1 0\n-BEGIN-\n3 1 0 2\n",
        b"MMAP\n2 7 1 3 0\n",
    ]
    rng = np.random.default_rng(16)
    path = tmp_path / "m.PR"
    for number in range(N_MUTANTS):
        path.write_bytes(mutated(originals[number % len(originals)], rng))
        outcome(read_result, path)


def test_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens to a formula, it is read as a question that fits its model, or refused in one line."""
    monkeypatch.setattr(formulas, "DEFINITION_SECONDS", 0.01)
    originals = [
        b"c t pwmc\nc p show 1 2 0\np cnf 4 3\nc p weight 1 0.4 0\nc p weight -1 0.6 0\n1 -2 0\n2 3 0\n-3 4 0\n",
        b"p cnf 5 2\ne 1 2 0\nr 0.25 3 4 0\ne 5 0\n1 2 -3 0\n4 -5 0\n",
        b"c max 1 0\nc ind 2 3 0\np cnf 4 2\n1 2 0\n-3 4 0\n",
        *real("ssat/*.sdimacs"),
    ]
    rng = np.random.default_rng(13)
    path = tmp_path / "f.cnf"
    n_read = 0
    for number in range(N_MUTANTS):
        path.write_bytes(mutated(originals[number % len(originals)], rng))
        formula = outcome(read_formula, path)
        if formula is not None:
            n_read += 1
            assert sum(len(variables) for _, variables in formula.blocks) == formula.model.n_variables
            assert np.isfinite(formula.model.log_values[formula.model.log_values > -np.inf]).all()
            assert len(formula.query.weights) == formula.model.n_variables
    assert 0 < n_read < N_MUTANTS
