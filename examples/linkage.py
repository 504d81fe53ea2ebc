"""Genetic linkage: which parts of the chromosome went down the family, given what was measured on half of it?"""

from pathlib import Path

import powersum as ps
from powersum.app.report.curves import save_plot

PICTURE = Path(__file__).parents[1] / "out" / "linkage.png"


def main() -> None:
    """Make a family, ask for half of what is undecided, and watch both bounds close in."""
    model, query = ps.generate.pedigree(people=24, loci=4, seed=5)
    print("A family of 24 people, four places on a chromosome:")
    print(f"  {model.n_variables} variables, {model.n_factors} tables, {zeros(model):.0%} of their entries are zero.")
    print(f"  {len(query)} variables are maximised together, all others summed out.\n")
    result = ps.solve(model, maximize=query, time_limit=8, callback=show)
    print(f"\n{result.status}: {result.reason}")
    print(f"The best inheritance found has log probability {result.log_lower:.4f};")
    print(f"none has more than {result.log_upper:.4f}. The gap is {result.gap:.4f}.")

    PICTURE.parent.mkdir(exist_ok=True)
    save_plot(result, PICTURE)


def zeros(model: ps.Model) -> float:
    """Share of impossible entries: Mendel's rules are hard constraints."""
    return float((model.log_values == -float("inf")).mean())


def show(snapshot: ps.Snapshot) -> None:
    """One line whenever a bound has moved."""
    print(f"  {snapshot.seconds:5.1f} s   {snapshot.log_lower:10.4f} ≤ log value ≤ {snapshot.log_upper:10.4f}")


if __name__ == "__main__":
    main()
