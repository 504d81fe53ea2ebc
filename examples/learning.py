"""Learning to label pictures with hidden variables: a patterned cross, half of its pixels seen through thick glass."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import powersum as ps

PICTURE = Path(__file__).parents[1] / "out" / "learning.png"
SIZE, BAR, TRAINING, NOISES, SHADES, PLAIN = 12, 3, 5, (0.1, 10.0), np.linspace(-4, 4, 32), 16
CELLS = np.arange(SIZE**2).reshape(SIZE, SIZE)
PAIRS = [*zip(CELLS[:, :-1].flat, CELLS[:, 1:].flat, strict=True), *zip(CELLS[:-1].flat, CELLS[1:].flat, strict=True)]


def main(seed: int = 3) -> None:
    rng = np.random.default_rng(seed)
    scenes = [scene(rng) for _ in range(2 * TRAINING)]
    truth = np.array([labels for labels, _, _ in scenes])
    examples = [example(*one) for one in scenes]
    start = rng.normal(scale=0.1, size=examples[0].n_parameters)
    pictures = {"what is true": truth[-1], "what was seen": np.clip(scenes[-1][1], -8, 8)}
    for way in ("pseudo-likelihood", "joint margin", "margin", "likelihood"):
        fit = ps.learn.fit(examples[:TRAINING], way, start=start, l2=0.001, ibound=6, iterations=60)
        asked = "all" if way == "joint margin" else range(SIZE**2)
        answers = [ps.solve(one.with_parameters(fit.parameters), asked, time_limit=3) for one in examples[TRAINING:]]
        found = np.array([[a.assignment[str(v)] for v in CELLS.flat] for a in answers]).reshape(-1, SIZE, SIZE)
        pictures[way] = found[-1]
        print(f"{way}: {np.mean(found != truth[TRAINING:]):.1%} wrong")
    figure = Figure(figsize=(14, 2.6), layout="constrained")
    for ax, title in zip(figure.subplots(1, len(pictures)), pictures, strict=True):
        # A picture of one colour alone is an answer, too: nothing was found.
        empty = title not in ("what is true", "what was seen") and not pictures[title].any()
        ax.imshow(pictures[title], cmap="gray", vmin=None if title == "what was seen" else 0).axes.set(
            title=f"{title}: all background" if empty else title, xticks=[], yticks=[]
        )
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=90)


def scene(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A cross of any shades on a plain ground; what is seen of it, and how much noise each pixel has."""
    labels = np.zeros((SIZE, SIZE), dtype=int)
    row, column = rng.integers(1, SIZE - BAR, size=2)
    labels[row : row + BAR] = labels[:, column : column + BAR] = 1
    shades = SHADES[np.where(labels == 1, rng.integers(len(SHADES), size=labels.shape), PLAIN)]
    noise = rng.choice(NOISES, size=labels.shape)
    return labels, rng.normal(shades, noise), noise


def example(labels: np.ndarray, seen: np.ndarray, noise: np.ndarray) -> ps.learn.Example:
    """Four parameters: the plain shade in the ground, any other there, any shade in the cross, equal neighbours."""
    n, fits = SIZE**2, -0.5 * ((seen.reshape(-1, 1) - SHADES) / noise.reshape(-1, 1)) ** 2
    factors = [((n + v,), fits[v]) for v in CELLS.flat] + [((v, n + v), np.zeros((2, 32))) for v in CELLS.flat]
    factors += [(pair, np.zeros((2, 2))) for pair in PAIRS]
    model = ps.Model.from_factors([2] * n + [32] * n, factors, log=True)
    shades = [*np.where(np.arange(32) == PLAIN, 0, 1), *np.full(32, 2)]
    parameters = np.concatenate([np.full(fits.size, -1), np.tile(shades, n), np.tile([3, -1, -1, 3], len(PAIRS))])
    return ps.learn.Example(model, parameters, dict(enumerate(labels.ravel().tolist())))


if __name__ == "__main__":
    main()
