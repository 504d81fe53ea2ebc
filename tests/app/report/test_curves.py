"""Pictures of results: what they show, without a display."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from powersum import InputError, Result, Snapshot, Status
from powersum.app.report.curves import check_picture, plot_history, save_plot


@pytest.fixture(autouse=True)
def _no_display() -> Iterator[None]:
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    yield
    plt.close("all")


def result(history: list[Snapshot]) -> Result:
    return Result(
        log_upper=history[-1].log_upper,
        log_lower=history[-1].log_lower,
        assignment={},
        status=Status.BOUNDED,
        reason="",
        history=tuple(history),
        method="gdd",
        options={},
        sizes={},
        version="0",
    )


FALLING = result([Snapshot(0.1 * i, i, 100.0 / (i + 1)) for i in range(20)])


def test_the_curve_is_the_history() -> None:
    ax = FALLING.plot()
    x, y = (np.asarray(data).tolist() for data in ax.lines[0].get_data())
    assert x == [s.seconds for s in FALLING.history]
    assert y == [s.log_upper for s in FALLING.history]
    assert ax.get_xlabel() == "seconds"
    low, high = ax.get_ylim()
    assert low < FALLING.log_upper < high


def test_on_given_axes_against_sweeps() -> None:
    ax = Figure().subplots()
    assert FALLING.plot(ax, against="sweep") is ax
    assert np.asarray(ax.lines[0].get_xdata()).tolist() == list(range(20))
    with pytest.raises(InputError, match="against is 'time'"):
        plot_history(FALLING, ax, against="time")


def test_both_bounds_where_both_are_known() -> None:
    both = result([replace(s, log_lower=-5.0 if s.sweep > 3 else -math.inf) for s in FALLING.history])
    texts = [text.get_text() for text in plot_history(both).texts]
    assert texts == ["upper bound\n5", "best solution\n−5"]


@pytest.mark.parametrize("upper", [-math.inf, math.inf, 0.0, -12345.678])
def test_a_single_snapshot(upper: float, tmp_path: Path) -> None:
    save_plot(result([Snapshot(0.0, 0, upper)]), tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 0


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "PNG"])
def test_formats(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture.{ending}"
    check_picture(path)
    save_plot(FALLING, path)
    assert path.stat().st_size > 0


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be that of a picture"):
        check_picture("picture.txt")
    with pytest.raises(InputError, match="cannot be written"):
        save_plot(FALLING, tmp_path / "no" / "picture.png")


def test_values_stand_beside_the_ticks_without_an_offset() -> None:
    ax = result([Snapshot(0.1 * i, i, 115.2 + 1e-4 / (i + 1)) for i in range(20)]).plot()
    ax.figure.canvas.draw()
    assert ax.yaxis.get_offset_text().get_text() == ""
    assert all(115.19 < float(label.get_text()) < 115.21 for label in ax.get_yticklabels())


def test_labels_stand_clear_of_the_lines() -> None:
    ax = result([Snapshot(0.1 * i, i, 10.0 / (i + 1), -10.0 / (i + 1)) for i in range(20)]).plot()
    ax.figure.canvas.draw()
    end = max(ax.transData.transform((1.9, 0.0))[0], 0.0)
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 2
    assert all(box.x0 > end for box in boxes)
    assert not boxes[0].overlaps(boxes[1])


def test_bounds_that_met_are_a_line_in_the_middle() -> None:
    low, high = result([Snapshot(0.1, 0, 3.0, 3.0)]).plot().get_ylim()
    assert high - low >= 1.0


def test_an_answer_that_was_exact_at_once_is_a_line_with_one_label() -> None:
    ax = result([Snapshot(0.1, 0, 3.0, 3.0)]).plot()
    assert [text.get_text() for text in ax.texts] == ["log value 3, exact after 0.1 s"]
    assert len(ax.lines) == 1
