"""What each compiled function costs before it runs, and the list of what is needed in which order.

``python -m benchmarks.compile [TASK …]`` compiles what the tasks of ``powersum warmup`` need, in an empty folder
and one process for each task, and prints processor seconds by function, callees apart. ``--record`` runs the tasks
with what is kept, and writes ``core/ahead.json`` anew: the functions that Python calls, in the order of the tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from powersum.app.cli.warmup import TASKS
from powersum.core.ahead import LIST, described

RECORDED = (
    "pedigree",
    "a hard question",
    "MAP",
    "marginal MAP",
    "sums too wide",
    "bounds of the paper",
    "marginals",
    "zeros",
    "exact sums",
    "wide sums by conditioning",
)
"""Tasks that stand for typical questions; where several fit, helpers go on with the first."""


def costs(task: str) -> list[tuple[str, float, float]]:
    """Run a task; for each function that was compiled its name, seconds without what it calls, and when it began."""
    from numba.core import event

    begun, rows = time.process_time(), []
    open_: list[list[Any]] = []

    class Costs(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            open_.append([f"{function.__module__}.{function.__qualname__}", time.process_time(), 0.0])

        def on_end(self, event: Any) -> None:
            name, since, within = open_.pop()
            taken = time.process_time() - since
            if open_:
                open_[-1][2] += taken
            rows.append((name, taken - within, since - begun))

    with event.install_listener("numba:compile", Costs()):
        TASKS[task]()
    return rows


def needed(task: str) -> list[tuple[str, str, list[Any]]]:
    """Run a task; the functions that Python calls, with the kinds of their arguments, in this order."""
    from powersum.core import jit

    rows: list[tuple[str, str, list[Any]]] = []

    load = jit._Kept.load_overload

    def noting(self: jit._Kept, sig: Any, target_context: Any) -> Any:
        if not jit._requests.compiling:
            function = self._function
            try:
                rows.append((function.__module__, function.__qualname__, [described(kind) for kind in sig]))
            except TypeError as error:
                print(f"left out: {function.__qualname__}: {error}", file=sys.stderr)
        return load(self, sig, target_context)

    jit._Kept.load_overload = noting  # type: ignore[method-assign]
    TASKS[task]()
    return rows


def apart(function: str, task: str, **variables: str) -> Any:
    """What a function of this module returns in a process of its own."""
    code = f"import json, sys; from benchmarks.compile import {function}; json.dump({function}({task!r}), sys.stdout)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def record(tasks: Sequence[str]) -> None:
    """Write the list that helpers go by."""
    places: dict[str, int] = {}
    questions: list[list[int]] = []
    for task in tasks:
        rows = [json.dumps(row) for row in apart("needed", task)]
        questions.append(list(dict.fromkeys(places.setdefault(row, len(places)) for row in rows)))
        print(f"{task}: {len(questions[-1])} functions", flush=True)
    lines = [",\n".join(places), ",\n".join(json.dumps(question) for question in questions)]
    LIST.write_text(f'{{"entries": [\n{lines[0]}\n],\n"questions": [\n{lines[1]}\n]}}\n', encoding="utf-8")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(TASKS)}; all if not given")
    parser.add_argument("--record", action="store_true", help=f"write {LIST.name}")
    parser.add_argument("--rows", type=int, default=40, help="functions to print for each task")
    chosen = parser.parse_args()
    unknown = [task for task in chosen.tasks if task not in TASKS]
    if unknown:
        parser.error(f"there is no task {unknown[0]!r}")
    if chosen.record:
        record(chosen.tasks or RECORDED)
        return
    with tempfile.TemporaryDirectory() as folder:
        for task in chosen.tasks or TASKS:
            rows = apart("costs", task, POWERSUM_CACHE_DIR=str(Path(folder) / task.replace(" ", "-")))
            total: dict[str, float] = defaultdict(float)
            for name, seconds, _ in rows:
                total[name] += seconds
            print(f"\n{task}: {sum(total.values()):.1f} s in {len(rows)} forms of {len(total)} functions")
            for name, seconds in sorted(total.items(), key=lambda one: -one[1])[: chosen.rows]:
                print(f"{seconds:7.2f} s  {name}")


if __name__ == "__main__":
    main()
