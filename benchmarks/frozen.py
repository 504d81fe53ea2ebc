"""Frozen runs: a few hundred answers with all their digits, and what differs in another version of the package.

    python -m benchmarks.frozen record FILE [--quick]
    python -m benchmarks.frozen compare --against FILE|GIT_REF [--quick]

Every run is counted in work and has the same digits whenever it is asked: a step that changes no behaviour changes none
of them. ``record`` writes the answers of this tree; ``compare`` asks this tree and prints each difference from a file,
or from the answers of another commit, which it checks out beside and asks in processes of its own. Digits may differ
with another compiler or processor, so that a file is for this machine.

    --quick            a small set, for one or two minutes; all take about ten
    --match TEXT       only runs whose name contains this
    --ignore FIELD …   fields that may differ, as certificate.digest or sizes
    --most N           differences shown of each run (3)
    --jobs N           processes that share the runs (2)

Exit code 0 where nothing differs, 1 where something does.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.frozen_runs import Record, names

HERE = Path(__file__).resolve().parents[1]
HANG = 900.0
"""Seconds without an answer after which a process is ended; all kernels may have to be compiled before the first."""

FORMAT, VERSION = "powersum-frozen", 1


class Refused(Exception):
    """What was asked for cannot be done; one line says why."""


def recorded(source: Path, wanted: list[str], jobs: int) -> Record:
    """The answers of the version in a checkout to all runs that are named."""
    # By turns, for neighbours are alike: one kind of question would all be one process's.
    shares = [wanted[job::jobs] for job in range(jobs)]
    with ThreadPoolExecutor(jobs) as threads:
        parts = list(threads.map(lambda share: _asked(source, share), shares))
    runs = {name: run for _, part in parts for name, run in part.items()}
    return {
        "format": FORMAT,
        "version": VERSION,
        "about": {**parts[0][0], "commit": _commit(source)},
        "runs": {name: runs[name] for name in wanted},
    }


def _asked(source: Path, wanted: list[str]) -> tuple[Record, Record]:
    """What one process stands on, and its answers; a run that ends the process is answered by how it ended."""
    about: Record = {}
    answers: Record = {}
    left = list(wanted)
    while left:
        paths = os.pathsep.join([str(source / "src"), str(HERE)])
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.frozen_runs", str(source / "src"), str(source / "soak" / "roads.py")],
            cwd=HERE,
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(left))
        process.stdin.close()
        while True:
            watch = threading.Timer(HANG, process.kill)
            watch.start()
            line = process.stdout.readline()
            watch.cancel()
            if not line:
                break
            told = json.loads(line)
            if "name" not in told:
                about = told
                continue
            answers[told["name"]] = {"seconds": told["seconds"], "answer": told["answer"]}
            left.remove(told["name"])
        process.stdout.close()
        code = process.wait()
        if not about:
            raise Refused(f"the version in {source} does not start: see above")
        if left:
            answers[left.pop(0)] = {"seconds": 0.0, "answer": {"ended": f"the process ended with exit code {code}"}}
    return about, answers


def _commit(source: Path) -> str:
    """The commit of a checkout, marked where files differ from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--abbrev=12", "--dirty"], cwd=source, capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


@contextmanager
def checkout(reference: str) -> Iterator[Path]:
    """A temporary checkout of a commit."""
    with tempfile.TemporaryDirectory(prefix="powersum-frozen-") as folder:
        place = Path(folder).resolve() / "tree"
        done = subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(place), reference],
            cwd=HERE,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            why = " ".join(done.stderr.split())
            raise Refused(f"--against {reference}: neither a file nor a commit ({why})")
        try:
            yield place
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], cwd=HERE, check=True)


def write(path: Path, record: Record) -> None:
    """Write a record; packed where the name ends with ``.gz``."""
    content = (json.dumps(record) + "\n").encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def read(path: Path) -> Record:
    """Read what :func:`write` wrote."""
    try:
        content = path.read_bytes()
        record: Record = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
        if (record["format"], record["version"]) != (FORMAT, VERSION):
            raise Refused(f"{path}: is {record['format']} {record['version']}, not {FORMAT} {VERSION}")
    except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
        raise Refused(f"{path}: is no record of frozen runs ({error})") from None
    return record


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value within dictionaries and lists, with the place where it is."""
    if isinstance(value, dict | list) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{place}.{key}" if place else str(key))
    else:
        yield place, value


def differences(before: Record, now: Record, ignored: list[str]) -> list[tuple[str, Any, Any]]:
    """Places where two answers differ, with both values; a place that one of them lacks has no value there."""
    one, two = dict(leaves(before)), dict(leaves(now))
    found = []
    for place in [*one, *(place for place in two if place not in one)]:
        if any(f".{place}.".find(f".{field}.") >= 0 for field in ignored):
            continue
        if place not in one or place not in two or not _same(one[place], two[place]):
            found.append((place, one.get(place, "–"), two.get(place, "–")))
    return found


def _same(one: Any, two: Any) -> bool:
    """Equal, and of one type: 1, 1.0 and True are three answers."""
    return type(one) is type(two) and bool(one == two)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def report(before: Record, now: Record, *, ignored: list[str], most: int) -> bool:
    """Print what differs; True if nothing does."""
    for key in sorted({*before["about"], *now["about"]} - {"commit"}):
        if before["about"].get(key) != now["about"].get(key):
            print(f"note: {key} was {before['about'].get(key)} and is {now['about'].get(key)}: digits may differ")
    print(f"before: {before['about'].get('commit')}   now: {now['about'].get('commit')}")
    both = [name for name in now["runs"] if name in before["runs"]]
    fields: Counter[str] = Counter()
    differing = 0
    for name in both:
        found = differences(before["runs"][name]["answer"], now["runs"][name]["answer"], ignored)
        if not found:
            continue
        if not differing:
            print(f"\n{'run':44} {'where':30} {'before':>24} {'now':>24}")
        differing += 1
        fields.update({place.split(".")[0] for place, _, _ in found})
        for number, (place, one, two) in enumerate(found[:most]):
            apart = f"  ({two - one:+.3g})" if isinstance(one, float) and isinstance(two, float) else ""
            print(f"{'' if number else name:44} {place:30} {_text(one):>24} {_text(two):>24}{apart}")
        if len(found) > most:
            print(f"{'':44} and {len(found) - most} more")
    seconds = [sum(record["runs"][name]["seconds"] for name in both) for record in (before, now)]
    print(f"\n{len(both)} runs, {differing} differ; {seconds[0]:.0f} s before, {seconds[1]:.0f} s now")
    if fields:
        print("fields: " + ", ".join(f"{field} in {count}" for field, count in fields.most_common()))
    lacking = len(now["runs"]) - len(both)
    if lacking:
        print(f"{lacking} runs are not in what is compared with")
    return not differing and not lacking


def main() -> int:
    """Record, or compare."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.frozen", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="write the answers of this tree")
    record.add_argument("file", type=Path)
    compare = commands.add_parser("compare", help="say what differs from a record, or from another commit")
    compare.add_argument("--against", required=True, metavar="FILE|GIT_REF")
    compare.add_argument(
        "--recorded", type=Path, metavar="FILE", help="compare this record in place of asking this tree"
    )
    compare.add_argument("--ignore", nargs="+", default=[], metavar="FIELD", help="fields that may differ")
    compare.add_argument("--most", type=int, default=3, help="differences shown of each run (3)")
    for command in (record, compare):
        command.add_argument("--quick", action="store_true", help="the small set")
        command.add_argument("--match", default="", help="only runs whose name contains this")
        command.add_argument("--jobs", type=int, default=2, help="processes that share the runs (2)")
    arguments = parser.parse_args()
    wanted = [name for name in names(quick=arguments.quick) if arguments.match in name]
    if not wanted:
        parser.error(f"no run is called {arguments.match}")
    if arguments.jobs < 1:
        parser.error(f"--jobs is {arguments.jobs}: it must be 1 or more")
    try:
        if arguments.command == "record":
            write(arguments.file, recorded(HERE, wanted, arguments.jobs))
            return 0
        if Path(arguments.against).is_file():
            before = read(Path(arguments.against))
        else:
            with checkout(arguments.against) as place:
                before = recorded(place, wanted, arguments.jobs)
        now = read(arguments.recorded) if arguments.recorded else recorded(HERE, wanted, arguments.jobs)
        return 0 if report(before, now, ignored=arguments.ignore, most=arguments.most) else 1
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
