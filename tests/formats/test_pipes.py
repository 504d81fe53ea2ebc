"""Models read from a pipe: whole, unpacked, and with Ctrl-C heard while nobody writes."""

from __future__ import annotations

import gzip
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from powersum.core.files import load

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes with names are of POSIX")


def _written(path: Path, what: Callable[[int], None]) -> threading.Thread:
    """A thread that opens the pipe for writing as soon as somebody reads."""

    def write() -> None:
        descriptor = os.open(path, os.O_WRONLY)
        what(descriptor)
        os.close(descriptor)

    os.mkfifo(path)
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("name", ["model.uai", "model.uai.gz", ".GZ"])
def test_everything_that_is_written_is_read(tmp_path: Path, name: str) -> None:
    text = os.urandom(300_000)
    data = gzip.compress(text) if name.lower().endswith(".gz") else text

    def in_pieces(descriptor: int) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left[:7000]) :]

    thread = _written(tmp_path / name, in_pieces)
    assert load(tmp_path / name) == text
    thread.join(timeout=60)


def test_a_signal_that_does_not_end_the_read_is_heard(tmp_path: Path) -> None:
    # Another thread takes the signal: as if it had arrived just before the read began, which it would have ended.
    heard = threading.Event()
    in_time: list[bool] = []

    def interrupt(descriptor: int) -> None:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGUSR1)
        in_time.append(heard.wait(timeout=60))

    before = signal.signal(signal.SIGUSR1, lambda *_: heard.set())
    thread = _written(tmp_path / "model.uai", interrupt)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        assert load(tmp_path / "model.uai") == b""
    finally:
        thread.join(timeout=60)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        signal.signal(signal.SIGUSR1, before)
    assert in_time == [True]
