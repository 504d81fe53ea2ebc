"""Result files of the UAI competitions: ``.PR``, ``.MAR``, ``.MAP``, ``.MMAP``; the only place where log10 is used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.core.files import PathLike, load, reason, shown
from powersum.formats.tokens import readable

TASKS = ("PR", "MAR", "MAP", "MMAP")
_SEPARATOR = "-BEGIN-"
_LN10 = math.log(10.0)


@dataclass(frozen=True, slots=True, eq=False)
class UAIAnswer:
    """What a result file says.

    Parameters
    ----------
    task
        ``PR``, ``MAR``, ``MAP`` or ``MMAP``.
    log_value
        For PR the natural log of the partition function, else ``None``.
    assignment
        For MAP and MMAP the state of each variable asked for.
    marginals
        For MAR the distribution of each variable.
    """

    task: str
    log_value: float | None = None
    assignment: Mapping[int, int] = field(default_factory=dict)
    marginals: tuple[FloatArray, ...] = ()


def read_result(path: PathLike) -> UAIAnswer:
    """Read a result file. The last answer counts; one that was cut off gives way to the one before."""
    words = load(path).split()
    if not words:
        raise InputError(f"{shown(path)}: is empty")
    task = readable(words[0])
    if task not in TASKS:
        raise InputError(f"{shown(path)}: token 1: {task} is none of the tasks {', '.join(TASKS)}")
    records: list[tuple[int, list[bytes]]] = [(1, [])]
    for place, word in enumerate(words[1:], 1):
        if word == _SEPARATOR.encode():
            records.append((place + 1, []))
        else:
            records[-1][1].append(word)
    # Nothing stands between the task and a first separator, nor after a separator that was the last thing written.
    filled = [record for record in records if record[1]]
    if not filled:
        raise InputError(f"{shown(path)}: holds no answer")
    for number, (start, record) in reversed(list(enumerate(filled))):
        parser = _Record(path, start, record)
        try:
            return parser.answer(task)
        except _CutOff as error:
            if number == 0:
                raise InputError(str(error)) from None
    raise AssertionError


class ResultWriter:
    """Writes answers as they are found: each is in the file when the call returns, so that a killed run has its best.

    Use it in a ``with`` statement. The file is created at once, which shows early that it can be.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, ResultWriter(f"{folder}/problem.uai.PR", "PR") as out:
    ...     out.partition(-12.3)
    """

    def __init__(self, path: PathLike, task: str) -> None:
        if task not in TASKS:
            raise InputError(f"{task!r} is none of the tasks {', '.join(TASKS)}")
        self._path = path
        self._task = task
        self._n_answers = 0
        try:
            # Unbuffered: an answer is one write, whole or not there.
            self._handle: IO[bytes] = open(path, "wb", buffering=0)  # noqa: SIM115 - closed by close()
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from None
        self._put(f"{task}\n")

    def partition(self, log_value: float) -> None:
        """Add a value of the partition function, given as a natural log."""
        self._expect("PR")
        self._add(repr(float(log_value) / _LN10))

    def marginals(self, marginals: Sequence[Sequence[float] | FloatArray]) -> None:
        """Add the distribution of every variable."""
        self._expect("MAR")
        parts = [f"{len(m)} {' '.join(repr(float(p)) for p in m)}" for m in marginals]
        self._add(" ".join([str(len(parts)), *parts]))

    def states(self, states: Sequence[int]) -> None:
        """Add a state for every variable."""
        self._expect("MAP")
        self._add(" ".join(map(str, [len(states), *(int(x) for x in states)])))

    def assignment(self, assignment: Mapping[int, int]) -> None:
        """Add a state for every variable of the query."""
        self._expect("MMAP")
        self._add(" ".join([str(len(assignment)), *(f"{int(v)} {int(x)}" for v, x in assignment.items())]))

    def close(self) -> None:
        """Close the file."""
        try:
            self._handle.close()
        except OSError as error:
            raise self._unwritable(error) from None

    def __enter__(self) -> ResultWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _expect(self, task: str) -> None:
        if task != self._task:
            raise InputError(f"{shown(self._path)}: takes answers to {self._task}, not to {task}")

    def _add(self, line: str) -> None:
        self._put((f"{_SEPARATOR}\n" if self._n_answers else "") + line + "\n")
        self._n_answers += 1

    def _put(self, text: str) -> None:
        try:
            rest = memoryview(text.encode("ascii"))
            while rest:
                rest = rest[self._handle.write(rest) :]
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: BaseException) -> InputError:
        return InputError(f"{shown(self._path)}: cannot be written ({reason(error)})")


class _CutOff(InputError):
    """An answer that stops too early."""


@dataclass(frozen=True, slots=True)
class _Record:
    """The words of one answer and the place of the first of them in the file."""

    path: PathLike
    start: int
    words: list[bytes]

    def answer(self, task: str) -> UAIAnswer:
        """What the words say about ``task``."""
        if task == "PR":
            self._expect_length(1)
            value = self._number(0)
            if math.isnan(value) or value == math.inf:
                raise self._error(0, "is not the log of a partition function")
            return UAIAnswer(task, log_value=value * _LN10)
        if task == "MAR":
            return UAIAnswer(task, marginals=self._marginals())
        count = self._whole(0)
        if task == "MAP":
            self._expect_length(1 + count)
            return UAIAnswer(task, assignment={v: self._whole(1 + v) for v in range(count)})
        self._expect_length(1 + 2 * count)
        assignment: dict[int, int] = {}
        for place in range(1, 1 + 2 * count, 2):
            variable = self._whole(place)
            if variable in assignment:
                raise self._error(place, "is a variable that has a state already")
            assignment[variable] = self._whole(place + 1)
        return UAIAnswer(task, assignment=assignment)

    def _marginals(self) -> tuple[FloatArray, ...]:
        marginals: list[FloatArray] = []
        place = 1
        for _ in range(self._whole(0)):
            stop = place + 1 + self._whole(place)
            if stop > len(self.words):
                raise self._cut_off()
            marginals.append(np.array([self._probability(k) for k in range(place + 1, stop)]))
            place = stop
        self._expect_length(place)
        return tuple(marginals)

    def _expect_length(self, length: int) -> None:
        if len(self.words) < length:
            raise self._cut_off()
        if len(self.words) > length:
            raise self._error(length, "is surplus: the answer is complete before it")

    def _cut_off(self) -> _CutOff:
        return _CutOff(f"{shown(self.path)}: token {self.start + len(self.words)}: the answer is cut off after it")

    def _whole(self, place: int) -> int:
        if place >= len(self.words):
            raise self._cut_off()
        word = self.words[place]
        if not word.isdigit() or len(word) > 15:
            raise self._error(place, "is not a whole number ≥ 0")
        return int(word)

    def _number(self, place: int) -> float:
        try:
            if b"_" not in self.words[place]:  # Python's own way to write long numbers
                return float(self.words[place])
        except ValueError:
            pass
        raise self._error(place, "is not a number")

    def _probability(self, place: int) -> float:
        value = self._number(place)
        if not 0.0 <= value <= 1.0 + 1e-6:
            raise self._error(place, "is not a probability")
        return value

    def _error(self, place: int, what: str) -> InputError:
        return InputError(f"{shown(self.path)}: token {self.start + place + 1}: {readable(self.words[place])} {what}")
