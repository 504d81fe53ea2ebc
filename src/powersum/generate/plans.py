"""Plans without observations: one sequence of actions for robots whose places nobody knows."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.generate.blocks import Instance, check_count, check_share
from powersum.model.model import Model


def plan(
    rooms: int = 8, steps: int = 8, *, robots: int = 3, actions: int = 4, fails: float = 0.02, seed: int = 0
) -> Instance:
    """Actions that move all robots at once, whose starts are uncertain; at the end each has to be in its goal.

    The query are the actions, and the value is the chance that their plan succeeds. One plan succeeds from some start.

    Parameters
    ----------
    rooms, steps
        Rooms, and actions one after the other.
    robots
        Each moves in a way of its own by the same action.
    actions
        Actions to choose from at each step.
    fails
        The chance that an action does not move a robot.
    seed
        The same seed gives the same instance.

    Examples
    --------
    >>> import powersum as ps
    >>> model, query = ps.generate.plan(5, 4, seed=1)
    >>> ps.bound(model, query, sweeps=1).log_upper <= 1e-6
    True
    """
    check_count("rooms", rooms, 2)
    check_count("steps", steps, 1)
    check_count("robots", robots, 1)
    check_count("actions", actions, 2)
    check_share("fails", fails)
    rng = np.random.default_rng(seed)
    planned = rng.integers(0, actions, steps).tolist()
    factors: list[tuple[tuple[int, ...], FloatArray]] = []
    for robot in range(robots):
        place = steps + robot * (steps + 1)
        room = int(rng.integers(rooms))
        factors.append(((place,), 0.5 * np.eye(rooms)[room] + 0.5 * rng.dirichlet(np.ones(rooms))))
        ways = rng.integers(0, rooms, (actions, rooms))
        moves = (1.0 - fails) * np.eye(rooms)[ways] + fails * np.eye(rooms)
        for t, action in enumerate(planned):
            factors.append(((t, place + t, place + t + 1), moves))
            room = int(ways[action, room])
        factors.append(((place + steps,), np.eye(rooms)[room]))
    cards = [actions] * steps + [rooms] * (robots * (steps + 1))
    return Instance(Model.from_factors(cards, factors), list(range(steps)))
