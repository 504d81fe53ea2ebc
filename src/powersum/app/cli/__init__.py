"""The command line: parse, call the public functions, print."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

from powersum.core.interrupt import ENDING, name_of

_STARTED = time.monotonic()


def seconds_running() -> float:
    """Seconds since the process was started; since this module was loaded, where the system does not say."""
    try:
        started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - started, time.monotonic() - _STARTED)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.monotonic() - _STARTED


INTERRUPTED = 130
"""Exit code of a run that a signal ended; what was known until then has been printed and written."""


class Stopped(Exception):
    """A signal ended the command; the words say what comes after it in the line about that."""


def stopped_line(cause: str, words: str = "") -> str:
    """What a command that a signal ended says."""
    return f"powersum: stopped by {cause}{words}"


def _end_at_once(number: int, frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, f"{stopped_line(name_of(number))}\n".encode())
    os._exit(INTERRUPTED)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """End in one line on any signal: nothing is to be saved while modules load, and any import could show a traceback.

    A shell that has us ignore Ctrl-C, as for jobs in the background, has its way; so has ``nohup``.
    """
    ours = {}
    if threading.current_thread() is threading.main_thread():
        present = {number: signal.getsignal(number) for number in ENDING}
        ours = {n: h for n, h in present.items() if h is not None and h is not signal.SIG_IGN}
    for number in ours:
        signal.signal(number, _end_at_once)
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


def main() -> None:
    """Run the command line and exit: 0 with an answer, 2 for wrong input, 130 when interrupted."""
    # Numba dresses messages with colorama where that is installed, which writes to the terminal when a process ends.
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    with ending_at_once(), ExitStack() as stack:
        from powersum.app.cli.app import run_app
        from powersum.app.cli.terminal import show_every_character

        show_every_character()
        from powersum.core.ahead import helpers

        helpers.wanted = True
        if os.environ.get("_POWERSUM_COMPLETE") == "complete_bash":
            from powersum.app.cli.completion import whole_words_of_bash

            stack.enter_context(whole_words_of_bash())
        code = run_app(sys.argv[1:])
        if "powersum.app.cli.progress" in sys.modules:
            from powersum.app.cli.progress import tell_compilation

            tell_compilation()
    # The answer is given: a signal that comes while Python ends no longer changes it.
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: os._exit(code))
    sys.exit(code)
