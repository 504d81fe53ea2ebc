"""The tables of docs/results.md: ``python -m benchmarks.results measure [SECTION ...]``, then ``… page``.

``measure`` asks the questions of each section, one after the other in one process with one thread, and keeps what it
found in ``dev/measured.json`` with date, version and machine. ``page`` writes the tables into the page.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import powersum as ps
from benchmarks.instances import DATA, model_file
from benchmarks.solve import Row, load, rows
from powersum.formats import read_evidence, read_query

ROOT = Path(__file__).resolve().parents[1]
MEASURED, PAGE = ROOT / "dev" / "measured.json", ROOT / "docs" / "results.md"

SECONDS = 20.0

MARGINAL_MAP = (
    "50-12-5.Q0.5.I0", "75-22-5.Q0.5.I2", "90-42-5.Q0.5.I4", "pedigree1.Q0.5.I3", "pedigree7.Q0.5.I2",
    "pedigree9.Q0.5.I3", "pedigree13.Q0.5.I1", "pedigree18.Q0.5.I1", "pedigree19.Q0.5.I4", "pedigree30.Q0.5.I2",
    "Grids_18", "Grids_22", "Grids_25", "ImageAlignment_11", "wcsp_13", "wcsp_15", "wcsp_16",
)  # fmt: skip
MAP = ("pedigree1", "pedigree7", "pedigree9", "pedigree13", "pedigree19", "pedigree20", "pedigree38", "pedigree40")
LOG_Z = ("2bitcomp_5", "pedigree1", "pedigree7", "pedigree9", "pedigree13", "pedigree19")
MARGINALS = (
    "CSP_11", "Grids_16", "ObjectDetection_19", "Promedus_14", "Promedus_19", "linkage_15", "linkage_22",
    "relational_4",
)  # fmt: skip
TORI = {"grid40x40.f10.wrap": 13065.8, "grid40x40.f15.wrap": 19564.4, "grid80x80.f5.wrap": 25590.7}
PLANS = ("bw_p24_10", "bw_p24_16", "bw_p34_15", "bw_p44_15", "comm_p01_5", "comm_p01_16")
FORMULAS = ("SC-5", "SC-12", "SC-19", "Tiger-10", "c432-er", "c499-er")
DIAGRAMS = {
    "pomdp4-4_4_2_2_5_limid": 5.7444, "pomdp6-12_6_2_6_3_limid": 14.0733, "mdp3-10_3_5_10_limid": 31.0850,
    "rand-c50d10o1-01_limid": 863.1092, "ID_from_BN_0_w28d6_limid": 43.8614, "ID_from_BN_78_w18d3_limid": 22.7976,
    "sysadmin_inst_pomdp_1_s=10_t=3": 34.5274, "sysadmin_inst_pomdp_1_s=10_t=6": 74.4327,
    "sysadmin_inst_pomdp_4_s=20_t=3": 72.9534,
}  # fmt: skip
"""Published upper bounds on the expected utility."""

Table = tuple[list[str], list[list[str]]]


def of_reference(task: str, names: tuple[str, ...]) -> list[Row]:
    """Rows of the reference with these names."""
    known = {row.instance: row for row in rows() if row.task == task}
    return [known[name] for name in names if name in known]


def solved(names: tuple[str, ...], task: str) -> list[dict[str, Any]]:
    """Both bounds of each row, and the reference."""
    found = []
    for row in of_reference(task, names):
        model, maximize, evidence = load(row)
        result = timed(partial(ps.solve, model, maximize, evidence=evidence, time_limit=SECONDS))
        found.append(told(row.instance, result, row.ln, row.kind))
    return found


def timed(call: Callable[[], ps.Result]) -> ps.Result:
    """A result, with a line for who waits."""
    begun = time.monotonic()
    result = call()
    print(
        f"  {result.log_lower:.6g} … {result.log_upper:.6g} {result.status} {time.monotonic() - begun:.1f} s",
        flush=True,
    )
    return result


def told(name: str, result: ps.Result, reference: float, kind: str) -> dict[str, Any]:
    """A row as it is kept."""
    return {
        "name": name,
        "log_lower": result.log_lower,
        "log_upper": result.log_upper,
        "status": result.status.value,
        "seconds": result.seconds,
        "reference": reference,
        "kind": kind,
    }


def tori() -> list[dict[str, Any]]:
    """MAP of spin glasses on tori."""
    found = []
    for name, best in TORI.items():
        model = ps.read(model_file("uai2012-map", name))
        result = timed(partial(ps.solve, model, "all", time_limit=SECONDS))
        found.append(told(name, result, best, "best-known"))
    return found


def plans() -> list[dict[str, Any]]:
    """Conformant planning, and formulas with sums between maxima."""
    found = []
    for name in PLANS:
        model = ps.read(model_file("planning", name))
        maximize = [int(v) for v in read_query(DATA / "planning" / f"{name}.map", model)]
        result = timed(partial(ps.solve, model, maximize, time_limit=SECONDS))
        found.append(told(name, result, math.nan, "open"))
    for name in FORMULAS:
        formula = ps.read_formula(DATA / "ssat" / f"{name}.sdimacs")
        result = timed(partial(ps.solve, formula.model, weights=formula.query, time_limit=SECONDS))
        found.append(told(name, result, math.nan, "open"))
    return found


def marginals() -> list[dict[str, Any]]:
    """Widths of all intervals."""
    found = []
    for name in MARGINALS:
        model = ps.read(model_file("uai2014-mar", name))
        evidence = read_evidence(DATA / "uai2014-mar" / f"{name}.uai.evid", model)
        begun = time.monotonic()
        answer = ps.marginals(model, evidence=evidence, time_limit=SECONDS)
        seconds = time.monotonic() - begun
        ranges = [answer.at(v).at(k) for v, size in enumerate(model.cardinalities) for k in range(size)]
        widths = [interval.upper - interval.lower for interval in ranges]
        row = {"name": name, "mean": sum(widths) / len(widths), "widest": max(widths), "seconds": seconds}
        found.append(row)
        print(" ", row, flush=True)
    return found


def decisions() -> list[dict[str, Any]]:
    """Both bounds on the expected utility."""
    found = []
    for name, published in DIAGRAMS.items():
        diagram = ps.read_diagram(DATA / "diagrams" / f"{name}.uai")
        begun = time.monotonic()
        answer = ps.decide(diagram, time_limit=SECONDS)
        row = {
            "name": name,
            "utility_lower": answer.utility_lower,
            "utility_upper": answer.utility_upper,
            "published": published,
            "seconds": time.monotonic() - begun,
        }
        found.append(row)
        print(" ", row, flush=True)
    return found


MEASURES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "marginal-map": lambda: solved(MARGINAL_MAP, "MMAP"),
    "map": lambda: solved(MAP, "MAP"),
    "tori": tori,
    "log-z": lambda: solved(LOG_Z, "PR"),
    "marginals": marginals,
    "plans": plans,
    "decisions": decisions,
}


def number(value: float | str) -> str:
    """A value as the page shows it."""
    value = float(value)
    return "–" if math.isnan(value) else f"{value:.6g}".replace("-", "−").replace("inf", "∞")


def of_solved(found: list[dict[str, Any]]) -> Table:
    """Name, reference, both bounds, gap or time to the proof."""
    lines = []
    for row in found:
        lower, upper = float(row["log_lower"]), float(row["log_upper"])
        end = f"proven, {row['seconds']:.1f} s" if row["status"] == "optimal" else f"gap {upper - lower:.3g}"
        lines.append([row["name"], number(row["reference"]), number(lower), number(upper), end])
    return ["question", "reference", "value", "upper bound", ""], lines


def of_marginals(found: list[dict[str, Any]]) -> Table:
    """Widths and seconds."""
    lines = [[r["name"], f"{r['mean']:.2g}", f"{r['widest']:.2g}", f"{r['seconds']:.1f} s"] for r in found]
    return ["model", "mean width", "widest interval", "time"], lines


def of_decisions(found: list[dict[str, Any]]) -> Table:
    """Both sides beside the published bound."""
    keys = ("utility_lower", "utility_upper", "published")
    lines = [[r["name"], *(number(r[key]) for key in keys), f"{r['seconds']:.1f} s"] for r in found]
    return ["diagram", "policy found", "upper bound", "published upper bound", "time"], lines


def table_of(section: str, found: list[dict[str, Any]]) -> str:
    """A table in Markdown."""
    form = {"marginals": of_marginals, "decisions": of_decisions}.get(section, of_solved)
    head, lines = form(found)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *lines])


def page(text: str, measured: dict[str, Any]) -> str:
    """The page with its tables made anew."""
    for section, kept in measured.items():
        begin, end = f"<!-- {section} -->", f"<!-- end of {section} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        if not rest:
            continue
        about = f"*{kept['date']}, powersum {kept['version']}, {kept['machine']}; {kept['note']}*"
        text = f"{before}{begin}\n{table_of(section, kept['rows'])}\n\n{about}\n{end}{after}"
    return text


def measure(sections: list[str], note: str) -> None:
    """Measure sections, and keep each as soon as it is there."""
    kept: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    for section in sections or MEASURES:
        print(section, flush=True)
        kept[section] = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "version": ps.__version__,
            "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
            "note": note,
            "rows": MEASURES[section](),
        }
        MEASURED.write_text(json.dumps(kept, indent=1, default=float) + "\n", encoding="utf-8")


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "page"))
    parser.add_argument("sections", nargs="*", help=", ".join(MEASURES))
    parser.add_argument("--note", default="one thread, warm, idle machine", help="how it was measured")
    given = parser.parse_args()
    if given.what == "measure":
        measure(given.sections, given.note)
    else:
        measured = json.loads(MEASURED.read_text(encoding="utf-8"))
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), measured), encoding="utf-8")


if __name__ == "__main__":
    main()
