"""What certificates cost: ``python -m benchmarks.certificates [--time 20] [--match grid]``.

Prints, for each question with a reference value, the bounds and the seconds that solving took, the seconds for making
and writing the proof, its size, the seconds that the checker took, and by how much the verified bounds are wider.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import powersum_check as pc
from benchmarks.instances import model_file
from benchmarks.solve import Row, load, rows
from powersum.generate import grid
from powersum.model.query import Query
from powersum.model.result import Result
from powersum.run.solver import solve


def checked(row: Row, weights: tuple[float, ...], evidence: dict[int, int], proof: Path) -> tuple[str, float]:
    """What the checker says, and the seconds it took, reading the model included."""
    begun = time.monotonic()
    try:
        name = row.instance.partition(".Q")[0]
        model = pc.read_model(model_file(row.family, name), 10**10)
        found = pc.check(model, pc.Question(weights, evidence), proof)
    except (pc.Rejected, pc.BadFile) as error:
        return f"REFUSED: {error}", time.monotonic() - begun
    return f"{found.log_lower:.6f} {found.log_upper:.6f}", time.monotonic() - begun


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", type=float, default=20.0, help="seconds for each question")
    parser.add_argument("--match", default="", help="only questions whose family or name contains this")
    arguments = parser.parse_args()
    # What is compiled on first use shall not count.
    warm = grid(14, 14, seed=1)
    solve(warm.model, warm.query, certificate=True, time_limit=5.0)
    print(f"{'question':36} {'status':9} {'lower':>12} {'upper':>12} {'solve':>7} {'write':>6} {'MB':>7} {'check':>7}")
    with tempfile.TemporaryDirectory() as folder:
        proof = Path(folder) / "proof.zip"
        for row in rows():
            if arguments.match not in f"{row.family}/{row.instance}":
                continue
            model, maximize, evidence = load(row)
            begun = time.monotonic()
            result: Result = solve(model, maximize, evidence=evidence, time_limit=arguments.time, certificate=True)
            assert result.certificate is not None
            result.certificate.save(proof)
            writing = time.monotonic() - begun - result.seconds
            print(
                f"{row.family + '/' + row.instance:36} {result.status:9} {result.log_lower:12.5f}"
                f" {result.log_upper:12.5f} {result.seconds:7.2f} {writing:6.2f}"
                f" {1e-6 * proof.stat().st_size:7.3f}",
                end=" ",
                flush=True,
            )
            weights = tuple(Query.of(model, maximize).weights.tolist())
            words, seconds = checked(row, weights, evidence, proof)
            print(f"{seconds:7.2f}  {words}", flush=True)


if __name__ == "__main__":
    main()
