"""Keys: whatever is neither a name nor a whole number is refused in one line, wherever keys are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum import InputError, Model, Query
from powersum.api.comparison import compare
from powersum.formats.evidence import write_evidence
from powersum.formats.order import write_order
from powersum.formats.query import write_query
from tests.batch import results_of

PLAIN = Model.from_factors([2, 2], [((0,), [0.8, 0.2]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])])
NAMED = PLAIN.with_names(["rain", "wet"], [["no", "yes"], ["dry", "wet"]])

WRONG = [
    None,
    0.9,
    0.0,
    1.0,
    np.float64(1.0),
    True,
    False,
    np.True_,
    1j,
    b"0",
    (0,),
    frozenset({0}),
    float("nan"),
    print,
]
ONES_AND_ZEROS = {repr(one) for one in (0.0, 1.0, np.float64(1.0))}
"""Tables with gaps have these in place of 0 and 1."""

UNHASHABLE: list[Any] = [[0], {0: 0}, np.zeros((40, 40)), np.array(0), np.array([0])]

Entry = Callable[[Model, Any], object]

TAKES_VARIABLES: dict[str, tuple[str, Entry]] = {
    "Model.variable": ("key", lambda model, key: model.variable(key)),
    "Query.of": ("maximize", lambda model, key: Query.of(model, [key])),
    "solve": ("maximize", lambda model, key: ps.solve(model, [key])),
    "bound": ("maximize", lambda model, key: ps.bound(model, [key])),
    "bound, order": ("order", lambda model, key: ps.bound(model, order=[key, 1])),
    "compare": ("maximize", lambda model, key: compare(model, [key])),
    "compare, order": ("order", lambda model, key: compare(model, order=[key, 1])),
    "solve_each": ("maximize", lambda model, key: results_of(model, [{"maximize": [key]}])),
    "to_uai": ("maximize", lambda model, key: ps.to_uai(model, "not_written.uai", maximize=[key])),
    "plot": ("maximize", lambda model, key: model.plot([key])),
}

TAKES_EVIDENCE: dict[str, Callable[[Model, Any], object]] = {
    "Model.evidence": lambda model, evidence: model.evidence(evidence),
    "solve": lambda model, evidence: ps.solve(model, evidence=evidence),
    "Solver": lambda model, evidence: ps.Solver(model, evidence=evidence),
    "bound": lambda model, evidence: ps.bound(model, evidence=evidence),
    "marginals": lambda model, evidence: ps.marginals(model, evidence=evidence),
    "compare": lambda model, evidence: compare(model, evidence=evidence),
    "solve_each": lambda model, evidence: results_of(model, [{"evidence": evidence}]),
    "to_uai": lambda model, evidence: ps.to_uai(model, "not_written.uai", evidence=evidence),
    "plot": lambda model, evidence: model.plot(evidence=evidence),
}


def refused(words: list[str], call: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """The call is refused in one short line that has all these words."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 200
    for word in words:
        assert word in message


@pytest.fixture(autouse=True)
def _nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is refused leaves no file, neither in the present folder."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not any(tmp_path.iterdir())


def start_of(value: object) -> str:
    """What a message must show of a value, however long it is."""
    return " ".join(repr(value).split())[:30]


@pytest.mark.parametrize("model", [PLAIN, NAMED], ids=["plain", "named"])
@pytest.mark.parametrize("entry", TAKES_VARIABLES)
def test_no_variable_is_guessed(entry: str, model: Model) -> None:
    argument, call = TAKES_VARIABLES[entry]
    for key in (*WRONG, *UNHASHABLE):
        refused([argument, start_of(key), "is no variable"], call, model, key)


@pytest.mark.parametrize("model", [PLAIN, NAMED], ids=["plain", "named"])
@pytest.mark.parametrize("entry", TAKES_EVIDENCE)
def test_no_evidence_is_guessed(entry: str, model: Model) -> None:
    call = TAKES_EVIDENCE[entry]
    for key in WRONG:
        refused(["evidence", start_of(key), "is no variable"], call, model, {key: 0})
        # What holds many values is taken for likelihoods; 1.0 is 1, as tables with gaps have it.
        if not isinstance(key, tuple) and repr(key) not in ONES_AND_ZEROS:
            refused(["evidence", start_of(key), "is no state of variable"], call, model, {0: key})
    for evidence in ([0], [(0, 1, 1)], ["01"], "rain", 0, 0.9, False, {0}, {(0, 1)}, np.array([0, 1]), np.array(0)):
        refused([f"evidence is {start_of(evidence)}"], call, model, evidence)


@pytest.mark.parametrize("entry", ["solve", "bound", "marginals", "solve_each", "plot"])
def test_no_likelihood_is_guessed(entry: str) -> None:
    call = TAKES_EVIDENCE[entry]
    for key in WRONG:
        refused(["evidence", start_of(key), "is no variable"], call, NAMED, {key: [0.5, 0.5]})
        if repr(key) not in ONES_AND_ZEROS:
            refused(["evidence", start_of(key), "is no state"], call, NAMED, {1: {"dry": 0.5, key: 0.5}})


def test_whole_numbers_names_and_digits_are_keys() -> None:
    keys: list[Any] = [1, np.int64(1), np.int8(1), np.uint64(1), "1", "wet", np.str_("wet")]
    for key in keys:
        assert NAMED.variable(key) == 1
        assert NAMED.state(1, key) == 1
    for text in ("1_0", " 1", "1.0", "+1", "١", "9" * 5000, "", "#", "#-1", "##1"):
        refused(["no variable is called"], PLAIN.variable, text)
        if text != "1.0":
            refused(["variable 0 has no state"], PLAIN.state, 0, text)


@pytest.mark.parametrize("values", ["ab", b"ab", 5, 0.9, True, np.array(1), {0: 1}])
def test_lists_of_variables_are_lists(values: Any) -> None:
    for call in (ps.solve, ps.bound, compare):
        refused(["maximize is", "give a list of variables, or 'all'"], call, PLAIN, values)
        refused(["weights is", "give a list of numbers"], call, PLAIN, weights=values)
    for call in (ps.bound, compare):
        refused(["order is", "give a list of variables"], call, PLAIN, order=values)
    if not isinstance(values, dict):
        refused(["is no dictionary of maximize, evidence, weights"], results_of, PLAIN, [values])


@pytest.mark.parametrize("name", [None, 1, ("maximize",)])
def test_questions_name_what_they_ask_by_strings(name: Any) -> None:
    refused([repr(name), "is none of maximize"], results_of, PLAIN, [{"maximize": [0], name: 2}])


@pytest.mark.parametrize("weights", [None, 0.5, [True, False], ["0", "1"], [[1.0, 0.0]], [None, 1.0], [0, 1j]])
def test_weights_are_numbers(weights: Any) -> None:
    refused([f"weights is {weights}", "give a list of numbers"], Query, weights)


@pytest.mark.parametrize("wrong", [0.9, 1.0, True, None, "1"])
def test_no_scope_and_no_size_is_guessed(wrong: Any) -> None:
    refused(["factor 0", "whole number", repr(wrong)], Model.from_factors, [2, 2], [((wrong,), [1, 1])])
    refused(["states of variable 1", "whole number", repr(wrong)], Model.from_factors, [2, wrong], [])


@pytest.mark.parametrize("edges", [[[0, 0.9]], [[0.0, 1.0]], np.array([[False, True]]), [[0, None]], [["0", "1"]]])
def test_no_edge_is_guessed(edges: Any) -> None:
    refused(["edges must hold whole numbers"], ps.from_arrays, np.ones((3, 2)), edges, np.ones((2, 2)))


def test_edges_are_pairs() -> None:
    refused(["edges has shape (2,)"], ps.from_arrays, np.ones((3, 2)), [0, 1], np.ones((2, 2)))


@pytest.mark.parametrize("wrong", [0.9, 1.0, True, None, "1"])
def test_files_are_not_written_by_guess(wrong: Any, tmp_path: Path) -> None:
    refused(["a variable of the query", repr(wrong)], write_query, [wrong], tmp_path / "query")
    refused(["a variable of the order", repr(wrong)], write_order, [wrong], tmp_path / "order")
    refused(["a variable of the evidence", repr(wrong)], write_evidence, {wrong: 0}, tmp_path / "evid")
    refused(["the state of variable 0", repr(wrong)], write_evidence, {0: wrong}, tmp_path / "evid")


@pytest.mark.parametrize("key", [0, None, 0.5, True, ("a", 1), ("a", None), {"a": 1}])
def test_tables_by_hand_name_variables_by_strings(key: Any) -> None:
    refused(["tables: ", "name"], Model.from_tables, [(key, [[1.0, 1.0], [1.0, 1.0]])])


@pytest.mark.parametrize("states", [True, 2.0, None, "xy"])
def test_tables_by_hand_have_labels_or_numbers(states: Any) -> None:
    refused(["states: ", repr(states)], Model.from_tables, {"a": [1.0, 1.0]}, states={"a": states})


def test_names_and_labels_are_strings() -> None:
    refused(["the names of variables must be strings"], PLAIN.with_names, [0, 1])
    refused(["the labels of states must be strings"], PLAIN.with_names, ["a", "b"], [["x", "y"], [1, 0]])


def test_labels_that_python_writes_as_such_are_matched_by_their_text() -> None:
    """Tables made from booleans or numbers, and rows of data frames, name states by them; nothing else is guessed."""
    model = ps.Model.from_tables({"on": {False: 0.3, True: 0.7}, "level": {1.5: 0.4, 2.0: 0.6}})
    assert model.evidence({"on": True, "level": 2.0}) == {0: 1, 1: 1}
    assert model.evidence({"on": np.False_, "level": np.float64(1.5)}) == {0: 0, 1: 0}
    assert ps.marginals(model)["on"][True].lower == pytest.approx(0.7)
    for key in (2.5, 1.0, float("nan")):
        with pytest.raises(ps.InputError, match="is no state of variable level"):
            model.evidence({"level": key})
    with pytest.raises(ps.InputError, match="is no state of variable level"):
        model.evidence({"level": True})
