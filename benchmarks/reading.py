"""How fast models are read and written: ``python -m benchmarks.reading [MEGABYTES]``."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from powersum import formats


def _entries(rng: np.random.Generator, count: int, style: str) -> list[str]:
    """Table entries as other programs print them: mostly six decimals, some with exponents; or all seventeen digits."""
    values = rng.random(count)
    if style == "full precision":
        return [repr(v) for v in values.tolist()]
    return [f"{v:.6f}" if k % 8 else f"{v * 1e-4:.0e}" for k, v in enumerate(values.tolist())]


def _write_model(path: Path, megabytes: float, order: int, style: str) -> None:
    """A Markov model of binary variables with factors of ``order`` neighbours, about ``megabytes`` long."""
    rng = np.random.default_rng(0)
    size = 2**order
    # A thousand different tables, repeated: only the length of the file matters.
    texts = [f"\n{size}\n {' '.join(_entries(rng, size, style))}\n" for _ in range(1000)]
    per_factor = sum(map(len, texts)) / len(texts) + 8 * order + 2
    n_factors = max(1, int(megabytes * 1e6 / per_factor))
    with path.open("w", encoding="ascii") as out:
        n_variables = n_factors + order
        out.write(f"MARKOV\n{n_variables}\n{' '.join(['2'] * n_variables)}\n{n_factors}\n")
        for k in range(n_factors):
            out.write(f"{order} {' '.join(str(k + j) for j in range(order))}\n")
        for k in range(n_factors):
            out.write(texts[k % len(texts)])


def _seconds(action: Callable[[], object], repeats: int = 3) -> float:
    """The best of a few runs: the machine is shared."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """Print a table: one row for each kind of model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", type=float, nargs="?", default=50.0, help="size of each file (default: 50)")
    megabytes = parser.parse_args().megabytes
    print(f"{'model':<34}{'factors':>9}{'MB':>8}{'first s':>9}{'read s':>8}{'MB/s':>8}{'write s':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for label, order, style in (
            ("tables of 1024, six decimals", 10, "six decimals"),
            ("tables of 16, six decimals", 4, "six decimals"),
            ("tables of 4, six decimals", 2, "six decimals"),
            ("tables of 1024, full precision", 10, "full precision"),
        ):
            path = Path(folder) / "model.uai"
            _write_model(path, megabytes, order, style)
            size = path.stat().st_size / 1e6
            start = time.perf_counter()
            model = formats.read(path)
            first = time.perf_counter() - start
            read = _seconds(lambda path=path: formats.read(path))  # type: ignore[misc]
            copy = Path(folder) / "copy.uai"
            write = _seconds(lambda model=model, copy=copy: formats.write(model, copy), repeats=1)  # type: ignore[misc]
            print(
                f"{label:<34}{model.n_factors:>9}{size:>8.1f}{first:>9.2f}{read:>8.2f}{size / read:>8.1f}{write:>9.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
