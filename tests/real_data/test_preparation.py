"""Real models are simplified and ordered well, and those of the paper are found."""

from __future__ import annotations

import pytest
from benchmarks.instances import DATA, model_file

from powersum.app.reproduce.instances import FIGURE_3, SUPPLEMENT_C, check_folder, diagnostic, pedigrees
from powersum.formats import read, read_order, read_query
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order, induced_width
from powersum.prepare.simplify import simplify
from tests.data import needs_data

pytestmark = needs_data


@pytest.mark.parametrize(("name", "feasible"), [("planning/sg_p01_2", False), ("pedigree/pedigree1", True)])
def test_real_models(name: str, feasible: bool) -> None:
    model = read(model_file(*name.split("/")))
    problem = simplify(model, Query.of(model), {})
    assert problem.feasible == feasible
    assert problem.model.n_variables < model.n_variables


@pytest.mark.parametrize("name", ["pedigree/pedigree1.Q0.5.I3", "pedigree/pedigree9.Q0.5.I3", "grid/50-12-5.Q0.5.I1"])
def test_not_wider_than_the_shipped_order(name: str) -> None:
    family, _, question = name.partition("/")
    model = read(model_file(family, question.partition(".Q")[0]))
    problem = simplify(model, Query.of(model, read_query(DATA / f"{name}.map")), {})
    shipped = problem.reduced_order(read_order(DATA / f"{name}.vo"))
    ours = elimination_order(problem.model, problem.tau)
    assert induced_width(problem.model, ours) <= induced_width(problem.model, shipped)


def test_real_instances_are_found() -> None:
    check_folder(DATA)
    questions = [*diagnostic(DATA, 0), *pedigrees(DATA, FIGURE_3 + SUPPLEMENT_C, 0)]
    assert len(questions) == 14
    for question in questions:
        assert 0.3 < len(question.query) / question.model.n_variables < 0.7
