"""Models: how they are built, what they refuse, and that they do not change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from powersum import InputError, Model

NAMED = Model.from_factors(
    [2, 3],
    [((0,), [0.5, 0.5]), ((0, 1), np.full((2, 3), 1 / 3))],
    names=["Cancer", "Stage"],
    states=[["no", "yes"], ["low", "middle", "high"]],
)


def test_flat_arrays() -> None:
    table = np.arange(1.0, 7.0).reshape(2, 3)
    model = Model.from_factors([2, 3], [((0, 1), table), ((), [7.0])])
    assert (model.n_variables, model.n_factors) == (2, 2)
    scope, logs = model.factor(0)
    assert scope == (0, 1)
    np.testing.assert_allclose(np.exp(logs), table)
    assert model.factor(1).log_table == pytest.approx(np.log(7.0))
    assert [factor.scope for factor in model.factors()] == [(0, 1), ()]


def test_zero_is_minus_infinity_without_a_warning() -> None:
    model = Model.from_factors([2], [((0,), [0.0, 1.0])])
    assert model.log_values.tolist() == [-np.inf, 0.0]


def test_logs_as_given() -> None:
    model = Model.from_factors([2], [((0,), [-np.inf, 3.0])], log=True)
    assert model.log_values.tolist() == [-np.inf, 3.0]


def test_read_only() -> None:
    for array in (NAMED.cardinalities, NAMED.scope_variables, NAMED.log_values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        NAMED.directed = True  # type: ignore[misc]


def test_names_and_labels() -> None:
    assert NAMED.variable("Stage") == 1
    assert NAMED.variable(1) == 1
    assert NAMED.variable("1") == 1
    assert NAMED.name(0) == "Cancer"
    assert NAMED.label(1, 2) == "high"
    assert NAMED.evidence({"Stage": "high", 0: 1}) == {1: 2, 0: 1}
    assert NAMED.evidence(None) == {}
    plain = Model.from_factors([2], [])
    assert (plain.name(0), plain.label(0, 1)) == ("0", 1)


def test_with_names_shares_arrays() -> None:
    renamed = NAMED.with_names(["a", "b"])
    assert renamed.names == ("a", "b")
    assert renamed.states is None
    assert np.shares_memory(renamed.log_values, NAMED.log_values)
    assert NAMED.names == ("Cancer", "Stage")


def test_printed_form_says_how_large_it_is() -> None:
    assert repr(NAMED) == (
        "<powersum.Model: Markov network, 2 variables of up to 3 states, 2 factors of up to 2 variables, "
        "8 table entries>"
    )
    assert "0 variables" in repr(Model.from_factors([], []))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("Cancr", "no variable is called 'Cancr', did you mean 'Cancer'?"),
        ("xyz", "no variable is called 'xyz'"),
        (2, "variable 2 is out of range: the model has variables 0 to 1"),
        (-1, "variable -1 is out of range: the model has variables 0 to 1"),
    ],
)
def test_unknown_variables(key: int | str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        NAMED.variable(key)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("midle", "variable Stage has no state 'midle', did you mean 'middle'?"),
        (3, "state 3 of variable Stage is out of range: it has states 0 to 2"),
        (-1, "state -1 of variable Stage is out of range: it has states 0 to 2"),
    ],
)
def test_unknown_states(key: int | str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        NAMED.state(1, key)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("cardinalities", "factors", "message"),
    [
        ([0], [], "variable 0 has 0 states"),
        ([2], [((1,), [1, 1])], "factor 0: table of shape (2,) does not fit scope (1,)"),
        ([2, 2], [((0, 0), [[1, 1], [1, 1]])], "factor 0: variable 0 appears twice in its scope"),
        ([2, 3], [((0, 1), [1, 1, 1])], "factor 0: table of shape (3,) does not fit scope (0, 1)"),
        ([2, 3], [((0, 1), np.ones((3, 2)))], "factor 0: table of shape (3, 2) does not fit scope (0, 1)"),
        ([2], [((0,), [1, -0.5])], "table entry 1 is -0.5: entries must be finite and not negative"),
        ([2], [((0,), [1, np.nan])], "table entry 1 is nan: entries must be finite and not negative"),
        ([2], [((0,), [np.inf, 1])], "table entry 0 is inf: entries must be finite and not negative"),
    ],
)
def test_refusals(cardinalities: list[int], factors: list[tuple[tuple[int, ...], object]], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Model.from_factors(cardinalities, factors)
    assert str(caught.value) == message


def test_flat_arrays_that_do_not_fit() -> None:
    arrays: dict[str, Any] = {
        "cardinalities": [2, 2],
        "scope_starts": [0, 2],
        "scope_variables": [0, 1],
        "table_starts": [0, 4],
        "log_values": np.zeros(4),
    }
    Model(**arrays)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"scope_variables": [0, 5]}, "factor 0: variable 5 is out of range 0 to 1"),
        ({"table_starts": [0, 3], "log_values": np.zeros(3)}, "factor 0: table has 3 entries"),
        ({"log_values": np.zeros(5)}, "the starts of tables must rise from 0 to 5"),
        ({"scope_starts": [0, 1]}, "the starts of scopes must rise from 0 to 2"),
        ({"scope_starts": [0, 3, 2], "table_starts": [0, 4, 4]}, "the starts of scopes must rise from 0 to 2"),
        ({"scope_starts": [1, 2]}, "the starts of scopes must rise from 0 to 2"),
        ({"table_starts": [0, 4, 4]}, "2 starts of scopes, but 3 starts of tables"),
        ({"log_values": [0, 0, 0, np.inf]}, "a table entry is NaN or infinite"),
        ({"log_values": [0, 0, 0, np.nan]}, "a table entry is NaN or infinite"),
        ({"names": ("a", "a")}, "2 variables need as many different names"),
        ({"states": (("x", "y"), ("z",))}, "the state labels do not fit the numbers of states"),
    ]
    for change, message in changes:
        with pytest.raises(InputError, match=message):
            Model(**{**arrays, **change})


@pytest.mark.parametrize(
    ("cardinalities", "entries"),
    [([2_000_000], 1_999_999), ([1], 0), ([1 << 32, 1 << 32], 0), ([1 << 31, 1 << 33, 3], 0), ([1 << 62, 4], 0)],
)
def test_tables_that_nearly_fit(cardinalities: list[int], entries: int) -> None:
    n = len(cardinalities)
    with pytest.raises(InputError, match=f"factor 0: table has {entries} entries"):
        Model(np.array(cardinalities), np.array([0, n]), np.arange(n), np.array([0, entries]), np.zeros(entries))
    with pytest.raises(InputError, match="does not fit scope"):
        Model.from_factors(cardinalities, [(range(n), np.zeros(entries))])


def test_the_arrays_that_a_model_is_made_of_stay_the_callers() -> None:
    """Writing to them afterwards changes no model, and answers are those of the model as it was made."""
    arrays: list[Any] = [
        np.array([2, 2]),
        np.array([0, 1, 3]),
        np.array([0, 0, 1]),
        np.array([0, 2, 6]),
        np.log([0.3, 0.7, 0.9, 0.1, 0.4, 0.6]),
    ]
    model = Model(*arrays)
    other = model.with_log_values(arrays[-1])
    before = [array.copy() for array in arrays]
    for array in arrays:
        assert array.flags.writeable
        array[:] = 0
    for one in (model, other):
        held = [one.cardinalities, one.scope_starts, one.scope_variables, one.table_starts, one.log_values]
        for array, wanted in zip(held, before, strict=True):
            np.testing.assert_array_equal(array, wanted)
            assert not array.flags.writeable
