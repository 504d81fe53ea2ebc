"""Damaged files of every text format: read as something valid, or refused by one line that names the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np

import powersum as ps
from powersum.formats import read_result
from soak.cases import Case
from soak.shapes import Rng, one_of

# fmt: off
ODD_WORDS = (
    "-1", "0", "1", "2", "3", "0.5", "-0.5", "1.5", "1e12", "1e-400", "1e400", "1e999", "1e-320", "nan", "-inf", "inf",
    "1e", "0x10", "1_0", "+", "-", ".", ",", "c", "#", "MARKOV", "BAYES", "-BEGIN-", "\x00", "é", "1000000000000",
    "99999999999999999999", "2147483648", "4294967296", "9223372036854775807", "18446744073709551616", "{", "}", ";",
    "(", ")", "|", "\"", "<", ">", "</", "&amp;", "&", "variable", "probability", "table", "node", "potential",
    "default",     "9" * 400, "٣", "\t", "\r", "\x1a", "\ufeff", "1.0.0", "1e5", "--1", "+1", "00", "-0",
)
# fmt: on

SIDE_FILES: Mapping[str, tuple[bytes, ...]] = MappingProxyType(
    {
        ".evid": (b"3 1 2 3 0 6 3\n", b"1\n3 1 2 3 0 6 3\n", b"3\n1 0 1\n0\n2 4 1 5 0\n", b"0\n"),
        ".query": (b"4 0 9 3 5\n", b"# MAP\n3\n1\n2\n8\n"),
        ".vo": (b"# an order\n10\n" + b"\n".join(b"%d" % v for v in (3, 1, 4, 0, 5, 9, 2, 6, 8, 7)) + b"\n",),
        ".PR": (
            b"PR\n-12.5\n-BEGIN-\n-11.5\n",
            b"MAR\n2 2 0.25 0.75 1 1.0\n",
            b"MAP\n3 1 1 0\n-BEGIN-\n3 1 0 2\n",
            b"MMAP\n2 7 1 3 0\n",
        ),
    }
)
"""Files that go with a model, each kind with some that are in order."""

NETWORK_SUFFIXES = (".bif", ".xmlbif", ".net", ".dsl", ".xdsl")
"""Formats that are read through pyAgrum."""

ORDINARY = ps.Model.from_factors([2, 3, 2, 2, 2, 2, 4, 2, 2, 2], [])


def draw_file(rng: Rng, name: str) -> Case:
    """A file of some kind, with one to three accidents."""
    suffixes = [".uai", ".uai", *SIDE_FILES]
    if find_spec("pyagrum") is not None or find_spec("pyAgrum") is not None:
        suffixes += NETWORK_SUFFIXES
    suffix = one_of(rng, suffixes)
    originals = SIDE_FILES[suffix] if suffix in SIDE_FILES else _written(suffix)
    data = _mutated(originals[int(rng.integers(len(originals)))], rng)
    return Case(name=name, entry="file", kind=f"file/{suffix[1:]}", suffix=suffix, data=data)


@cache
def _written(suffix: str) -> tuple[bytes, ...]:
    """Models of a format, in order."""
    found = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "model" + suffix)
        for number in range(4):
            rng = np.random.default_rng(number)
            n = 1 + 2 * number
            cards = rng.integers(1 if suffix == ".uai" else 2, 4, n).tolist()
            scopes = [(*rng.permutation(v)[: int(rng.integers(0, 3))].tolist(), v) for v in range(n)]
            tables = [rng.dirichlet(np.ones(cards[s[-1]]), size=[cards[v] for v in s[:-1]]) for s in scopes]
            names = [f"name{v}" for v in range(n)]
            states = [[f"state{k}" for k in range(card)] for card in cards]
            factors = list(zip(scopes, tables, strict=True))
            ps.write(ps.Model.from_factors(cards, factors, directed=True, names=names, states=states), path)
            found.append(path.read_bytes())
    return tuple(found)


def _mutated(content: bytes, rng: Rng) -> bytes:
    """The content with one to three accidents."""
    for _ in range(int(rng.integers(1, 4))):
        space = [b" ", b"\n", b"<"][int(rng.integers(3))]
        words = content.split(space)
        at, other = rng.integers(len(words), size=2).tolist()
        place = int(rng.integers(len(content) + 1))
        odd = ODD_WORDS[int(rng.integers(len(ODD_WORDS)))].encode()
        match int(rng.integers(9)):
            case 0:
                del words[at]
                content = space.join(words)
            case 1:
                words.insert(at, words[other])
                content = space.join(words)
            case 2:
                words[at] = odd
                content = space.join(words)
            case 3:
                content = content[:place]
            case 4:
                content = content[:place] + bytes([int(rng.integers(256))]) + content[place + 1 :]
            case 5:
                content = content[:place] + b" " + odd + b" " + content[place:]
            case 6:
                content = content[:place] + content[place + int(rng.integers(1, 40)) :]
            case 7:
                words[at], words[other] = words[other], words[at]
                content = space.join(words)
            case _:
                # A number somewhere becomes another one.
                numbers = [i for i, word in enumerate(words) if word[:1].isdigit()]
                if numbers:
                    words[one_of(rng, numbers)] = odd
                content = space.join(words)
    return content


def read_file(case: Case) -> list[str]:
    """What is wrong with how a file is read; any exception but the right one goes through."""
    wrong: list[str] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "model" + case.suffix)
        path.write_bytes(case.data)
        readers: dict[str, Callable[[Path], Any]] = {
            ".evid": lambda p: ps.read_evidence(p, ORDINARY),
            ".query": lambda p: ps.read_query(p, ORDINARY),
            ".vo": ps.read_order,
            ".PR": read_result,
        }
        try:
            found = readers.get(case.suffix, ps.read)(path)
        except ps.InputError as error:
            message = str(error)
            if not message.startswith(f"{path}: ") or not message.isprintable() or len(message) > len(str(path)) + 400:
                wrong.append(f"message: {message[:500]!r}")
            if "MemoryError" in message:
                wrong.append(f"memory: {message[:500]!r}")
            return wrong
        if isinstance(found, ps.Model):
            copy = Path(folder, "copy.uai")
            ps.write(found, copy)
            again = ps.read(copy)
            if not np.array_equal(again.log_values, found.log_values):
                wrong.append("round trip: numbers change when the model is written and read again")
            names = Path(folder, "copy.uai.names")
            if names.exists():
                named = ps.read_names(names, again)
                if (named.names, named.states) != (found.names, found.states):
                    wrong.append("round trip: names change when the model is written and read again")
                names.unlink()
        if sorted(os.listdir(folder)) not in (sorted({path.name, "copy.uai"}), [path.name]):
            wrong.append(f"files: {sorted(os.listdir(folder))} are left")
    return wrong
