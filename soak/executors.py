"""Executors that are cheap and unkind: tasks in any order, workers that are lost, that have forgotten, that doubt.

Everything they do may happen on a cluster. Nothing of it may make a bound false.
"""

from __future__ import annotations

import concurrent.futures as cf
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np


class Unkind(cf.Executor):
    """Runs tasks at once, in the thread that hands them in, or in a thread of its own and in no order.

    Parameters
    ----------
    workers
        How many it says it has.
    threaded
        Whether they run beside whoever hands them in.
    lost
        Share of the tasks at which the pool breaks, before or after the work was done.
    forgotten
        Share of the tasks whose worker has never heard of what tasks have in common, and says so.
    seed
        Of all that is drawn.
    """

    def __init__(self, workers: int, *, threaded: bool, lost: float, forgotten: float, seed: int) -> None:
        self._max_workers = workers
        self._lost, self._forgotten = lost, forgotten
        self._rng = np.random.default_rng(seed)
        self._waiting: list[tuple[cf.Future[Any], Callable[[], Any]]] = []
        self._changed = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._serve, daemon=True) if threaded else None
        if self._thread is not None:
            self._thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> cf.Future[Any]:
        """Take a task; it may be done already when this returns."""
        future: cf.Future[Any] = cf.Future()
        # As ``powersum.cluster.store`` has it: the fourth argument tells whether the shared value goes along.
        unknown = self._rng.random() < self._forgotten and not args[3]
        task = (lambda: (False, None)) if unknown else (lambda: fn(*args, **kwargs))
        if self._thread is None:
            self._run(future, task)
        else:
            with self._changed:
                self._waiting.append((future, task))
                self._changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the thread."""
        del cancel_futures
        with self._changed:
            self._over = True
            self._changed.notify()
        if self._thread is not None and wait:
            self._thread.join()

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._over:
                    self._changed.wait()
                if self._over:
                    return
                future, task = self._waiting.pop(int(self._rng.integers(len(self._waiting))))
            self._run(future, task)

    def _run(self, future: cf.Future[Any], task: Callable[[], Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        lost, worked = self._rng.random() < self._lost, self._rng.random() < 0.5
        try:
            value = task() if worked or not lost else None
        except BaseException as error:  # whatever it is, whoever waits shall have it
            future.set_exception(error)
            return
        if lost:
            future.set_exception(cf.BrokenExecutor("a worker is gone"))
        else:
            future.set_result(value)


def drawn_executor(rng: np.random.Generator) -> dict[str, Any]:
    """What an executor is to be like, as plain data."""
    return {
        "workers": int(rng.integers(1, 6)),
        "threaded": bool(rng.random() < 0.3),
        "lost": float(rng.choice([0.0, 0.0, 0.02, 0.2])),
        "forgotten": float(rng.choice([0.0, 0.0, 0.3])),
        "seed": int(rng.integers(1 << 30)),
    }


@contextmanager
def executor_of(spec: Mapping[str, Any]) -> Iterator[Unkind]:
    """An executor for the length of a block."""
    pool = Unkind(**spec)
    try:
        yield pool
    finally:
        pool.shutdown()


@contextmanager
def perhaps_beside(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Options of a call, with the executor that they describe, if they do."""
    spec = options.get("executor")
    with executor_of(spec) if spec is not None else nullcontext() as executor:
        yield {**{k: v for k, v in options.items() if k != "executor"}, "workers": executor}


@contextmanager
def small_slices(
    seconds: float, doubt: float, seed: int, caller_works: bool = False, silent: bool = False
) -> Iterator[None]:
    """Cubes have so many seconds each, and workers often keep the bound they have found to themselves.

    Models are small here, and most cubes would be closed at once. ``caller_works``: as with a number of processes.
    ``silent``: nothing comes of cubes at all, and the caller has to lend boxes.
    """
    cubes = import_module("powersum.run.cubes")
    names = ("FIRST_SECONDS", "CUBE_SECONDS", "SUM_FROM", "LEAST_SECONDS", "OPENING_SECONDS")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(patch.object(cubes, name, seconds))
        if caller_works:
            executors = import_module("powersum.cluster.executor")
            stack.enter_context(patch.object(executors, "others_of", lambda executor: (executor, True)))
        bounded = _silent if silent else _doubtful(cubes.bound_box, doubt, seed)
        stack.enter_context(patch.object(cubes, "bound_box", bounded))
        yield


def _silent(*_: object) -> Any:
    return import_module("powersum.run.box_run").BoxReport(seconds=0.0)


def _doubtful(bound_box: Callable[..., Any], doubt: float, seed: int) -> Callable[..., Any]:
    rng = np.random.default_rng(seed)
    nothing = import_module("powersum.proof.boxes").NOTHING_PROVEN

    def bounded(asked: Any, job: Any) -> Any:
        report = bound_box(asked, job)
        question = asked.question
        maximised = question.query.max_variables.tolist()
        known = question.evidence.states.keys() | job.allowed.keys()
        free = [v for v in (maximised or range(question.model.n_variables)) if v not in known]
        if not free or rng.random() >= doubt:
            return report
        branch = int(rng.choice(free))
        if rng.random() < 0.5:
            return replace(report, branch=branch)
        silent = replace(report.proof, log_upper=math.inf, above=None) if report.proof is not nothing else nothing
        return replace(report, log_upper=math.inf, branch=branch, proof=silent)

    return bounded
