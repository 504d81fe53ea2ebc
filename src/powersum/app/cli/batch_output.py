"""The file of answers of a batch: written line by line, gone on with after the last whole one."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from types import TracebackType
from typing import IO

from powersum.api.answer_file import cut_to_whole_lines
from powersum.api.cases import Writing
from powersum.core.errors import InputError


class Answers:
    """Where the answers go.

    Parameters
    ----------
    output
        The file, or ``-`` for stdout.
    writing
        What the lines look like.
    resume
        Whether to go on with a file that is there.

    Attributes
    ----------
    done
        Rows that have their line.
    """

    def __init__(self, output: str, writing: Writing, *, resume: bool) -> None:
        self._output, self._writing, self._resume = output, writing, resume
        self._file: IO[str] | None = None
        self.done = 0

    def __enter__(self) -> Answers:
        if self._output == "-":
            self._file = sys.stdout
        else:
            try:
                if self._resume and Path(self._output).exists():
                    self.done = self._count()
                mode = "a" if self.done else "w"
                self._file = open(self._output, mode, encoding="utf-8", newline="")
            except OSError as error:
                raise InputError(f"{self._output}: cannot be written ({error.strerror})") from None
        header = self._writing.header()
        if header is not None and not self.done:
            self._put(header)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None and self._file is not sys.stdout:
            self._file.close()

    def write(self, rest: str) -> None:
        """The line of the next row; it is with the system when this returns, and outlives the process."""
        self.done += 1
        self._put(f"{self._writing.before}{self.done}{rest}")

    def _put(self, line: str) -> None:
        assert self._file is not None
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise InputError(f"{self._output}: cannot be written ({error.strerror})") from None

    def _count(self) -> int:
        """Whole lines of the file that is there, the header left out; a last line without its end is cut off."""
        with open(self._output, "r+b") as raw:
            cut_to_whole_lines(raw)
        header, count = self._writing.header(), 0
        with open(self._output, encoding="utf-8", newline="") as file:
            try:
                if header is None:
                    for count, line in enumerate(file, 1):
                        self._check(json.loads(line).get("row"), count)
                    return count
                rows = csv.reader(file)
                first = next(rows, None)
                if first is not None and first != next(csv.reader([header])):
                    raise InputError(f"{self._output}: its columns are not those of this question")
                for count, row in enumerate(rows, 1):
                    self._check(row[0] if row else None, count)
            except (ValueError, AttributeError, csv.Error) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"{self._output}: is no file of answers that could be gone on with") from None
        return count

    def _check(self, row: object, count: int) -> None:
        if str(row) != str(count):
            raise InputError(f"{self._output}: answer {count} is numbered {row}: it cannot be gone on with")
