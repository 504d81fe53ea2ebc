"""Decision: the answer to an influence diagram: the utility from both sides, and a policy by names."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.core.files import saving
from powersum.model.diagram import Diagram
from powersum.model.model import Model, StateKey
from powersum.model.result import Status
from powersum.model.strict_json import strict_json

PolicyTree: TypeAlias = "StateKey | tuple[str, tuple[tuple[tuple[StateKey, ...], PolicyTree], ...]]"
"""What to do; or what is seen, and for each group of its states the tree below."""

MOST_ROWS = 16
"""Rows of a rule that are printed; JSON has all."""


@dataclass(frozen=True, eq=False)
class PolicyRule:
    """What one decision does: call it with what is seen, or read its rows.

    Parameters
    ----------
    decision
        Its name.
    sees
        Names of the variables that it goes by; it may see more that makes no difference.

    Examples
    --------
    >>> import powersum as ps
    >>> chance = ps.Model.from_factors(
    ...     [2, 2, 2], [((0,), [0.6, 0.4]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])],
    ...     names=["oil", "test", "drill"], states=[["dry", "wet"], ["bad", "good"], ["no", "yes"]])
    >>> decision = ps.decide(ps.Diagram.of(chance, [(["oil", "drill"], [[0, -70], [0, 120]])], [("drill", ["test"])]))
    >>> rule = decision.rule("drill")
    >>> rule({"test": "good"}), dict(rule.rows())
    ('yes', {('bad',): 'no', ('good',): 'yes'})
    """

    decision: str
    sees: tuple[str, ...]
    _model: Model = field(repr=False)
    _view: tuple[int, ...] = field(repr=False)
    _variable: int = field(repr=False)
    _chosen: IntArray = field(repr=False)

    def __call__(self, seen: Mapping[Any, Any]) -> StateKey:
        """What to do when this is seen; it may name more than the rule goes by."""
        states = self._model.evidence(seen)
        missing = [name for name, v in zip(self.sees, self._view, strict=True) if v not in states]
        if missing:
            raise InputError(f"decision {self.decision} goes by {missing[0]}: say what is seen of it")
        return self._model.label(self._variable, int(self._chosen[tuple(states[v] for v in self._view)]))

    def rows(self) -> Iterator[tuple[tuple[StateKey, ...], StateKey]]:
        """Each case that may be seen, and what is done in it."""
        for case in itertools.product(*(range(n) for n in self._chosen.shape)):
            seen = tuple(self._model.label(v, s) for v, s in zip(self._view, case, strict=True))
            yield seen, self._model.label(self._variable, int(self._chosen[case]))

    def tree(self) -> PolicyTree:
        """The rule as a tree, the question first that settles most; states with one continuation stand together."""

        def grown(chosen: IntArray, axes: tuple[int, ...]) -> PolicyTree:
            if (chosen == chosen.flat[0]).all():
                return self._model.label(self._variable, int(chosen.flat[0]))
            parts = [np.moveaxis(chosen, axis, 0) for axis in range(len(axes))]
            place = int(np.argmax([sum(int((part == part.flat[0]).all()) for part in each) for each in parts]))
            groups: list[tuple[list[StateKey], IntArray]] = []
            for state, part in enumerate(parts[place]):
                label = self._model.label(self._view[axes[place]], state)
                same = next((labels for labels, other in groups if np.array_equal(other, part)), None)
                if same is None:
                    groups.append(([label], part))
                else:
                    same.append(label)
            rest = (*axes[:place], *axes[place + 1 :])
            return self.sees[axes[place]], tuple((tuple(labels), grown(part, rest)) for labels, part in groups)

        return grown(self._chosen, tuple(range(len(self.sees))))

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        rows = [{"seen": list(seen), "do": state} for seen, state in self.rows()]
        return {"decision": self.decision, "sees": list(self.sees), "rows": rows}


@dataclass(frozen=True, eq=False)
class Decision:
    """The answer to an influence diagram. Utilities are in the units of the diagram.

    Parameters
    ----------
    utility_lower
        The expected utility of ``policy`` is at least this.
    utility_upper
        No policy has more.
    status
        ``optimal``, ``bounded`` or ``interrupted``.
    policy
        A rule for each decision that is still open, in their order.
    reason
        Why it ended there.
    seconds
        How long it took.
    value_of_information
        If asked for: how much seeing a variable before a decision would add to the expected utility, from both sides.
        Keys are pairs of a decision and a variable that it does not see.
    next_action
        The decisions for which all is seen that they go by, and what to do.
    """

    utility_lower: float
    utility_upper: float
    status: Status
    policy: tuple[PolicyRule, ...]
    reason: str
    seconds: float
    value_of_information: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    next_action: Mapping[str, StateKey] = field(default_factory=dict)

    def rule(self, decision: str | int) -> PolicyRule:
        """The rule of one decision."""
        for rule in self.policy:
            if rule.decision == str(decision):
                return rule
        raise InputError(f"no open decision is called {decision!r}")

    def network(self, diagram: Diagram) -> Model:
        """The diagram as a Bayesian network whose open decisions follow the policy."""
        model = diagram.model
        tables: list[tuple[tuple[int, ...], FloatArray]] = [(f.scope, np.exp(f.log_table)) for f in model.factors()]
        rules = {rule._variable: rule for rule in self.policy}
        for v in diagram.decisions:
            states = np.arange(int(model.cardinalities[v]))
            if v in rules:
                tables.append(((*rules[v]._view, v), (rules[v]._chosen[..., None] == states).astype(np.float64)))
            else:
                tables.append(((v,), np.full(len(states), 1.0 / len(states))))
        cards = model.cardinalities.tolist()
        return Model.from_factors(cards, tables, directed=True, names=model.names, states=model.states)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; what is infinite is None."""
        return {
            "utility_lower": _finite(self.utility_lower),
            "utility_upper": _finite(self.utility_upper),
            "status": self.status.value,
            "reason": self.reason,
            "seconds": self.seconds,
            "next_action": dict(self.next_action),
            "policy": [rule.to_dict() for rule in self.policy],
            "value_of_information": [
                {"decision": decision, "variable": variable, "lower": _finite(sides[0]), "upper": _finite(sides[1])}
                for (decision, variable), sides in self.value_of_information.items()
            ],
        }

    def to_json(self) -> str:
        """:meth:`to_dict` as strict JSON."""
        return strict_json(self.to_dict())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_json` to a file."""
        with saving(path) as handle:
            handle.write(self.to_json().encode() + b"\n")

    def __str__(self) -> str:
        """The utility from both sides and the rules, as a table of what to do when what is seen."""
        lines = [f"{self.status.value}: {self.reason}", f"expected utility {sides_text(self)}"]
        for rule in self.policy:
            lines.append("")
            rows = list(itertools.islice(rule.rows(), MOST_ROWS))
            if not rule.sees:
                lines.append(f"{rule.decision}: {rows[0][1]}")
                continue
            lines.append(f"{rule.decision}, by {', '.join(rule.sees)}:")
            lines += [f"  {', '.join(map(str, seen))}: {state}" for seen, state in rows]
            cases = math.prod(rule._chosen.shape)
            if cases > len(rows):
                lines.append(f"  and {cases - len(rows)} more")
        if self.value_of_information:
            lines += ["", "what it would be worth to see, before which decision:"]
            for (decision, variable), (low, high) in self.value_of_information.items():
                lines.append(f"  {variable} before {decision}: {_between(low, high)}")
        return "\n".join(lines)


def sides_text(decision: Decision) -> str:
    """The utility from both sides, in a few words."""
    return _between(decision.utility_lower, decision.utility_upper)


def _between(low: float, high: float) -> str:
    digits = 6 if not (math.isfinite(low) and math.isfinite(high)) or high - low > 0 else 12
    first, last = f"{low:.{digits}g}", f"{high:.{digits}g}"
    return first if first == last else f"{first} to {last}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
