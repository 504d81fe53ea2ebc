"""Case: one question to one entry, as plain data, so that it can be printed, sent, shrunk and written as a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import powersum as ps

Factors = tuple[tuple[tuple[int, ...], tuple[float, ...]], ...]
Evidence = Mapping[int, int | tuple[float, ...]]


@dataclass(frozen=True)
class Question:
    """Weights of all variables, 1 to sum and 0 to maximise, and what is observed: states, or likelihoods."""

    weights: tuple[float, ...]
    evidence: Evidence = field(default_factory=dict)
    order: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Trouble:
    """What happens to a run from outside. Looks at the clock and callbacks are counted from 1; 0 is never.

    Parameters
    ----------
    step
        Seconds by which every look at the clock moves it on, in place of the true time; 0 for the true clock.
    jump_at
        The look at which the clock jumps far ahead: a deadline at just that place.
    raise_at
        The look at which an exception is raised.
    stop_after
        Snapshots after which a solver is left alone, asked for its result, and gone on with.
    callback_raises, signal_at
        The callback that raises an exception, or that the process gets Ctrl-C in.
    """

    step: float = 0.0
    jump_at: int = 0
    raise_at: int = 0
    stop_after: int = 0
    callback_raises: int = 0
    signal_at: int = 0


@dataclass(frozen=True)
class Case:
    """One question, or several about one model, or one file; everything that is needed to ask it again."""

    name: str
    entry: str
    kind: str
    road: str = "plain"
    cards: tuple[int, ...] = ()
    factors: Factors = ()
    log: bool = False
    directed: bool = False
    named: bool = False
    questions: tuple[Question, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    trouble: Trouble = field(default_factory=Trouble)
    suffix: str = ""
    data: bytes = b""

    def model(self) -> ps.Model:
        """The model as powersum has it."""
        return ps.Model.from_factors(
            self.cards,
            [(scope, np.asarray(table).reshape([self.cards[v] for v in scope])) for scope, table in self.factors],
            log=self.log,
            directed=self.directed,
            names=[f"x{v}" for v in range(len(self.cards))] if self.named else None,
            states=[[f"s{k}" for k in range(card)] for card in self.cards] if self.named else None,
        )

    def evidence(self, question: Question) -> dict[Any, Any]:
        """Evidence as powersum takes it."""
        return {
            (f"x{v}" if self.named else v): (f"s{seen}" if self.named and isinstance(seen, int) else seen)
            for v, seen in question.evidence.items()
        }
