"""Networks of GeNIe: each kind of node has the table that its definition says, found by ids and by display names."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import powersum as ps

HEAD = '<?xml version="1.0"?>\n<smile version="1.0" id="x"><nodes>\n'
PARENTS = """<cpt id="flu"><state id="yes"/><state id="no"/><probabilities>0.1 0.9</probabilities></cpt>
<cpt id="cold"><state id="none"/><state id="mild"/><state id="bad"/><probabilities>0.5 0.3 0.2</probabilities></cpt>
"""
# The column of each state of a parent, by its label: what it causes by itself, the last state is nothing.
CAUSES = {
    "flu": {"yes": [0.4, 0.35, 0.25], "no": [0.0, 0.0, 1.0]},
    "cold": {"none": [0.0, 0.0, 1.0], "mild": [0.05, 0.25, 0.7], "bad": [0.2, 0.3, 0.5]},
}
LEAK = [0.01, 0.04, 0.95]
LABELS = {"flu": ["yes", "no"], "cold": ["none", "mild", "bad"]}
STRENGTHS = {"flu": ["yes", "no"], "cold": ["bad", "mild", "none"]}
TAIL = """</nodes><extensions><genie version="1.0"><node id="flu"><name>Influenza</name></node>
<node id="cold"><name>Twin</name></node><node id="fever"><name>Twin</name></node></genie></extensions></smile>"""


def noisy(columns_by: dict[str, list[str]]) -> str:
    numbers = [x for parent, order in columns_by.items() for label in order for x in CAUSES[parent][label]] + LEAK
    strengths = [LABELS[p].index(label) for p, order in STRENGTHS.items() for label in order]
    return (
        '<noisymax id="fever"><state id="high"/><state id="some"/><state id="no"/><parents>flu cold</parents>'
        f"<strengths>{' '.join(map(str, strengths))}</strengths>"
        f"<parameters>{' '.join(map(str, numbers))}</parameters></noisymax>"
    )


@pytest.mark.parametrize("columns_by", [LABELS, STRENGTHS], ids=["by state", "by strength"])
def test_a_noisy_max_is_the_strongest_of_independent_causes(tmp_path: Path, columns_by: dict[str, list[str]]) -> None:
    path = tmp_path / "m.xdsl"
    path.write_text(HEAD + PARENTS + noisy(columns_by) + TAIL)
    model = ps.read(path)
    assert model.names == ("flu", "cold", "fever")
    for flu, cold in itertools.product(LABELS["flu"], LABELS["cold"]):
        wanted = np.zeros(3)
        # Every combination of what each cause does, and the strongest, which is the first, of them.
        for effects in itertools.product(range(3), repeat=3):
            share = CAUSES["flu"][flu][effects[0]] * CAUSES["cold"][cold][effects[1]] * LEAK[effects[2]]
            wanted[min(effects)] += share
        found = ps.marginals(model, evidence={"flu": flu, "cold": cold}).beliefs[2]
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_deterministic_nodes(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    text = """<deterministic id="ill"><state id="well"/><state id="ill"/><parents>flu cold</parents>
<resultingstates>ill ill ill well well ill</resultingstates></deterministic>"""
    path.write_text(HEAD + PARENTS + text + "</nodes></smile>")
    model = ps.read(path)
    assert ps.solve(model, ["ill"], evidence={"flu": "no", "cold": "mild"}).assignment["ill"] == "well"
    assert ps.solve(model, ["ill"], evidence={"flu": "no", "cold": "bad"}).assignment["ill"] == "ill"


def test_ids_and_display_names(tmp_path: Path) -> None:
    path = tmp_path / "m.xdsl"
    path.write_text(HEAD + PARENTS + noisy(LABELS) + TAIL)
    model = ps.read(path)
    assert model.variable("flu") == model.variable("Influenza") == 0
    with pytest.raises(ps.InputError, match="2 variables are shown as 'Twin': name one of cold, fever"):
        ps.solve(model, ["Twin"])
    assert model.with_names(["a", "b", "c"]).aliases is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (noisy(LABELS).replace("0 1 2 1 0", "0 1 2 2 0"), "strengths do not order"),
        (noisy(LABELS).replace("0.95", "0.95 0.1"), "19 numbers where 18 are needed"),
        (noisy(LABELS).replace("0.0 0.0 1.0", "0.1 0.0 0.9"), "it cannot be told which state of parent"),
        (noisy(LABELS).replace("noisymax", "noisyadder"), "'noisyadder' is not read, only cpt"),
        (noisy(LABELS).replace("noisymax", "equation"), "'equation' is not read"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "m.xdsl"
    path.write_text(HEAD + PARENTS + text + "</nodes></smile>")
    with pytest.raises(ps.InputError, match=message):
        ps.read(path)


def test_xml_is_looked_into(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text(
        "<?xml version='1.0'?><!-- <smile> --><BIF VERSION='0.3'><NETWORK><VARIABLE TYPE='nature'><NAME>a</NAME>"
        "<OUTCOME>n</OUTCOME><OUTCOME>y</OUTCOME></VARIABLE><DEFINITION><FOR>a</FOR><TABLE>0.25 0.75</TABLE>"
        "</DEFINITION></NETWORK></BIF>"
    )
    assert ps.marginals(ps.read(path))["a"]["y"] > 0.7
    path.write_text("<html></html>")
    with pytest.raises(ps.InputError, match="the first element is 'html'"):
        ps.read(path)


@pytest.mark.parametrize(("app", "numbers"), [("GeNIe 4.1", "1 2 3 4 5 6"), ("aGrUM 3.3.1", "1 4 2 5 3 6")])
def test_the_order_of_parents_is_that_of_the_program(tmp_path: Path, app: str, numbers: str) -> None:
    """GeNIe has the first parent slowest; pyAgrum writes it fastest."""
    path = tmp_path / "m.xdsl"
    pairs = " ".join(f"0.{n} 0.{10 - int(n)}" for n in numbers.split())
    text = f"""<cpt id="ill"><state id="y"/><state id="n"/><parents>flu cold</parents>
<probabilities>{pairs}</probabilities></cpt></nodes>
<extensions><genie version="1.0" app="{app}"><node id="ill"/></genie></extensions></smile>"""
    path.write_text(HEAD + PARENTS + text)
    model = ps.read(path)
    found = [
        float(ps.marginals(model, evidence={"flu": flu, "cold": cold})["ill"]["y"])
        for flu, cold in itertools.product(LABELS["flu"], LABELS["cold"])
    ]
    assert found == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
