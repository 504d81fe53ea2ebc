"""The picture of a run: bounds against time or sweeps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from powersum.core.errors import InputError
from powersum.model.interval import SAME

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from powersum.model.result import Result

UPPER, LOWER, INK, PALE = "#1f5fa8", "#c4572b", "#333333", "#d9d9d9"
LABELS = {"seconds": "seconds", "sweep": "sweep"}
# A start this many times as far off as the bound after one sweep is left out: it would flatten all that follows.
FAR_OFF = 3.0
LEAST_HEIGHT = 1e-6
"""Bounds closer than this are a line in the middle of the picture, not a forest of digits."""


def plot_history(result: Result, ax: Axes | None = None, *, against: str = "seconds") -> Axes:
    """Draw the upper bound, and the lower one where it is known, as steps over time or sweeps.

    Parameters
    ----------
    result
        What to draw.
    ax
        Where to draw; a new figure if not given.
    against
        ``"seconds"`` or ``"sweep"``.
    """
    if against not in LABELS:
        raise InputError(f"against is {against!r}: there is {', '.join(LABELS)}")
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    if len(result.history) == 1 and result.log_upper - result.log_lower <= SAME:
        _exact_at_once(ax, result)
    else:
        _curve(ax, result, against, "log_upper", UPPER, "upper bound")
        _curve(ax, result, against, "log_lower", LOWER, "best solution")
    _limit_view(ax, result)
    ax.set_xlabel(LABELS[against], color=INK)
    ax.set_ylabel("natural log of the value", color=INK)
    ax.grid(axis="y", color=PALE, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(PALE)
    ax.tick_params(colors=INK, length=0)
    # Values as they are: nobody adds an offset in the corner to the numbers beside the ticks.
    ax.ticklabel_format(axis="y", style="plain", useOffset=False)
    if not ax.has_data():
        ax.text(0.5, 0.5, f"log value = {result.log_upper}", transform=ax.transAxes, ha="center", va="center")
    return ax


def save_plot(result: Result, path: str | Path, *, against: str = "seconds") -> None:
    """Draw the history and write it as a picture, the format by the file's ending; needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from powersum.core.files import saving

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    plot_history(result, figure.subplots(), against=against)
    with saving(path) as handle:
        figure.savefig(handle, format=Path(path).suffix.lstrip(".").lower(), dpi=150)


def check_picture(path: str | Path) -> None:
    """Refuse a file name whose ending is no picture format."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    known = FigureCanvasAgg.get_supported_filetypes()
    if Path(path).suffix.lstrip(".").lower() not in known:
        raise InputError(f"{path}: the ending must be that of a picture, such as .png, .svg or .pdf")


def _exact_at_once(ax: Axes, result: Result) -> None:
    """One line for both bounds, where there is no time over which they moved."""
    ax.axhline(result.log_upper, color=LOWER, linewidth=1.8)
    value = f"{result.log_upper:z.6g}".replace("-", "−")
    ax.annotate(
        f"log value {value}, exact after {result.seconds:.2g} s",
        (0.5, result.log_upper),
        xycoords=("axes fraction", "data"),
        xytext=(0, 5),
        textcoords="offset points",
        ha="center",
        color=LOWER,
    )


def _curve(ax: Axes, result: Result, against: str, field: str, colour: str, label: str) -> None:
    """One bound as steps: a bound holds from the moment it is known. Its last value stands beside its end."""
    points = [(getattr(s, against), getattr(s, field)) for s in result.history if math.isfinite(getattr(s, field))]
    if not points:
        return
    x, y = zip(*points, strict=True)
    ax.step(x, y, where="post", color=colour, linewidth=1.8, label=label)
    ax.plot(x[-1:], y[-1:], "o", color=colour, markersize=4.5)
    value = f"{y[-1]:z.6g}" if abs(y[-1]) < 1000 else f"{y[-1]:.1f}"
    # To the right of the line, which ends here; one above and one below, for the two may end in one place.
    ax.annotate(
        f"{label}\n{value.replace('-', '−')}",
        (x[-1], y[-1]),
        xytext=(7, 0),
        textcoords="offset points",
        ha="left",
        va="bottom" if field == "log_upper" else "top",
        color=colour,
        annotation_clip=False,
    )


def _limit_view(ax: Axes, result: Result) -> None:
    """Leave a start that is far off outside the picture, but nothing else of the upper bound."""
    upper = [s.log_upper for s in result.history if math.isfinite(s.log_upper)]
    lower = [s.log_lower for s in result.history if math.isfinite(s.log_lower)]
    known = upper + lower
    if known and max(known) - min(known) < LEAST_HEIGHT:
        ax.set_ylim(min(known) - 0.5, max(known) + 0.5)
        return
    if len(upper) < 3 or upper[0] == upper[-1]:
        return
    bottom = min(upper[-1], lower[-1] if lower else upper[-1])
    far_off = upper[0] - bottom > FAR_OFF * (upper[1] - bottom) > 0
    top = upper[1] if far_off else upper[0]
    height = max(top - bottom, 1e-6)
    ax.set_ylim(bottom - 0.12 * height, top + 0.08 * height)
