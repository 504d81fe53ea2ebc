"""The checker's own reader of models, evidence and queries agrees with powersum's, and refuses what is wrong."""

from __future__ import annotations

import gzip
import lzma
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.instances import DATA

import powersum as ps
import powersum_check as pc
from powersum.formats.uai import read_uai, write_uai
from powersum_check.outside import read_model
from powersum_check.reading import read_evidence, read_list
from tests.check.writer import digest
from tests.data import needs_data
from tests.interop.networks import library
from tests.strategies import random_model

LIMIT = 10**7


@pytest.mark.parametrize("seed", range(20))
def test_models_are_read_as_powersum_reads_them(seed: int, tmp_path: Path) -> None:
    model = random_model(np.random.default_rng(seed), zeros=0.2, spread=20.0)
    path = tmp_path / "model.uai"
    write_uai(model, path)
    mine, theirs = read_model(path, LIMIT), read_uai(path)
    assert mine.cardinalities == tuple(theirs.cardinalities.tolist())
    for own, other in zip(mine.factors, theirs.factors(), strict=True):
        assert own.scope == other.scope
        np.testing.assert_allclose(own.table.values, other.log_table, rtol=1e-14, atol=1e-14)
        assert own.table.up == own.table.down < 1e-13
    assert mine.digest() == digest(theirs)
    for packed, name in ((gzip.compress, "model.uai.gz"), (lzma.compress, "model.uai.xz")):
        (tmp_path / name).write_bytes(packed(path.read_bytes()))
        assert read_model(tmp_path / name, LIMIT).digest() == mine.digest()


def test_arrays_are_models(tmp_path: Path) -> None:
    model = random_model(np.random.default_rng(1), zeros=0.2)
    path = tmp_path / "model.npz"
    names = ("cardinalities", "scope_starts", "scope_variables", "log_values")
    np.savez(path, **{name: getattr(model, name) for name in names})
    mine = read_model(path, LIMIT)
    assert mine.digest() == digest(model)
    for own, other in zip(mine.factors, model.factors(), strict=True):
        np.testing.assert_array_equal(own.table.values, other.log_table)
        assert own.table.up == 0.0
    for change in ({"log_values": model.log_values[:-1]}, {"log_values": np.append(model.log_values, 0.0)}):
        np.savez(path, **({name: getattr(model, name) for name in names} | change))
        with pytest.raises(pc.BadFile):
            read_model(path, LIMIT)


def test_small_numbers_keep_their_value(tmp_path: Path) -> None:
    path = tmp_path / "model.uai"
    path.write_text("c a comment\nMARKOV 1 4\n# another\n 1 1 0 4 1e-400 0.0 3e-310 0e-999999")
    table = read_model(path, LIMIT).factors[0].table
    np.testing.assert_allclose(table.values[[0, 2]], [-400 * math.log(10.0), math.log(3.0) - 310 * math.log(10.0)])
    assert table.values[1] == table.values[3] == -math.inf
    assert table.up < 1e-11


@pytest.mark.parametrize(
    "text",
    [
        "MARKOV # a comment\n1 2 1 1 0 2 0.5 0.25",
        "# pyAgrum\nMARKOV\n1 # one variable c\n2#\n1\n1 0\n# c\n2\n0.5 0.25 # its table",
        "c first\r\nMARKOV 1 2\r\tc MARKOV 2\n1 1 0 2 0.5 0.25\n  c last",
        "\ufeffc x # y\n MARKOV 1 2 1 1 0 2 0.5 0.25",
        "BAYES 1 2 1 1 0\n\n 2 .5 +25.e-2\nclosing",
    ],
)
def test_comments_are_what_powersum_takes_for_them(text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.uai"
    path.write_text(text, encoding="utf-8")
    mine, theirs = read_model(path, LIMIT), ps.read(path)
    assert mine.digest() == digest(theirs)
    np.testing.assert_allclose(np.exp(mine.factors[0].table.values), [0.5, 0.25])
    np.testing.assert_allclose(np.exp(theirs.log_values), [0.5, 0.25])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GRAPH 0 0",
        "MARKOV",
        "MARKOV 1",
        "MARKOV 1 0 0",
        "MARKOV 1.5 2 0",
        "MARKOV 1 2 1 1 0 2 0.5",
        "MARKOV 1 2 1 1 0 2 0.5 0.5 0.5",
        "MARKOV 1 2 1 1 0 3 0.5 0.5 0.5",
        "MARKOV 1 2 1 1 1 2 0.5 0.5",
        "MARKOV 1 2 1 2 0 0 4 1 1 1 1",
        "MARKOV 1 2 1 1 0 2 -0.5 0.5",
        "MARKOV 1 2 1 1 0 2 nan 0.5",
        "MARKOV 1 2 1 1 0 2 inf 0.5",
        "MARKOV 1 2 1 1 0 2 1e999 0.5",
        "MARKOV 1 2 1 1 0 2 1_0 0.5",
        "MARKOV 1 2 1 1 0 2 0x1 0.5",
        "MARKOV 1 2 1 1 0 2 -e 0.5",
        "MARKOV 1 2 1 1 0 2 1e-99999999999 0.5",
        "MARKOV 99999999999 2",
        "MARKOV 1 2 99999999999999999999 1",
        "MARKOV 1 2 1 1 -1 2 1 1",
    ],
)
def test_wrong_models_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.uai"
    path.write_text(text)
    with pytest.raises(pc.BadFile) as caught:
        read_model(path, LIMIT)
    assert "\n" not in str(caught.value)


def test_files_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "model.uai.gz"
    path.write_bytes(gzip.compress(b"MARKOV " + b" " * 10**7))
    with pytest.raises(pc.BadFile, match="--memory"):
        read_model(path, 10**6)
    path.write_bytes(gzip.compress(b"MARKOV 0 0")[:-9])
    with pytest.raises(pc.BadFile, match="cannot be unpacked"):
        read_model(path, 10**6)
    with pytest.raises(pc.BadFile, match="cannot be read"):
        read_model(tmp_path / "none", 10**6)


@pytest.mark.parametrize(
    ("text", "found"),
    [("", {}), ("0", {}), ("2 0 1 3 0", {0: 1, 3: 0}), ("1\n2 0 1 3 0\n", {0: 1, 3: 0}), ("1\n0 1", {0: 1})],
)
def test_evidence(text: str, found: dict[int, int], tmp_path: Path) -> None:
    path = tmp_path / "model.evid"
    path.write_text(text)
    assert read_evidence(path, LIMIT) == found
    assert ps.read_evidence(path) == found


@pytest.mark.parametrize("text", ["1", "1 0", "2 0 1", "2\n1 0 1\n1 0 0", "2 0 1 0 0", "1 0 -1", "x", "1 0 0.5"])
def test_wrong_evidence_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.evid"
    path.write_text(text)
    with pytest.raises(pc.BadFile):
        read_evidence(path, LIMIT)


def test_queries(tmp_path: Path) -> None:
    path = tmp_path / "model.query"
    path.write_text("# the query\n2 3\n1")
    assert read_list(path, LIMIT) == [3, 1]
    for text in ("", "2 1", "2 1 1", "1 2 3", "1 x"):
        path.write_text(text)
        with pytest.raises(pc.BadFile):
            read_list(path, LIMIT)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("directed", [True, False])
def test_files_of_pyagrum_have_tables_in_an_order_of_their_own(directed: bool, tmp_path: Path) -> None:
    """Its inline comments name the variables of each table: powersum reads by them, and so does the checker."""
    gum = library("pyagrum")
    path = tmp_path / "model.uai"
    if directed:
        gum.fastBN("A[2]->C[3]->D[2];B[4]->C;A->D;E->C").saveUAI(str(path))
    else:
        gum.fastMRF("A[2]--C[3]--D[2];B[4]--C").saveUAI(str(path))
    agree(path, "pyAgrum, which wrote the file")
    # Comments that contradict the scopes are not believed by either.
    text = path.read_text()
    changed = text.replace("   # ", "  # ") if directed else text.replace("# {0, ", "# {1, ")
    assert changed != text
    path.write_text(changed)
    agree(path, "")


def agree(path: Path, note: str) -> None:
    """Both readers see the same model, and the checker says so much about the file."""
    mine, theirs = read_model(path, LIMIT), ps.read(path)
    assert mine.note.endswith(note)
    assert bool(mine.note) == bool(note) == any("written by pyAgrum" in said for said in theirs.notes)
    assert mine.digest() == digest(theirs)
    logs = np.concatenate([factor.table.values.ravel() for factor in mine.factors])
    np.testing.assert_allclose(logs, theirs.log_values, rtol=1e-14, atol=1e-14)


@needs_data
@pytest.mark.parametrize("folder", sorted(path.name for path in DATA.glob("*/")))
def test_real_files_are_read_as_powersum_reads_them(folder: str) -> None:
    for path in sorted((DATA / folder).glob("*.uai*"))[:40]:
        if path.suffix not in (".uai", ".gz", ".xz") or path.stat().st_size > 300_000:
            continue
        try:
            theirs = ps.read(path)
        except ps.InputError:
            # An influence diagram is no model to either.
            with pytest.raises(pc.BadFile):
                read_model(path, 10**9)
            continue
        mine = read_model(path, 10**9)
        assert mine.digest() == digest(theirs)
        logs = np.concatenate([factor.table.values.ravel() for factor in mine.factors])
        np.testing.assert_allclose(logs, theirs.log_values, rtol=1e-14, atol=1e-14)
        evidence = path.with_name(path.name + ".evid")
        if evidence.is_file():
            assert read_evidence(evidence, LIMIT) == ps.read_evidence(evidence)
