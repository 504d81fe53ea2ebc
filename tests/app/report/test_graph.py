"""Pictures of models: every variable has its place and its role, and large models are cut to what matters."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import powersum as ps
from powersum import Model
from powersum.app.report.layout import MOST_DRAWN, apart, draw
from tests.interop.networks import CLINIC

mpl.use("Agg")


def test_layers_of_a_network_run_downwards() -> None:
    drawing = draw(CLINIC, np.array([1]))
    assert drawing.directed
    assert len(drawing.edges) == 5
    for parent, child in drawing.edges:
        assert drawing.places[parent, 1] < drawing.places[child, 1]


def test_wide_layers_take_several_rows() -> None:
    model, _ = ps.generate.diagnosis(40, observed=0.0, seed=0)
    for widest in (3, 8):
        drawing = draw(model, np.array([1]), widest=widest)
        _, counts = np.unique(drawing.places[:, 1], return_counts=True)
        assert counts.max() <= widest
        assert len(counts) == drawing.rows
        for parent, child in drawing.edges:
            assert drawing.places[parent, 1] < drawing.places[child, 1]


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from([0.0, 1.0, 300.0]))
def test_boxes_that_were_pushed_apart_do_not_overlap(seed: int, count: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    width = rng.uniform(5.0, 80.0, size=count)
    places = apart(rng.normal(scale=spread, size=(count, 2)), width, 30.0)
    for i in range(count):
        for j in range(i):
            dx, dy = np.abs(places[i] - places[j])
            assert dx >= (width[i] + width[j]) / 2 - 1e-9 or dy >= 30.0 - 1e-9


def test_grids_keep_their_distances() -> None:
    model, _ = ps.generate.grid(6, 6)
    drawing = draw(model, np.zeros(0, dtype=np.int64))
    assert len(drawing.edges) == 60
    length = np.linalg.norm(np.diff(drawing.places[drawing.edges], axis=1)[:, 0], axis=1)
    assert length.max() < 2.5 * length.min()
    assert drawing.places.min() >= -1e-9
    assert drawing.places.max() <= 1 + 1e-9


def test_large_models_are_cut_around_the_query() -> None:
    model, _ = ps.generate.grid(40, 40)
    drawing = draw(model, np.array([820]))
    assert len(drawing.variables) == MOST_DRAWN
    assert 820 in drawing.variables
    everything = draw(model, np.arange(1600))
    assert len(everything.variables) == MOST_DRAWN


@pytest.mark.parametrize("sizes", [[], [2], [2, 2], [3, 1, 2]])
def test_models_without_edges(sizes: list[int]) -> None:
    drawing = draw(Model.from_factors(sizes, []), np.zeros(0, dtype=np.int64))
    assert drawing.places.shape == (len(sizes), 2)
    assert np.isfinite(drawing.places).all()


def test_a_circle_of_parents_is_drawn_all_the_same() -> None:
    table = np.full((2, 2), 0.5)
    drawing = draw(Model.from_factors([2, 2], [((0, 1), table), ((1, 0), table)], directed=True), np.array([0]))
    assert np.isfinite(drawing.places).all()


def test_roles_and_states_are_in_the_picture() -> None:
    ax = CLINIC.plot(["cancer"], {"dyspnoea": "much", "smoker": [0.3, 0.7]}, assignment={"cancer": "yes"})
    texts = {text.get_text() for text in ax.texts}
    assert {"cancer = yes", "dyspnoea = much", "smoker", "xray"} <= texts
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["maximised", "summed", "observed"]
    assert CLINIC.plot(ax=ax) is ax


def test_text_says_size_width_and_cost() -> None:
    assert str(CLINIC) == (
        "Bayesian network, 5 variables of up to 3 states, 5 factors of up to 3 variables, 26 table entries\n"
        "width 2: summing everything out takes tables of 240 bytes"
    )
    assert str(Model.from_factors([], [])).endswith("no variables: the value is a constant")
    model, _ = ps.generate.grid(10, 10)
    assert "width 1" in str(model)


def test_notebooks() -> None:
    assert "<svg" in CLINIC._repr_html_()
    result = ps.solve(Model.from_tables({"<a>": {"x & y": 0.2, "z": 0.8}}), ["<a>"], evidence={"<a>": "x & y"})
    html = result._repr_html_()
    assert "&lt;a&gt;" in html
    assert "x &amp; y" in html
    assert "<b>optimal</b>" in html
    many, query = ps.generate.grid(5, 5, share=1.0)
    assert "13 more" in ps.bound(many, query, sweeps=1)._repr_html_()
