"""A file of answers that is written as they come, and gone on with after its last whole line."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Any, NamedTuple

from powersum.core.errors import InputError
from powersum.model.result import Result
from powersum.model.strict_json import strict

FORMAT, FORMAT_VERSION = "powersum-answers", 1
"""What the first line of the file calls itself."""


class Line(NamedTuple):
    """One answer as the file has it: which question it is to, and its result or what is wrong with the question."""

    question: str
    result: Result | None
    error: str | None


def fingerprint(question: Any) -> str:
    """The same for questions that are written alike, today and tomorrow."""
    try:
        text = json.dumps(question, sort_keys=True, default=_plain).encode()
    except (TypeError, ValueError):
        # Keys of several types have no order, and a table may hold anything.
        text = pickle.dumps(question, protocol=4)
    return hashlib.sha256(text).hexdigest()[:24]


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "weights"):
        blocks = [] if value.blocks is None else [value.blocks.tolist()]
        return [value.weights.tolist(), value.asked, *blocks]
    raise TypeError


class AnswerFile:
    """The answers to questions about one model, a line each, in their order.

    Parameters
    ----------
    path
        The file; what is there already must be about the same model.
    model
        The identity of the model.
    """

    def __init__(self, path: str | os.PathLike[str], model: str) -> None:
        self.name = os.fspath(path)
        self._model = model
        self._file: IO[bytes] | None = None

    def __enter__(self) -> AnswerFile:
        try:
            self._file = open(self.name, "a+b")
        except OSError as error:
            raise InputError(f"{self.name}: cannot be written ({error.strerror})") from None
        self._file.seek(0)
        whole = cut_to_whole_lines(self._file)
        if whole == 0:
            first = {"format": FORMAT, "format_version": FORMAT_VERSION, "model": self._model}
            self._put(first)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        self._file.close()

    def lines(self) -> Iterator[Line]:
        """The answers that are there already."""
        with open(self.name, "rb") as file:
            about = self._parsed(file.readline(), 1)
            if about.get("format") != FORMAT or about.get("format_version") != FORMAT_VERSION:
                raise InputError(f"{self.name}: is no file of answers")
            if about.get("model") != self._model:
                raise InputError(f"{self.name}: its answers are about another model")
            for number, text in enumerate(file, 2):
                line = self._parsed(text, number)
                result = line.get("result")
                yield Line(
                    str(line.get("question")), None if result is None else Result.from_dict(result), line.get("error")
                )

    def write(self, question: str, result: Result | None, error: str | None) -> None:
        """One more answer; it is with the system when this returns, and outlives the process."""
        self._put({"question": question, **({"error": error} if result is None else {"result": result.to_dict()})})

    def _put(self, record: dict[str, Any]) -> None:
        assert self._file is not None
        try:
            self._file.write(json.dumps(strict(record), allow_nan=False).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise InputError(f"{self.name}: cannot be written ({error.strerror})") from None

    def _parsed(self, text: bytes, number: int) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise InputError(f"{self.name}: line {number} is no answer")
        return found


def cut_to_whole_lines(file: IO[bytes]) -> int:
    """Cut off a last line without its end, which a killed process left; returns the bytes that stay."""
    end = file.seek(0, os.SEEK_END)
    block = 1 << 16
    at = end
    while at > 0:
        begin = max(at - block, 0)
        file.seek(begin)
        found = file.read(at - begin).rfind(b"\n")
        if found >= 0:
            at = begin + found + 1
            break
        at = begin
    if at < end:
        file.truncate(at)
    file.seek(at)
    return at
