"""``solve_each``: any number of questions about one model, answered as they come and in their order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

from powersum.api.answer_file import AnswerFile, fingerprint
from powersum.api.distribution import Marginals
from powersum.api.engine import PATIENCE, Engine
from powersum.cluster.executor import WorkersLike, check_workers, workers_of
from powersum.cluster.ordered import here, ordered
from powersum.cluster.store import kept
from powersum.core.errors import InputError
from powersum.core.memory import bytes_held
from powersum.interop.frames import Frame, is_frame
from powersum.model.defaults import TIME
from powersum.model.keys import as_text
from powersum.model.limits import Limits
from powersum.model.model import Model, VariableKey
from powersum.model.query import Query
from powersum.model.question import ModelLike, Question, WeightsLike, model_of
from powersum.model.result import Result, Status

ASKED = ("maximize", "evidence", "weights", "of")
"""The keys of a question; those with ``of`` ask for distributions."""


class BatchItem(NamedTuple):
    """The answer to one of many questions: a result, an error or distributions."""

    number: int
    result: Result | None
    error: str | None
    marginals: Marginals | None = None


def solve_each(
    model: ModelLike,
    questions: Iterable[Mapping[str, Any]] | Any,
    maximize: Iterable[VariableKey] | str | None = None,
    *,
    weights: WeightsLike | None = None,
    workers: WorkersLike = None,
    checkpoint: str | os.PathLike[str] | None = None,
    time_limit: float | None = TIME,
    memory: float | str | None = None,
    gap: float = 0.0,
    threads: int = 1,
    seed: int = 0,
) -> Iterator[BatchItem]:
    """Answer any number of questions about one model, as they come.

    Questions are taken from their source only as they are needed, and memory does not grow with their number. Equal
    questions are answered once, unless too many others come between. A wrong question gives an item with its error; the
    others are answered all the same. After Ctrl-C the item that was worked on is ``interrupted`` and the last one: the
    iterator then raises ``KeyboardInterrupt``.

    Parameters
    ----------
    model
        The model, which is not changed, or the path of its file. It travels once to each worker.
    questions
        For each question a dictionary of ``maximize``, ``evidence``, ``weights``, as in :func:`powersum.solve`; or of
        ``of`` and ``evidence``, as in :func:`powersum.marginals`: the item then has ``marginals``. Or a
        data frame of pandas or polars: each row is the evidence of a question. Columns are named like variables, or
        ``variable:state`` for likelihoods. None, NaN and NA are not observed.
    maximize, weights
        For all questions that have neither.
    workers
        Processes that answer, as in :func:`powersum.solve`; this one if not given.
    checkpoint
        A file of JSON lines that is written as answers come. If it exists, its answers are yielded first, and the rest
        is appended. The model and the questions must be the same.
    time_limit, gap, seed
        For each question, as in :func:`powersum.solve`.
    memory
        Bytes for each process; by default half of what is free, for all of them together.
    threads
        Questions that this process answers at the same time, in threads.

    Yields
    ------
    BatchItem
        In the order of the questions.

    Examples
    --------
    >>> import powersum as ps
    >>> rain = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    >>> cases = ({"maximize": ["rain"], "evidence": {"wet": wet}} for wet in (0, 1, 2))
    >>> for item in ps.solve_each(rain, cases):
    ...     print(item.number, item.error or item.result.assignment["rain"])
    0 no
    1 yes
    2 state 2 of variable wet is out of range: it has states 0 to 1
    """
    check_workers(workers)
    limits = Limits.given(time_limit=time_limit, memory=memory, gap=gap, threads=threads, seed=seed)
    if workers is not None and limits.threads > 1:
        raise InputError("give workers or threads, not both: each worker answers one question at a time")
    stream = Stream(model_of(model), limits, workers, memory_given=memory is not None)
    asked = Question.of(stream.model, maximize, weights=weights).query
    if is_frame(questions):
        from powersum.api.tables import questions_of

        questions = questions_of(stream.model, Frame(questions, "questions"))
    if maximize is not None or weights is not None:
        questions = (_completed(question, asked) for question in questions)
    return _answers(stream, questions, checkpoint)


def _completed(question: Any, query: Query) -> Any:
    """A question with the query of all, where it has none."""
    if not isinstance(question, Mapping) or {"maximize", "weights", "of"} & question.keys():
        return question
    return {**question, "weights": query}


def _answers(
    stream: Stream, questions: Iterable[Mapping[str, Any]], checkpoint: str | os.PathLike[str] | None
) -> Iterator[BatchItem]:
    coming = iter(questions)
    number = 0
    with ExitStack() as open_things:
        file = None if checkpoint is None else open_things.enter_context(AnswerFile(checkpoint, stream.model.identity))
        prints: deque[str] = deque()
        if file is not None:
            for line in file.lines():
                question = next(coming, None)
                if question is None or fingerprint(question) != line.question:
                    raise InputError(f"{file.name}: answer {number} is to another question than number {number} now")
                yield BatchItem(number, line.result, line.error)
                number += 1
        items = _printed(coming, None if file is None else prints)
        for found in stream.answered(answers_of, items):
            if isinstance(found, Marginals):
                item = BatchItem(number, None, None, found)
            else:
                item = BatchItem(number, None, found) if isinstance(found, str) else BatchItem(number, found, None)
            stopped = item.result is not None and item.result.status is Status.INTERRUPTED
            if file is not None and not stopped:
                file.write(prints.popleft(), item.result, item.error)
            yield item
            if stopped:
                raise KeyboardInterrupt
            number += 1


class Stream:
    """Who answers the questions about a model, and what each answer may cost.

    Parameters
    ----------
    model, limits
        The model, and the limits of each question; ``threads`` of them are answered at the same time.
    workers
        Processes in place of this one.
    memory_given
        Whether the memory is that of each process; else all of them share it.
    """

    def __init__(self, model: Model, limits: Limits, workers: WorkersLike, *, memory_given: bool) -> None:
        self.model, self._limits, self._workers, self._memory_given = model, limits, workers, memory_given

    def answered(
        self,
        function: Any,
        items: Iterable[tuple[Hashable, Any]],
        *options: Any,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Iterator[Any]:
        """Results of items by ``function(model, (limits, *options), chunk)``, wherever the workers are."""
        limits, threads = replace(self._limits, threads=1), self._limits.threads
        if self._workers is None and threads == 1:
            yield from here(self.model, function, (limits, *options), items, stopped=stopped)
            return
        with ExitStack() as stack:
            if self._workers is None:
                pool = stack.enter_context(ThreadPoolExecutor(threads, thread_name_prefix="powersum"))
                workers = stack.enter_context(workers_of(pool))
                # What the process holds already, compiled modules above all, is held once.
                import powersum.run.work  # noqa: F401

                held = min(bytes_held(), limits.bytes)
                limits = replace(limits, memory=held + (limits.bytes - held) / threads)
            else:
                workers = stack.enter_context(workers_of(self._workers))
                if not self._memory_given:
                    limits = replace(limits, memory=workers.default_memory(beside=0))
            shared = workers.share(self.model)
            coming = iter(items)
            first = list(islice(coming, PATIENCE + 1))
            if len(first) > PATIENCE:
                # Before all processes of a machine compile the same at the same time.
                workers.once_a_node(prepare, shared, limits)
            yield from ordered(workers, shared, function, (limits, *options), chain(first, coming), stopped=stopped)


def engine_of(model: Model, limits: Limits) -> Engine:
    """The engine of this process for a model."""
    options = {name: getattr(limits, name) for name in ("time_limit", "memory", "gap", "threads", "seed")}
    engine: Engine = kept(f"engine {model.identity} {limits}", lambda: Engine(model, **options))
    return engine


def prepare(model: Model, limits: Limits) -> None:
    """On a worker: load what answers quickly, compiled if need be."""
    engine_of(model, limits).prepare()


def answers_of(model: Model, options: tuple[Limits], chunk: list[Mapping[str, Any]]) -> list[Result | Marginals | str]:
    """On a worker: a result or distributions for each question, or what is wrong with it."""
    engine = engine_of(model, options[0])
    found: list[Result | Marginals | str] = []
    for question in chunk:
        try:
            check_question(question)
            found.append(engine.marginals(**question) if "of" in question else engine.solve(**question))
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
    for name in ("maximize", "weights"):
        if "of" in question and name in question:
            raise InputError(f"give {name} or of, not both: distributions sum over all other variables")


def _printed(questions: Iterable[Any], prints: deque[str] | None) -> Iterator[tuple[str, Any]]:
    """Each question with its fingerprint, which is left behind, too; there are as many as are on their way."""
    for question in questions:
        own = fingerprint(question)
        if prints is not None and isinstance(question, Mapping) and "of" in question:
            raise InputError("checkpoint: distributions are not kept in a file; leave out checkpoint, or of")
        if prints is not None:
            prints.append(own)
        yield own, question
