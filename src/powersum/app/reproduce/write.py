"""Pictures, tables, claims and the page, from stored measurements."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from powersum.api.comparison import Comparison
from powersum.app.report.compare import save_figure
from powersum.app.reproduce.claims import Records, claims, markdown
from powersum.app.reproduce.draw import distances, draw_beyond, draw_curves, draw_grid, draw_ising, draw_shares
from powersum.app.reproduce.page import file_stem, page
from powersum.app.reproduce.plan import FigureTask, Settings
from powersum.app.reproduce.store import FigureStore, trace_of
from powersum.core.files import saving

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_all(out: Path, done: Sequence[FigureTask], store: FigureStore, settings: Settings) -> None:
    """Write everything that the stored records of these tasks make."""
    records: Records = {}
    for task in done:
        record = store.load(task.figure, task.key)
        if record is not None:
            records.setdefault(task.figure, []).append(record)
    long = [record for figure in ("2", "3", "C") for record in records.get(figure, [])]
    if long:
        records["beyond"] = long
    for figure, measured in records.items():
        stem = out / file_stem(figure)
        drawn = _drawn(figure, measured)
        for ending in ("png", "svg"):
            save_figure(drawn, stem.with_suffix(f".{ending}"))
        _write(stem.with_suffix(".csv"), _table(figure, measured))
    data = "real ones, and generated diagnosis networks" if settings.data is not None else "generated"
    found = claims(records)
    _write(out / "claims.md", markdown(found, data))
    _write(out / "index.html", page(list(records), found, data))


def _write(path: Path, text: str) -> None:
    with saving(path) as handle:
        handle.write(text.encode())


def _drawn(figure: str, records: list[dict[str, Any]]) -> Figure:
    if figure == "1":
        return draw_grid(records[0])
    if figure == "A":
        return draw_ising(records, _telling_grid(records))
    if figure == "B":
        return draw_shares(records)
    return draw_beyond(records) if figure == "beyond" else draw_curves(records)


def _telling_grid(records: list[dict[str, Any]]) -> int:
    """The first grid on which TRW falls below the truth in the sum; the first of all where there is none."""
    for number, record in enumerate(records):
        trw = trace_of(record["sum"][0])
        if min(p.value for p in trw.points) < float(record["exact_sum"]) - 1e-6:
            return number
    return 0


def _table(figure: str, records: list[dict[str, Any]]) -> str:
    """The numbers behind a picture."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if figure == "1":
        writer.writerow(["relaxation", "shifts", "weights", "log_upper"])
        writer.writerows([r["name"], r["shifts"], r["weights"], r["log_upper"]] for r in records[0]["rows"])
        writer.writerow(["exact", "", "", records[0]["exact"]])
    elif figure == "B":
        labels = list(records[0]["best"])
        writer.writerow(["network", "share", *labels])
        writer.writerows([r["title"], r["share"], *(r["best"][label] for label in labels)] for r in records)
    elif figure == "beyond":
        labels = list(distances(records[0]))
        writer.writerow(["instance", *labels])
        writer.writerows([r["title"], *(distances(r)[label] for label in labels)] for r in records)
    else:
        kinds = ("sum", "mixed") if figure == "A" else ("traces",)
        blocks = [
            (f"{r['title']}, {kind}" if figure == "A" else r["title"], r[kind]) for r in records for kind in kinds
        ]
        for number, (title, traces) in enumerate(blocks):
            lines = Comparison(tuple(trace_of(t) for t in traces), ()).to_csv().splitlines()
            if number == 0:
                text.write(f"instance,{lines[0]}\n")
            for line in lines[1:]:
                quoted = '"' + title.replace('"', '""') + '"'
                text.write(f"{quoted},{line}\n")
    return text.getvalue()
