"""Whatever is written can be read: every format, plain and compressed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from powersum.core.errors import InputError
from powersum.core.files import COMPRESSED_SUFFIXES
from powersum.formats import _READERS, _WRITERS, FORMULAS, MODEL_SUFFIXES, read, write
from powersum.model.mapped import mapped_file
from powersum.model.model import Model
from tests.formats.helpers import assert_same, random_network, refusal

PACKED = ("", *COMPRESSED_SUFFIXES, *(suffix.upper() for suffix in COMPRESSED_SUFFIXES))
BY_PYAGRUM = (".net", ".dsl", ".xdsl")
EXACT = (".uai", ".psm")
"""Formats that keep every bit of a model whose numbers came from a file, and the order of its factors."""


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """A network whose numbers are logs of decimals, which every format can hold."""
    return _network(tmp_path, 9)


def _network(tmp_path: Path, seed: int) -> Model:
    network = random_network(np.random.default_rng(seed))
    write(network, tmp_path / "first.uai")
    return read(tmp_path / "first.uai").with_names(network.names or (), network.states)


def test_what_can_be_read_can_be_written() -> None:
    assert set(_READERS) == {*_WRITERS, *FORMULAS} == MODEL_SUFFIXES


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("suffix", sorted(_WRITERS))
def test_every_format_comes_back(tmp_path: Path, model: Model, suffix: str, packed: str) -> None:
    if suffix in BY_PYAGRUM:
        pytest.importorskip("pyagrum")
    path = tmp_path / f"m{suffix}{packed}"
    write(model, path)
    again = read(path)
    write(model, tmp_path / f"plain{suffix}")
    plain = read(tmp_path / f"plain{suffix}")
    assert_same(again, plain)
    assert (again.names, again.states) == (plain.names, plain.states)
    if suffix in EXACT:
        assert_same(again, model)
    else:
        assert sorted(again.names or ()) == sorted(model.names or ())
        assert again.log_values.size == model.log_values.size
    if packed:
        # What is unpacked into memory is no file that workers could map.
        assert mapped_file(again) is None
        assert path.read_bytes()[:2] in (b"\x1f\x8b", b"\xfd7")


@pytest.mark.parametrize("suffix", BY_PYAGRUM)
def test_a_single_state_is_written_only_where_it_can_be_read(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("pyagrum")
    network = _network(tmp_path, 3)
    assert (network.cardinalities == 1).any()
    path = tmp_path / f"m{suffix}"
    if suffix == ".xdsl":
        write(network, path)
        assert read(path).log_values.size == network.log_values.size
    else:
        assert "'v2' has one state" in refusal(lambda place: write(network, place), path)
        assert not path.exists()


@pytest.mark.parametrize("packed", COMPRESSED_SUFFIXES)
def test_damaged_compressed_mapped_models_are_refused(tmp_path: Path, model: Model, packed: str) -> None:
    from powersum.core.files import saving

    write(model, tmp_path / "m.psm")
    whole = (tmp_path / "m.psm").read_bytes()
    path = tmp_path / f"m.psm{packed}"
    negative = whole.replace(b'"sizes": [6', b'"sizes": [-6', 1)
    assert negative != whole
    for broken in (b"", b"{}\n", whole[:-8], whole[:100], b"\xff" + whole, negative):
        with saving(path) as file:
            file.write(broken)
        assert "no whole file" in refusal(read, path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(InputError, match="compressed data are damaged"):
        read(path)


def test_what_is_no_model_is_not_written(tmp_path: Path) -> None:
    instance = ps.generate.grid(2, 2)
    with pytest.raises(ps.InputError, match=r"write: needs a Model, not Instance; .* write its \.model"):
        ps.write(instance, tmp_path / "grid.uai")  # type: ignore[arg-type]
    assert not (tmp_path / "grid.uai").exists()
