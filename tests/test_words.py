"""The linter of the manual's language sees what it is for, and leaves good pages alone."""

from __future__ import annotations

import pytest
from tools.words import ROOT, blocks, of_docstring, of_page, sentences

LONG = " ".join(["word"] * 26) + "."


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("Whoever has time works.", "'Whoever'"),
        ("The run goes on\nuntil then.", "'goes on'"),
        (LONG, "a sentence of 26 words"),
        ("* " + LONG, "a sentence of 26 words"),
        ("One. Two. Three. Four. Five. Six.", "a paragraph of 6 sentences"),
        ("x" * 121, "a line of 121 characters"),
        ("| a | b |\n|---|---|\n| c | " + LONG + " |", "a table cell of 26 words"),
    ],
)
def test_a_fault_is_seen(page: str, words: str) -> None:
    assert any(words in str(fault) for fault in of_page(page, "page.md"))


@pytest.mark.parametrize(
    "page",
    [
        "A worker takes the next box. It bounds it.",
        "```\nwhoever goes on\n```",
        "Text:\n\n    whoever goes on\n",
        "---\nmath: true\n---\n\n# Title\n\nOne sentence with `code that goes on` and $whoever$.",
        "| a | b |\n|---|---|\n| short | cells |",
        "A list:\n\n* one item;\n* another item.\n",
    ],
)
def test_a_good_page_has_no_fault(page: str) -> None:
    assert list(of_page(page, "page.md")) == []


def test_a_fault_has_its_line() -> None:
    (fault,) = of_page("# Title\n\nFirst line\nwhoever comes\n", "page.md")
    assert (fault.place, fault.line) == ("page.md", 4)


def test_a_sentence_ends_before_a_name_in_small_letters() -> None:
    assert len(sentences("It ends here. powersum begins here. `code` begins, too.")) == 3


def test_every_line_of_prose_is_in_a_block() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    seen = {line for _, _, text in blocks(page) for line in text.split("\n")}
    assert "A model is a product of tables. A table has one axis for each of its variables." in " ".join(seen)
    assert not any(">>>" in line for line in seen)


def test_the_first_line_of_a_docstring_is_short() -> None:
    assert any("a first line of" in str(fault) for fault in of_docstring("x" * 91, "powersum.f"))
    assert list(of_docstring("Return the bound.\n\nMore words.", "powersum.f")) == []
