"""What a check may use is bounded: small files that ask for much are refused before they get it."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum_check as pc
from powersum.model.model import Model
from powersum_check.__main__ import main
from powersum_check.archive import Archive
from powersum_check.arrays import longest
from powersum_check.outside import read_model
from powersum_check.reading import read_evidence, read_list
from tests.check.helpers import question_of, to_check
from tests.check.test_alone import files_of
from tests.check.test_files import array_bytes, members_of, zipped
from tests.check.writer import Draft, Setting, no_tree, starts, tree_arrays

MEMORY = 20_000_000
NAMES = ["weights", "evidence", "likelihood_variables", "likelihood_values", "order", "best_variables", "best_states",
         "box", "removed", "groups", "home", "q", "table_of", "table_starts", "context_variables", "context_counts",
         "parent", "shifts", "context_states", "gone", "parts", "moves"]  # fmt: skip


@pytest.fixture
def draft() -> Draft:
    model = Model.from_factors([2, 2, 2], [((0, 1), [[0.1, 0.9], [0.4, 0.6]]), ((1, 2), [[0.2, 0.8], [0.7, 0.3]])])
    made = Draft(model, [0.0, 1.0, 1.0])
    made.step("tree", tree_arrays(np.random.default_rng(0), Setting.of(made), [1, 2, 0], exact=True))
    return made


def refused_within(memory: int, call: Callable[[], Any]) -> str:
    """Why a file is refused, without ever taking more bytes than are allowed."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with pytest.raises(pc.BadFile) as caught:
            call()
        assert tracemalloc.get_traced_memory()[1] - before < memory
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def checked_within(draft: Draft, data: bytes, question: pc.Question | None = None) -> str:
    """The same of a certificate, which is small."""
    assert len(data) < 300_000
    model = to_check(draft.model)
    return refused_within(MEMORY, lambda: pc.check(model, question, data, memory=MEMORY))


@pytest.mark.parametrize("kind", ["<f4", "|u1"])
@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_small_numbers_do_not_become_large_lists(name: str, kind: str, draft: Draft) -> None:
    """Four million entries of a byte pack into some kilobytes; as lists of numbers they would take 64 times as much."""
    data = zipped({f"7/{name}.npy": array_bytes(np.zeros(4_000_000, kind))})
    assert len(data) < 100_000
    most = longest(to_check(draft.model))
    archive = Archive(data, MEMORY, longest=most)
    reader = archive.floats if kind == "<f4" else archive.integers
    why = refused_within(MEMORY, lambda: reader(f"7/{name}"))
    assert ("rows" in why) == (name in most)


@pytest.mark.parametrize("name", ["evidence", "0/box", "0/removed", "order", "0/order", "likelihood_variables"])
def test_certificates_with_such_arrays_are_refused(name: str, draft: Draft) -> None:
    shape = (2_000_000, 2) if name in ("evidence", "0/box", "0/removed") else 4_000_000
    draft.arrays[name] = np.zeros(shape, np.uint8)
    draft.arrays["likelihood_values"] = np.ones(2)
    assert "rows" in checked_within(draft, zipped(members_of(draft)))


@pytest.mark.parametrize(
    "more",
    [
        '"x": [' + "[]," * 600_000 + "[]]",
        '"x": {' + ",".join(f'"{k}": {k}' for k in range(50_000)) + "}",
        '"x": ' + "[" * 40 + "]" * 40,
        '"steps": [' + '{"kind": "tree"},' * 100_000 + "{}]",
        '"best": [' + "300," * 400_000 + "1]",
    ],
    ids=["lists", "keys", "deep", "steps", "numbers"],
)
def test_json_is_limited_in_size_and_depth(more: str, draft: Draft) -> None:
    """Also what is ignored."""
    text = json.dumps({key: value for key, value in draft.head().items() if key != "steps"})[:-1] + ", " + more + "}"
    assert "head" in checked_within(draft, zipped(members_of(draft) | {"head.json": text.encode()}))


def test_json_of_some_depth_is_read(draft: Draft) -> None:
    head = draft.head() | {"notes": [[[[[['"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["']]]]]]}
    assert pc.check(to_check(draft.model), None, draft.zip(head), memory=MEMORY).log_upper < 1.0


def test_boxes_of_many_steps_are_counted() -> None:
    """Each keeps its box, of a thousand variables."""
    draft = Draft(Model.from_factors([2] * 1000, []), [1.0] * 1000, {0: 1})
    for number in range(4000):
        draft.step("tree")
        draft.arrays[f"{number}/box"] = np.zeros((1, 2), np.uint8)
    model, data = to_check(draft.model), zipped(members_of(draft))
    assert "boxes" in refused_within(MEMORY, lambda: pc.check(model, None, data, memory=MEMORY))


def test_many_members_are_refused_before_their_list_is_made(draft: Draft) -> None:
    members = members_of(draft) | {f"{k}/x.npy": b"" for k in range(30_000)}
    data = zipped(members)
    model = to_check(draft.model)
    assert "members" in refused_within(MEMORY, lambda: pc.check(model, None, data, memory=MEMORY))


@pytest.mark.parametrize(
    "text",
    [
        b"MARKOV " + b" " * 10**8,
        b"MARKOV 0 " + b"1 " * 10**7,
        b"MARKOV 0 2000000 " + b"0 " * 2_000_000,
        b"MARKOV 200000 " + b"2 " * 200_000 + b"0",
        b"MARKOV 1 2 100000 " + b"0 " * 100_000 + b"1 1 " * 100_000,
        b"MARKOV 1 2 1 1 0 2 1 1" + b"0" * 10**6,
    ],
    ids=["blanks", "words", "scopes", "variables", "factors", "digits"],
)
@pytest.mark.parametrize("packing", [gzip.compress, lzma.compress, None])
def test_packed_models_do_not_become_large(
    text: bytes, packing: Callable[[bytes], bytes] | None, tmp_path: Path
) -> None:
    path = tmp_path / "model.uai"
    path.write_bytes(packing(text) if packing else text)

    def used() -> None:
        model = read_model(path, MEMORY)
        pc.check(model, None, Draft(Model.from_factors([2], []), [1.0]).zip(), memory=MEMORY)

    try:
        refused_within(MEMORY, used)
    except pc.Rejected:
        # Read within the memory that is allowed: it is about another model.
        assert b"MARKOV 200000" in text


def test_xz_that_asks_for_much_memory_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 26, "mode": lzma.MODE_FAST, "mf": lzma.MF_HC3}]
    path = tmp_path / "model.uai.xz"
    path.write_bytes(lzma.compress(b"MARKOV 1 2 0", filters=filters))
    assert "unpacked" in refused_within(MEMORY, lambda: read_model(path, MEMORY))
    assert read_model(path, 10 * MEMORY).cardinalities == (2,)


def test_packed_files_may_have_several_streams(tmp_path: Path) -> None:
    path = tmp_path / "model.uai"
    for packing, between in ((gzip.compress, b""), (lzma.compress, bytes(8))):
        path.write_bytes(packing(b"MARKOV 1 ") + between + packing(b"2 0"))
        assert read_model(path, MEMORY).cardinalities == (2,)


@pytest.mark.parametrize("damage", ["cut", "changed", "more"])
@pytest.mark.parametrize("packing", [gzip.compress, lzma.compress])
def test_damaged_packed_files_are_refused(packing: Callable[[bytes], bytes], damage: str, tmp_path: Path) -> None:
    """Each byte of a small one."""
    path = tmp_path / "model.uai"
    whole = packing(b"MARKOV 1 2 1 1 0 2 0.25 0.75 # and so on, and so on")
    for at in range(6, len(whole)):
        changed = bytearray(whole)
        if damage == "cut":
            del changed[at:]
        elif damage == "more":
            changed[at:at] = b"\xff"
        else:
            changed[at] ^= 0x55
        path.write_bytes(changed)
        # Bytes of a header that mean nothing: time, system, name.
        if packing is gzip.compress and damage == "changed" and at < 10:
            continue
        with pytest.raises(pc.BadFile, match=r"^[^\n]*$"):
            read_model(path, MEMORY)


@pytest.mark.parametrize("reader", [read_evidence, read_list])
def test_other_files_are_bounded(reader: Callable[[Path, int], object], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(b"0 " * 10**7))
    refused_within(MEMORY, lambda: reader(path, MEMORY))


def test_negative_numbers_below_the_doubles_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.uai"
    for word, fine in (("-1e-400", False), ("-0", True), ("-0.0e-500", True), ("-1e-310", False)):
        path.write_text(f"MARKOV 1 2 1 1 0 2 0.5 {word}")
        if fine:
            assert read_model(path, MEMORY).factors[0].table.values[1] == -np.inf
        else:
            with pytest.raises(pc.BadFile, match="negative"):
                read_model(path, MEMORY)
            assert main([str(path), str(path), "--map"]) == 2
            assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    "shape",
    [
        "(0, 1" + "0" * 29 + ")",
        "(0, 999999999999999)",
        "(0, 999999999999999, 999999999999999)",
        "(0 0,)",
        "(00,1)",
        "(,)",
    ],
)
@pytest.mark.parametrize("name", ["0/box", "0/order", "evidence", "0/weight"])
def test_shapes_that_no_array_has_are_refused(name: str, shape: str, draft: Draft) -> None:
    kind = "<f8" if name == "0/weight" else "<i8"
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header = text + b" " * (-(len(text) + 11) % 64) + b"\n"
    bad = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    checked_within(draft, zipped(members_of(draft) | {f"{name}.npy": bad}))


def test_files_that_were_fine_stay_fine_with_little_memory(draft: Draft, tmp_path: Path) -> None:
    assert main([*files_of(draft, tmp_path), "--memory", "1e6"]) == 0
    names = {"cardinalities": np.array([2, 2]), "scope_starts": np.array([0, 1]), "scope_variables": np.array([1])}
    np.savez(tmp_path / "model.npz", **names, log_values=np.zeros(2))  # type: ignore[arg-type]
    assert read_model(tmp_path / "model.npz", 10**6).cardinalities == (2, 2)
    many = {**names, "scope_starts": np.zeros(10**5, np.int64), "scope_variables": np.zeros(0, np.int64)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in {**many, "log_values": np.zeros(10**5)}.items():
            archive.writestr(f"{name}.npy", array_bytes(array))
    path = tmp_path / "many.npz"
    path.write_bytes(buffer.getvalue())
    refused_within(MEMORY, lambda: read_model(path, MEMORY))


def too_much_work(draft: Draft, work: float, memory: int = 10**9) -> None:
    """A small certificate that would take hours is given up."""
    model, data = to_check(draft.model), zipped(members_of(draft))
    assert len(data) < 100_000
    with pytest.raises(pc.BadFile, match="--work"):
        pc.check(model, None, data, memory=memory, work=work)


def test_many_nodes_over_many_variables() -> None:
    """Twenty thousand tables of four million entries each, one after another: 30 KB."""
    n, nodes = 22, 20_000
    model = Model.from_factors([2] * n, [])
    draft = Draft(model, [1.0] * n)
    scopes = [list(range(n))] * nodes
    draft.step(
        "tree",
        {
            "order": np.arange(n),
            "node_starts": starts(scopes),
            "node_variables": np.tile(np.arange(n, dtype=np.uint8), nodes),
            "parent": np.full(nodes, -1),
            "weight": np.ones(nodes),
            "home": np.zeros(0, np.int64),
        },
    )
    too_much_work(draft, 1e8)


def test_covers_of_many_parts() -> None:
    draft = Draft(Model.from_factors([2] * 500, []), [1.0] * 500, {0: 1})
    draft.step("tree", {"box": np.zeros((1, 2), np.uint8)})
    # Each part is divided once more, always by the same state: all but one of them are empty.
    parts = np.array([[1, 0, 0]] * 50_000 + [[-1, -1, 0]] * 50_001)
    for _ in range(3):
        draft.step("cover", {"parts": parts})
    too_much_work(draft, 1e8)


def test_branching_in_many_rounds() -> None:
    model = Model.from_factors([2, 2], [((0, 1), [[1.0, 2.0], [3.0, 4.0]])])
    draft = Draft(model, [0.0, 0.0])
    rounds = 200_000
    draft.step(
        "branching",
        no_tree(draft)
        | {
            "order": np.arange(2),
            "table_of": np.zeros(1, np.int64),
            "table_starts": np.array([0, 2]),
            "table_variables": np.arange(2),
            "parts": np.zeros((rounds, 3), np.uint8),
            "move_starts": np.zeros(2, np.uint8),
            "move_places": np.zeros(0, np.uint8),
            "moves": np.zeros(0),
        },
    )
    too_much_work(draft, 1e7)


def test_parts_of_the_best_without_end() -> None:
    """Each part is divided around the same assignment again."""
    n = 500
    draft = Draft(Model.from_factors([2] * n, []), [0.0] * n)
    draft.arrays["best_variables"] = np.arange(n)
    draft.arrays["best_states"] = np.eye(200, n, dtype=np.uint8)
    draft.arrays["best_parts"] = np.array([(0, k % 200, -1) for k in range(100_000)])
    draft.best = {"distinct": 1, "claims": [{}] * 201}
    too_much_work(draft, 1e8)


def test_work_is_that_of_the_whole_certificate(draft: Draft) -> None:
    """A limit that is just enough for a certificate is too little for one with the same step twice."""
    model, question = to_check(draft.model), question_of(draft)
    low, high = 0.0, 1e9
    while high - low > 10.0:
        middle = 0.5 * (low + high)
        try:
            pc.check(model, question, draft.zip(), work=middle)
        except pc.BadFile:
            low = middle
        else:
            high = middle
    step = {name.removeprefix("0/"): array for name, array in draft.arrays.items() if name.startswith("0/")}
    draft.step("tree", step)
    with pytest.raises(pc.BadFile, match="--work"):
        pc.check(model, question, draft.zip(), work=high)
    assert pc.check(model, question, draft.zip(), work=3.0 * high).n_steps == 2


def test_the_command_has_a_limit_of_work(draft: Draft, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = files_of(draft, tmp_path)
    assert main([*files, "--work", "1e9"]) == 0
    capsys.readouterr()
    for work in ("1000", "0", "nan", "-1"):
        assert main([*files, "--work", work]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert "--work" in told.err
