"""Which variable to observe next: how much each would tell about others, and how likely it would change an answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from powersum.api.distribution import Distribution, Marginals
from powersum.api.engine import Engine
from powersum.api.marginals import MarginalSolver, impossible, marginals
from powersum.core.clock import working_time
from powersum.core.errors import ImpossibleError, InputError
from powersum.core.interrupt import Interrupt, as_interrupts, interruptible
from powersum.model.defaults import TIME
from powersum.model.keys import Place, listed
from powersum.model.limits import Limits
from powersum.model.model import StateKey, VariableKey
from powersum.model.question import EvidenceLike, ModelLike, Question
from powersum.model.simplex import Sides, expected

LEAST_SECONDS = 0.1
"""Distributions given an answer have at least so long."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What observing one variable would tell.

    Parameters
    ----------
    variable
        Its name.
    information
        How much it is expected to tell about the variables asked about, in nats, from both sides: the sum over them of
        how much their entropies fall.
    change
        How probable it is that the most probable state of one of them changes, from both sides.
    """

    variable: str
    information: Sides
    change: Sides


class Inquiries(Sequence[Inquiry]):
    """All variables that could be observed, the one that tells most first.

    Parameters
    ----------
    about
        Names of the variables asked about.
    uncertainty
        The sum of their entropies as it is, in nats, from both sides.
    found
        The variables.
    """

    def __init__(self, about: Sequence[str], uncertainty: Sides, found: Iterable[Inquiry]) -> None:
        self.about, self.uncertainty = tuple(about), uncertainty
        self._found = sorted(found, key=lambda one: (-sum(one.information), -sum(one.change), one.variable))

    @overload
    def __getitem__(self, place: int) -> Inquiry: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Inquiry]: ...

    def __getitem__(self, place: int | slice) -> Inquiry | Sequence[Inquiry]:
        return self._found[place]

    def __len__(self) -> int:
        return len(self._found)

    def to_dict(self) -> dict[str, Any]:
        """The same as nested dictionaries, for JSON."""
        rows = [
            {"variable": one.variable, "information": list(one.information), "change": list(one.change)}
            for one in self._found
        ]
        return {"about": list(self.about), "uncertainty": list(self.uncertainty), "variables": rows}

    def table(self, most: int | None = None) -> str:
        """A line for each variable: nats that it tells, their share of the uncertainty, chance of another answer."""
        rows = [
            ("observe", "tells (nats)", "of the uncertainty", "another answer"),
            *(
                (
                    one.variable,
                    _sides_text(one.information, "{:.4g}"),
                    _sides_text(_ratio(one.information, self.uncertainty), "{:.1%}"),
                    _sides_text(one.change, "{:.1%}"),
                )
                for one in self._found[:most]
            ),
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        more = [f"… and {len(self) - most} more"] if most is not None and len(self) > most else []
        return "\n".join([*lines, *more])

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<powersum.Inquiries: {len(self)} variables about {', '.join(self.about)}>"


@as_interrupts()
def ask_next(
    model: ModelLike,
    about: Iterable[VariableKey],
    among: Iterable[VariableKey] | None = None,
    *,
    evidence: EvidenceLike | None = None,
    time_limit: float | None = TIME,
    memory: float | str | None = None,
    threads: int = 1,
    seed: int = 0,
) -> Inquiries:
    """Which unobserved variable tells most about others, by expected information.

    Parameters
    ----------
    model, evidence
        The model or the path of its file, and what is known already, as in :func:`powersum.solve`.
    about
        The variables to find out about.
    among
        The variables that could be observed next; by default all others that are not observed.
    time_limit
        Seconds for all of it. What is not reached is known to lie between nothing and all that it could tell.
    memory, threads, seed
        As in :func:`powersum.marginals`.

    Examples
    --------
    >>> import powersum as ps
    >>> tables = {"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]],
    ...           ("wet", "slip"): [[0.9, 0.1], [0.8, 0.2]]}
    >>> found = ps.ask_next(ps.Model.from_tables(tables), ["rain"])
    >>> found[0].variable, round(found[0].information.lower, 4)
    ('wet', 0.1447)
    """
    limits = Limits.given(time_limit=time_limit, memory=memory, threads=threads, seed=seed)
    question = Question.of(model, evidence=evidence, limits=limits)
    model = question.model
    observed = question.evidence.states
    targets = [model.variable(key, argument="about") for key in listed(about, "about")]
    targets = list(dict.fromkeys(targets))
    if not targets:
        raise InputError("about names no variable: give one or more to find out about")
    if among is None:
        candidates = [v for v in range(model.n_variables) if v not in observed and v not in targets]
    else:
        candidates = list(dict.fromkeys(model.variable(key, argument="among") for key in listed(among, "among")))
    for v in candidates:
        if v in observed:
            raise InputError(f"among: {model.name(v)!r} is observed already")
        if v in targets:
            raise InputError(f"among: {model.name(v)!r} is what is asked about")
    with interruptible() as interrupt:
        asking = _Asking(question, targets, candidates, limits, interrupt)
        return Inquiries([model.name(v) for v in targets], asking.uncertainty, asking.inquiries())


class _Asking:
    """The distributions as they are, and given each answer, until time is over."""

    def __init__(
        self, question: Question, targets: list[int], candidates: list[int], limits: Limits, interrupt: Interrupt
    ) -> None:
        self._question, self._targets, self._candidates = question, targets, candidates
        self._limits, self._interrupt = limits, interrupt
        self._end = working_time() + limits.seconds
        self._left = 1 + int(question.model.cardinalities[candidates].sum())
        self._engine = Engine(question.model, time_limit=limits.time_limit, memory=limits.memory, seed=limits.seed)
        self._exact = True
        now = self._distributions(question, [*targets, *candidates])
        if now is None:
            raise impossible(question)
        self._now = now
        self._before = [now.at(v).entropy() for v in targets]
        self.uncertainty = _added(self._before)

    def inquiries(self) -> Iterator[Inquiry]:
        """One for each variable that could be observed."""
        for v in self._candidates:
            yield self._inquiry(v)

    def _inquiry(self, v: int) -> Inquiry:
        own = self._now.at(v)
        lower = np.array([own.at(s).lower for s in range(len(own))])
        upper = np.array([own.at(s).upper for s in range(len(own))])
        # Of an answer that is not looked at nothing is known.
        least, most = np.zeros(len(own)), np.full(len(own), self._most_entropy())
        surely, perhaps = np.zeros(len(own)), np.ones(len(own))
        for s in np.flatnonzero(upper > 0.0).tolist():
            given = self._distributions(self._question.within({v: frozenset((s,))}), self._targets)
            self._left -= 1
            if given is None:
                upper[s] = 0.0
                continue
            after = _added([given.at(y).entropy() for y in self._targets])
            least[s], most[s] = after
            surely[s], perhaps[s] = self._changes(given)
        tells = self.uncertainty
        # No variable tells more about another than its own entropy.
        cap = min(tells.upper, own.entropy().upper * len(self._targets))
        upper_side = min(max(tells.upper - expected(lower, upper, least).lower, 0.0), cap)
        lower_side = max(tells.lower - expected(lower, upper, most).upper, 0.0)
        change = Sides(
            max(expected(lower, upper, surely).lower, 0.0), min(max(expected(lower, upper, perhaps).upper, 0.0), 1.0)
        )
        return Inquiry(self._question.model.name(v), Sides(min(lower_side, upper_side), upper_side), change)

    def _changes(self, given: Marginals) -> tuple[float, float]:
        """Whether the most probable state of a variable asked about is surely, and is perhaps, another one."""
        surely = perhaps = False
        for y in self._targets:
            before, after = _likeliest(self._now.at(y)), _likeliest(given.at(y))
            surely |= not before & after
            perhaps |= len(before | after) > 1
        return float(surely), float(perhaps)

    def _distributions(self, question: Question | None, variables: list[int]) -> Marginals | None:
        """Distributions given evidence; None where that is impossible, and for a wide model what time allows."""
        if question is None:
            return None
        evidence = question.all_evidence
        left = self._end - working_time()
        over = left <= 0.0 or self._interrupt.cause is not None
        try:
            if self._exact and not over:
                found = self._engine.marginals(evidence=evidence)
                self._exact = found.exact
                return found
            if over:
                # What evidence excludes, and nothing else.
                return MarginalSolver(self._question.model, evidence=evidence).result()
            seconds = max(left / max(self._left, 1), LEAST_SECONDS)
            return marginals(
                self._question.model,
                evidence=evidence,
                of=[Place(v) for v in variables],
                time_limit=seconds if seconds < math.inf else None,
                memory=self._limits.memory,
                threads=self._limits.threads,
                seed=self._limits.seed,
            )
        except ImpossibleError:
            return None

    def _most_entropy(self) -> float:
        return float(sum(math.log(self._question.model.cardinalities[y]) for y in self._targets))


def _likeliest(own: Distribution) -> set[StateKey]:
    """The states of which each may be the most probable one; of equal ones any."""
    lower = max(own.at(s).log_lower for s in range(len(own)))
    return {s for s in range(len(own)) if own.at(s).log_upper >= lower}


def _added(sides: Sequence[Sides]) -> Sides:
    return Sides(math.fsum(one.lower for one in sides), math.fsum(one.upper for one in sides))


def _ratio(part: Sides, whole: Sides) -> Sides:
    if whole.upper <= 0.0:
        return Sides(0.0, 0.0)
    return Sides(part.lower / whole.upper, min(part.upper / whole.lower, 1.0) if whole.lower > 0.0 else 1.0)


def _sides_text(sides: Sides, form: str) -> str:
    """One number where both sides print as one, else both."""
    near = sides.upper - sides.lower <= 1e-6
    if near:
        return form.format(round(0.5 * (sides.lower + sides.upper), 9))
    return f"{form.format(sides.lower)} to {form.format(sides.upper)}"
