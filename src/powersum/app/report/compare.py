"""Pictures of a comparison: bounds of several methods against sweeps and against seconds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from powersum.app.report.curves import INK, PALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from powersum.api.comparison import Comparison, Trace

COLOURS = {
    "gdd": ("#1f5fa8", "#6fa8dc", "#12365f"),
    "tree": ("#222222", "#777777"),
    "wmb": ("#b8360b", "#f0a020", "#c2185b", "#7d2105", "#f4a6a0", "#8d7b00", "#e377c2"),
    "lbfgs": ("#2e8b57",),
    "trw": ("#8e44ad",),
    "mbe": ("#8a8a8a",),
    "reorder": ("#b39b6b",),
    "mas": ("#c3a2c9",),
}
"""A family of colours for each method; several settings of one method take its colours by turns."""

STYLES: dict[Literal["--", ":"], str] = {"--": "value of the decoded states", ":": "best bound so far"}
"""What lines that are not solid mean, whatever their colour."""

FAR_OFF = 2.0
"""Starts this many times further from the best bound than the middle one of all starts are left out of the view."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def colours_of(traces: Sequence[Trace]) -> dict[str, str]:
    """A colour for each label."""
    seen: dict[str, int] = {}
    colours = {}
    for trace in traces:
        family = COLOURS.get(trace.method, ("#444444",))
        colours[trace.label] = family[seen.get(trace.method, 0) % len(family)]
        seen[trace.method] = seen.get(trace.method, 0) + 1
    return colours


def plot_traces(ax: Axes, traces: Sequence[Trace], *, against: str = "sweep", exact: float | None = None) -> None:
    """Draw traces into axes.

    Solid lines are the values of each sweep, dotted ones the best so far where a value rose, dashed ones Q(x_B) of the
    latest decoding. Methods without sweeps are horizontal lines.
    """
    from matplotlib.ticker import MaxNLocator

    colours = colours_of(traces)
    end = max((getattr(p, against) for t in traces for p in t.points), default=1) or 1
    bottom, top = _view(traces, exact)
    for trace in traces:
        _draw(ax, trace, colours[trace.label], against, end, top)
    if exact is not None:
        ax.axhline(exact, color=INK, linewidth=0.9, linestyle=(0, (1, 1.5)), label=f"exact {_number(exact)}")
    ax.set_ylim(bottom, top)
    ax.set_xlim(0, end)
    if against == "sweep":
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    ax.set_xlabel("sweep" if against == "sweep" else "seconds", color=INK)
    style_axes(ax)


def style_axes(ax: Axes) -> None:
    """The quiet frame that all pictures share."""
    from matplotlib.ticker import ScalarFormatter

    ax.grid(axis="y", color=PALE, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(PALE)
    ax.tick_params(colors=INK, length=0, labelsize=8)
    # Axes with words or with a formatter of their own have no offset to take away.
    if isinstance(ax.yaxis.get_major_formatter(), ScalarFormatter):
        ax.ticklabel_format(axis="y", style="plain", useOffset=False)


def _draw(ax: Axes, trace: Trace, colour: str, against: str, end: float, top: float) -> None:
    x = [getattr(p, against) for p in trace.points]
    y = [p.value for p in trace.points]
    best = [p.log_upper for p in trace.points]
    label = f"{trace.label}  {_number(trace.best)}"
    if not trace.guaranteed:
        label += " (no bound)"
    elif trace.best > top:
        label += " (above the view)"
    heavy = trace.method in ("gdd", "tree")
    if len(x) == 1:
        ax.plot([0, end], [y[0], y[0]], color=colour, linewidth=1.3, label=label)
    else:
        ax.plot(x, y, color=colour, linewidth=2.0 if heavy else 1.3, label=label, zorder=3 if heavy else 2)
        if trace.guaranteed and max(b - a for a, b in zip(best, y, strict=True)) > 1e-9:
            ax.plot(x, best, color=colour, linewidth=1.0, linestyle=":", zorder=2)
    decoded = [math.nan if p.log_decoded is None or p.log_decoded == -math.inf else p.log_decoded for p in trace.points]
    if any(not math.isnan(d) for d in decoded):
        if sum(not math.isnan(d) for d in decoded) == 1:
            place = next(i for i, d in enumerate(decoded) if not math.isnan(d))
            ax.plot(x[place], decoded[place], "_", color=colour, markersize=14, markeredgewidth=2.0)
        else:
            ax.plot(x, decoded, color=colour, linewidth=1.0, linestyle="--", zorder=1)


def _view(traces: Sequence[Trace], exact: float | None) -> tuple[float, float]:
    """Limits that show where methods start and end, but not what is far off."""
    bounds = [p.value for t in traces for p in t.points if math.isfinite(p.value)]
    starts = [t.points[0].value for t in traces if math.isfinite(t.points[0].value)]
    if not bounds:
        return 0.0, 1.0
    best = min(bounds)
    top = min(max(starts), best + FAR_OFF * max(statistics.median(starts) - best, 0.0))
    height = max(top - best, 1e-3)
    below = [p.log_decoded for t in traces for p in t.points if p.log_decoded is not None]
    shown = [d for d in below if math.isfinite(d) and d > best - 0.5 * height]
    bottom = min([best, *shown, *([] if exact is None else [exact])])
    return bottom - 0.06 * (top - bottom + 1e-3), top + 0.06 * (top - bottom + 1e-3)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    return (f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}").replace("-", "−")


def comparison_figure(comparison: Comparison, title: str = "") -> Figure:
    """Two panels with a common legend: against sweeps and against seconds."""
    figure = new_figure(10.0, 4.4)
    left, right = figure.subplots(1, 2, sharey=True)
    plot_traces(left, comparison.traces, against="sweep")
    plot_traces(right, comparison.traces, against="seconds")
    left.set_ylabel("natural log of the value", color=INK)
    handles, labels = left.get_legend_handles_labels()
    styles = styles_of(left)
    figure.legend(
        [*handles, *styles.values()], [*labels, *styles], loc="outside right upper", frameon=False, fontsize=8
    )
    figure.suptitle(title, fontsize=10, color=INK)
    return figure


def styles_of(*axes: Axes) -> dict[str, Line2D]:
    """A line in grey for each style that is drawn in the axes, by its meaning."""
    from matplotlib.lines import Line2D

    drawn = {line.get_linestyle() for ax in axes for line in ax.lines}
    return {
        meaning: Line2D([], [], color=INK, linewidth=1.0, linestyle=style)
        for style, meaning in STYLES.items()
        if style in drawn
    }


def save_comparison(comparison: Comparison, path: str | Path, title: str = "") -> None:
    """Draw a comparison and write it, the format by the file's ending."""
    save_figure(comparison_figure(comparison, title), path)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure; the same figure gives the same file."""
    from matplotlib import rc_context

    from powersum.core.files import saving

    ending = Path(path).suffix.lstrip(".").lower()
    # Without a date and with fixed identifiers, a picture changes only when its content does.
    metadata: dict[str, Any] = {"Date": None} if ending == "svg" else {}
    with saving(path) as handle, rc_context({"svg.hashsalt": "powersum"}):
        figure.savefig(handle, format=ending, dpi=150, metadata=metadata)
