"""Run the core of the tests with the oldest and the newest Numba that are claimed, and with its public names alone.

``python -m tests.compat`` (``make compat``) builds an environment for each row of :data:`ROWS` in a folder of its own.
Its last lines name the rows that passed, and the rows whose Python is not on this machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

CORE = (
    "tests/core",
    "tests/model",
    "tests/prepare",
    "tests/exact",
    "tests/bounds/test_kernels.py",
    "tests/bounds/gdd/test_rows.py",
    "tests/search/test_search.py",
    "tests/run/test_small.py",
)
"""What uses every kind of compiled function; all tests with every version would take hours."""

LEFT_OUT = ("tests/core/test_boundscheck.py", "tests/model/test_rounding.py")
"""They compile everything once more, or take long and ask nothing of Numba."""

TOOLS = ("pytest>=8", "pytest-xdist>=3.5", "hypothesis>=6.100", "networkx>=3", "setuptools>=77")


class Row(NamedTuple):
    """A Python and versions of packages to run the tests with."""

    python: str
    packages: tuple[str, ...] = ()
    plain: bool = False


ROWS = {
    "oldest": Row("3.11", ("numba==0.60.*", "numpy==1.26.*", "scipy==1.11.*")),
    "newest": Row("3.11", ("numba==0.68.*", "numpy>=2")),
    "plain": Row("3.11", ("numba==0.68.*", "numpy>=2"), plain=True),
    "3.12": Row("3.12", ("numba==0.68.*", "numpy>=2")),
    "3.13": Row("3.13", ("numba==0.68.*", "numpy>=2")),
    "3.14": Row("3.14", ("numba==0.68.*", "numpy>=2")),
}


def interpreter(version: str) -> str | None:
    """The command of a Python of this version, or None."""
    if sys.version_info[:2] == tuple(int(part) for part in version.split(".")):
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is None:
        return None
    try:
        # A name that a version manager keeps may stand for nothing.
        asked = subprocess.run([found, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
    except OSError:
        return None
    return asked.stdout.strip() if asked.returncode == 0 else None


def run(name: str, folder: Path, jobs: int) -> bool | None:
    """Whether the tests pass in a row's environment; None where it has no Python here."""
    row = ROWS[name]
    python = interpreter(row.python)
    if python is None:
        return None
    place = folder / name
    if not (place / "made").exists():
        subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True)
        install = [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--editable", str(ROOT), *row.packages, *TOOLS], check=True)
        (place / "made").touch()
    environment = {**os.environ, "POWERSUM_CACHE_DIR": str(place / "kept")}
    environment.pop("PYTHONPATH", None)
    if row.plain:
        environment["POWERSUM_COMPILER"] = "plain"
    command = [str(place / "bin/python"), "-m", "pytest", "-q", "-n", str(jobs), "-p", "no:cacheprovider", *CORE]
    command += [f"--ignore={path}" for path in LEFT_OUT]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help=f"which to run, of {', '.join(ROWS)}; all if not given")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/compat", help="where environments are built")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run tests side by side")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.rows if name not in ROWS]
    if unknown:
        parser.error(f"no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    found = {name: run(name, chosen.folder, chosen.jobs) for name in chosen.rows or ROWS}
    said = {True: "passed", False: "FAILED", None: "not run: no such Python here"}
    for name, passed in found.items():
        row = ROWS[name]
        print(f"{name}: Python {row.python}, {', '.join(row.packages)}: {said[passed]}")
    return 1 if False in found.values() else 0


if __name__ == "__main__":
    sys.exit(main())
