"""The same questions to other programs: ``python -m benchmarks.others FOLDER`` with BIF files, and UAI files for MAP.

For each BIF file: the most probable joint states of three variables given three others, and the marginals of all, by
powersum's engine and by pgmpy's variable elimination; answers are compared. For each UAI file: MAP by powersum and by
toulbar2, with the same time. What is not installed is left out; ``benchmarks.latency`` has pyAgrum.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import powersum as ps

QUESTIONS, FIRST, SECONDS = 15, 3, 60.0
"""Questions that are measured, those before them that only warm up, and seconds after which a program gets no more."""


def questions(model: ps.Model, count: int) -> list[tuple[list[str], dict[str, Any]]]:
    """Three variables to maximise and three observed ones, in states that are possible together."""
    rng = np.random.default_rng(0)
    found: list[tuple[list[str], dict[str, Any]]] = []
    while len(found) < count:
        chosen = rng.permutation(model.n_variables)[:6].tolist()
        evidence = {model.name(v): model.label(v, int(rng.integers(model.cardinalities[v]))) for v in chosen[3:]}
        if ps.solve(model, evidence=evidence).status is ps.Status.OPTIMAL:
            found.append(([model.name(v) for v in chosen[:3]], evidence))
    return found


def timed(ask: Callable[[list[str], dict[str, Any]], Any], asked: list[Any]) -> tuple[str, list[Any]]:
    """Median milliseconds of a question, and all answers."""
    begun, times, answers = time.monotonic(), [], []
    for names, evidence in asked:
        start = time.perf_counter()
        try:
            answers.append(ask(names, evidence))
        except (MemoryError, ValueError, RuntimeError) as error:
            return type(error).__name__, answers
        times.append(1e3 * (time.perf_counter() - start))
        if time.monotonic() - begun > SECONDS:
            break
    return f"{statistics.median(times[FIRST:] or times):.3g} ms", answers


def networks(path: Path) -> None:
    """One BIF file."""
    model = ps.read(path)
    asked = questions(model, QUESTIONS + FIRST)
    engine = ps.Engine(model)
    # An engine begins without compiled code.
    for names, evidence in asked * 2:
        engine.solve(names, evidence=evidence)
        engine.marginals(evidence=evidence)
    ours, answers = timed(lambda names, evidence: dict(engine.solve(names, evidence=evidence).assignment), asked)
    print(f"{path.name}: joint of three: powersum {ours}", end="", flush=True)
    if installed("pgmpy"):
        network = import_module("pgmpy.readwrite").BIFReader(str(path)).get_model()
        elimination = import_module("pgmpy.inference").VariableElimination(network)
        theirs, others = timed(
            lambda names, evidence: elimination.map_query(names, evidence=evidence, show_progress=False), asked
        )
        same = sum(
            abs(value(engine, one, e) - value(engine, other, e)) < 1e-6
            for one, other, (_, e) in zip(answers, others, asked, strict=False)
        )
        print(f", pgmpy {theirs} (as probable on {same} of {len(others)})", end="", flush=True)
        marginal, _ = timed(
            lambda _, evidence: [
                elimination.query([name], evidence=evidence, show_progress=False)
                for name in network.nodes()
                if name not in evidence
            ],
            asked[:4],
        )
        print(f"; all marginals: pgmpy {marginal}", end="")
    all_ours, _ = timed(lambda _, evidence: engine.marginals(evidence=evidence), asked)
    print(f"; all marginals: powersum {all_ours}", flush=True)


def value(engine: ps.Engine, states: dict[str, Any], evidence: dict[str, Any]) -> float:
    """Log probability of an answer together with the evidence."""
    return engine.log_z(evidence={**evidence, **states}).log_upper


def most_probable(path: Path, seconds: float) -> None:
    """One UAI file: MAP."""
    evidence = path.with_name(path.name + ".evid")
    model = ps.read(path)
    given = ps.read_evidence(evidence, model) if evidence.exists() else {}
    result = ps.solve(model, "all", evidence=given, time_limit=seconds)
    print(
        f"{path.name}: powersum {result.log_lower:.4f} {result.status} after {result.seconds:.2f} s", end="", flush=True
    )
    if not installed("pytoulbar2"):
        print()
        return
    toulbar2 = import_module("pytoulbar2")
    # Costs with so many decimals: the sum of minus the logs.
    network = toulbar2.CFN(resolution=6, verbose=-1)
    for v, size in enumerate(model.cardinalities.tolist()):
        states = [given[v]] if v in given else range(size)
        network.AddVariable(f"v{v}", [f"s{s}" for s in states])
    for scope, log_table in model.factors():
        if not scope:
            continue
        table = log_table
        for axis, v in reversed(list(enumerate(scope))):
            if v in given:
                table = np.take(table, [given[v]], axis=axis)
        costs = np.where(table == -np.inf, network.Top, -table).ravel()
        network.AddFunction([f"v{v}" for v in scope], costs.tolist())
    start = time.perf_counter()
    found = network.Solve(timeLimit=int(seconds))
    spent = time.perf_counter() - start
    constant = sum(float(table) for scope, table in model.factors() if not scope)
    print(f"; toulbar2 {'none' if found is None else f'{constant - found[1]:.4f}'} after {spent:.2f} s", flush=True)


def installed(name: str) -> bool:
    """Whether a package is there."""
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def main() -> None:
    """Measure all that is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--time", type=float, default=20.0)
    options = parser.parse_args()
    for name in ("powersum", "pgmpy", "pytoulbar2"):
        if installed(name):
            print(name, version(name))
    for path in options.files:
        if ".bif" in path.suffixes:
            networks(path)
        else:
            most_probable(path, options.time)


if __name__ == "__main__":
    main()
