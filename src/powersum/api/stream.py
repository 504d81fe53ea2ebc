"""``solve_each``: any number of questions about one model, answered as they come and in their order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain, islice
from typing import Any, NamedTuple

from powersum.api.answer_file import AnswerFile, fingerprint
from powersum.api.engine import PATIENCE, Engine
from powersum.cluster.executor import ExecutorLike, check_executor, workers_of
from powersum.cluster.ordered import here, ordered
from powersum.cluster.store import kept
from powersum.core.errors import InputError
from powersum.model.keys import as_text
from powersum.model.limits import Limits
from powersum.model.model import Model
from powersum.model.question import ModelLike, model_of
from powersum.model.result import Result
from powersum.run.solver import DEFAULT_MEMORY, DEFAULT_TIME

ASKED = ("maximize", "evidence", "query")
"""What a question may say."""


class BatchItem(NamedTuple):
    """The answer to one of many questions: its number, and the result or what is wrong with the question."""

    number: int
    result: Result | None
    error: str | None


def solve_each(
    model: ModelLike,
    questions: Iterable[Mapping[str, Any]],
    *,
    executor: ExecutorLike = None,
    checkpoint: str | os.PathLike[str] | None = None,
    time_limit: float | None = DEFAULT_TIME,
    memory: float | str = DEFAULT_MEMORY,
    seed: int = 0,
) -> Iterator[BatchItem]:
    """Answer any number of questions about one model, as they come.

    Questions are taken from their source only as they are needed, and memory does not grow with their number. Those
    that are written alike are answered once, as long as not too many others come between. A wrong question is an answer
    that says so; the rest goes on.

    Parameters
    ----------
    model
        The model, which is not changed, or the path of its file. It travels once to each worker.
    questions
        For each question a dictionary of what it asks: ``maximize``, ``evidence``, ``query``, as in
        :func:`powersum.solve`.
    executor
        Who answers: None for this process, a number of processes, a ``concurrent.futures.Executor``, or a
        ``dask.distributed.Client``. See ``docs/long-runs.md``.
    checkpoint
        A file of JSON lines that is written as answers come. If it is there already, its answers are yielded first and
        the rest goes on after its last whole line; the model and the questions must be the same.
    time_limit, memory, seed
        For each question and each process, as in :func:`powersum.solve`.

    Yields
    ------
    Answer
        In the order of the questions.

    Examples
    --------
    >>> import powersum as ps
    >>> rain = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    >>> cases = ({"maximize": ["rain"], "evidence": {"wet": wet}} for wet in (0, 1, 2))
    >>> for answer in ps.solve_each(rain, cases):
    ...     print(answer.number, answer.error or answer.result.assignment["rain"])
    0 no
    1 yes
    2 state 2 of variable wet is out of range: it has states 0 to 1
    """
    check_executor(executor)
    limits = Limits(time_limit=time_limit, memory=memory, seed=seed)
    options = (limits.time_limit, limits.bytes, limits.seed)
    return _answers(model_of(model), questions, executor, checkpoint, options)


def _answers(
    model: Model,
    questions: Iterable[Mapping[str, Any]],
    executor: ExecutorLike,
    checkpoint: str | os.PathLike[str] | None,
    options: tuple[Any, ...],
) -> Iterator[BatchItem]:
    coming = iter(questions)
    number = 0
    with ExitStack() as open_things:
        file = None if checkpoint is None else open_things.enter_context(AnswerFile(checkpoint, model.digest))
        prints: deque[str] = deque()
        if file is not None:
            for line in file.lines():
                question = next(coming, None)
                if question is None or fingerprint(question) != line.question:
                    raise InputError(f"{file.name}: answer {number} is to another question than number {number} now")
                yield BatchItem(number, line.result, line.error)
                number += 1
        items = _printed(coming, None if file is None else prints)
        for found in answered(model, answers_of, options, items, executor):
            answer = BatchItem(number, None, found) if isinstance(found, str) else BatchItem(number, found, None)
            if file is not None:
                file.write(prints.popleft(), answer.result, answer.error)
            yield answer
            number += 1


def answered(
    model: Model,
    function: Any,
    options: tuple[Any, ...],
    items: Iterable[tuple[Hashable, Any]],
    executor: ExecutorLike,
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Any]:
    """Results of items by a function of model, options and chunk, wherever the executor has its workers."""
    if executor is None:
        yield from here(model, function, options, items, stopped=stopped)
        return
    with workers_of(executor) as workers:
        shared = workers.share(model)
        coming = iter(items)
        first = list(islice(coming, PATIENCE + 1))
        if len(first) > PATIENCE:
            # Before all processes of a machine compile the same at the same time.
            workers.once_a_node(prepare, shared, options[:3])
        yield from ordered(workers, shared, function, options, chain(first, coming), stopped=stopped)


def engine_of(model: Model, options: tuple[Any, ...]) -> Engine:
    """The engine of this process for a model."""
    time_limit, memory, seed = options[:3]
    engine: Engine = kept(
        f"engine {model.digest} {options[:3]}",
        lambda: Engine(model, time_limit=time_limit, memory=memory, seed=seed),
    )
    return engine


def prepare(model: Model, options: tuple[Any, ...]) -> None:
    """On a worker: load what answers quickly, compiled if need be."""
    engine_of(model, options).prepare()


def answers_of(model: Model, options: tuple[Any, ...], chunk: list[Mapping[str, Any]]) -> list[Result | str]:
    """On a worker: a result for each question, or what is wrong with it."""
    engine = engine_of(model, options)
    found: list[Result | str] = []
    for question in chunk:
        try:
            check_question(question)
            found.append(engine.solve(**question))
        except InputError as error:
            found.append(str(error))
    return found


def check_question(question: Any) -> None:
    """Refuse what is no question."""
    if not isinstance(question, Mapping):
        raise InputError(f"{as_text(question)} is no dictionary of {', '.join(ASKED)}")
    for name in question:
        if name not in ASKED:
            raise InputError(f"{as_text(name)} is none of {', '.join(ASKED)}")


def _printed(questions: Iterable[Any], prints: deque[str] | None) -> Iterator[tuple[str, Any]]:
    """Each question with its fingerprint, which is left behind, too; there are as many as are on their way."""
    for question in questions:
        own = fingerprint(question)
        if prints is not None:
            prints.append(own)
        yield own, question
