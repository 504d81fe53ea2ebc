"""Result: one frozen record of everything an answer consists of."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from powersum.model.model import StateKey

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Status(enum.StrEnum):
    """What kind of answer a result is."""

    OPTIMAL = "optimal"
    BOUNDED = "bounded"
    INFEASIBLE = "infeasible"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Both bounds at one moment; ``log_lower`` is ``-inf`` where nothing is known."""

    seconds: float
    sweep: int
    log_upper: float
    log_lower: float = -math.inf


@dataclass(frozen=True, slots=True)
class Residuals:
    """How far a point is from the optimality conditions of the bound.

    ``moment`` is the largest difference between a singleton belief and the matching marginal of a clique belief
    (paper, eq. 8); ``entropy`` the largest weight times entropy mismatch (eq. 10). Both are 0 at the minimum.
    """

    moment: float
    entropy: float


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """An answer with its guarantee. All values are natural logarithms.

    ``log_upper`` is never below the true value and ``log_lower`` never above it. ``assignment`` maps the name of each
    maximised variable to its state.
    """

    log_upper: float
    log_lower: float
    assignment: Mapping[str, StateKey]
    status: Status
    reason: str
    history: tuple[Snapshot, ...]
    method: str
    options: Mapping[str, Any]
    sizes: Mapping[str, int | float]
    version: str
    residuals: Residuals | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def gap(self) -> float:
        """Upper minus lower bound; 0 for a proven answer, infinity where one side is unknown."""
        return 0.0 if self.log_upper == self.log_lower else self.log_upper - self.log_lower

    @property
    def seconds(self) -> float:
        """Time from the call to the last snapshot."""
        return self.history[-1].seconds if self.history else 0.0

    @property
    def sweeps(self) -> int:
        """Number of sweeps done."""
        return self.history[-1].sweep if self.history else 0

    def __repr__(self) -> str:
        return (
            f"<powersum.Result: {self.status}, {self.log_lower:.10g} ≤ log value ≤ {self.log_upper:.10g}, "
            f"{len(self.assignment)} variables assigned, {self.sweeps} sweeps in {self.seconds:.3g} s>"
        )

    def to_json(self) -> str:
        """Strict JSON; infinities are the strings "inf" and "-inf"."""
        return strict_json({**asdict(self), "gap": self.gap})

    def save(self, path: str | Path) -> None:
        """Write :meth:`to_json` to a file."""
        from powersum.formats.files import saving

        with saving(path) as handle:
            handle.write((self.to_json() + "\n").encode())

    def _repr_html_(self) -> str:
        from powersum.report.notebook import result_html

        return result_html(self)

    def plot(self, ax: Axes | None = None, *, against: str = "seconds") -> Axes:
        """Draw the bounds against time (``"seconds"``) or sweeps (``"sweep"``); returns the axes."""
        from powersum.report.curves import plot_history

        return plot_history(self, ax, against=against)


def strict_json(value: Any) -> str:
    """Strict JSON of nested mappings and lists; infinities are the strings "inf" and "-inf"."""
    return json.dumps(_strict(value), indent=2, allow_nan=False, ensure_ascii=False)


def _strict(value: Any) -> Any:
    """``value`` with infinities as strings, enums and unknown objects as their words, for strict JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if hasattr(value, "item"):
        return _strict(value.item())
    return value if value is None or isinstance(value, int | str) else str(value)
