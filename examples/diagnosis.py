"""Which illnesses together explain a cough and an unclear X-ray? A network by hand, with names, and a picture."""

from pathlib import Path

from matplotlib.figure import Figure

import powersum as ps

PICTURE = Path(__file__).parents[1] / "out" / "diagnosis.png"
YES_NO = ["no", "yes"]
# The numbers are made up. The last variable of each key is the one described, given the others.
TABLES = {
    "smoker": [0.7, 0.3],
    "pollen": [0.8, 0.2],
    ("smoker", "cancer"): [[0.995, 0.005], [0.96, 0.04]],
    ("smoker", "bronchitis"): [[0.9, 0.1], [0.65, 0.35]],
    ("pollen", "asthma"): [[0.97, 0.03], [0.75, 0.25]],
    ("cancer", "xray"): [[0.85, 0.1, 0.05], [0.05, 0.25, 0.7]],
    ("cancer", "bronchitis", "asthma", "cough"): [
        [[[0.95, 0.05], [0.5, 0.5]], [[0.2, 0.8], [0.1, 0.9]]],
        [[[0.3, 0.7], [0.2, 0.8]], [[0.1, 0.9], [0.05, 0.95]]],
    ],
    ("bronchitis", "asthma", "wheeze"): [[[0.98, 0.02], [0.2, 0.8]], [[0.7, 0.3], [0.1, 0.9]]],
}
STATES = dict.fromkeys(("smoker", "pollen", "cancer", "bronchitis", "asthma", "cough", "wheeze"), YES_NO)
ILLNESSES = ["cancer", "bronchitis", "asthma"]


def main() -> None:
    """Ask with certain evidence, then with what can be made out on a poor X-ray."""
    model = ps.Model.from_tables(TABLES, states={**STATES, "xray": ["clear", "unclear", "shadow"]}, directed=True)
    print(model)
    evidence = {"smoker": "yes", "cough": "yes", "wheeze": "no"}
    certain = ps.solve(model, maximize=ILLNESSES, evidence=evidence)
    print("\nsmoker, cough, no wheeze:", dict(certain.assignment))
    # Likelihoods: what can be made out on the X-ray speaks for a shadow, 45 times as strongly as for a clear picture.
    unsure = {**evidence, "xray": {"clear": 0.02, "unclear": 0.1, "shadow": 0.9}}
    soft = ps.solve(model, maximize=ILLNESSES, evidence=unsure)
    print("the same and a poor X-ray:", dict(soft.assignment))
    print("\nOne by one, given the same, which is another question with another answer:")
    beliefs = ps.marginals(model, evidence=unsure).beliefs
    for name in ILLNESSES:
        print(f"  {name}: {beliefs[model.variable(name)][1]:.0%}")

    figure = Figure(figsize=(6.4, 5.0), layout="constrained")
    model.plot(ILLNESSES, unsure, assignment=soft.assignment, ax=figure.subplots())
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)


if __name__ == "__main__":
    main()
