"""Models from and to pyAgrum, and the file formats it reads: networks built or read by the library itself."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum import InputError
from powersum.formats.agrum import SUFFIXES
from tests.interop.networks import CLINIC, described, distribution, joint, library

# Its compiled parts warn while they load, one by one at their first use, and crash where warnings are errors.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def gum() -> Any:
    return library("pyagrum")


def test_both_ways(gum: Any) -> None:
    network = ps.to_pyagrum(CLINIC)
    assert network.size() == CLINIC.n_variables
    model = ps.from_pyagrum(network)
    assert described(model) == described(CLINIC)
    np.testing.assert_allclose(joint(model), joint(CLINIC), rtol=1e-12)


def test_same_answer_as_pyagrum(gum: Any) -> None:
    inference = gum.LazyPropagation(ps.to_pyagrum(CLINIC))
    inference.setEvidence({"dyspnoea": "much", "smoker": [0.3, 0.9]})
    inference.addJointTarget({"cancer", "bronchitis"})
    inference.makeInference()
    pair = inference.jointPosterior({"cancer", "bronchitis"})
    states = pair.argmax()[0][0]
    evidence = {"dyspnoea": "much", "smoker": {"no": 0.3, "yes": 0.9}}
    answer = ps.solve(CLINIC, maximize=["cancer", "bronchitis"], evidence=evidence)
    assert dict(answer.assignment) == {name: CLINIC.label(CLINIC.variable(name), s) for name, s in states.items()}
    posterior = answer.log_upper - ps.solve(CLINIC, evidence=evidence).log_upper
    assert posterior == pytest.approx(np.log(pair.max()), abs=1e-9)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_written_by_pyagrum(gum: Any, tmp_path: Path, suffix: str) -> None:
    network = gum.randomBN(n=37, names=None, ratio_arc=1.25, domain_size=4)
    path = tmp_path / f"network{suffix}"
    getattr(network, f"save{SUFFIXES[suffix]}")(str(path))
    original, model = ps.from_pyagrum(network), ps.read(path)
    assert described(model) == described(original)
    assert model.directed
    for name in model.names or ():
        np.testing.assert_allclose(distribution(model, name), distribution(original, name), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("packed", ["", ".gz", ".xz"])
def test_round_trips(gum: Any, tmp_path: Path, suffix: str, packed: str) -> None:
    path = tmp_path / f"clinic{suffix}{packed}"
    ps.write(CLINIC, path)
    model = ps.read(path)
    assert described(model) == described(CLINIC)
    np.testing.assert_allclose(joint(model), joint(CLINIC), rtol=1e-6)
    # Read back as the decimals that were written: every distribution sums to one again, and nothing is left to do.
    assert ps.bound(model).log_upper == pytest.approx(0.0, abs=1e-12)
    again = tmp_path / "clinic.uai"
    ps.to_uai(model, again, maximize=["cancer"], evidence={"dyspnoea": "much"})
    assert (tmp_path / "clinic.uai.query").read_text() == f"1 {model.variable('cancer')}\n"
    np.testing.assert_array_equal(ps.read(again).log_values, model.log_values)


def test_markov_networks(gum: Any) -> None:
    network = gum.fastMRF("A--B{x|y|z}--C;C--D")
    model = ps.from_pyagrum(network)
    assert not model.directed
    assert described(model)["B"] == {"x", "y", "z"}
    assert sorted(model.factor(k).log_table.size for k in range(model.n_factors)) == [4, 12]
    a, b, c = (model.variable(name) for name in "ABC")
    (large,) = [f for f in model.factors() if len(f.scope) == 3]
    entry = np.exp(large.log_table)[tuple({a: 1, b: 2, c: 0}[v] for v in large.scope)]
    assert entry == pytest.approx(network.factor({0, 1, 2})[{"A": 1, "B": 2, "C": 0}])


def test_what_is_no_bayesian_network(gum: Any) -> None:
    with pytest.raises(InputError, match="an influence diagram has decisions"):
        ps.from_pyagrum(gum.InfluenceDiagram())
    with pytest.raises(InputError, match="int is no network of pyAgrum"):
        ps.from_pyagrum(3)
    with pytest.raises(InputError, match=r"write a Markov network as \.uai"):
        ps.to_pyagrum(ps.Model.from_factors([2], []))
    with pytest.raises(InputError, match="variable x1 has no table"):
        ps.to_pyagrum(ps.Model.from_factors([2, 2], [((0,), [0.5, 0.5])], directed=True))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.bif", "rubbish", 'a.bif: line 1: 1 : error : Syntax error : "network" expected'),
        ("a.xdsl", "rubbish", "a.xdsl: syntax error: line 1, column 0"),
        ("a.xmlbif", "<BIF><NETWORK></BIF>", "a.xmlbif: mismatched tag: line 1"),
        ("a.xmlbif", "<BIF><TABLE>0.5 0.5a</TABLE></BIF>", "a.xmlbif: '0.5a' in a table is not a number"),
        ("a.xmlbif", "<BIF></BIF>", "a.xmlbif: "),
        ("a.xdsl", "<smile><probabilities>1 x</probabilities></smile>", "a.xdsl: 'x' in a table is not a number"),
        ("a.net", "", "a.net: "),
        ("a.dsl", "net x {", "a.dsl: "),
        ("a.bif", "network x {}", "a.bif: holds no variables"),
    ],
)
def test_damaged_files(gum: Any, tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        ps.read(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_words_that_pyagrum_does_not_take(gum: Any, tmp_path: Path) -> None:
    text = """
        network "a b" { property author = 3/4 of "us" ; } // a <comment>
        variable age { type discrete [ 3 ] { <5, 3-4, "old & wise" }; }
        variable Größe { type discrete [ 2 ] { 0, a/b }; }
        probability ( age ) { table 0.25, 2.5e-1, .5; }
        probability ( Größe | age ) { ( <5 ) 0.1, 0.9; ( 3-4 ) 0.2, 0.8; ( "old & wise" ) 0.3, 0.7; }
    """
    (tmp_path / "words.bif").write_text(text, encoding="utf-8")
    model = ps.read(tmp_path / "words.bif")
    assert (model.names, model.states) == (("age", "Größe"), (("<5", "3-4", "old & wise"), ("0", "a/b")))
    np.testing.assert_allclose(np.exp(model.factor(1).log_table), [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_words_that_cannot_be_written(gum: Any, tmp_path: Path, suffix: str) -> None:
    for name, labels in (("age", ["<5", "old"]), ("the age", ["young", "old"]), ("3", ["young", "old"])):
        model = ps.Model.from_tables({name: [0.5, 0.5]}, states={name: labels}, directed=True)
        with pytest.raises(InputError, match=f"a{suffix}: the format has no place for the word"):
            ps.write(model, tmp_path / f"a{suffix}")
    assert not list(tmp_path.iterdir())
    nameless = ps.Model.from_factors([2], [((0,), [0.25, 0.75])], directed=True)
    ps.write(nameless, tmp_path / f"a{suffix}")
    assert ps.read(tmp_path / f"a{suffix}").names == ("x0",)


def test_missing_and_damaged_compression(gum: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.bif: cannot be read \(No such file"):
        ps.read(tmp_path / "none.bif")
    (tmp_path / "cut.bif.gz").write_bytes(gzip.compress(b"network x {}")[:-9])
    with pytest.raises(InputError, match="the compressed data are damaged"):
        ps.read(tmp_path / "cut.bif.gz")


def test_without_pyagrum_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyagrum", None)
    monkeypatch.setitem(sys.modules, "pyAgrum", None)
    for call in (lambda: ps.read(tmp_path / "a.bif"), lambda: ps.write(CLINIC, tmp_path / "a.net")):
        with pytest.raises(InputError, match=r"needs pyAgrum: pip install 'powersum\[formats\]'"):
            call()


def test_single_precision_is_undone_only_where_all_is_single() -> None:
    def network(values: list[float]) -> Any:
        variable = SimpleNamespace(name=lambda: "a", domainSize=lambda: 2, labels=lambda: ("x", "y"))
        tensor = SimpleNamespace(names=("a",), toarray=lambda: np.array(values))
        return SimpleNamespace(nodes=lambda: [0], variable=lambda _: variable, cpt=lambda _: tensor)

    single = [float(np.float32(0.1)), float(np.float32(0.9))]
    assert np.exp(ps.from_pyagrum(network(single)).log_values).sum() == pytest.approx(1.0, abs=1e-15)
    mixed = [float(np.float32(0.1)), 0.3]
    np.testing.assert_allclose(np.exp(ps.from_pyagrum(network(mixed)).log_values), mixed, rtol=1e-15)
