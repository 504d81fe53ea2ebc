"""Which diseases together explain what was found? A guaranteed bound, a proven result and a picture, in a few lines."""

import math
from pathlib import Path

from matplotlib.figure import Figure

import powersum as ps

HERE = Path(__file__).parent
PICTURE = HERE.parent / "out" / "demo.png"


def main() -> None:
    """Read, bound, report."""
    names = (HERE / "hospital.names").read_text(encoding="utf-8").split()
    model = ps.read(HERE / "hospital.uai.gz").with_names(names)
    diseases = ps.read_query(HERE / "hospital.uai.query", model)
    known = sum(name.startswith("finding") and model.cardinalities[i] == 1 for i, name in enumerate(names))
    kinds = f"{len(diseases)} of them diseases, {known} findings known"
    print(f"A hospital's network: {model.n_variables} variables, {kinds}.")
    print("Question: which joint state of all diseases is the most probable, summed over everything else unknown?")
    print("(The first run ever compiles; later ones start at once.)\n")

    print("1. The paper's algorithm: an upper bound that falls with every sweep.")
    falling = ps.bound(model, maximize=diseases, method="gdd", sweeps=100, callback=show)
    print(f"  No joint state of the {len(diseases)} diseases has a probability above")
    print(f"  exp({falling.log_upper:.4f}) = {math.exp(falling.log_upper):.3g}, found in {falling.seconds:.1f} s.")
    print("  That is guaranteed.\n")

    print("2. The solver: larger regions, search, and a proof.")
    result = ps.solve(model, maximize=diseases, time_limit=300)
    print(f"  {result.log_lower:.4f} ≤ log probability ≤ {result.log_upper:.4f}  ({result.seconds:.1f} s)")
    print(f"  {result.status}: {result.reason}")
    present = [with_degree(model, name, int(state)) for name, state in result.assignment.items() if state]
    print(f"  Best state, {len(present)} diseases present: {', '.join(present)}.")

    PICTURE.parent.mkdir(exist_ok=True)
    draw(falling, result)
    print(f"\nThe picture of the falling bound and the certified answer is in {PICTURE.relative_to(HERE.parent)}")


def draw(falling: ps.Result, result: ps.Result) -> None:
    """The bound over its sweeps, and the value of the best state below it."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    ax = falling.plot(figure.subplots(), against="sweep")
    if math.isfinite(result.log_lower):
        ax.axhline(result.log_lower, color="#c4572b", linestyle="--", linewidth=1)
        ax.annotate(
            f"{result.status} state {result.log_lower:.3f}",
            (0.5, result.log_lower),
            xycoords=("axes fraction", "data"),
            xytext=(0, -14),
            textcoords="offset points",
            color="#c4572b",
        )
    figure.savefig(PICTURE, dpi=150)


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
