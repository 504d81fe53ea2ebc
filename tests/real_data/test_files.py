"""Every file of the benchmark collection is read, and written back without loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.instances import model_files

from powersum.core.errors import InputError
from powersum.formats import companions, read, read_evidence, read_order, read_query, tokens, write
from tests.data import needs_data
from tests.formats.helpers import assert_same

pytestmark = needs_data


@pytest.mark.parametrize("folder", sorted({path.parent for path in model_files("*")}), ids=lambda path: path.name)
def test_all_files(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in model_files(folder.name):
        if path.with_suffix(".id").exists():
            with pytest.raises(InputError, match="influence diagram"):
                read(path)
            continue
        model = read(path)
        assert model.n_variables > 0
        # What is compressed is large: reading it once is enough.
        if path.suffix != ".gz":
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
        name = path.name.partition(".uai")[0]
        for query in folder.glob(f"{name}.*map"):
            assert read_query(query, model)
        for order in [*folder.glob(f"{name}.Q*.vo"), *folder.glob(f"{name}.vo")]:
            assert len(read_order(order, model)) == model.n_variables
