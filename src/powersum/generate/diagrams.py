"""Influence diagrams to try: the oil wildcatter, and random POMDPs of any horizon."""

from __future__ import annotations

import numpy as np

from powersum.generate.blocks import check_count
from powersum.model.diagram import Diagram
from powersum.model.model import Model


def wildcatter() -> Diagram:
    """Drill for oil, after a seismic test that costs 10? The best policy is worth 22.5.

    Examples
    --------
    >>> import powersum as ps
    >>> dict(ps.decide(ps.generate.wildcatter()).next_action)
    {'test': 'yes'}
    """
    seismic = np.zeros((3, 2, 4))
    # Without a test there is nothing to see.
    seismic[:, 0, 3] = 1.0
    seismic[:, 1, :3] = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.4, 0.5]]
    return Diagram.from_tables(
        {"oil": {"dry": 0.5, "wet": 0.3, "soaking": 0.2}, ("oil", "test", "seismic"): seismic},
        decisions={"test": (["no", "yes"], []), "drill": (["no", "yes"], ["seismic"])},
        utilities={"test": [0, -10], ("oil", "drill"): [[0, -70], [0, 50], [0, 200]]},
        states={"seismic": ["none", "open", "closed", "nothing"]},
    )


def pomdp(
    stages: int = 3,
    *,
    hidden: int = 3,
    observed: int = 2,
    states: int = 2,
    actions: int = 2,
    recall: bool = True,
    seed: int = 0,
) -> Diagram:
    """A POMDP with random tables: hidden variables, observations of them, an action and a reward at each stage.

    Parameters
    ----------
    stages
        How many decisions there are.
    hidden, observed, states, actions
        Hidden and observed variables of a stage, states of each of them, and actions.
    recall
        Whether decisions remember earlier observations; else they see those of their stage only.
    seed
        The same seed gives the same diagram.
    """
    for value, name in ((stages, "stages"), (hidden, "hidden"), (observed, "observed"), (actions, "actions")):
        check_count(name, value, 1)
    check_count("states", states, 2)
    rng = np.random.default_rng(seed)
    cards: list[int] = []
    names: list[str] = []

    def variable(name: str, card: int) -> int:
        names.append(name)
        cards.append(card)
        return len(cards) - 1

    def some(below: list[int]) -> list[int]:
        return sorted(rng.choice(below, size=min(2, len(below)), replace=False).tolist())

    factors, utilities, choices = [], [], []
    before: list[int] = []
    action = -1
    for stage in range(stages):
        now = [variable(f"state{stage}_{k}", states) for k in range(hidden)]
        for v in now:
            above = [*some(before), action] if before else []
            table = rng.dirichlet(np.full(states, 0.5), [cards[u] for u in above])
            factors.append(([*above, v], table))
        seen = [variable(f"seen{stage}_{k}", states) for k in range(observed)]
        for v in seen:
            above = some(now)
            factors.append(([*above, v], rng.dirichlet(np.full(states, 0.5), [cards[u] for u in above])))
        action = variable(f"action{stage}", actions)
        choices.append((action, seen))
        scope = [*some(now), action]
        utilities.append((scope, np.round(rng.uniform(0.0, 10.0, [cards[u] for u in scope]), 3)))
        before = now
    model = Model.from_factors(cards, factors, names=names, directed=True)
    return Diagram.of(model, utilities, choices, recall=recall)
