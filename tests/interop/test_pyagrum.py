"""Models from and to pyAgrum, and the file formats it reads: networks built or read by the library itself."""

from __future__ import annotations

import gzip
import re
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


# Suffixes, and the words for them in the names of pyAgrum's functions: those read here, and all.
OWN = {".bif": "BIF", ".bifxml": "BIFXML"}
ALL = {**OWN, **SUFFIXES}


XDSL = """<smile><nodes><cpt id="a"><state id="n"/>
<state id="y"/>
<probabilities>{}</probabilities></cpt></nodes></smile>"""


@pytest.mark.parametrize("suffix", ALL)
def test_files_written_by_pyagrum(gum: Any, tmp_path: Path, suffix: str) -> None:
    for states in (2, 4):
        network = gum.randomBN(n=37, names=None, ratio_arc=1.25, domain_size=states)
        path = tmp_path / f"network{suffix}"
        getattr(network, f"save{ALL[suffix]}")(str(path))
        original, model = ps.from_pyagrum(network), ps.read(path)
        assert described(model) == described(original)
        assert model.directed
        # BIF has all digits, and all are read; others are written with six, or read with seven.
        rtol, atol = (1e-14, 0.0) if suffix == ".bif" else (1e-5, 2e-6)
        for name in model.names or ():
            np.testing.assert_allclose(distribution(model, name), distribution(original, name), rtol=rtol, atol=atol)


@pytest.mark.parametrize("suffix", OWN)
def test_files_are_read_as_pyagrum_reads_them(gum: Any, tmp_path: Path, suffix: str) -> None:
    """Its own reading of what it wrote, which for BIF is in single precision, and of what powersum wrote."""
    for number in range(5):
        network = gum.randomBN(n=12, names=None, ratio_arc=1.5, domain_size=2 + number)
        path = tmp_path / f"network{suffix}"
        getattr(network, f"save{ALL[suffix]}")(str(path))
        for _ in range(2):
            theirs = gum.BayesNet()
            getattr(theirs, f"load{ALL[suffix]}")(str(path))
            original, model = ps.from_pyagrum(theirs), ps.read(path)
            assert described(model) == described(original)
            for name in model.names or ():
                np.testing.assert_allclose(distribution(model, name), distribution(original, name), rtol=1.3e-7)
            ps.write(model, path)


def test_whole_tables_are_read_as_pyagrum_reads_them(gum: Any, tmp_path: Path) -> None:
    names = {"A": 2, "C": 3, "B": 2}
    rows = np.random.default_rng(0).dirichlet(np.ones(2), (2, 3)).round(3)
    text = "network n {}\n" + "".join(
        f"variable {v} {{ type discrete [ {k} ] {{ {', '.join(f's{x}' for x in range(k))} }}; }}\n"
        for v, k in names.items()
    )
    table = np.moveaxis(rows, -1, 0).ravel()
    text += "probability ( A ) { table 0.5 0.5; }\nprobability ( C ) { table 0.25 0.25 0.5; }\n"
    text += f"probability ( B | A, C ) {{ table {', '.join(repr(float(p)) for p in table)}; }}\n"
    (tmp_path / "m.bif").write_text(text)
    theirs = gum.BayesNet()
    theirs.loadBIF(str(tmp_path / "m.bif"))
    ours = ps.read(tmp_path / "m.bif")
    assert ours.notes == ()
    np.testing.assert_allclose(distribution(ours, "B"), distribution(ps.from_pyagrum(theirs), "B"), rtol=1e-6)
    np.testing.assert_allclose(np.exp(ours.factor(2).log_table), rows, rtol=1e-12)


@pytest.mark.parametrize("markov", [False, True])
def test_uai_files_written_by_pyagrum(gum: Any, tmp_path: Path, markov: bool) -> None:
    """Their tables run through the variables in another order than the format says."""
    path = tmp_path / "m.uai"
    specs = ["A[3]--B--C;C--D", "F--E--D--C--B--A", "A[2]--B[3]--C[4]--D[5]", "D[5]--C[4]--B[3]--A[2]"]
    for number in range(4):
        if markov:
            network = gum.fastMRF(specs[number])
        else:
            network = gum.randomBN(n=12, names=None, ratio_arc=1.8, domain_size=2 + number)
        network.saveUAI(str(path))
        original, model = ps.from_pyagrum(network), ps.read(path)
        assert model.directed is not markov
        tables = {frozenset(scope): (scope, np.exp(log_table)) for scope, log_table in original.factors()}
        assert len(tables) == model.n_factors
        for scope, log_table in model.factors():
            theirs, table = tables[frozenset(scope)]
            np.testing.assert_allclose(
                np.exp(log_table), table.transpose([theirs.index(v) for v in scope]), rtol=1e-5, atol=1e-6
            )
        assert [note for note in model.notes if "written by pyAgrum" in note]
    # Where the comments do not fit, the format counts, and the doubt is said.
    if markov:
        path.write_text(path.read_text().replace("# {0, 1, 2, 3}", "# {0, 1, 2, 2}"))
        assert "comments as pyAgrum writes them contradict the scopes" in ps.read(path).notes[0]


KINDS = ("NoisyOR", "NoisyORCompound", "NoisyORNet", "NoisyAND", "Logit", "OR", "AND", "MAX", "MIN", "MEDIAN", "EXISTS")


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_that_pyagrum_computes(gum: Any, kind: str) -> None:
    network = gum.BayesNet()
    for name in "abc":
        network.add(gum.LabelizedVariable(name, name, 2))
        network.cpt(name)[:] = [0.25, 0.75]
    child = gum.LabelizedVariable("y", "y", 2)
    weighted = kind.startswith(("Noisy", "Logit"))
    getattr(network, f"add{kind}")(*((child, 0.1) if weighted else (child,)))
    for name, weight in zip("abc", (0.2, 0.3, 0.4), strict=True):
        if weighted:
            network.addWeightedArc(name, "y", weight)
        else:
            network.addArc(name, "y")
    model = ps.from_pyagrum(network)
    assert model.notes == ()
    (factor,) = [f for f in model.factors() if len(f.scope) == 4]
    tensor, place = network.cpt("y"), gum.Instantiation(network.cpt("y"))
    while not place.end():
        states = tuple(place[model.name(v)] for v in factor.scope)
        assert np.exp(factor.log_table[states]) == pytest.approx(tensor.get(place), rel=1e-12, abs=1e-300)
        place.inc()
    assert ps.solve(model).log_upper == pytest.approx(0.0, abs=1e-12)


def test_computed_nodes_that_are_too_wide(gum: Any) -> None:
    network = gum.BayesNet()
    network.addNoisyOR(gum.LabelizedVariable("y", "y", 2), 0.1)
    for k in range(40):
        network.add(gum.LabelizedVariable(f"x{k}", "", 2))
        network.addWeightedArc(f"x{k}", "y", 0.5)
    with pytest.raises(InputError, match="the table of y would have more than"):
        ps.from_pyagrum(network)


@pytest.mark.parametrize("suffix", ALL)
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
    with pytest.raises(InputError, match="variable 1 has no table"):
        ps.to_pyagrum(ps.Model.from_factors([2, 2], [((0,), [0.5, 0.5])], directed=True))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.xdsl", "rubbish", "a.xdsl: line 1: syntax error"),
        ("a.xdsl", "<smile>", "a.xdsl: line 1: no element found"),
        ("a.xdsl", XDSL.format("1 x"), "a.xdsl: line 3: variable a: x is not a finite number"),
        ("a.xdsl", XDSL.format("1 1e999"), "a.xdsl: line 3: variable a: 1e999 is not a finite"),
        ("a.xdsl", XDSL.format("1"), "a.xdsl: line 3: variable a: 1 numbers where 2 are needed"),
        ("a.xdsl", "<smile><nodes/></smile>", "a.xdsl: holds no variables"),
        ("a.xdsl", "<!DOCTYPE s [<!ENTITY x '1'>]><s>&x;</s>", "a.xdsl: line 1: entities such as 'x' are not read"),
        ("a.net", "% 1e-400\nnet {}\npotential (a) { data = (0.5 1e-50); }", "a.net: line 3: 1e-50 is too small for"),
        ("a.net", "potential (a) { data = (0.5 1e50); }", "a.net: line 1: 1e50 is too large for the precision"),
        ("a.net", "potential (a) { data = (0.5 1e999); }", "a.net: line 1: 1e999 is not a finite number"),
        ("a.dsl", 'net x { // 1e-400\n NAME = "1e-50";\nP = (-1e-400', "a.dsl: line 3: -1e-400 is too small for"),
        ("a.net", "", "a.net: "),
        ("a.dsl", "net x {", "a.dsl: "),
        ("a.net", "net x {}", "a.net: "),
    ],
)
def test_damaged_files(gum: Any, tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        ps.read(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_precision(gum: Any, tmp_path: Path, suffix: str) -> None:
    """Single precision is said where it matters; what it would make zero is refused, and so is writing such numbers."""
    path = tmp_path / f"m{suffix}"
    ps.write(ps.Model.from_tables({"a": [0.25, 0.75]}, directed=True), path)
    assert ps.read(path).notes == ()
    text = path.read_text()
    for number, note in (("0.7500000001", suffix != ".xdsl"), ("0.7500001", False)):
        path.write_text(text.replace("0.75", number))
        notes = ps.read(path).notes
        assert notes == (
            (f"{path}: pyAgrum reads this format in single precision: numbers are rounded to seven digits",)
            if note
            else ()
        )
    path.write_text(text.replace("0.25", "1e-50"))
    if suffix == ".xdsl":
        assert ps.read(path).log_values[0] == pytest.approx(-50 * np.log(10), rel=1e-12)
    else:
        with pytest.raises(InputError, match=r"line \d+: 1e-50 is too small for the precision in which pyAgrum reads"):
            ps.read(path)
    for log in (-2000.0, 800.0):
        model = ps.Model.from_factors([2], [((0,), [0.0, log])], log=True, directed=True)
        with pytest.raises(InputError, match=f"m{suffix}: variable x0: a table entry is beyond the doubles"):
            ps.write(model, path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_tables_with_too_few_numbers(gum: Any, tmp_path: Path, suffix: str) -> None:
    """Of NET and DSL pyAgrum makes the missing ones zeros, or whatever is in memory."""
    path = tmp_path / f"m{suffix}"
    ps.write(CLINIC, path)
    text = path.read_text()
    last = re.findall(r"0\.02[, ]+0\.98", text)[0]
    for wrong in (last.partition("0.98")[0].rstrip(", "), last + last[4:]):
        path.write_text(text.replace(last, wrong))
        with pytest.raises(InputError, match=rf"m{suffix}: ") as caught:
            ps.read(path)
        assert suffix == ".xdsl" or re.search(
            r"line \d+: variable xray: [35] numbers where 4 are needed", str(caught.value)
        )


def test_tables_that_are_missing(gum: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.net"
    ps.write(CLINIC, path)
    path.write_text(re.sub(r"data\s*=\s*\(\s*0\.7 +0\.3\s*\);", "", path.read_text()))
    with pytest.raises(InputError, match=r"m.net: "):
        ps.read(path)
    ps.write(CLINIC, path)
    text = path.read_text()
    path.write_text(text[: text.rindex("potential")])
    with pytest.raises(InputError, match=r"m.net: variable \w+ has no table of numbers"):
        ps.read(path)


def test_nodes_that_pyagrum_would_leave_out(gum: Any, tmp_path: Path) -> None:
    ps.write(CLINIC, tmp_path / "m.dsl")
    text = (tmp_path / "m.dsl").read_text()
    (tmp_path / "m.dsl").write_text(text.replace("TYPE = CPT", "TYPE = NOISY_MAX", 1))
    with pytest.raises(InputError, match=r"m.dsl: line \d+: a node of type NOISY_MAX is not read, only CPT"):
        ps.read(tmp_path / "m.dsl")


def test_what_a_network_says_is_checked(gum: Any, tmp_path: Path) -> None:
    network = ps.to_pyagrum(CLINIC)
    network.cpt("xray")[{"cancer": "yes"}] = [0.02, 0.9]
    (note,) = ps.from_pyagrum(network).notes
    assert note.startswith("the distribution of variable xray given cancer = yes sums to 0.92, not to 1")
    network.saveXDSL(str(tmp_path / "m.xdsl"))
    assert ps.read(tmp_path / "m.xdsl").notes == (f"{tmp_path / 'm.xdsl'}: {note}",)
    for value in (-0.5, float("nan"), float("inf")):
        network.cpt("xray")[{"cancer": "yes"}] = [0.5, value]
        with pytest.raises(InputError, match=rf"the table of cancer, xray has the entry {value}"):
            ps.from_pyagrum(network)


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
    with pytest.raises(InputError, match=r"none.net: cannot be read \(No such file"):
        ps.read(tmp_path / "none.net")
    (tmp_path / "cut.net.gz").write_bytes(gzip.compress(b"net x {}")[:-9])
    with pytest.raises(InputError, match="the compressed data are damaged"):
        ps.read(tmp_path / "cut.net.gz")


def test_without_pyagrum_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyagrum", None)
    monkeypatch.setitem(sys.modules, "pyAgrum", None)
    for call in (lambda: ps.read(tmp_path / "a.net"), lambda: ps.write(CLINIC, tmp_path / "a.net")):
        with pytest.raises(InputError, match="needs pyAgrum, which is not installed: pip install pyagrum"):
            call()


def test_single_precision_is_undone_only_where_all_is_single() -> None:
    def network(values: list[float]) -> Any:
        variable = SimpleNamespace(name=lambda: "a", domainSize=lambda: 2, labels=lambda: ("x", "y"))
        tensor = SimpleNamespace(names=("a",), toarray=lambda: np.array(values))
        tensor.reorganize = lambda _: tensor
        return SimpleNamespace(nodes=lambda: [0], variable=lambda _: variable, cpt=lambda _: tensor)

    single = [float(np.float32(0.1)), float(np.float32(0.9))]
    assert np.exp(ps.from_pyagrum(network(single)).log_values).sum() == pytest.approx(1.0, abs=1e-15)
    mixed = [float(np.float32(0.1)), 0.3]
    np.testing.assert_allclose(np.exp(ps.from_pyagrum(network(mixed)).log_values), mixed, rtol=1e-15)
