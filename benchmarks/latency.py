"""How long one more question takes: ``python -m benchmarks.latency FOLDER`` with BIF files of well-known networks.

Median wall time of a question with fresh evidence in a process that has answered others before: the best joint states
of three variables, and the marginals of all, by powersum's engine and by pyAgrum's lazy propagation. The BIF files of
the Bayesian network repository ship, compressed, with several libraries.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import powersum as ps
from powersum.model.model import Factor

NETWORKS = ("asia", "alarm", "hepar2", "win95pts", "hailfinder", "pathfinder", "link")
SECONDS = 20.0
"""For each network, question and program; at least three questions are asked."""

FIRST, COUNTED = 25, 75
"""Questions that only warm up, for an engine begins without compiled code, and those that are measured."""


def sample(model: ps.Model, rng: np.random.Generator) -> dict[str, str]:
    """States of all variables, drawn from the network."""
    drawn: dict[int, int] = {}
    waiting = list(model.factors())
    while waiting:
        scope, log_table = waiting.pop(0)
        *parents, child = scope
        if not all(parent in drawn for parent in parents):
            waiting.append(Factor(scope, log_table))
            continue
        row = np.exp(log_table[tuple(drawn[parent] for parent in parents)])
        drawn[child] = int(rng.choice(len(row), p=row / row.sum()))
    return {model.name(v): str(model.label(v, s)) for v, s in drawn.items()}


def questions(model: ps.Model, number: int, seed: int = 1) -> list[tuple[list[str], dict[str, str]]]:
    """Three variables, and a drawn state of each of three others; in every question other ones."""
    rng = np.random.default_rng(seed)
    names = list(model.names or ())
    asked = []
    for _ in range(number):
        chosen = [names[v] for v in rng.permutation(len(names))[:6]]
        drawn = sample(model, rng)
        asked.append((chosen[:3], {name: drawn[name] for name in chosen[3:]}))
    return asked


def median(ask: Callable[[list[str], dict[str, str]], Any], asked: list[tuple[list[str], dict[str, str]]]) -> float:
    """Median seconds of a question; the first ones are not counted."""
    _seconds(ask, asked[:FIRST])
    return statistics.median(_seconds(ask, asked[FIRST:]))


def _seconds(
    ask: Callable[[list[str], dict[str, str]], Any], asked: list[tuple[list[str], dict[str, str]]]
) -> list[float]:
    """Seconds of each question, as many as there is time for."""
    end = time.monotonic() + SECONDS
    seconds: list[float] = []
    for question in asked:
        begun = time.perf_counter()
        ask(*question)
        seconds.append(time.perf_counter() - begun)
        if time.monotonic() > end and len(seconds) >= 3:
            break
    return seconds


def _joints(engine: ps.Engine) -> Callable[[list[str], dict[str, str]], Any]:
    return lambda names, evidence: engine.solve(names, evidence=evidence)


def _marginals(engine: ps.Engine) -> Callable[[list[str], dict[str, str]], Any]:
    return lambda _, evidence: engine.marginals(evidence=evidence)


class Agrum:
    """pyAgrum's lazy propagation, one engine for all questions of a kind."""

    def __init__(self, path: Path) -> None:
        # By name, for the library's own types call its classes untyped.
        library: Any = import_module("pyagrum")
        self._bn = library.loadBN(str(path))
        self._engine = library.LazyPropagation
        self._marginals = self._engine(self._bn)

    def solve(self, names: list[str], evidence: dict[str, str]) -> Any:
        """Best joint states."""
        engine = self._engine(self._bn)
        engine.setEvidence(evidence)
        engine.addJointTarget(set(names))
        engine.makeInference()
        return engine.jointPosterior(set(names)).argmax()

    def marginals(self, names: list[str], evidence: dict[str, str]) -> Any:
        """All of them."""
        self._marginals.setEvidence(evidence)
        self._marginals.makeInference()
        return [self._marginals.posterior(name) for name in self._bn.names()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument(
        "--without-agrum",
        default="link",
        help="networks whose marginals pyAgrum is not asked for; link: 10 GB",
    )
    options = parser.parse_args()
    left_out = [name for name in options.without_agrum.split(",") if name in options.networks.split(",")]
    print(f"{'':12}{'joint of three, ms':>30}{'all marginals, ms':>30}")
    print(f"{'network':12}" + 2 * f"{'powersum':>12}{'pyAgrum':>10}{'ratio':>8}")
    for name in options.networks.split(","):
        path = next(path for path in sorted(options.folder.rglob(f"{name}.bif*")))
        model = ps.read(path)
        asked = questions(model, FIRST + COUNTED)
        engine = ps.Engine(model)
        ours = [
            median(_joints(engine), asked),
            median(_marginals(engine), asked),
        ]
        # It reads plain files only.
        with TemporaryDirectory() as folder:
            plain = Path(folder) / f"{name}.bif"
            ps.write(model, plain)
            agrum = Agrum(plain)
        theirs = [median(agrum.solve, asked)]
        if name not in left_out:
            theirs.append(median(agrum.marginals, asked))
        cells = (f"{1e3 * a:12.3f}" + _beside(a, b) for a, b in zip_longest(ours, theirs))
        print(f"{name:12}" + "".join(cells), flush=True)
    if left_out:
        print(f"pyAgrum was not asked for all marginals of {', '.join(left_out)}: --without-agrum says so.")


def _beside(ours: float, theirs: float | None) -> str:
    """Milliseconds and how many times ours, where there is something to compare with."""
    return f"{'not asked':>10}{'':8}" if theirs is None else f"{1e3 * theirs:10.2f}{theirs / ours:8.1f}"


if __name__ == "__main__":
    main()
