"""The command line: parse, call the public functions, print."""

from __future__ import annotations

import sys
import time

_STARTED = time.monotonic()


def seconds_running() -> float:
    """Seconds since the command line was started, but for the first tenth that Python itself takes."""
    return time.monotonic() - _STARTED


def main() -> None:
    """Run the command line and exit: 0 with an answer, 2 for wrong input, 130 when broken off without an answer."""
    try:
        from powersum.cli.app import run_app

        code = run_app(sys.argv[1:])
    except KeyboardInterrupt:
        # While the commands were still being loaded.
        code = 130
    sys.exit(code)
