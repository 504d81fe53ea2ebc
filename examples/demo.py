"""Which diseases together explain what was found? A guaranteed bound, its best guess and a picture, in a few lines."""

import math
from pathlib import Path

import powersum as ps
from powersum.report.curves import save_plot

HERE = Path(__file__).parent
PICTURE = HERE.parent / "out" / "demo.png"


def main() -> None:
    """Read, bound, report."""
    names = (HERE / "clinic.names").read_text(encoding="utf-8").split()
    model = ps.read(HERE / "clinic.uai.gz").with_names(names)
    diseases = ps.read_query(HERE / "clinic.uai.query", model)
    known = sum(name.startswith("finding") and model.cardinalities[i] == 1 for i, name in enumerate(names))
    print(
        f"A clinic's network: {model.n_variables} variables, {len(diseases)} of them diseases, {known} findings known."
    )
    print("Question: which joint state of all diseases is the most probable, summed over everything else unknown?")
    print("(The first run ever compiles; later ones start at once.)\n")

    result = ps.bound(model, maximize=diseases, sweeps=100, callback=show)

    print(f"\n{result.reason} {result.seconds:.1f} s in all.")
    print(f"No joint state of the {len(diseases)} diseases, together with the findings, has a probability above")
    print(f"exp({result.log_upper:.4f}) = {math.exp(result.log_upper):.3g}. That is guaranteed.\n")
    present = [with_degree(model, name, int(state)) for name, state in result.assignment.items() if state]
    print(f"The bound's own best guess, {len(present)} diseases present: {', '.join(present)}.")

    PICTURE.parent.mkdir(exist_ok=True)
    save_plot(result, PICTURE, against="sweep")
    print(f"\nThe picture of the falling bound is in {PICTURE.relative_to(HERE.parent)}")


def with_degree(model: ps.Model, name: str, state: int) -> str:
    """A disease with its severity, where there are degrees of it."""
    worst = int(model.cardinalities[model.variable(name)]) - 1
    return name if worst == 1 else f"{name} (degree {state} of {worst})"


def show(snapshot: ps.Snapshot) -> None:
    """Print a few of the sweeps."""
    if snapshot.sweep in (0, 1, 2, 5, 10, 20, 50, 100):
        print(f"  sweep {snapshot.sweep:>3}: log probability ≤ {snapshot.log_upper:.4f}")


if __name__ == "__main__":
    main()
