"""Learning to label pictures with hidden variables: woven cloth under heavy noise, four ways to learn its tables."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import powersum as ps

PICTURE = Path(__file__).parents[1] / "out" / "learning.png"
SIZE, PATTERNS, NOISE, TRAINING = 12, 4, 1.8, 5
CELLS = np.arange(SIZE**2).reshape(SIZE, SIZE)
WINDOWS = np.lib.stride_tricks.sliding_window_view(CELLS, (2, 2)).reshape(-1, 4)


def main(seed: int = 1) -> None:  # All ways but the first start from what the first has found.
    rng = np.random.default_rng(seed)
    truth = np.array([cloth(rng) for _ in range(2 * TRAINING)])
    seen = 2 * truth - 1 + NOISE * rng.normal(size=truth.shape)
    examples = [example(noisy, labels) for noisy, labels in zip(seen, truth, strict=True)]
    parameters = rng.normal(size=examples[0].n_parameters)
    pictures = {"what is true": truth[-1], "what was seen": seen[-1], "each pixel by itself": seen[-1] > 0}
    print(f"each pixel by itself: {np.mean((seen > 0)[TRAINING:] != truth[TRAINING:]):.1%} wrong")
    for way in ("pseudo-likelihood", "joint margin", "margin", "likelihood"):
        fit = ps.learn.fit(examples[:TRAINING], way, start=parameters, l2=0.01, ibound=6, iterations=60)
        parameters = fit.parameters if way == "pseudo-likelihood" else parameters
        asked = "all" if way == "joint margin" else range(SIZE**2)
        answers = [ps.solve(one.with_parameters(fit.parameters), asked, time_limit=3) for one in examples[TRAINING:]]
        found = np.array([[a.assignment[str(v)] for v in CELLS.flat] for a in answers]).reshape(-1, SIZE, SIZE)
        print(f"{way}: {np.mean(found != truth[TRAINING:]):.1%} wrong")
        pictures[way] = found[-1]
    PICTURE.parent.mkdir(exist_ok=True)
    figure = Figure(figsize=(14, 2.4), layout="constrained")
    for ax, title in zip(figure.subplots(1, len(pictures)), pictures, strict=True):
        ax.set(title=title, xticks=[], yticks=[])
        ax.imshow(pictures[title], cmap="gray")
    figure.savefig(PICTURE, dpi=90)


def cloth(rng: np.random.Generator) -> np.ndarray:
    """Threads down on one side of an edge, threads across on the other."""
    y, x = np.indices((SIZE, SIZE))
    beside = (x if rng.random() < 0.5 else y) < rng.integers(4, SIZE - 3)
    return np.where(beside, (x + rng.integers(2)) % 2, (y + rng.integers(2)) % 2)


def example(noisy: np.ndarray, labels: np.ndarray) -> ps.learn.Example:
    """Two labels a pixel. Each window of four has a hidden pattern, whose tables with its pixels are learned."""
    factors = [((v,), np.zeros(2)) for v in CELLS.flat]
    factors += [((h, v), np.zeros((PATTERNS, 2))) for h, window in enumerate(WINDOWS, SIZE**2) for v in window]
    model = ps.Model.from_factors([2] * SIZE**2 + [PATTERNS] * len(WINDOWS), factors, log=True)
    features = np.zeros((model.log_values.size, 1 + 4 * PATTERNS))
    features[1 : 2 * SIZE**2 : 2, 0] = noisy.ravel()
    features[2 * SIZE**2 :, 1:] = np.tile(np.kron(np.eye(4 * PATTERNS), [[0], [1]]), (len(WINDOWS), 1))
    return ps.learn.Example(model, features, dict(enumerate(labels.ravel().tolist())))


if __name__ == "__main__":
    main()
