"""What a run will compile next is compiled beside it, by helpers: processes of this machine that end with it.

``ahead.json`` lists compiled functions and kinds of arguments in the order in which typical questions need them, as
``python -m benchmarks.compile --record`` has found it. A run tells its helpers which functions it compiles; they go on
after these in the list of the question that fits best. What a process compiles is claimed, so that no other begins it.
A list that has grown old costs time and nothing else: the code that is kept is stamped with its sources.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import subprocess

LIST = Path(__file__).with_suffix(".json")

MOST = 3
"""Helpers at most: each holds 150 MB, and what a question needs is compiled by four processes in a few seconds."""


class Entry(NamedTuple):
    """A function and the kinds of its arguments, as the list has them."""

    module: str
    name: str
    kinds: Sequence[Any]

    @property
    def place(self) -> str:
        """The function alone."""
        return f"{self.module}:{self.name}"


def described(kind: Any) -> Any:
    """A type of Numba as text and lists; raises TypeError for those that no list has."""
    types: Any = importlib.import_module("numba.types")

    if isinstance(kind, types.Array):
        return ["array", described(kind.dtype), kind.ndim, kind.layout, not kind.mutable, kind.aligned]
    if isinstance(kind, types.BaseTuple):
        made = getattr(kind, "instance_class", None)
        named = None if made is None else f"{made.__module__}:{made.__qualname__}"
        return ["tuple", named, [described(part) for part in kind.types]]
    name = str(kind)
    if isinstance(kind, types.Number | types.Boolean | types.NoneType) and getattr(types, name, None) == kind:
        return name
    raise TypeError(f"no list has {kind}")


def kind_of(text: Any) -> Any:
    """The type of Numba that :func:`described` described."""
    types: Any = importlib.import_module("numba.types")

    if isinstance(text, str):
        return getattr(types, text)
    if text[0] == "array":
        _, dtype, axes, layout, readonly, aligned = text
        return types.Array(kind_of(dtype), axes, layout, readonly=readonly, aligned=aligned)
    _, named, parts = text
    made = None
    if named is not None:
        module, _, name = named.partition(":")
        made = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    return types.BaseTuple.from_types([kind_of(part) for part in parts], made)


class CompilePlan:
    """The lists: entries, and for each typical question the places of those that it needs, in its order."""

    def __init__(self, entries: Sequence[Entry], questions: Sequence[Sequence[int]]) -> None:
        self.entries, self._questions = entries, questions

    @classmethod
    def read(cls) -> CompilePlan:
        """What is in the file beside this module."""
        import json

        found = json.loads(LIST.read_text(encoding="utf-8"))
        return cls([Entry(*one) for one in found["entries"]], found["questions"])

    def _fitting(self, asked: Sequence[str]) -> tuple[Sequence[int], int]:
        """The question that needs most of what was compiled, and how far it has come there."""
        wanted = set(asked)

        def common(question: Sequence[int]) -> int:
            return len(wanted.intersection(self.entries[one].place for one in question))

        best = max(self._questions, key=common, default=())
        reached = [at + 1 for at, one in enumerate(best) if self.entries[one].place in wanted]
        return best, max(reached, default=0)

    def following(self, asked: Sequence[str], tried: set[int]) -> int | None:
        """The entry that is needed next and that was not tried yet."""
        question, reached = self._fitting(asked)
        return next((one for one in question[reached:] if one not in tried), None)

    def progress(self, asked: Sequence[str]) -> tuple[int, int]:
        """How many functions of the question are compiled or under way, and how many it needs."""
        question, reached = self._fitting(asked)
        return reached, len(question)


def most_asked() -> int | None:
    """The number of helpers that the environment asks for, None where it says nothing."""
    text = os.environ.get("POWERSUM_HELPERS", "")
    return int(text) if text.isdigit() else None


class Helpers:
    """The helpers of this process.

    Attributes
    ----------
    wanted
        Whether there may be any where ``POWERSUM_HELPERS`` does not say how many. Only the command sets it: a library
        that starts processes would surprise.
    """

    def __init__(self) -> None:
        self.wanted = False
        self._most = most_asked()
        self._asked: list[str] = []
        self._processes: list[subprocess.Popen[bytes]] | None = None

    def asked(self, place: str) -> None:
        """Tell the helpers that this process compiles a function; the first time begins them."""
        most = (MOST if self.wanted else 0) if self._most is None else self._most
        if most == 0:
            return
        self._asked.append(place)
        if self._processes is None:
            self._processes = [helper for _ in range(min(most, _processors() - 1)) if (helper := _begun()) is not None]
        for helper in self._processes:
            try:
                assert helper.stdin is not None
                helper.stdin.write(f"{place}\n".encode())
                helper.stdin.flush()
            except OSError:
                # It has ended, for there was nothing left to do.
                continue

    def progress(self) -> tuple[int, int]:
        """See :meth:`Plan.progress`; of what the processes of this run have compiled."""
        return _plan().progress(self._asked)


helpers = Helpers()
"""The helpers of this process."""


@functools.cache
def _plan() -> CompilePlan:
    try:
        return CompilePlan.read()
    except (OSError, ValueError, KeyError, TypeError):
        return CompilePlan([], [])


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _begun() -> subprocess.Popen[bytes] | None:
    """A helper, or None where none can be begun."""
    import subprocess

    # The folder that the run was begun in is not where modules come from.
    code = f"import sys; sys.path[:] = {sys.path!r}; from powersum.core.ahead import help_along; help_along()"
    try:
        return subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None


IDLE = 10.0
"""Seconds without anything to do after which a helper ends."""


def help_along() -> None:
    """What a helper does: compile what comes next, until the run ends or nothing is left."""
    asked: list[str] = []

    def listen() -> None:
        for line in sys.stdin:
            asked.insert(len(asked), line.strip())
        # The run has ended: nobody waits for what is under way.
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    # A helper ends before its garbage matters; looking for it takes a twentieth of the time.
    gc.disable()
    from powersum.core.jit import compile_ahead

    plan, tried, idle = _plan(), set[int](), 0.0
    while idle < IDLE:
        number = plan.following(tuple(asked), tried) if asked else None
        if number is None:
            time.sleep(0.02)
            idle += 0.02
            continue
        tried.add(number)
        idle = 0.0
        entry = plan.entries[number]
        try:
            compile_ahead(entry.module, entry.name, tuple(kind_of(kind) for kind in entry.kinds))
        except Exception:
            # The list is older than the function: the run compiles it by itself.
            continue
    os._exit(0)
