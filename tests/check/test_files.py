"""Files that are not what they should be: refused in one line, without a traceback, in bounded memory."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
import zlib
from typing import Any

import numpy as np
import pytest

import powersum_check as pc
from powersum.model.model import Model
from tests.check.helpers import question_of, to_check
from tests.check.writer import Draft, Setting, tree_arrays

MEMORY = 10**7


@pytest.fixture
def draft() -> Draft:
    model = Model.from_factors([2, 2, 2], [((0, 1), [[0.1, 0.9], [0.4, 0.6]]), ((1, 2), [[0.2, 0.8], [0.7, 0.3]])])
    made = Draft(model, [0.0, 1.0, 1.0])
    setting = Setting.of(made)
    made.step("tree", tree_arrays(np.random.default_rng(0), setting, [1, 2, 0], exact=True))
    return made


def members_of(draft: Draft) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(draft.zip())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: dict[str, bytes] | list[tuple[str, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members.items() if isinstance(members, dict) else members:
            archive.writestr(name, data)
    return buffer.getvalue()


def refused(draft: Draft, data: bytes, match: str, *, error: type[pc.CheckError] = pc.BadFile) -> None:
    with pytest.raises(error, match=match) as caught:
        pc.check(to_check(draft.model), question_of(draft), data, memory=MEMORY)
    assert "\n" not in str(caught.value)


def array_bytes(array: Any) -> bytes:
    one = io.BytesIO()
    np.lib.format.write_array(one, np.asarray(array), allow_pickle=True)
    return one.getvalue()


def test_the_sound_one_is_accepted_packed_or_not(draft: Draft) -> None:
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        verified = pc.check(
            to_check(draft.model), question_of(draft), zipped(members_of(draft), compression), memory=MEMORY
        )
        assert verified.log_upper - verified.log_lower < 1e-12


@pytest.mark.parametrize(
    "name", ["../head.json", "/etc/passwd", "0/../order.npy", "a\\b.npy", "0/Order.npy", "x.txt", "0/"]
)
def test_paths_are_refused(draft: Draft, name: str) -> None:
    refused(draft, zipped(members_of(draft) | {name: b""}), "has the name")


def test_repeated_names_are_refused(draft: Draft) -> None:
    members = list(members_of(draft).items())
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped([*members, members[-1]])
    refused(draft, data, "same name")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packings_are_refused(draft: Draft, compression: int) -> None:
    refused(draft, zipped(members_of(draft), compression), "unusual")


def test_bombs_are_refused_before_they_are_unpacked(draft: Draft) -> None:
    members = members_of(draft)
    header = array_bytes(np.zeros(0))[:128].replace(b"(0,)", b"(50000000,)")
    members["0/shifts.npy"] = header + b"\0" * (50 * MEMORY)
    data = zipped(members)
    tracemalloc.start()
    refused(draft, data, "unpacks to more")
    # The same with a header that lies about the length: cut at what it declares.
    declared = len(members["0/shifts.npy"]).to_bytes(4, "little")
    lying = data.replace(declared, (1000).to_bytes(4, "little"))
    assert lying != data
    model, question = to_check(draft.model), question_of(draft)
    with pytest.raises(pc.BadFile):
        pc.check(model, question, lying.replace(b"weights.npy", b"weightx.npy"), memory=MEMORY)
    # Only what is read is unpacked; shifts belong to edges.
    members["0/edges.npy"] = array_bytes(np.zeros((1, 2), np.int64))
    members["0/edge_starts.npy"] = array_bytes(np.array([0, 0]))
    members["0/edge_variables.npy"] = array_bytes(np.zeros(0, np.int64))
    lying = zipped(members).replace(declared, (1000).to_bytes(4, "little"))
    refused(draft, lying, "damaged|length|shape")
    assert tracemalloc.get_traced_memory()[1] < 20 * MEMORY
    tracemalloc.stop()


def test_huge_shapes_are_refused(draft: Draft) -> None:
    members = members_of(draft)
    good = members["0/order.npy"]
    for shape in (
        b"(9999999999,)",
        b"(99999999999999999999,)",
        b"(-3,)",
        b"(1e3,)",
        b"(3, 999999999999, 999999999999)",
    ):
        text = good[10:].split(b"\n")[0].replace(b"(3,)", shape).rstrip()
        header = text + b" " * (117 - len(text)) + b"\n"
        bad = good[:8] + len(header).to_bytes(2, "little") + header + good[-12:]
        refused(draft, zipped(members | {"0/order.npy": bad}), "shape|header")


@pytest.mark.parametrize(
    "array",
    [
        np.array([{"a": 1}], dtype=object),
        np.array([1j]),
        np.array(["a"]),
        np.array([1.0, 2.0, 0.0]),
        np.array([1, 2, 0], dtype=">i8"),
        np.array([[1, 2, 0]]),
        np.array(3),
        np.array([1, 2, -1]),
        np.array([1, 2, 3]),
        np.array([1, 2, 2**62]),
    ],
    ids=lambda array: str(array.dtype) + str(array.shape),
)
def test_arrays_of_other_kinds_are_refused(draft: Draft, array: Any) -> None:
    refused(draft, zipped(members_of(draft) | {"0/order.npy": array_bytes(array)}), "order")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_refused(draft: Draft, number: float) -> None:
    weights = array_bytes(np.array([1.0, number, 0.0]))
    refused(draft, zipped(members_of(draft) | {"0/weight.npy": weights}), "not finite")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 100_000,
        b'{"claim": NaN}',
        b'{"a": 1, "a": 2}',
        b"\xff\xfe",
        b'{"format": "powersum-certificate", "version": 1}',
        b'{"format": "other", "version": 6}',
        b"1" * 10_000,
    ],
    ids=lambda text: str(text[:12]),
)
def test_heads_that_are_none_are_refused(draft: Draft, text: bytes) -> None:
    refused(draft, zipped(members_of(draft) | {"head.json": text}), "head|version")


@pytest.mark.parametrize(
    "change",
    [
        {"steps": None},
        {"steps": {}},
        {"steps": [1]},
        {"steps": [{}]},
        {"steps": [{"kind": "magic"}]},
        {"steps": [{"kind": ["tree"]}]},
        {"claim": None},
        {"claim": {"log_lower": "x"}},
        {"claim": {"log_lower": True}},
        {"claim": {"log_lower": [1]}},
        {"assignment": [1]},
        {"assignment": [[0, 5]]},
        {"assignment": [[1, 0]]},
        {"assignment": [[0, 0], [0, 1]]},
        {"assignment": [[0, 0.0]]},
    ],
    ids=str,
)
def test_heads_of_other_shapes_are_refused(draft: Draft, change: dict[str, Any]) -> None:
    refused(draft, draft.zip(draft.head() | change), ".")


def test_every_array_is_missed(draft: Draft) -> None:
    members = members_of(draft)
    for name in members:
        rest = {other: data for other, data in members.items() if other != name}
        refused(draft, zipped(rest), f"{name} is missing")


def test_every_truncation_is_refused(draft: Draft) -> None:
    data = draft.zip()
    for length in range(0, len(data), 17):
        refused(draft, data[:length], "zip|damaged|missing", error=pc.CheckError)


def test_checksums_are_looked_at(draft: Draft) -> None:
    data = bytearray(draft.zip())
    at = bytes(data).index(b"0/order.npy") + len("0/order.npy") + 130
    data[at] ^= 1
    refused(draft, bytes(data), "damaged")
    assert zlib.crc32(b"") == 0


def test_members_that_nobody_asks_for_do_no_harm(draft: Draft) -> None:
    members = members_of(draft) | {"17/anything.npy": b"not an array", "notes.json": b"{}"}
    assert pc.check(to_check(draft.model), question_of(draft), zipped(members), memory=MEMORY).log_upper < 1.0


def test_tables_too_large_for_memory_are_refused() -> None:
    """A node over thirty variables of two states each: 8 GB, and more for the work."""
    model = Model.from_factors([2] * 29, [((v,), [0.5, 0.5]) for v in range(29)])
    draft = Draft(model, [1.0] * 29)
    arrays = {
        "order": np.arange(29),
        "node_starts": np.arange(30),
        "node_variables": np.arange(29),
        "parent": np.full(29, -1),
        "weight": np.ones(29),
        "home": np.arange(29),
    }
    draft.step("tree", arrays)
    model_, question = to_check(model), question_of(draft)
    assert abs(pc.check(model_, question, draft.zip(), memory=MEMORY).log_upper) < 1e-9
    arrays["node_starts"] = np.concatenate([[0], np.arange(29, 58)])
    arrays["node_variables"] = np.concatenate([np.arange(29), np.arange(1, 29)])
    draft.arrays.update({f"0/{name}": array for name, array in arrays.items()})
    tracemalloc.start()
    with pytest.raises(pc.BadFile, match="--memory"):
        pc.check(model_, question, draft.zip(), memory=MEMORY)
    assert tracemalloc.get_traced_memory()[1] < MEMORY
    tracemalloc.stop()


def test_another_model_or_question_is_told_apart(draft: Draft) -> None:
    other = Model.from_factors([2, 2, 2], [((0, 1), [[0.1, 0.9], [0.4, 0.6]]), ((2, 1), [[0.2, 0.8], [0.7, 0.3]])])
    with pytest.raises(pc.Rejected, match="another model"):
        pc.check(to_check(other), question_of(draft), draft.zip())
    model = to_check(draft.model)
    for question in (
        pc.Question.of(model, [1]),
        pc.Question.of(model, [0], {1: 0}),
        pc.Question.of(model, [0], None, {1: [1.0, 1.0]}),
        pc.Question((0.0, 1.0, 1.0), order=(0, 1, 2)),
        pc.Question((0.0, 1.0, 1.0), order=(1, 0, 2)),
    ):
        with pytest.raises(pc.Rejected, match="another question"):
            pc.check(model, question, draft.zip())
    found = pc.check(model, None, draft.zip())
    # An order that only says what the weights say already asks the same.
    for question in (question_of(draft), pc.Question((0.0, 1.0, 1.0), order=(1, 2, 0))):
        assert pc.check(model, question, draft.zip()) == found


@pytest.mark.parametrize("number", ["-1e999", "-" + "9" * 400])
def test_json_numbers_that_overflow_prove_nothing(draft: Draft, number: str) -> None:
    text = json.dumps(draft.head()).replace('"log_upper": null', f'"log_upper": {number}')
    refused(draft, zipped(members_of(draft) | {"head.json": text.encode()}), "claims", error=pc.Rejected)
