"""Questions: what they accept, the order they keep, what they remember, and that equal ones are told to be equal."""

from __future__ import annotations

import pickle
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import powersum as ps
from powersum import InputError, Model, Query
from powersum.api.comparison import compare
from powersum.model.question import Question
from tests.batch import results_of

CLINIC = Model.from_tables(
    {
        "smoker": {"no": 0.7, "yes": 0.3},
        ("smoker", "cancer"): {"no": {"no": 0.99, "yes": 0.01}, "yes": {"no": 0.9, "yes": 0.1}},
        ("cancer", "xray"): {"no": {"clear": 0.9, "shadow": 0.1}, "yes": {"clear": 0.2, "shadow": 0.8}},
    },
    directed=True,
)
Row = namedtuple("Row", ["smoker", "xray"])


class Series:
    """What of a pandas Series is used, for where there is no pandas."""

    ndim, dtype = 1, np.dtype(object)

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self.index = list(values)

    def items(self) -> Any:
        return self._values.items()

    def __iter__(self) -> Any:
        return iter(self._values.values())


KNOWN = {"smoker": "yes", "xray": "shadow"}
FORMS: dict[str, Any] = {
    "dictionary": KNOWN,
    "ordered": OrderedDict(KNOWN),
    "pairs": list(KNOWN.items()),
    "lists": [list(pair) for pair in KNOWN.items()],
    "iterator": None,
    "named tuple": Row(**KNOWN),
    "series": Series(KNOWN),
    "row with gaps": Series({**KNOWN, "cancer": None}),
    "row with nan": Series({**KNOWN, "cancer": float("nan")}),
    "by numbers": [(0, 1), (2, np.int64(1))],
    "the same twice": [("smoker", "yes"), (0, 1), ("xray", 1)],
}


@pytest.mark.parametrize("form", FORMS)
def test_evidence_has_many_forms(form: str) -> None:
    evidence = iter(KNOWN.items()) if form == "iterator" else FORMS[form]
    question = Question.of(CLINIC, ["cancer"], evidence=evidence)
    assert question.evidence.states == {0: 1, 2: 1}
    assert question.evidence.likelihoods == {}


def test_every_entry_takes_pairs_and_rows() -> None:
    wanted = ps.solve(CLINIC, ["cancer"], evidence=KNOWN)
    for evidence in (FORMS["pairs"], FORMS["series"], FORMS["named tuple"]):
        assert ps.solve(CLINIC, ["cancer"], evidence=evidence).log_upper == wanted.log_upper
        assert ps.bound(CLINIC, ["cancer"], evidence=evidence).log_upper == pytest.approx(wanted.log_upper)
        assert results_of(CLINIC, [{"maximize": ["cancer"], "evidence": evidence}])[0] is not None
        traces = compare(CLINIC, ["cancer"], evidence=evidence, methods="gdd", sweeps=1).traces
        assert traces[0].best >= wanted.log_lower
        for belief, other in zip(
            ps.marginals(CLINIC, evidence=evidence).beliefs, ps.marginals(CLINIC, evidence=KNOWN).beliefs, strict=True
        ):
            np.testing.assert_array_equal(belief, other)


def test_rows_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([{**KNOWN, "cancer": None}, {"smoker": "no", "xray": None, "cancer": "yes"}])
    for row in (frame.iloc[0], next(frame.itertuples(index=False)), next(frame.iterrows())[1]):
        assert Question.of(CLINIC, None, evidence=row).evidence.states == {0: 1, 2: 1}
    assert Question.of(CLINIC, None, evidence=frame.iloc[1]).evidence.states == {0: 0, 1: 1}
    with pytest.raises(InputError, match=r"^evidence is "):
        Question.of(CLINIC, None, evidence=frame)


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ([("smoker", "yes"), ("smoker", "no")], "evidence gives variable smoker two states: yes, no"),
        ([("smoker", "yes"), ("smoker", [0.5, 0.5])], "evidence gives variable smoker both a state and likelihoods"),
        ([("smoker", [1, 1]), (0, [0.5, 0.5])], "evidence gives variable smoker likelihoods twice"),
        ([("smoker",)], "evidence is [('smoker',)]: ('smoker',) is no pair of variable and state"),
        (["no"], "evidence is ['no']: 'no' is no pair of variable and state"),
        ({("smoker", "yes")}, "give a dictionary, a list of pairs, or a row of a table"),
        (Series({"smoker": 1.5}), "evidence: 1.5 is no state of variable smoker: give a string or a whole number"),
        (Series({"smoker": True}), "evidence: True is no state of variable smoker"),
        ([(["smoker"], 1)], "evidence: ['smoker'] is no variable"),
        ({"smoker": float("nan")}, "evidence: nan is no state of variable smoker"),
    ],
)
def test_evidence_that_is_none(evidence: Any, message: str) -> None:
    for call in (Question.of, ps.solve, ps.bound, compare):
        with pytest.raises(InputError) as caught:
            call(CLINIC, evidence=evidence)
        assert message in str(caught.value)


@given(st.permutations(["smoker", "cancer", "xray"]), st.integers(0, 3))
def test_the_query_keeps_the_order_asked(names: list[str], count: int) -> None:
    question = Question.of(CLINIC, names[:count])
    assert list(question.answer(np.zeros(3, dtype=np.int64))) == names[:count]
    assert question.asked().maximize == tuple(names[:count])


def test_order_of_the_answer_is_the_order_asked() -> None:
    for maximize in (["xray", "smoker"], ["smoker", "xray"], [2, 0, 1], "all"):
        wanted = [CLINIC.name(CLINIC.variable(v)) for v in (range(3) if maximize == "all" else maximize)]
        for call in (ps.solve, ps.bound):
            assert list(call(CLINIC, maximize, evidence={"cancer": "no"}).assignment) == wanted
        answers = results_of(CLINIC, [{"maximize": maximize}, {"maximize": sorted(wanted)}])
        assert [list(answer.assignment) for answer in answers] == [wanted, sorted(wanted)]
    assert list(ps.solve(CLINIC, weights=Query(np.zeros(3))).assignment) == ["smoker", "cancer", "xray"]


def test_an_order_that_is_not_that_of_the_weights() -> None:
    with pytest.raises(InputError, match=r"asked is .* it must name each variable of weight 0 once"):
        Query(np.array([0.0, 1.0]), asked=(1,))


def test_a_path_is_read(tmp_path: Path) -> None:
    path = tmp_path / "lung.bif"
    ps.write(CLINIC, path)
    wanted = ps.solve(CLINIC, ["cancer"], evidence=KNOWN)
    for given_path in (path, str(path)):
        result = ps.solve(given_path, ["cancer"], evidence=KNOWN)
        assert result.assignment == wanted.assignment
        assert result.question is not None
        assert result.question.model == "lung.bif"
        assert ps.bound(given_path, ["cancer"], evidence=KNOWN).assignment == wanted.assignment
        assert ps.marginals(given_path, evidence=KNOWN).exact
        assert results_of(given_path, [{"maximize": ["cancer"]}])[0].assignment
        assert compare(given_path, methods="gdd", sweeps=0).traces
    with pytest.raises(InputError, match=r"gone\.bif: cannot be read"):
        ps.solve(tmp_path / "gone.bif")


def test_what_is_remembered() -> None:
    soft = {"xray": {"shadow": 0.6, "clear": 0.2}}
    result = ps.solve(CLINIC, ["cancer"], evidence={**soft, "smoker": 1})
    asked = result.question
    assert asked is not None
    assert (asked.model, asked.task, asked.maximize, asked.weights) == ("", "MMAP", ("cancer",), None)
    assert asked.evidence == {"smoker": "yes"}
    assert asked.likelihoods == {"xray": (0.2, 0.6)}
    assert asked.digest == CLINIC.digest
    assert asked.structure == CLINIC.structure
    # No whole model hides in it.
    large, query = ps.generate.grid(20, 20, seed=1)
    assert len(pickle.dumps(Question.of(large, query).asked())) < 5000
    weighted = Question.of(CLINIC, weights=Query(np.array([1.0, 0.5, 0.0]))).asked()
    assert (weighted.task, weighted.weights, weighted.maximize) == ("power-sum", (1.0, 0.5, 0.0), ("xray",))


def test_likelihoods_are_factors_by_rising_variable() -> None:
    """As certificates number them."""
    model, states = Question.of(CLINIC, None, evidence={"xray": [0.3, 0.4], "smoker": [0.1, 0.2]}).observed
    assert states == {}
    assert [model.factor(k).scope for k in (3, 4)] == [(0,), (2,)]
    np.testing.assert_allclose(np.exp(model.factor(3).log_table), [0.1, 0.2])


def test_equal_questions_have_equal_keys() -> None:
    def key(maximize: Any = None, evidence: Any = None) -> Any:
        return Question.of(CLINIC, maximize, evidence=evidence).key

    assert key(["cancer"], KNOWN) == key([1], [(2, 1), (0, 1)])
    assert key(["cancer"], {"xray": [0.2, 0.8]}) == key(["cancer"], {2: {"shadow": 0.8, "clear": 0.2}})
    different = [key(), key("all"), key(["cancer"]), key(["cancer"], KNOWN), key(["cancer"], {0: [0.2, 0.8]})]
    different += [key(["smoker", "cancer"]), key(["cancer", "smoker"]), key(["cancer"], {2: [0.2, 0.8]})]
    assert len(set(different)) == len(different)
