"""Distributions of single variables as intervals that hold, by names and labels, as a table, for pandas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy as np

from powersum.api.joint import Joint, Shares
from powersum.core.arrays import BoolArray, FloatArray
from powersum.core.errors import InputError
from powersum.model.above import above
from powersum.model.certificate import Certificate
from powersum.model.interval import Interval
from powersum.model.keys import as_text
from powersum.model.model import Model, StateKey, VariableKey
from powersum.model.strict_json import strict_json
from powersum.run.distributions import BACKWARD, sides_of

COLUMNS = ("variable", "state", "lower", "upper", "estimate", "exact")
"""Of tables of marginals."""

MOST_ROWS = 60
"""Longer tables are cut when they are printed."""


@dataclass(frozen=True, slots=True, eq=False)
class Distribution(Shares, Mapping[StateKey, Interval]):
    """The probability of each state of one variable, by label or number: ``m["cancer"]["yes"]``."""

    model: Model
    variable: int
    log_lower: FloatArray
    log_upper: FloatArray

    def __getitem__(self, key: StateKey) -> Interval:
        return self.at(self.model.state(self.variable, key, argument="state"))

    def __iter__(self) -> Iterator[StateKey]:
        return (self.model.label(self.variable, state) for state in range(len(self)))

    def __repr__(self) -> str:
        inner = ", ".join(f"{label}: {self.at(state)}" for state, label in enumerate(self))
        return f"<{self.model.name(self.variable)}: {inner}>"


@dataclass(frozen=True, slots=True, eq=False)
class Marginals(Mapping[str, Distribution]):
    """Distributions given the evidence: ``m["cancer"]["yes"]`` is an interval that holds.

    Parameters
    ----------
    model
        The model that they are about.
    log_lower, log_upper
        For each variable the sides of the probability of each state, as natural logs.
    beliefs
        One number for each state, within its interval: the probability where that is known exactly, else an
        estimate. File formats that need single numbers have them from here.
    exact
        True where all distributions are known exactly.
    joints
        Joint distributions that were asked for, by variables: ``m["a", "b"]["yes", "no"]``.
    certificates
        For variables that were to be proven, by number: for each state a certificate of the sum with that state set.
    certificate
        Where all were to be proven: one certificate of the sum, from which the checker computes all distributions.
    """

    model: Model
    log_lower: tuple[FloatArray, ...]
    log_upper: tuple[FloatArray, ...]
    beliefs: tuple[FloatArray, ...]
    exact: bool
    joints: Mapping[tuple[int, ...], Joint] = field(default_factory=dict)
    certificates: Mapping[int, tuple[Certificate, ...]] = field(default_factory=dict)
    certificate: Certificate | None = None

    @overload
    def __getitem__(self, key: VariableKey) -> Distribution: ...

    @overload
    def __getitem__(self, key: tuple[VariableKey, ...]) -> Joint: ...

    def __getitem__(self, key: VariableKey | tuple[VariableKey, ...]) -> Distribution | Joint:
        if isinstance(key, tuple):
            group = tuple(self.model.variable(one, argument="variable") for one in key)
            if group not in self.joints:
                raise InputError(f"the joint distribution of {as_text(key)} was not asked for: give it in of")
            return self.joints[group]
        return self.at(self.model.variable(key, argument="variable"))

    def at(self, place: int) -> Distribution:
        """The distribution of the variable at a place, counted from 0."""
        return Distribution(self.model, place, self.log_lower[place], self.log_upper[place])

    def save_certificates(self, folder: str | PathLike[str]) -> list[Path]:
        """Write ``FOLDER/all.zip``, or ``FOLDER/VARIABLE/STATE.zip`` by numbers; returns the paths."""
        folders = []
        if self.certificate is not None:
            folders.append(Path(folder, "all.zip"))
            folders[0].parent.mkdir(parents=True, exist_ok=True)
            self.certificate.save(folders[0])
        for v, proofs in self.certificates.items():
            folders.append(Path(folder, str(v)))
            folders[-1].mkdir(parents=True, exist_ok=True)
            for state, proof in enumerate(proofs):
                proof.save(folders[-1] / f"{state}.zip")
        return folders

    def without_joints(self, model: Model, groups: Sequence[tuple[int, ...]]) -> Marginals:
        """The same without the last variables, which stand for groups and become joints."""
        n = model.n_variables
        joints = {}
        for v, group in enumerate(groups, start=n):
            shape = tuple(int(model.cardinalities[one]) for one in group)
            sides = [own[v].reshape(shape) for own in (self.log_lower, self.log_upper, self.beliefs)]
            joints[group] = Joint(model, group, *sides)
        return Marginals(model, self.log_lower[:n], self.log_upper[:n], self.beliefs[:n], self.exact, joints)

    def __iter__(self) -> Iterator[str]:
        return (self.model.name(variable) for variable in range(len(self)))

    def __len__(self) -> int:
        return len(self.beliefs)

    @property
    def widest(self) -> tuple[int, float]:
        """The variable whose probabilities are known least, and how far apart the two sides of one of them are."""
        widths = [
            float((np.exp(u) - np.exp(lo)).max(initial=0.0))
            for lo, u in zip(self.log_lower, self.log_upper, strict=True)
        ]
        place = int(np.argmax(widths)) if widths else -1
        return place, widths[place] if widths else 0.0

    def to_dict(self, of: Iterable[VariableKey] | None = None) -> dict[str, Any]:
        """Nested dictionaries for JSON: both sides of each state, the estimate, and exact or not."""
        own = [self.at(v) for v in range(len(self))] if of is None else [self[key] for key in of]
        rows = [
            {
                "variable": self.model.name(one.variable),
                "exact": one.exact,
                "states": [
                    _row(str(label), one.at(s), float(self.beliefs[one.variable][s])) for s, label in enumerate(one)
                ],
                "entropy": list(one.entropy()),
            }
            for one in own
        ]
        joints = [
            {
                "variables": [self.model.name(v) for v in joint.variables],
                "exact": joint.exact,
                "states": [
                    _row([str(label) for label in labels], joint[labels], float(belief))
                    for labels, belief in zip(joint, joint.beliefs.ravel(), strict=True)
                ],
                "entropy": list(joint.entropy()),
                "mutual_information": list(joint.mutual_information()),
            }
            for joint in self.joints.values()
        ]
        return {"exact": self.exact, "marginals": rows, "joints": joints}

    def to_json(self, of: Iterable[VariableKey] | None = None) -> str:
        """The same as strict JSON."""
        return strict_json(self.to_dict(of))

    def to_pandas(self) -> Any:
        """A data frame of all states: both sides, the estimate within them, and whether it is exact."""
        try:
            pandas = import_module("pandas")
        except ModuleNotFoundError:
            raise InputError("to_pandas needs pandas, which is not installed: pip install pandas") from None

        frame = pandas.DataFrame(self._rows(), columns=COLUMNS)
        return frame.set_index(["variable", "state"])

    def to_csv(self, of: Iterable[VariableKey] | None = None) -> str:
        """A line for each state: both sides, the estimate, and whether it is exact."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(self._rows(of))
        return text.getvalue()

    def _rows(self, of: Iterable[VariableKey] | None = None) -> list[tuple[Any, ...]]:
        """A row of :data:`COLUMNS` for each state."""
        return [
            (
                self.model.name(own.variable),
                label,
                own.at(s).lower,
                own.at(s).upper,
                float(self.beliefs[own.variable][s]),
                own.exact,
            )
            for own in (map(self.at, range(len(self))) if of is None else map(self.__getitem__, of))
            for s, label in enumerate(own)
        ]

    def _repr_html_(self) -> str:
        html: str = above("marginals_html")(self)
        return html

    def table(self, of: Iterable[VariableKey] | None = None, *, most: int | None = None) -> str:
        """A line for each state, of all variables or of some, and at most so many."""
        rows = [("variable", "state", "probability")]
        total, unknown = 1, 0
        for own in map(self.at, range(len(self))) if of is None else map(self.__getitem__, of):
            if of is None and own.unknown:
                unknown += 1
                continue
            total += len(own)
            if most is None or len(rows) <= most:
                name = self.model.name(own.variable)
                rows += [(name, str(label), str(own.at(state))) for state, label in enumerate(own)]
        for joint in self.joints.values():
            total += len(joint)
            if most is None or len(rows) <= most:
                name = ", ".join(self.model.name(v) for v in joint.variables)
                rows += [(name, ", ".join(map(str, labels)), str(share)) for labels, share in joint.items()]
        rows = rows if most is None else rows[: most + 1]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        lines = [f"{name:<{widths[0]}}  {state:<{widths[1]}}  {share}" for name, state, share in rows]
        more = [f"… and {total - len(rows)} more states"] if total > len(rows) else []
        if unknown:
            more.append(f"{unknown} variables are not bounded within the time: name some of them, or give more time")
        return "\n".join([*lines, *more])

    def __str__(self) -> str:
        return self.table(most=MOST_ROWS)

    def __repr__(self) -> str:
        kind = "exact" if self.exact else "from both sides"
        return f"<powersum.Marginals: {len(self)} variables, {kind}>"


def _row(label: str | list[str], share: Interval, estimate: float) -> dict[str, Any]:
    """One state as JSON has it."""
    return {"state": label, "lower": share.lower, "upper": share.upper, "estimate": estimate}


def known_marginals(model: Model, beliefs: FloatArray, possible: BoolArray, log_error: float) -> Marginals:
    """Exact distributions with what rounding may have done to them.

    Parameters
    ----------
    model
        What they are about.
    beliefs
        The distributions of all variables one after another, as they were computed.
    possible
        The states that are not known to be impossible. One of probability 0 may have one that left the doubles.
    log_error
        How far rounding can have moved an elimination that takes as much.
    """
    lower, upper = sides_of(beliefs, BACKWARD * log_error)
    lower[~possible] = upper[~possible] = -np.inf
    ends = np.cumsum(model.cardinalities)
    if len(ends):
        # The only state that is possible is certain.
        number = np.add.reduceat(possible, np.append(0, ends[:-1]), dtype=np.int64)
        certain = np.repeat(number == 1, model.cardinalities) & possible
        lower[certain] = upper[certain] = 0.0
    return marginals_of_states(model, lower, upper, beliefs, exact=True)


def marginals_of_states(
    model: Model, log_lower: FloatArray, log_upper: FloatArray, beliefs: FloatArray, *, exact: bool
) -> Marginals:
    """Marginals from arrays over the states of all variables, one after another."""
    places = list(pairwise([0, *np.cumsum(model.cardinalities).tolist()]))

    def cut(values: FloatArray) -> tuple[FloatArray, ...]:
        return tuple([values[start:end] for start, end in places])

    return Marginals(model, cut(log_lower), cut(log_upper), cut(beliefs), exact)
