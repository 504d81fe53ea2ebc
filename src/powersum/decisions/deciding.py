"""``decide``: from an influence diagram to a policy with a certified value and a bound on all policies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from powersum.core import work_time as time
from powersum.core.errors import InputError
from powersum.core.files import PathLike
from powersum.core.interrupt import interruptible
from powersum.core.work_time import counted_by
from powersum.decisions.decision import Decision
from powersum.decisions.search import DecisionSearch
from powersum.decisions.stages import influenced_by
from powersum.formats.diagrams import read_diagram
from powersum.model.diagram import Choice, Diagram
from powersum.model.limits import NOT_GIVEN, Limits, NotGiven, flag


def decide(
    diagram: Diagram | PathLike,
    *,
    evidence: Mapping[Any, Any] | Iterable[Any] | None = None,
    time_limit: float | NotGiven | None = NOT_GIVEN,
    memory: float | str | None = None,
    threads: int = 1,
    seed: int = 0,
    work: float | None = None,
    value_of_information: bool = False,
) -> Decision:
    """Find a policy, certify its expected utility, and bound that of all policies.

    Parameters
    ----------
    diagram
        The influence diagram, or the path of its ``.uai`` file.
    evidence
        What is observed and decided already. What an open decision may influence cannot be observed.
    time_limit
        Seconds, 60 unless given; Ctrl-C ends earlier with what is known.
    memory, threads, seed, work
        As in :func:`powersum.solve`.
    value_of_information
        Whether to find what each unseen variable would be worth before each open decision; takes as long again for
        each.

    Returns
    -------
    Decision
        The utility from both sides, the policy, and the best next action.

    Examples
    --------
    >>> import powersum as ps
    >>> chance = ps.Model.from_factors(
    ...     [2, 2, 2], [((0,), [0.6, 0.4]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])],
    ...     names=["oil", "test", "drill"], states=[["dry", "wet"], ["bad", "good"], ["no", "yes"]])
    >>> diagram = ps.Diagram.of(chance, [(["oil", "drill"], [[0, -70], [0, 120]])], [("drill", ["test"])])
    >>> print(ps.decide(diagram))
    optimal: The policy is as good as the bound on all policies.
    expected utility 29.4
    <BLANKLINE>
    drill, by test:
      bad: no
      good: yes
    """
    limits = Limits.given(time_limit=time_limit, memory=memory, threads=threads, seed=seed, work=work)
    wanted = flag(value_of_information, "value_of_information")
    if not isinstance(diagram, Diagram):
        diagram = read_diagram(diagram)
    observed = diagram.model.evidence({} if evidence is None else evidence)
    _check_evidence(diagram, observed)
    with interruptible() as interrupt, counted_by(limits.meter()):
        started = time.monotonic()
        unseen = _unseen(diagram, observed) if wanted else []
        share = limits.seconds / (1 + len(unseen))
        search = DecisionSearch(diagram, observed, limits, interrupt, started + share)
        search.run()
        worth = {}
        for k, v in unseen:
            wider = DecisionSearch(_seeing(diagram, k, v), observed, limits, interrupt, time.monotonic() + share)
            wider.run()
            # Who sees more does at least as well.
            low = max(0.0, math.nextafter(wider.lower - search.upper, -math.inf))
            names = (diagram.model.name(diagram.choices[k].variable), diagram.model.name(v))
            worth[names] = low, max(low, math.nextafter(wider.upper - search.lower, math.inf))
        return replace(search.decision(time.monotonic() - started), value_of_information=worth)


def _check_evidence(diagram: Diagram, observed: Mapping[int, int]) -> None:
    """Refuse observations that an open decision may influence: they would be known before it is made."""
    decided = [choice.variable in observed for choice in diagram.choices]
    for k, choice in enumerate(diagram.choices):
        if decided[k]:
            continue
        below = influenced_by(diagram, choice.variable)
        for v in observed:
            if v in below:
                raise InputError(
                    f"evidence on {diagram.model.name(v)}, which the open decision "
                    f"{diagram.model.name(choice.variable)} influences: observe the decision, too"
                )
        later = next((j for j in range(k + 1, len(decided)) if decided[j]), None)
        if later is not None:
            raise InputError(
                f"decision {diagram.model.name(diagram.choices[later].variable)} is decided, but the earlier "
                f"{diagram.model.name(choice.variable)} is not"
            )


def _unseen(diagram: Diagram, observed: Mapping[int, int]) -> list[tuple[int, int]]:
    """Pairs of an open choice and a chance variable that it does not know and that it could know."""
    pairs = []
    open_choices = [k for k, choice in enumerate(diagram.choices) if choice.variable not in observed]
    for k in open_choices:
        below = set().union(*(influenced_by(diagram, diagram.choices[j].variable) for j in open_choices if j >= k))
        known = {*diagram.known(k), *observed, *diagram.decisions}
        pairs += [(k, v) for v in range(diagram.model.n_variables) if v not in known | below]
    return pairs


def _seeing(diagram: Diagram, k: int, v: int) -> Diagram:
    """The diagram with one more variable seen before a decision."""
    choice = diagram.choices[k]
    choices = list(diagram.choices)
    choices[k] = Choice(choice.variable, (*choice.sees, v))
    if diagram.recall:
        choices[k + 1 :] = [replace(c, sees=tuple(u for u in c.sees if u != v)) for c in choices[k + 1 :]]
    return replace(diagram, choices=tuple(choices))
