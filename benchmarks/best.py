"""What the k best take: ``python -m benchmarks.best [--k 5 20] [--work 20] [--match grid]``.

Each question twice, by turns: *fresh* parts share nothing; *shared* ones have the tables of the first run,
its tree, and what is known already. Limits count work, and what is printed is processor time, so that a busy machine
disturbs both alike; the first run of all is not printed, for it compiles.
"""

from __future__ import annotations

import argparse
import math
import time

import powersum as ps
from benchmarks.solve import Row, load
from powersum.core.arrays import IntArray
from powersum.model.result import Result
from powersum.run.best import BestFirst
from powersum.run.best_parts import Part
from powersum.run.solver import Run

QUESTIONS = (
    ("grid", "50-12-5.Q0.5.I1", "MMAP"),
    ("grid", "50-14-5.Q0.5.I1", "MMAP"),
    ("promedas", "or_chain_10.fg.Q0.5.I1", "MMAP"),
    ("promedas", "or_chain_111.fg.Q0.5.I1", "MMAP"),
    ("segmentation", "10_14_s.binary.Q0.5.I2", "MMAP"),
    ("pedigree", "pedigree1", "MAP"),
    ("pedigree", "pedigree1.Q0.5.I0", "MMAP"),
    ("pedigree", "pedigree1.Q0.5.I3", "MMAP"),
    ("uai2014-mmap", "Promedas_70", "MAP"),
    ("uai2014-mmap", "Promedas_70", "MMAP"),
    ("uai2014-mmap", "Promedas_61", "MAP"),
    ("uai2014-mmap", "wcsp_13", "MAP"),
)


class Fresh(BestFirst):
    """The search with parts that share nothing."""

    def _learn(self, part: Part, run: Run, result: Result, states: IntArray) -> None:
        del part, run, result, states

    @property
    def _floor(self) -> float:
        return -math.inf


def main() -> None:
    """Print a line for each question, k and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, nargs="+", default=[5, 20], help="how many (5 and 20)")
    parser.add_argument("--work", type=float, default=20.0, help="work for each run (20)")
    parser.add_argument("--match", default="", help="only questions whose family or name contains this")
    arguments = parser.parse_args()
    warm = ps.generate.grid(12, 12, seed=1)
    ps.solve(warm.model, maximize=warm.query, k=2, work=2.0)
    print(
        f"{'question':34} {'k':>3} {'way':6} {'seconds':>8} {'runs':>6} {'proven':>6} {'last':>12} {'next at most':>12}"
    )
    for family, name, task in QUESTIONS:
        if arguments.match not in f"{family}/{name}":
            continue
        model, maximize, evidence = load(Row(family, name, task, "", math.nan))
        for k in arguments.k:
            for way in (Fresh, BestFirst):
                seconds, runs, result = _timed(way, model, maximize, evidence, k, arguments.work)
                proven = sum(one.status is ps.Status.OPTIMAL for one in result.best)
                last = result.best[-1].log_lower if result.best else math.nan
                word = "shared" if way is BestFirst else "fresh"
                print(
                    f"{f'{name} {task}':34} {k:3} {word:6} {seconds:8.2f} {runs:6} {proven:6} {last:12.5f}"
                    f" {math.nan if result.log_upper_next is None else result.log_upper_next:12.5f}",
                    flush=True,
                )


def _timed(
    way: type[BestFirst],
    model: ps.Model,
    maximize: list[int] | str | None,
    evidence: dict[int, int],
    k: int,
    work: float,
) -> tuple[float, int, Result]:
    """Processor time, how many runs there were, and the answer."""
    from powersum.run import best

    runs = 0

    class Counted(way):  # type: ignore[misc, valid-type]
        def _hear(self, *report: object) -> None:
            nonlocal runs
            runs += 1
            super()._hear(*report)

    kept, best.BestFirst = best.BestFirst, Counted  # type: ignore[misc]
    try:
        begun = time.process_time()
        result = ps.solve(model, maximize, evidence=evidence, k=k, work=work)
        return time.process_time() - begun, runs, result
    finally:
        best.BestFirst = kept  # type: ignore[misc]


if __name__ == "__main__":
    main()
