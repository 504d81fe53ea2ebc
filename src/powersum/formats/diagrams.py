"""Influence diagrams in the UAI format: ``.uai`` with header ``ID`` or ``LIMID``, ``.id`` and ``.pvo`` beside it."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np

from powersum.core.errors import InputError
from powersum.core.files import PathLike, load, plain_name, saving, shown
from powersum.formats.diagram_networks import read_diagram_network
from powersum.formats.tokens import first_word, load_text, read_numbers, without_comments
from powersum.formats.uai import read_cardinalities, read_scopes, table_places
from powersum.model.diagram import Diagram
from powersum.model.model import Model

KINDS = {"ID": True, "LIMID": False}
"""Headers, and whether decisions remember what was seen and decided before."""


NETWORKS = (".xdsl", ".net", ".bifxml", ".xmlbif")
"""Suffixes of diagrams of other tools; decisions of theirs remember what was seen and decided before."""


def is_diagram(path: PathLike) -> bool:
    """Whether a file is an influence diagram in the UAI format."""
    if not plain_name(path).lower().endswith(".uai"):
        return False
    word, _ = first_word(without_comments(load_text(path)))
    return word.upper() in KINDS


def read_diagram(path: PathLike) -> Diagram:
    """Read an influence diagram: ``.uai``, ``.xdsl``, ``.net`` or ``.bifxml``.

    ``X.uai`` needs ``X.id`` and ``X.pvo`` in the same folder.

    ``X.id`` has the kind of each variable (C or D) and of each function (P or U). ``X.pvo`` has blocks of
    the order, first eliminated first. They are: what is never seen, the last decision, what is seen before it, and so
    on. With the header ``LIMID`` a decision knows only what is seen right before it.
    """
    suffix = os.path.splitext(plain_name(path))[1].lower()
    if suffix in NETWORKS:
        return read_diagram_network(path, suffix)
    text = without_comments(load_text(path))
    word, end = first_word(text)
    if word.upper() not in KINDS:
        raise InputError(f"{shown(path)}: token 1: {word or 'nothing'} is not ID or LIMID: no influence diagram")
    numbers = read_numbers(path, text, end, skipped=1)
    cardinalities, position = read_cardinalities(numbers)
    scope_starts, scope_variables, position = read_scopes(numbers, position, len(cardinalities))
    starts, at = table_places(numbers, position, scope_starts, cardinalities[scope_variables])
    values = numbers.values[at]
    scopes = [scope_variables[a:b].tolist() for a, b in pairwise(scope_starts)]
    tables = [
        values[a:b].reshape(cardinalities[scope]) for a, b, scope in zip(starts[:-1], starts[1:], scopes, strict=True)
    ]

    stem = Path(plain_name(path)).with_suffix("")
    kinds_path, order_path = Path(f"{stem}.id"), Path(f"{stem}.pvo")
    variables, functions = _kinds(kinds_path, len(cardinalities), len(scopes))
    chance = [k for k, kind in enumerate(functions) if kind == "P"]
    for k in chance:
        if values[starts[k] : starts[k + 1]].min(initial=0.0) < 0.0:
            raise InputError(f"{shown(path)}: factor {k} is a distribution with a negative entry")
    blocks = _blocks(order_path, len(cardinalities))
    model = Model.from_factors(cardinalities.tolist(), [(scopes[k], tables[k]) for k in chance], directed=True)
    decisions = {v for v, kind in enumerate(variables) if kind == "D"}
    try:
        return Diagram.of(
            model,
            [(scopes[k], tables[k]) for k, kind in enumerate(functions) if kind == "U"],
            _decisions(order_path, blocks, decisions),
            recall=KINDS[word.upper()],
        )
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from None


def _kinds(path: Path, n_variables: int, n_functions: int) -> tuple[list[str], list[str]]:
    """Kinds of the variables and of the functions."""
    words = load(path).decode("utf-8", "replace").upper().split()
    parts: list[list[str]] = []
    for expected, letters, what in ((n_variables, "CD", "variables"), (n_functions, "PU", "functions")):
        if not words or words[0] != str(expected):
            found = words[0] if words else "nothing"
            raise InputError(f"{shown(path)}: {found} {what} declared, but the .uai file has {expected}")
        part, words = words[1 : 1 + expected], words[1 + expected :]
        wrong = next((word for word in part if word not in letters), None)
        if wrong is not None or len(part) < expected:
            raise InputError(f"{shown(path)}: a kind of {what} is {wrong or 'missing'}: give {' or '.join(letters)}")
        parts.append(part)
    return parts[0], parts[1]


def _blocks(path: Path, n_variables: int) -> list[list[int]]:
    """The blocks of the order, first eliminated first."""
    text = load(path).decode("utf-8", "replace")
    pieces = [piece.split() for piece in re.sub(r"#[^\r\n]*", "", text).split(";")]
    if pieces and not pieces[-1]:
        pieces.pop()
    bad = next((word for piece in pieces for word in piece if not word.isascii() or not word.isdigit()), None)
    if bad is not None or len(pieces) < 2 or any(len(piece) != 1 for piece in pieces[:2]):
        raise InputError(f"{shown(path)}: {bad or 'it'} is no order of blocks: n; number of blocks; block; block; …")
    n, n_blocks = int(pieces[0][0]), int(pieces[1][0])
    blocks = [[int(word) for word in piece] for piece in pieces[2:]]
    if n != n_variables or len(blocks) != n_blocks:
        raise InputError(
            f"{shown(path)}: {n} variables in {n_blocks} blocks declared, but the model has {n_variables} variables "
            f"and {len(blocks)} blocks follow"
        )
    if sorted(v for block in blocks for v in block) != list(range(n_variables)):
        raise InputError(f"{shown(path)}: the blocks do not name each of the variables 0 to {n_variables - 1} once")
    return blocks


def _decisions(path: Path, blocks: list[list[int]], decisions: set[int]) -> list[tuple[int, list[int]]]:
    """Each decision in the order of time, and what is seen right before it."""
    found: list[tuple[int, list[int]]] = []
    seen: list[int] = []
    for block in reversed(blocks):
        chosen = [v for v in block if v in decisions]
        if chosen and len(chosen) < len(block):
            raise InputError(f"{shown(path)}: a block has decisions and chance variables: {' '.join(map(str, block))}")
        if not chosen:
            seen += block
        for decision in chosen:
            found.append((decision, seen))
            seen = []
    return found


def write_diagram(diagram: Diagram, path: PathLike) -> tuple[Path, ...]:
    """Write a diagram as ``X.uai``, with ``X.id`` and ``X.pvo`` beside it; returns the files. Names have no place."""
    files = diagram_files(path)
    model = diagram.model
    tables = [("P", scope, np.exp(table)) for scope, table in model.factors()]
    tables += [("U", part.scope, part.table) for part in diagram.utilities]
    seen: set[int] = set()
    blocks: list[list[int]] = []
    for number, choice in enumerate(diagram.choices):
        new = [v for v in choice.sees if v not in seen and v not in diagram.decisions]
        if not diagram.recall and set(new) != set(diagram.known(number)):
            raise InputError(
                f"{shown(path)}: decision {model.name(choice.variable)} sees what was seen before or decided: "
                f"the format has no place for that without perfect recall"
            )
        # An empty block parts decisions that are not made at once: what is seen belongs to the first after it.
        blocks += [new] if new else []
        blocks.append([choice.variable])
        seen.update([*new, choice.variable])
    hidden = [v for v in range(model.n_variables) if v not in seen]
    blocks += [hidden] if hidden else []
    lines = ["ID" if diagram.recall else "LIMID", str(model.n_variables), " ".join(map(str, model.cardinalities))]
    lines += [str(len(tables)), *(" ".join(map(str, [len(scope), *scope])) for _, scope, _ in tables)]
    for _, _, table in tables:
        lines += ["", str(table.size), " ".join(repr(float(x)) for x in table.ravel())]
    kinds = ["D" if v in diagram.decisions else "C" for v in range(model.n_variables)]
    functions = [kind for kind, _, _ in tables]
    texts = (
        lines,
        [str(len(kinds)), " ".join(kinds), str(len(functions)), " ".join(functions)],
        [f"{model.n_variables};", f"{len(blocks)};", *(" ".join(map(str, b)) + " ;" for b in reversed(blocks))],
    )
    for file, text in zip(files, texts, strict=True):
        with saving(file) as handle:
            handle.write("\n".join([*text, ""]).encode("ascii"))
    return files


def diagram_files(path: PathLike) -> tuple[Path, ...]:
    """The three files of a diagram."""
    if not plain_name(path).lower().endswith(".uai"):
        raise InputError(f"{shown(path)}: a diagram is written as .uai, with .id and .pvo beside it")
    stem = Path(plain_name(path)).with_suffix("")
    return Path(path), Path(f"{stem}.id"), Path(f"{stem}.pvo")
