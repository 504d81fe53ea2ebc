"""The pictures of each figure from stored measurements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from powersum.app.report.compare import COLOURS, new_figure, plot_traces, style_axes, styles_of
from powersum.app.report.curves import INK, PALE
from powersum.app.reproduce.grid3 import EDGES, spanning_trees
from powersum.app.reproduce.store import trace_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = COLOURS["gdd"][0]
LEFT_OUT = ("wmb:0.03", "wmb:0.04", "wmb:0.06", "mas")
"""Curves that would crowd the pictures; the tables have them."""


def draw_grid(record: dict[str, Any]) -> Figure:
    """Figure 1: the grid and its three relaxations, each with its parameters and its bound."""
    figure = new_figure(10.5, 3.5)
    axes = figure.subplots(1, 4)
    titles = [f"(a) 3×3 grid\nexact {record['exact']:.4f}"]
    for letter, row in zip("bcd", record["rows"], strict=True):
        titles.append(
            f"({letter}) {row['name']}\n{row['shifts']} shifts, {row['weights']} weights\n"
            f"log Z ≤ {row['log_upper']:.4f}"
        )
    spots = {v: (float(v % 3), -float(v // 3)) for v in range(9)}
    _links(axes[0], [(spots[a], spots[b]) for a, b in EDGES], 7)
    _links(axes[1], _covering_links(spots), 6)
    _links(axes[2], [_shortened(spots[a], spots[b]) for a, b in EDGES], 5)
    for number, tree in enumerate(spanning_trees()):
        at = (number % 4) * 3.2, -(number // 4) * 3.2
        ends = [tuple((spots[v][0] + at[0], spots[v][1] + at[1]) for v in EDGES[e]) for e in tree]
        _links(axes[3], ends, 1.4, 0.7)
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, fontsize=9, color=INK)
        ax.set_aspect("equal")
        ax.axis("off")
    # Equal squares, so that the titles stand on one line.
    for ax in axes[:3]:
        ax.set_xlim(-0.45, 2.35)
        ax.set_ylim(-2.4, 0.4)
    axes[3].set_xlim(-0.8, 12.4)
    axes[3].set_ylim(-12.4, 0.8)
    return figure


def _links(ax: Axes, ends: list[Any], size: float, width: float = 1.3) -> None:
    for one, two in ends:
        ax.plot([one[0], two[0]], [one[1], two[1]], "o-", color=LINE, markersize=size, linewidth=width)


def _covering_links(spots: dict[int, tuple[float, float]]) -> list[Any]:
    """Where a variable is split, its second copy stands a little aside, at the end of the edge that goes down."""
    links = []
    for a, b in EDGES:
        one = spots[a]
        split = sum(first == a for first, _ in EDGES) == 2
        links.append(((one[0] - 0.22, one[1] - 0.22) if split and b == a + 3 else one, spots[b]))
    return links


def _shortened(one: tuple[float, float], two: tuple[float, float]) -> Any:
    return tuple((p[0] + 0.22 * (q[0] - p[0]), p[1] + 0.22 * (q[1] - p[1])) for p, q in ((one, two), (two, one)))


def draw_curves(records: list[dict[str, Any]]) -> Figure:
    """Figures 2, 3 and C: a panel for each instance, each with a legend of its own."""
    columns = min(3, len(records))
    rows = math.ceil(len(records) / columns)
    figure = new_figure(4.4 * columns, 4.6 * rows)
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.flat[len(records) :]:
        ax.axis("off")
    for ax, record in zip(axes.flat, records, strict=False):
        traces = [trace_of(t) for t in record["traces"] if t["label"] not in LEFT_OUT]
        plot_traces(ax, traces)
        ax.set_title(record["title"], fontsize=9, color=INK)
        ax.legend(fontsize=6.5, frameon=False, loc="upper right", ncols=2, handlelength=1.4, columnspacing=0.8)
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.38 * (high - low))
    for ax in axes[:, 0]:
        ax.set_ylabel("natural log of the value", fontsize=8, color=INK)
    styles = styles_of(*axes.flat)
    if styles:
        figure.legend(styles.values(), styles, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def draw_ising(records: list[dict[str, Any]], shown: int) -> Figure:
    """Supplement A: one grid, sum and marginal MAP, with the exact values."""
    figure = new_figure(9.0, 3.9)
    record = records[shown]
    for ax, kind, title in zip(
        figure.subplots(1, 2), ("sum", "mixed"), ("(a) sum-inference", "(b) marginal MAP"), strict=True
    ):
        traces = [trace_of(t) for t in record[kind]]
        plot_traces(ax, traces, exact=float(record[f"exact_{kind}"]))
        lowest = min(p.value for t in traces for p in t.points)
        bottom, top = ax.get_ylim()
        ax.set_ylim(min(bottom, lowest - 0.05 * (top - lowest)), top)
        ax.set_title(f"{title}, {record['title']}", fontsize=9, color=INK)
        ax.legend(fontsize=7.5, frameon=False)
    return figure


def draw_shares(records: list[dict[str, Any]]) -> Figure:
    """Supplement B: best bounds against the share of max variables, as distance from GDD's, one panel a network."""
    titles = list(dict.fromkeys(record["title"] for record in records))
    figure = new_figure(4.4 * len(titles), 3.9)
    axes = figure.subplots(1, len(titles), squeeze=False)[0]
    for ax, title in zip(axes, titles, strict=True):
        rows = [record for record in records if record["title"] == title]
        seen: dict[str, int] = {}
        for label in rows[0]["best"]:
            family = COLOURS[label.partition(":")[0]]
            colour = family[seen.get(label.partition(":")[0], 0)]
            seen[label.partition(":")[0]] = seen.get(label.partition(":")[0], 0) + 1
            x = [100 * row["share"] for row in rows]
            y = [float(row["best"][label]) - float(row["best"]["gdd"]) for row in rows]
            ax.plot(x, y, "o-", color=colour, markersize=3, linewidth=1.4, label=label)
        ax.set_title(title, fontsize=9, color=INK)
        ax.set_xlabel("% of the variables maximised", color=INK)
        style_axes(ax)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False)
    axes[0].set_ylabel("best bound less that of gdd (nats)", color=INK)
    return figure


def draw_beyond(records: list[dict[str, Any]]) -> Figure:
    """How far each method's long run stops above the lowest bound that any of them found with the same cliques."""
    figure = new_figure(8.0, 0.42 * len(records) + 1.3)
    ax = figure.subplots()
    labels = [t["label"] for t in records[0]["long"]]
    for label in labels:
        family = COLOURS[label.partition(":")[0]]
        colour = family[1] if label == "gdd:paper" else family[0]
        x = [distances(record)[label] for record in records]
        ax.plot(x, range(len(records)), "o", color=colour, markersize=6, label=label)
    ax.set_yticks(range(len(records)), [record["title"] for record in records])
    ax.invert_yaxis()
    ax.set_xlabel("nats above the lowest bound found with the same cliques", color=INK)
    style_axes(ax)
    ax.grid(axis="x", color=PALE, linewidth=0.6)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right", ncols=4, frameon=False, fontsize=8)
    return figure


def distances(record: dict[str, Any]) -> dict[str, float]:
    """Of each method's long run, how far it ends above the best of all."""
    ends = {t["label"]: trace_of(t).best for t in record["long"]}
    best = min(ends.values())
    return {label: end - best for label, end in ends.items()}
