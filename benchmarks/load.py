"""Other programs on the machine: ``python -m benchmarks.load [--spin 2] [--stream 1] [--hold 4] -- COMMAND …``.

Runs a command alone and beside each kind of load, and prints its seconds and the last lines of what it says. Loads are
processes of this one: they end with it.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Event

import numpy as np

STREAMED = 1 << 26
"""Numbers of 8 bytes that are copied at a time: far more than any cache holds."""


def spin(begun: Event) -> None:
    """Take a processor, and hardly any memory."""
    begun.set()
    while True:
        sum(range(100_000))


def stream(begun: Event) -> None:
    """Take the bandwidth of the memory."""
    source = np.ones(STREAMED)
    target = np.empty_like(source)
    begun.set()
    while True:
        np.copyto(target, source)


def hold(gigabytes: float, begun: Event) -> None:
    """Take memory, and touch all of it."""
    held = np.ones(int(gigabytes * 1e9 / 8))
    begun.set()
    while held[0]:
        time.sleep(1.0)


class Load:
    """Processes that take what they are told to, until the block ends."""

    def __init__(self, spins: int, streams: int, gigabytes: float) -> None:
        self._jobs: list[tuple[Callable[..., None], tuple[float, ...]]] = []
        self._jobs += [(spin, ()) for _ in range(spins)] + [(stream, ()) for _ in range(streams)]
        if gigabytes:
            self._jobs.append((hold, (gigabytes,)))
        self._processes: list[mp.Process] = []

    def __enter__(self) -> Load:
        for job, arguments in self._jobs:
            begun = mp.Event()
            process = mp.Process(target=job, args=(*arguments, begun), daemon=True)
            process.start()
            begun.wait()
            self._processes.append(process)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.join()


def measured(command: Sequence[str]) -> tuple[float, float, str]:
    """Seconds by the clock and of the processor that a command takes, and its last line."""
    begun, before = time.monotonic(), os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    lines = [line for line in done.stdout.splitlines() if "log value" in line] or done.stderr.splitlines() or [""]
    return time.monotonic() - begun, used, lines[-1].strip()


def main() -> None:
    """Print a line for each load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spin", type=int, default=0, help="processes that compute (0)")
    parser.add_argument("--stream", type=int, default=0, help="processes that copy memory (0)")
    parser.add_argument("--hold", type=float, default=0.0, help="gigabytes that are taken (0)")
    parser.add_argument("command", nargs="+", help="what to run, after --")
    options = parser.parse_args()
    loads = {"alone": (0, 0, 0.0)}
    if options.spin:
        loads[f"{options.spin} that compute"] = (options.spin, 0, 0.0)
    if options.stream:
        loads[f"{options.stream} that copy"] = (0, options.stream, 0.0)
    if options.hold:
        loads[f"{options.hold:g} GB taken"] = (0, 0, options.hold)
    if len(loads) > 2:
        loads["all of them"] = (options.spin, options.stream, options.hold)
    print("| beside it | seconds | processor seconds | said last |\n|---|---|---|---|", flush=True)
    for name, load in loads.items():
        with Load(*load):
            seconds, used, said = measured(options.command)
        print(f"| {name} | {seconds:.1f} | {used:.1f} | {said} |", flush=True)


if __name__ == "__main__":
    main()
