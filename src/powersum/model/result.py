"""Result: one frozen record of everything an answer consists of."""

from __future__ import annotations

import enum
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from powersum.core.errors import InputError
from powersum.core.files import load, saving, shown
from powersum.model.above import above
from powersum.model.certificate import Certificate
from powersum.model.explanation import Explanation
from powersum.model.interval import Interval
from powersum.model.model import StateKey
from powersum.model.question import Asked, ModelLike
from powersum.model.strict_json import Record, revived, strict, strict_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FORMAT, FORMAT_VERSION = "powersum-result", 1
"""What the JSON of a result calls itself; the version rises when a reader of the old one would misread the new one."""


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


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Result:
    """An answer with its guarantee. All values are natural logarithms.

    Results are equal if all they say is. They can be pickled, and go to dictionaries and JSON and back without loss;
    ``docs/formats.md`` has the schema.

    Parameters
    ----------
    log_upper, log_lower
        ``log_upper`` is never below the true value and ``log_lower`` never above it.
    assignment
        The state of each maximised variable, by names and labels, in the order asked for.
    status, reason
        What kind of answer it is, and a sentence about why the run ended.
    history
        Both bounds over time.
    method, options
        What made the answer.
    sizes
        The question in numbers, what simplification left of it, what the order costs (``constrained_width``,
        ``log2_exact_bytes``), and the sizes of the method.
    version
        The version of powersum.
    residuals
        How far the point of the bound is from the optimality conditions, where the method knows.
    notes
        What is odd about the model, such as tables that do not sum to 1, and what a reader of the bounds must know.
    question
        What was asked, about which model.
    probability
        How probable the assignment is given the evidence, from both sides: it is at least ``probability.lower``, and no
        assignment is more probable than ``probability.upper``. One number where both are exact. None for log Z, which
        assigns nothing, and where :func:`powersum.solve` had no time for it.
    best
        Where several answers were asked for: the best ones in order, this one first. ``log_upper`` of each holds for
        all that are not before it.
    log_upper_next
        An upper bound on the value of all others; None where only one was asked for.
    certificate
        The proof of both bounds, if it was asked for: ``save`` writes it. It is not part of the JSON form.
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
    question: Asked | None = None
    probability: Interval | None = None
    best: tuple[Result, ...] = ()
    log_upper_next: float | None = None
    certificate: Certificate | None = field(default=None, compare=False)

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
        probability = "" if self.probability is None else f"probability {self.probability}, "
        assigned = f"{len(self.assignment)} variable{'' if len(self.assignment) == 1 else 's'} assigned"
        return (
            f"<powersum.Result: {self.status}, {probability}{self.log_lower:.10g} ≤ log value ≤ {self.log_upper:.10g}, "
            f"{assigned}, {self.sweeps} sweeps in {self.seconds:.3g} s>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.log_upper, self.log_lower, self.status, self.method, self.version))

    def to_dict(self) -> dict[str, Any]:
        """Everything as dictionaries, lists, strings and numbers; infinities are strings."""
        apart = ("best", "certificate")
        own = {item.name: strict(getattr(self, item.name)) for item in fields(self) if item.name not in apart}
        own["best"] = [result.to_dict() for result in self.best]
        return {"format": FORMAT, "format_version": FORMAT_VERSION, **own, "gap": strict(self.gap)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Result:
        """The result that :meth:`to_dict` made a dictionary of; keys that it does not know are passed over."""
        record = Record(data, "result")
        if record.take("format", str, FORMAT) != FORMAT:
            raise InputError(f"result: format is {data['format']!r}, not {FORMAT!r}")
        if record.take("format_version", int, FORMAT_VERSION) > FORMAT_VERSION:
            raise InputError(
                f"result: format_version is {data['format_version']}: read are those up to {FORMAT_VERSION}"
            )
        status = record.take("status", str)
        if status not in tuple(Status):
            raise InputError(f"result: status is {status!r}: there is {', '.join(Status)}")
        residuals, probability = record.inner("residuals"), record.inner("probability")
        return cls(
            log_upper=record.number("log_upper"),
            log_lower=record.number("log_lower"),
            assignment=record.states("assignment"),
            status=Status(status),
            reason=record.take("reason", str),
            history=tuple(
                Snapshot(
                    seconds=snapshot.number("seconds"),
                    sweep=snapshot.take("sweep", int),
                    log_upper=snapshot.number("log_upper"),
                    log_lower=snapshot.number("log_lower"),
                )
                for snapshot in record.records("history")
            ),
            method=record.take("method", str),
            options=revived(record.take("options", dict)),
            sizes={key: record.inner_number("sizes", key) for key in record.take("sizes", dict)},
            version=record.take("version", str),
            residuals=None if residuals is None else Residuals(residuals.number("moment"), residuals.number("entropy")),
            notes=tuple(record.strings("notes")),
            question=_asked(record.inner("question")),
            probability=None
            if probability is None
            else Interval(probability.number("log_lower"), probability.number("log_upper")),
            best=tuple(cls.from_dict(item) for item in record.take("best", list, [])),
            log_upper_next=None if data.get("log_upper_next") is None else record.number("log_upper_next"),
        )

    def to_json(self) -> str:
        """:meth:`to_dict` as strict JSON."""
        return strict_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Result:
        """The result that :meth:`to_json` wrote."""
        try:
            data = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise InputError(f"result: is no JSON ({' '.join(str(error).split())})") from None
        return cls.from_dict(data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_json` to a file."""
        with saving(path) as handle:
            handle.write((self.to_json() + "\n").encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read what :meth:`save` wrote."""
        try:
            return cls.from_json(load(path))
        except InputError as error:
            message = str(error)
            raise InputError(message if message.startswith(shown(path)) else f"{shown(path)}: {message}") from None

    def _repr_html_(self) -> str:
        found: str = above("result_html")(self)
        return found

    def explain(self, model: ModelLike, **options: Any) -> Explanation:
        """What this answer rests on; prints as a table.

        For each piece of evidence: the answer without it, and the probability of both. For each maximised variable: its
        best other state and the cost. For each table entry: the slope of the answer's log value, and the range in
        which the answer is proven to stay the best. All numbers hold from both sides.

        Parameters
        ----------
        model
            The model that the answer is about, which the result does not keep, or the path of its file.
        **options
            ``time_limit`` for all that together, ``memory``, ``threads``, ``seed``, as in :func:`powersum.solve`.

        Examples
        --------
        >>> import powersum as ps
        >>> rain = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
        >>> print(ps.solve(rain, ["rain"], evidence={"wet": 1}).explain(rain))
        without  the answer is  its probability  this answer's
        wet=1    rain=no        80 %             20 %
        <BLANKLINE>
        variable  instead  log value lost  times less probable
        rain=yes  no       0.5596          1.75
        <BLANKLINE>
        table entry      is   slope  same answer from  to
        rain=yes         0.2  1      0.1143            anything
        rain=yes, wet=1  0.7  1      0.4               anything
        rain=no          0.8  0      0                 1.4
        rain=no, wet=1   0.1  0      0                 0.175
        """
        found: Explanation = above("explain")(self, model, **options)
        return found

    def plot(self, ax: Axes | None = None, *, against: str = "seconds") -> Axes:
        """Draw the bounds against time (``"seconds"``) or sweeps (``"sweep"``); returns the axes."""
        found: Axes = above("plot_history")(self, ax, against=against)
        return found


def _refuse(word: str) -> None:
    """Strict JSON has no word for what is not finite."""
    raise ValueError(f"{word} is no number")


def _asked(record: Record | None) -> Asked | None:
    """What was asked, from its dictionary."""
    if record is None:
        return None
    return Asked(
        model=record.take("model", str),
        digest=record.take("digest", str),
        structure=record.take("structure", str),
        task=record.take("task", str),
        maximize=tuple(record.strings("maximize")),
        evidence=record.states("evidence"),
        likelihoods={name: tuple(record.numbers("likelihoods", name)) for name in record.take("likelihoods", dict)},
        weights=None if record.take("weights", (list, type(None))) is None else tuple(record.numbers("weights")),
        blocks=tuple(int(block) for block in record.numbers("blocks"))
        if record.take("blocks", (list, type(None)), None)
        else None,
    )
