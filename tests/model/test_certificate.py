"""Files of certificates: quickly packed, the same bytes for the same proof."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path

import numpy as np

from powersum.model.certificate import Certificate


def test_whole_numbers_are_packed_at_the_quick_level(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).integers(0, 3, 20000).astype(np.int8)
    Certificate({"steps": [], "claim": {}}, {"0/order": numbers, "0/weight": np.ones(100)}).save(tmp_path / "a.zip")
    plain = io.BytesIO()
    np.lib.format.write_array(plain, numbers)
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    quick = packer.compress(plain.getvalue()) + packer.flush()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.getinfo("0/order.npy").compress_size == len(quick)
        assert archive.getinfo("0/weight.npy").compress_type == zipfile.ZIP_STORED
        np.testing.assert_array_equal(np.load(io.BytesIO(archive.read("0/order.npy"))), numbers)
        np.testing.assert_array_equal(np.load(io.BytesIO(archive.read("0/weight.npy"))), np.ones(100))


def test_equal_proofs_give_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        Certificate({"steps": [], "claim": {}}, {"weights": np.ones(3), "0/home": np.arange(5)}).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
