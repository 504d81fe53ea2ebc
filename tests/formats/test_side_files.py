"""Evidence, queries, orders and the name rule."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from powersum.formats import (
    companions,
    read_evidence,
    read_order,
    read_query,
    write_evidence,
    write_order,
    write_query,
)
from powersum.model.model import Model
from tests.formats.helpers import refusal, saved

MODEL = Model.from_factors([2, 3, 2, 2, 2, 2], [])


class TestEvidence:
    @pytest.mark.parametrize("content", ["", " \n", "0", "0\n", "# none\n0", "1\n0\n"])
    def test_none(self, tmp_path: Path, content: str) -> None:
        assert read_evidence(saved(tmp_path, content), MODEL) == {}

    @pytest.mark.parametrize(
        "content",
        [
            "2 1 2 3 0",
            "2 1 2 3 0\n",
            "2\n1 2\n3 0\n",
            "2\n1 2 3 0",
            "2 1\n2 3\n0",
            "# a comment\n2 1 2 3 0",
            "1\n2 1 2 3 0\n",
            "c old\n1\n\n2 1 2 3 0",
            "3 1 2 3 0 1 2",
        ],
    )
    def test_forms(self, tmp_path: Path, content: str) -> None:
        assert read_evidence(saved(tmp_path, content), MODEL) == {1: 2, 3: 0}

    def test_samples(self, tmp_path: Path) -> None:
        path = saved(tmp_path, "3\n1 0 1\n2 1 1 2 0\n0\n")
        assert [read_evidence(path, sample=k) for k in range(3)] == [{0: 1}, {1: 1, 2: 0}, {}]
        assert "holds 3 samples of evidence" in refusal(read_evidence, path)
        assert "has no sample 3" in refusal(lambda p: read_evidence(p, sample=3), path)

    def test_compressed(self, tmp_path: Path) -> None:
        assert read_evidence(saved(tmp_path, gzip.compress(b"1 0 1"), "m.evid.gz")) == {0: 1}

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("2\n0\n1 5 1\n", "is ambiguous: 2 on the first line can count pairs or samples"),
            ("2 0 1", "token 1: 2 fits neither"),
            ("1 0 1 3", "token 1: 1 fits neither"),
            ("2\n1 0 1\n1 1 1\n1 2 1\n", "token 1: 2 fits neither"),
            ("999999999999 0 1", "token 1: 999999999999 fits neither"),
            ("1 6 0", "token 2 (line 1): variable 6 is out of range 0 to 5"),
            ("2 0 1\n1 3", "token 5 (line 2): state 3 of variable 1 is out of range 0 to 2"),
            ("1 0 -1", "token 3 (line 1): a token of evidence must be a whole number ≥ 0, not -1"),
            ("1 0 0.5", "must be a whole number ≥ 0, not 0.5"),
            ("1 0 x", "token 3 (line 1): x is not a finite number"),
            ("2 0 1 0 0", "token 5 (line 1): state 0 of variable 0 contradicts state 1 given before"),
        ],
    )
    def test_refused(self, tmp_path: Path, content: str, said: str) -> None:
        assert said in refusal(read_evidence, saved(tmp_path, content), MODEL)

    def test_without_a_model(self, tmp_path: Path) -> None:
        assert read_evidence(saved(tmp_path, "1 77 9")) == {77: 9}

    @given(evidence=st.dictionaries(st.integers(0, 10**6), st.integers(0, 99)))
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_round_trip(self, tmp_path: Path, evidence: dict[int, int]) -> None:
        write_evidence(evidence, tmp_path / "e.evid")
        assert read_evidence(tmp_path / "e.evid") == evidence


class TestQuery:
    @pytest.mark.parametrize("content", ["3 4 0 2", "# MAP variables\n3\n4\n0\n2\n", "3\r\n4 0\r\n2"])
    def test_forms(self, tmp_path: Path, content: str) -> None:
        assert read_query(saved(tmp_path, content), MODEL) == [4, 0, 2]

    def test_nothing(self, tmp_path: Path) -> None:
        assert read_query(saved(tmp_path, "0")) == []

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("", "is empty"),
            ("2 1", "token 1 (line 1): 2 variables declared, but 1 tokens follow"),
            ("1 1 2", "token 1 (line 1): 1 variables declared, but 2 tokens follow"),
            ("1000000000000 1", "1000000000000 variables declared"),
            ("2 1 6", "token 3 (line 1): variable 6 is out of range 0 to 5"),
            ("2 1 -6", "a variable must be a whole number ≥ 0, not -6"),
            ("3 5 1 5", "token 4 (line 1): variable 5 is listed twice"),
            ("1 a", "token 2 (line 1): a is not a finite number"),
        ],
    )
    def test_refused(self, tmp_path: Path, content: str, said: str) -> None:
        assert said in refusal(read_query, saved(tmp_path, content), MODEL)

    @given(variables=st.lists(st.integers(0, 10**9), unique=True))
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_round_trip(self, tmp_path: Path, variables: list[int]) -> None:
        write_query(variables, tmp_path / "q.query")
        assert read_query(tmp_path / "q.query") == variables


class TestOrder:
    def test_form(self, tmp_path: Path) -> None:
        order = read_order(saved(tmp_path, "# width = 3\n6\n5\n0\n1\n4\n3\n2"), MODEL)
        assert order.dtype == np.int64
        assert order.tolist() == [5, 0, 1, 4, 3, 2]

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("", "is empty"),
            ("5 0 1 2 3 4", "an order of 5 variables for a model of 6"),
            ("6 0 1 2 3 4", "6 variables declared, but 5 tokens follow"),
            ("6 0 1 2 3 4 6", "token 7 (line 1): variable 6 is out of range: an order of 6 has variables 0 to 5"),
            ("6 0 1 2 3 4 4", "token 7 (line 1): variable 4 is listed twice"),
            ("6 0 1 2 3 4 4.5", "must be a whole number ≥ 0, not 4.5"),
        ],
    )
    def test_refused(self, tmp_path: Path, content: str, said: str) -> None:
        assert said in refusal(read_order, saved(tmp_path, content), MODEL)

    @given(order=st.integers(0, 30).flatmap(lambda n: st.permutations(range(n))))
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_round_trip(self, tmp_path: Path, order: list[int]) -> None:
        write_order(order, tmp_path / "o.vo")
        assert read_order(tmp_path / "o.vo").tolist() == order


def test_companions(tmp_path: Path) -> None:
    model = saved(tmp_path, "MARKOV 0 0", "p.uai")
    assert companions(model).evidence is None
    assert companions(model).query is None
    evidence, query = saved(tmp_path, "0", "p.uai.evid"), saved(tmp_path, "0", "p.uai.query")
    for name in ("p.uai", "p.uai.gz", "p.uai.xz"):
        found = companions(tmp_path / name)
        assert (found.evidence, found.query) == (evidence, query)


def test_unwritable(tmp_path: Path) -> None:
    path = tmp_path / "no" / "file"
    assert "cannot be written" in refusal(lambda p: write_evidence({0: 1}, p), path)
    assert "cannot be written" in refusal(lambda p: write_query([0], p), path)
    assert "cannot be written" in refusal(lambda p: write_order([0], p), path)


def test_what_is_no_regular_file_is_not_replaced() -> None:
    before = os.stat(os.devnull)
    write_query([1, 2], os.devnull)
    assert os.stat(os.devnull).st_rdev == before.st_rdev
    assert "not a file" in refusal(read_query, Path(os.devnull))


def test_a_link_stays_one(tmp_path: Path) -> None:
    target = saved(tmp_path, "0", "real.query")
    link = tmp_path / "link.query"
    link.symlink_to(target)
    write_query([5], link)
    assert link.is_symlink()
    assert read_query(target) == [5]


def test_longest_name(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120 + ".query")
    write_query([5], path)
    assert read_query(path) == [5]
