"""Large messages: they come as they were sent, and nobody waits for one whose sender was killed on the way."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from powersum.cluster.parcels import MOST_BYTES, Parcel, opened, packed
from powersum.cluster.processes import ProcessWorkers
from tests.cluster.jobs import large_and_dying
from tests.cluster.machines import SECONDS, environment


@pytest.mark.parametrize("size", [0, 1, MOST_BYTES, 10 * MOST_BYTES])
@pytest.mark.parametrize("place", ["folder", "nowhere", "gone"])
def test_a_message_comes_as_it_was_sent(size: int, place: str, tmp_path: Path) -> None:
    folder = {"folder": tmp_path, "nowhere": None, "gone": tmp_path / "gone"}[place]
    message = packed(b"x" * size, folder)
    assert isinstance(message, Parcel) is (size >= MOST_BYTES and place == "folder")
    assert opened(message, folder) == b"x" * size
    assert not list(tmp_path.iterdir())


def test_half_a_message_is_not_waited_for(tmp_path: Path) -> None:
    """The worker dies while it sends 50 MB, once; what it was at is begun again."""
    workers = ProcessWorkers(1)
    found: list[tuple[Any, Any]] = []
    try:
        shared = workers.share(str(tmp_path / "died"))
        workers.submit("large", large_and_dying, shared, 50_000_000)
        end = time.monotonic() + SECONDS
        while not found and time.monotonic() < end:
            found = workers.finished(0.1)
    finally:
        workers.close()
    ((tag, (data, _)),) = found
    assert tag == "large"
    assert len(data) == 50_000_000
    assert (tmp_path / "died").exists()


HANGS_UP = """
import sys, time
from pathlib import Path
from powersum.cluster.processes import ProcessWorkers
from tests.cluster.jobs import large

if __name__ == "__main__":
    sending = Path(sys.argv[1])
    workers = ProcessWorkers(1)
    workers.submit("large", large, workers.share(str(sending)), 100_000_000)
    while not sending.exists():
        workers.finished(0.001)
    workers.close()
    print("closed", flush=True)
"""


def test_a_process_ends_that_has_hung_up_on_a_worker_which_was_sending(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HANGS_UP)
    command = [sys.executable, str(program), str(tmp_path / "sending")]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=SECONDS, check=True)
    assert ended.stdout == "closed\n"
    assert not ended.stderr
