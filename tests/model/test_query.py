"""Queries: one weight for each variable."""

from __future__ import annotations

import numpy as np
import pytest

from powersum import InputError, Model, Query

MODEL = Model.from_factors([2, 2, 2], [], names=["a", "bronchitis", "c"])


def test_tasks() -> None:
    assert Query.of(MODEL).task == "PR"
    assert Query.of(MODEL, []).task == "PR"
    assert Query.of(MODEL, "all").task == "MAP"
    assert Query.of(MODEL, ["a", "bronchitis", "c"]).task == "MAP"
    assert Query.of(MODEL, ["c", 0]).task == "MMAP"
    assert Query(np.array([1.0, 0.5, 0.0])).task == "power-sum"
    assert Query.of(Model.from_factors([], [])).task == "PR"


def test_max_variables() -> None:
    query = Query.of(MODEL, ["c", "0"])
    assert query.weights.tolist() == [0.0, 1.0, 0.0]
    assert query.max_variables.tolist() == [0, 2]


def test_weights_do_not_change() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Query.of(MODEL).weights[0] = 0.0


@pytest.mark.parametrize(
    ("maximize", "message"),
    [
        (["bronkitis"], "no variable is called 'bronkitis', did you mean 'bronchitis'?"),
        (["a", 0], "the query names variable a twice"),
        ([3], "variable 3 is out of range: the model has variables 0 to 2"),
        ("a", "maximize is 'a': give a list of variables, or 'all'"),
    ],
)
def test_refusals(maximize: list[int | str] | str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Query.of(MODEL, maximize)
    assert str(caught.value) == message


@pytest.mark.parametrize("weight", [-0.1, np.nan, np.inf])
def test_weights_out_of_range(weight: float) -> None:
    with pytest.raises(InputError, match="of variable 1 is not a number ≥ 0"):
        Query(np.array([1.0, weight, 0.0]))


def test_weights_that_the_caller_changes_afterwards_change_nothing() -> None:
    weights = np.array([1.0, 0.0])
    shown = weights.view()
    shown.setflags(write=False)
    queries = Query(weights), Query(shown)
    weights[:] = 1.0
    assert [query.weights.tolist() for query in queries] == [[1.0, 0.0]] * 2
