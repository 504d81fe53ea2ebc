"""The script ``powersum``: a signal while modules load ends it in one line.

A package beside ``powersum``, so that the handlers are in place before the first module of that is imported.
"""

from __future__ import annotations

# Built in: the module signal loads enum and re first, which takes longer than all that is done here.
import _signal  # type: ignore[import-not-found]
import os

_NAMES = {
    getattr(_signal, word): name
    for word, name in (("SIGINT", "Ctrl-C"), ("SIGTERM", "SIGTERM"), ("SIGHUP", "SIGHUP"))
    if hasattr(_signal, word)
}


def _end(number: int, _: object) -> None:
    try:
        os.write(2, f"powersum: stopped by {_NAMES[number]}\n".encode())
    finally:
        os._exit(130)


for _number in _NAMES:
    # A signal that is ignored, as SIGHUP under nohup, stays ignored.
    if _signal.getsignal(_number) != _signal.SIG_IGN:
        _signal.signal(_number, _end)


def main() -> None:
    """Run the command line."""
    from powersum.app.cli import main as run

    run()
