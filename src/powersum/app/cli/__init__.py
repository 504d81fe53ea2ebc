"""The command line: parse, call the public functions, print."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STARTED = time.monotonic()
_ENDING = (signal.SIGINT, signal.SIGTERM)


def seconds_running() -> float:
    """Seconds since the process was started; since this module was loaded, where the system does not say."""
    try:
        started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - started, time.monotonic() - _STARTED)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.monotonic() - _STARTED


@contextmanager
def silent_ctrl_c() -> Iterator[None]:
    """End at once on Ctrl-C or SIGTERM: nothing is to be saved while modules load, and any import could show it.

    A shell that has us ignore Ctrl-C, as for jobs in the background, has its way.
    """
    ours = [number for number in _ENDING if signal.getsignal(number) is signal.default_int_handler]
    if threading.current_thread() is not threading.main_thread():
        ours = []
    for number in ours:
        signal.signal(number, lambda *_: os._exit(130))
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.default_int_handler)


def main() -> None:
    """Run the command line and exit: 0 with an answer, 2 for wrong input, 130 when interrupted."""
    # Numba dresses messages with colorama where that is installed, which writes to the terminal when a process ends.
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
        # The same as Ctrl-C before and after a run, too, during which it is a flag.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    with silent_ctrl_c():
        from powersum.app.cli.app import run_app
        from powersum.app.cli.terminal import show_every_character

        show_every_character()
    if os.environ.get("_POWERSUM_COMPLETE") == "complete_bash":
        from powersum.app.cli.completion import whole_words_of_bash

        with whole_words_of_bash():
            sys.exit(run_app(sys.argv[1:]))
    sys.exit(run_app(sys.argv[1:]))
