"""An influence diagram as marginal MAP: whether to test for oil, and when to drill, for the largest expected gain."""

import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import powersum as ps

PICTURE = Path(__file__).parents[1] / "out" / "influence.png"
OIL = ["dry", "wet", "soaking"]
SEISMIC = ["bad", "fair", "good"]
CHANCE = np.array([0.5, 0.3, 0.2])
# Chance of each seismic result given the oil, gains from drilling, and what a test costs; in thousands, made up.
RESULT = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.4, 0.5]])
GAIN, TEST_COST = np.array([-70.0, 50.0, 200.0]), 10.0
DECISIONS = ["test", *(f"drill if {result}" for result in SEISMIC), "drill untested"]


def main() -> None:
    """Decisions are maximised, chance is summed, and the utility is one more factor."""
    model, lowest = diagram()
    result = ps.solve(model, maximize=DECISIONS)
    for decision, choice in result.assignment.items():
        print(f"{decision:>15}: {choice}")
    print(f"expected gain: {math.exp(result.log_upper) + lowest:.2f} thousand ({result.status})")

    gains = {}
    for choice in ("no", "yes"):
        fixed = ps.solve(model, maximize=DECISIONS, evidence={"test": choice})
        gains[f"test: {choice}"] = math.exp(fixed.log_upper) + lowest
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[2, 1])
    model.plot(DECISIONS, assignment=result.assignment, ax=left)
    right.bar(list(gains), list(gains.values()), color=["#b8b8b8", "#1f5fa8"], width=0.6)
    right.set_title("expected gain, thousand")
    right.spines[["top", "right"]].set_visible(False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)


def diagram() -> tuple[ps.Model, float]:
    """A factor must not be negative, so the lowest gain is subtracted; probabilities sum to one, so it adds back."""
    yes_no = ["no", "yes"]
    lowest = float(GAIN.min()) - TEST_COST
    # Axes: test, three choices by result, choice without a test, result, oil. A choice counts where it applies.
    utility = np.empty((2,) * 5 + (3, 3))
    for test, *rest in np.ndindex(utility.shape):
        *by_result, untested, result, oil = rest
        drill = by_result[result] if test else untested
        utility[(test, *rest)] = drill * GAIN[oil] - test * TEST_COST - lowest
    tables = {"oil": CHANCE, ("oil", "seismic"): RESULT, (*DECISIONS, "seismic", "oil"): utility}
    states = {"oil": OIL, "seismic": SEISMIC, **dict.fromkeys(DECISIONS, yes_no)}
    return ps.Model.from_tables(tables, states=states), lowest


if __name__ == "__main__":
    main()
