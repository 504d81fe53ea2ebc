"""Tables of Bayesian networks that do not sum to one: taken as they are, and said once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from powersum.formats import read
from powersum.interop.distributions import ROUNDING, sum_note
from powersum.model.model import Model
from tests.formats.helpers import random_network, saved
from tests.oracle import joint_log_table

BAYES = "BAYES\n2\n2 3\n3\n1 0\n0\n2 0 1\n2 {} 0.5\n1 7\n6 0.1 0.2 0.7 0.3 {} 0.4\n"


def test_a_note_names_the_first(tmp_path: Path) -> None:
    path = tmp_path / "m.uai"
    assert read(saved(tmp_path, BAYES.format("0.5", "0.3"))).notes == ()
    (note,) = read(saved(tmp_path, BAYES.format("0.5", "0.25"))).notes
    assert note == (
        f"{path}: the distribution of variable 1 given 0 = 1 sums to 0.95, not to 1; the numbers are taken as they are"
    )
    (note,) = read(saved(tmp_path, BAYES.format("0", "0.25"))).notes
    assert note.startswith(f"{path}: the distribution of variable 0 sums to 0.5, not to 1, and so for 1 more table;")
    assert read(saved(tmp_path, BAYES.format("0", "0.25").replace("BAYES", "MARKOV"))).notes == ()


def test_the_numbers_count_as_they_are(tmp_path: Path) -> None:
    model = read(saved(tmp_path, BAYES.format("0", "0.25")))
    expected = np.logaddexp.reduce(joint_log_table(model).ravel())
    assert ps.solve(model).log_upper == pytest.approx(expected)
    assert expected == pytest.approx(np.log(7 * 0.5 * 0.95))


def test_exactly_the_tables_that_do_not_sum_to_one() -> None:
    said = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        model = random_network(rng, n_variables=5)
        # Scaled to sum to one, or nearly so, but for one row perhaps.
        tables, wrong = [], set()
        for scope, log_table in model.factors():
            table = np.exp(log_table) + 1e-3
            table /= table.sum(axis=-1, keepdims=True)
            table *= 1.0 + rng.uniform(-1.9, 1.9) * ROUNDING
            if rng.random() < 0.15:
                rows = table.reshape(-1, table.shape[-1])
                rows[int(rng.integers(len(rows)))] *= 1.0 + 10.0 ** rng.uniform(-5, 2)
                wrong.add(scope[-1])
            tables.append((scope, table))
        note = sum_note(
            Model.from_factors(model.cardinalities.tolist(), [((), 3.0), *tables, ((), 2.0)], directed=True)
        )
        first = next((scope[-1] for scope, _ in tables if scope[-1] in wrong), None)
        assert (note is None) == (first is None)
        if note is not None:
            said += 1
            assert f"variable {first} " in note
            assert (f"{len(wrong) - 1} more table" in note) == (len(wrong) > 1)
    assert 50 < said < 150


def test_models_without_tables_or_variables() -> None:
    assert sum_note(Model.from_factors([], [], directed=True)) is None
    assert sum_note(Model.from_factors([2], [((), 0.5)], directed=True)) is None
    assert "sums to inf" in str(sum_note(Model.from_factors([2], [((0,), [800.0, 0.0])], log=True, directed=True)))


def test_notes_stay_with_the_model(tmp_path: Path) -> None:
    model = read(saved(tmp_path, BAYES.format("0", "0.3")))
    assert model.with_names(["a", "b"]).notes == model.notes != ()
