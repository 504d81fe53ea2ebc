"""Every file of the benchmark collection is read, and written back without loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from powersum.formats import companions, read, read_evidence, read_order, read_query, tokens, write
from tests.data import DATA, needs_data
from tests.formats.helpers import assert_same

MODELS = sorted(DATA.glob("*/*.uai"))


@needs_data
@pytest.mark.parametrize("folder", sorted({path.parent for path in MODELS}), ids=lambda path: path.name)
def test_all_files(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in sorted(folder.glob("*.uai")):
        model = read(path)
        assert model.n_variables > 0
        write(model, tmp_path / "copy.uai")
        assert_same(model, read(tmp_path / "copy.uai"))
        with monkeypatch.context() as patch:
            patch.setattr(tokens, "COMPILED_FROM_BYTES", 0)
            assert_same(model, read(path))

        found = companions(path)
        if found.evidence:
            assert len(read_evidence(found.evidence, model)) < model.n_variables
        if found.query:
            assert read_query(found.query, model)
        for query in folder.glob(f"{path.stem}.*map"):
            assert read_query(query, model)
        for order in [*folder.glob(f"{path.stem}.Q*.vo"), *folder.glob(f"{path.stem}.vo")]:
            assert len(read_order(order, model)) == model.n_variables
