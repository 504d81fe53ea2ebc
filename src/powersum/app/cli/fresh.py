"""Answers of earlier runs, taken away before a new one begins: a killed run must not leave them as if its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from powersum.core.errors import InputError
from powersum.core.files import reason, shown


@contextmanager
def older_answers_aside(outputs: Iterable[str | Path | None]) -> Iterator[None]:
    """Move what stands under the outputs' names aside while a question is read, then away.

    Only a question that turns out to be wrong puts them back: it costs nobody an answer. However else the block ends,
    or if the process is killed in it, their names are free.
    """
    aside: list[tuple[Path, Path]] = []
    for output in outputs:
        if output is None or str(output) == "-" or not os.path.isfile(output):
            continue
        # As in writing: the file behind a link is the one that is replaced.
        place = Path(os.path.realpath(output))
        hidden = place.with_name(f".{place.name[:32]}.{token_hex(6)}.old")
        try:
            os.replace(place, hidden)
        except OSError as error:
            _put_back(aside)
            raise InputError(f"{shown(output)}: cannot be replaced ({reason(error)})") from None
        aside.append((place, hidden))
    try:
        yield
    except InputError:
        _put_back(aside)
        raise
    finally:
        for _, hidden in aside:
            with suppress(OSError):
                hidden.unlink(missing_ok=True)


def _put_back(aside: list[tuple[Path, Path]]) -> None:
    for place, hidden in aside:
        with suppress(OSError):
            os.replace(hidden, place)
