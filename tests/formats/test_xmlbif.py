"""XMLBIF files: what the format has, nothing of XML that it has not, and errors that say where and what."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from powersum.formats import read, write
from powersum.model.model import Model
from tests.formats.helpers import assert_same, refusal, saved

DTD = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*> <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )> <!ELEMENT NAME (#PCDATA)>
  <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature"> <!ELEMENT TABLE (#PCDATA)>
]>
"""
STATES = "<OUTCOME>0</OUTCOME><OUTCOME>1</OUTCOME><OUTCOME>2</OUTCOME>"
VARIABLES = f"""<VARIABLE TYPE="nature"><NAME> dog &amp; cat </NAME><OUTCOME>&lt;5</OUTCOME><OUTCOME>a  b</OUTCOME>
</VARIABLE><VARIABLE><NAME>Größe</NAME><PROPERTY>x = 1</PROPERTY>{STATES}</VARIABLE>
"""
FIRST = "<DEFINITION><FOR>dog &amp; cat</FOR><TABLE>0.25 0.75</TABLE></DEFINITION>\n"
SECOND = """<DEFINITION><FOR>Größe</FOR><GIVEN>dog &amp; cat</GIVEN>
<TABLE> <!-- 0 1
2 --> .1 2e-1 0.7 <![CDATA[ 0.3 ]]>
0.3 <!-- --> 0.4 </TABLE></DEFINITION>
"""


def whole(*parts: str, head: str = "") -> str:
    return f'{head}<BIF VERSION="0.3"><NETWORK><NAME>n</NAME>\n{"".join(parts)}</NETWORK></BIF>'


@pytest.mark.parametrize("head", ["", DTD, '<!DOCTYPE BIF SYSTEM "http://nowhere.invalid/xmlbif.dtd">'])
@pytest.mark.parametrize("parts", [(VARIABLES, FIRST, SECOND), (SECOND, FIRST, VARIABLES)])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_what_the_format_has(tmp_path: Path, head: str, parts: tuple[str, ...], encoding: str) -> None:
    text = whole(*parts, head=head).replace('encoding="UTF-8"', "")
    model = read(saved(tmp_path, text.encode(encoding), "m.xmlbif"))
    assert model.names == ("dog & cat", "Größe")
    assert model.states == (("<5", "a b"), ("0", "1", "2"))
    assert model.directed
    assert model.notes == ()
    np.testing.assert_allclose(np.exp(model.factor(1).log_table), [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]], rtol=1e-15)


def test_tiny_numbers_are_no_zeros(tmp_path: Path) -> None:
    text = whole(VARIABLES, FIRST.replace("0.25", "1e-4000").replace("0.75", "1"), SECOND)
    assert read(saved(tmp_path, text, "m.xmlbif")).log_values[0] == pytest.approx(-4000 * math.log(10), rel=1e-15)


BILLION = '<!DOCTYPE BIF [<!ENTITY a "1 1 1 1"> <!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no element found"),
        ("rubbish", "line 1: syntax error"),
        ("<BIF><NETWORK></BIF>", "line 1: mismatched tag"),
        ("<html></html>", "line 1: expected the element BIF, found html"),
        ("<BIF></BIF>", "holds no variables"),
        (whole(VARIABLES, FIRST), "line 3: variable Größe has no distribution"),
        (whole(FIRST), "line 2: variable dog & cat is not declared"),
        (whole(VARIABLES, FIRST, FIRST, SECOND), "line 5: variable dog & cat has two distributions"),
        (whole(VARIABLES, FIRST.replace("0.75", "1e999")), "line 4: variable dog & cat: 1e999 is not a finite number"),
        (whole(VARIABLES, FIRST, SECOND.replace("0.4", "-0.4")), "line 8: variable Größe: -0.4 is negative"),
        (whole(VARIABLES, FIRST, SECOND.replace("0.4", "٤")), "line 8: variable Größe: ٤ is not a finite number"),
        (whole(VARIABLES, FIRST, SECOND.replace("0.4", "0.5a")), "line 8: variable Größe: 0.5a is not a finite number"),
        (whole(VARIABLES, FIRST, SECOND.replace("0.4", "")), "line 6: variable Größe: 5 numbers where 6 are needed"),
        (whole(VARIABLES, FIRST.replace("<TABLE>0.25 0.75</TABLE>", "")), "dog & cat has no table"),
        (whole(VARIABLES, FIRST.replace("<FOR>", "<FOR>Größe</FOR><FOR>")), "is for 2 variables, not for one"),
        (whole(VARIABLES.replace("<NAME>Größe</NAME>", "")), "line 3: a variable has 0 names"),
        (whole(VARIABLES.replace('"nature"', '"decision"')), "line 2: an influence diagram has decisions"),
        (whole(VARIABLES, FIRST.replace("0.25", "&b;"), head=BILLION), "line 1: entities such as 'a' are not read"),
        (whole(FIRST.replace("0.25", "&b;")), "line 2: undefined entity"),
        (
            whole(FIRST.replace("0.25", "&b;"), head='<!DOCTYPE BIF SYSTEM "xmlbif.dtd">'),
            "line 2: entities such as 'b' are not read",
        ),
        (
            whole(head='<!DOCTYPE BIF [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
            "line 1: entities such as 'x' are not read",
        ),
        ("<BIF>" * 100, "line 1: elements are nested too deeply"),
        ("<?xml version='1.0' encoding='klingon'?><BIF/>", "unknown encoding"),
    ],
)
def test_refusals(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(read, saved(tmp_path, text, "m.xmlbif"))


def test_more_parents_than_memory(tmp_path: Path) -> None:
    names = [f"v{k}" for k in range(70)]
    variables = [f"<VARIABLE><NAME>{n}</NAME><OUTCOME>0</OUTCOME><OUTCOME>1</OUTCOME></VARIABLE>" for n in names]
    given = "".join(f"<GIVEN>{name}</GIVEN>" for name in names[1:])
    text = whole(*variables, f"<DEFINITION><FOR>v0</FOR>{given}<TABLE>1</TABLE></DEFINITION>")
    assert "entries are too much for one model" in refusal(read, saved(tmp_path, text, "m.xmlbif"))


def test_whole_tables_in_the_other_order(tmp_path: Path) -> None:
    """JavaBayes lets the parents run fastest: only then do such tables sum to one, and a note says so."""
    text = whole(VARIABLES, FIRST, SECOND.partition("<TABLE>")[0] + "<TABLE>.1 .3 .2 .3 .7 .4</TABLE></DEFINITION>")
    model = read(saved(tmp_path, text, "m.xmlbif"))
    np.testing.assert_allclose(np.exp(model.factor(1).log_table), [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]], rtol=1e-15)
    assert "the tables sum to 1 only if their own variable runs slowest, and are read so" in model.notes[0]


def test_written_tables_are_read_in_their_own_order(tmp_path: Path) -> None:
    """Whatever they sum to: such a table would sum to one in the other order."""
    model = Model.from_factors(
        [2, 2],
        [((0,), [0.5, 0.5]), ((0, 1), [[0.1, 0.3], [0.9, 0.7]])],
        directed=True,
        names=["a", "b"],
        states=[["x", "y"], ["u", "v"]],
    )
    for suffix in (".bif", ".xmlbif"):
        write(model, tmp_path / f"m{suffix}")
        again = read(tmp_path / f"m{suffix}")
        assert_same(again, model)
        assert "the distribution of variable b given a = x sums to 0.4" in again.notes[0]
