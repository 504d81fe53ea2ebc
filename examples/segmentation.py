"""Image segmentation: a noisy picture of a few shapes, and its most probable labelling with a proven bound."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import powersum as ps

PICTURE = Path(__file__).parents[1] / "out" / "segmentation.png"
SIZE, NOISE, SMOOTHNESS = 48, 0.9, 1.1


def main() -> None:
    """Make the picture, label every pixel, and show before and after."""
    rng = np.random.default_rng(4)
    truth = shapes()
    seen = truth + NOISE * rng.normal(size=truth.shape)
    model = potts(seen)
    result = ps.solve(model, maximize="all", time_limit=8)
    found = np.array([result.assignment[str(v)] for v in range(truth.size)]).reshape(truth.shape)
    alone = np.rint(np.clip(seen, 0, 2))
    print(f"{truth.size} pixels, 3 labels. {result.status}: {result.reason}")
    print(f"{result.log_lower:.3f} ≤ log value of the best labelling ≤ {result.log_upper:.3f}, gap {result.gap:.3f}")
    print(f"wrong pixels: {np.mean(alone != truth):.1%} pixel by pixel, {np.mean(found != truth):.1%} together")

    figure = Figure(figsize=(8.4, 3.1), layout="constrained")
    pictures = {"what was seen": seen, "each pixel by itself": alone, "most probable labelling": found}
    for ax, (title, picture) in zip(figure.subplots(1, 3), pictures.items(), strict=True):
        ax.imshow(picture, cmap="viridis", vmin=0, vmax=2)
        ax.set_title(title)
        ax.set_axis_off()
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)


def shapes() -> np.ndarray:
    """Labels 0, 1 and 2: a disc and a beam on a ground."""
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    labels = np.zeros((SIZE, SIZE))
    labels[(x - 0.38) ** 2 + (y - 0.42) ** 2 < 0.07] = 1
    labels[(abs(x - y) < 0.09) & (x > 0.4)] = 2
    return labels


def potts(seen: np.ndarray) -> ps.Model:
    """Gaussian noise on every pixel, and neighbours that like to agree."""
    unary = -((seen.reshape(-1, 1) - np.arange(3)) ** 2) / (2 * NOISE**2)
    cells = np.arange(seen.size).reshape(seen.shape)
    across = np.column_stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()])
    down = np.column_stack([cells[:-1].ravel(), cells[1:].ravel()])
    return ps.from_arrays(unary, np.concatenate([across, down]), SMOOTHNESS * np.eye(3), log=True)


if __name__ == "__main__":
    main()
