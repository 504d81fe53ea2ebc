"""Formulas between dollar signs become MathML when the site is built: browsers typeset it without scripts."""

from __future__ import annotations

import re
from typing import Any

FORMULA = re.compile(r"\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$\n]+?)\$", re.DOTALL)
PLACE = re.compile(r"⟦(\d+)⟧")


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Called by MkDocs with the text of each page; only pages that say ``math: true`` have formulas.

    They are put aside: MathML at the beginning of a line would begin a block.
    """
    if not page.meta.get("math"):
        return markdown
    formulas: list[str] = []
    page.meta["formulas"] = formulas

    def aside(found: re.Match[str]) -> str:
        formulas.append(mathml(found["block"] or found["inline"], block=found["block"] is not None))
        return f"⟦{len(formulas) - 1}⟧"

    return FORMULA.sub(aside, markdown)


def on_page_content(html: str, page: Any, **_: object) -> str:
    """Called by MkDocs with each page as HTML."""
    formulas = page.meta.get("formulas", [])
    return PLACE.sub(lambda found: formulas[int(found[1])], html) if formulas else html


def mathml(formula: str, *, block: bool) -> str:
    """A formula of LaTeX as MathML."""
    from latex2mathml.converter import convert

    return str(convert(" ".join(formula.split()), display="block" if block else "inline"))
