"""Conformant planning: one plan for a robot that knows neither where it starts nor whether a step succeeds."""

import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import powersum as ps

PICTURE = Path(__file__).parents[1] / "out" / "robust_plan.png"
CELLS, STEPS, GOAL = 9, 12, 5
MOVES = {"left": -1, "right": 1, "stay": 0}


def main() -> None:
    """Maximise over actions, sum over positions: the value is the chance to end at the goal."""
    model = corridor()
    actions = [f"action{step}" for step in range(STEPS)]
    end = {f"place{STEPS}": str(GOAL)}
    result = ps.solve(model, maximize=actions, evidence=end)
    plan = [str(result.assignment[name]) for name in actions]
    print("The plan:", " ".join(plan))
    print(f"It ends at cell {GOAL} with probability {math.exp(result.log_lower):.4f}; {result.status}: {result.reason}")

    # Where the robot is while it follows the plan: actions become evidence, places are summed out one by one.
    beliefs = ps.marginals(model, evidence=dict(zip(actions, plan, strict=True))).beliefs
    places = np.array([beliefs[model.variable(f"place{step}")] for step in range(STEPS + 1)])
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    ax = figure.subplots()
    ax.imshow(places.T, cmap="Blues", aspect="auto", origin="lower")
    ax.axhline(GOAL, color="#c4572b", linewidth=1)
    ax.set(xlabel="after so many actions", ylabel="cell", title="Where the robot may be while it follows the plan")
    for step, action in enumerate(plan):
        ax.text(step + 0.5, -0.35, {"left": "↓", "right": "↑", "stay": "·"}[action], ha="center", fontsize=13)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)


def corridor() -> ps.Model:
    """Places of the robot over time; a move fails with probability 0.1, and walls stop it."""
    move = np.zeros((CELLS, len(MOVES), CELLS))
    for cell in range(CELLS):
        for number, step in enumerate(MOVES.values()):
            move[cell, number, min(max(cell + step, 0), CELLS - 1)] += 0.9
            move[cell, number, cell] += 0.1
    cells = [str(cell) for cell in range(CELLS)]
    states = {f"place{step}": cells for step in range(STEPS + 1)} | {f"action{s}": list(MOVES) for s in range(STEPS)}
    tables: dict[object, np.ndarray] = {"place0": np.full(CELLS, 1 / CELLS)}
    tables |= {(f"place{s}", f"action{s}", f"place{s + 1}"): move for s in range(STEPS)}
    return ps.Model.from_tables(tables, states=states)


if __name__ == "__main__":
    main()
