"""Models by hand: names, labels and sizes are read off tables and dictionaries, contradictions are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum import InputError, Model


def test_arrays_and_dictionaries_say_the_same() -> None:
    by_array = Model.from_tables(
        {"rain": [0.8, 0.2], ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]},
        states={"rain": ["no", "yes"], "wet": ["no", "yes"]},
    )
    by_label = Model.from_tables(
        {
            "rain": {"no": 0.8, "yes": 0.2},
            ("rain", "wet"): {"yes": {"yes": 0.7, "no": 0.3}, "no": {"yes": 0.1, "no": 0.9}},
        },
        states={"wet": ["no", "yes"]},
    )
    assert by_array.names == by_label.names == ("rain", "wet")
    assert by_array.states == by_label.states == (("no", "yes"), ("no", "yes"))
    np.testing.assert_array_equal(by_array.log_values, by_label.log_values)
    assert dict(ps.solve(by_label, ["rain"], evidence={"wet": "yes"}).assignment) == {"rain": "yes"}


def test_labels_found_later_order_earlier_tables() -> None:
    model = Model.from_tables({("a", "b"): [[1, 2, 3], [4, 5, 6]], "b": {"x": 1, "y": 2, "z": 3}})
    assert model.states == (("0", "1"), ("x", "y", "z"))


def test_numbers_of_states_without_labels() -> None:
    model = Model.from_tables(
        [(("a", "b"), np.ones((2, 3))), (("a", "b"), np.ones((2, 3))), ((), 0.5)], states={"c": 4}
    )
    assert (model.names, model.states, model.n_factors) == (("a", "b", "c"), None, 3)
    assert model.cardinalities.tolist() == [2, 3, 4]


def test_logs_and_direction() -> None:
    model = Model.from_tables({"a": [0.0, -np.inf]}, log=True, directed=True)
    assert (model.log_values.tolist(), model.directed) == ([0.0, -np.inf], True)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"a": [1, 1], ("a", "b"): np.ones((3, 2))}, "table of a, b: has 3 states of a, which has 2"),
        ({("a", "b"): [1, 1]}, "table of a, b: 1 axes for 2 variables"),
        (
            {"a": {"no": 1, "yes": 2}, ("a", "b"): {"no": [1], "ja": [1]}},
            "table of a, b: has states no, ja where a has no",
        ),
        ({"a": {"no": {"x": 1}}}, "table of a: is nested deeper than its 1 variables"),
    ],
)
def test_contradictions(tables: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Model.from_tables(tables)
