"""What is no model, refused in words that say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import powersum as ps

REFUSAL = "an influence diagram has decisions and utilities: make it a Bayesian network first"
DIAGRAMS = {
    "m.uai": "ID\n2\n2 2\n",
    "m.bifxml": """<BIF VERSION="0.3"><NETWORK><NAME>x</NAME>
<VARIABLE TYPE="decision"><NAME>umbrella</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
</NETWORK></BIF>""",
}
BY_PYAGRUM = {
    "m.net": """net { }
node rain { states = ("no" "yes"); }
decision umbrella { states = ("no" "yes"); }
potential (rain) { data = (0.25 0.75); }
""",
    "m.dsl": """net x {
node rain { TYPE = CPT; HEADER = { ID = rain; }; };
node joy { TYPE = UTILITY; HEADER = { ID = joy; }; };
};
""",
    "m.xdsl": """<?xml version="1.0"?>
<smile version="1.0" id="x"><nodes>
<cpt id="rain"><state id="no"/><state id="yes"/><probabilities>0.25 0.75</probabilities></cpt>
<utility id="joy"><parents>rain</parents><utilities>1 2</utilities></utility>
</nodes></smile>""",
}


@pytest.mark.parametrize("name", [*DIAGRAMS, *BY_PYAGRUM])
def test_an_influence_diagram_in_a_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text({**DIAGRAMS, **BY_PYAGRUM}[name])
    with pytest.raises(ps.InputError) as refused:
        ps.read(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert str(refused.value).endswith(REFUSAL)


def test_words_that_only_look_like_decisions(tmp_path: Path) -> None:
    path = tmp_path / "m.net"
    path.write_text("""net { }
% decision rain {
node decision { states = ("utility" "no"); }
potential (decision) { data = (0.25 0.75); }
""")
    assert ps.read(path).names == ("decision",)


def test_a_folder_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ps.InputError, match=r": is a directory; name a file in it$"):
        ps.read(tmp_path)
    with pytest.raises(ps.InputError, match=r"nothing: there is no such file$"):
        ps.read(tmp_path / "nothing")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ps.InputError, match=r"notes.txt: unknown kind of model: read are "):
        ps.read(tmp_path / "notes.txt")


def test_a_complaint_of_pyagrum_about_a_very_long_name_stays_short(tmp_path: Path) -> None:
    pytest.importorskip("pyagrum")
    path = tmp_path / "m.xdsl"
    path.write_text(f"""<?xml version="1.0"?>
<smile version="1.0" id="x"><nodes>
<cpt id="rain"><state id="no"/><state id="yes"/><parents>{"a" + "9" * 5000} b</parents>
<probabilities>0.25 0.75</probabilities></cpt>
</nodes></smile>""")
    with pytest.raises(ps.InputError) as refused:
        ps.read(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert len(str(refused.value)) < len(str(path)) + 400
