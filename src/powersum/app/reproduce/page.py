"""One page that shows every picture, every claim and where the numbers are."""

from __future__ import annotations

import re
from html import escape

from powersum.app.reproduce.claims import Claim

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
img { width: 100%; height: auto; background: #fff; border-radius: 6px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid #8884; }
td:last-child { white-space: nowrap; }
.yes { color: #1a7f37; } .no { color: #c0392b; } .other { color: #777; }
"""

CAPTIONS = {
    "1": "Figure 1: a 3×3 grid and three relaxations of it",
    "2": "Figure 2: diagnostic networks, half of the variables maximised",
    "3": "Figure 3: pedigrees, half of the variables maximised",
    "A": "Supplement A: an Ising grid, bounds and TRW against the exact value",
    "B": "Supplement B: best bounds against the share of maximised variables",
    "C": "Supplement C: six more pedigrees",
    "beyond": "Beyond the paper: how far long runs stop from the lowest bound",
}
LEGEND = (
    "Solid: the value of each sweep. Dotted: the best so far, where a value rose. Dashed, or a short bar at the end: "
    "Q(x_B) of the latest decoding, evaluated exactly; impossible ones are left out."
)


def file_stem(figure: str) -> str:
    """Name of a figure's files."""
    return {"A": "supplement-a", "B": "supplement-b", "C": "supplement-c", "beyond": "beyond"}.get(
        figure, f"figure-{figure}"
    )


def page(figures: list[str], found: list[Claim], data: str) -> str:
    """The page as HTML; pictures lie beside it."""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>The paper's figures, reproduced</title><style>{STYLE}</style></head><body>",
        "<h1>Decomposition Bounds for Marginal MAP: the figures, reproduced</h1>",
        f"<p>Instances: {escape(data)}. Values are natural logarithms; smaller bounds are tighter.</p>",
    ]
    for figure in figures:
        stem = file_stem(figure)
        parts.append(f"<h2 id='{stem}'>{escape(CAPTIONS[figure])}</h2>")
        parts.append(f"<img src='{stem}.svg' alt='{escape(CAPTIONS[figure])}'>")
        note = f"{LEGEND} " if figure in ("2", "3", "C") else ""
        links = " · ".join(f"<a href='{stem}.{ending}'>{ending.upper()}</a>" for ending in ("png", "svg", "csv"))
        parts.append(f"<p>{note}{links}</p>")
    parts.append("<h2 id='claims'>Claims</h2><div class='scroll'><table><thead><tr>")
    parts.append("<th>figure</th><th>the paper says</th><th>measured here</th><th>verdict</th></tr></thead><tbody>")
    for claim in found:
        kind = {True: "yes", False: "no", None: "other"}[claim.holds]
        cells = "".join(f"<td>{_html(text)}</td>" for text in (claim.figure, claim.statement, claim.measured))
        parts.append(f"<tr>{cells}<td class='{kind}'>{claim.verdict}</td></tr>")
    parts.append("</tbody></table></div></body></html>")
    return "\n".join(parts) + "\n"


def _html(text: str) -> str:
    """Escaped text; what stands in backquotes is code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
