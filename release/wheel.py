"""Build a platform wheel that brings machine code for several levels of processors.

``python -m release.wheel`` (``make wheel``) builds the pure wheel, compiles everything from the sources in it once for
each level that this machine can run, and writes a second wheel with both. What it brings is used by the versions of
Numba, llvmlite, NumPy and Python that it was built with; with any others the wheel works as the pure one.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib
import os
import pkgutil
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 12e6
"""Bytes that the wheel may have."""

MOMENT = (1980, 1, 1, 0, 0, 0)
"""The time of all files: the same content makes the same wheel."""


def pure_wheel(folder: Path) -> Path:
    """The wheel without machine code."""
    # A copy: setuptools would take older files from the folder where it built before.
    source = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the pure wheel cannot be built: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return max(folder.glob("*-py3-none-any.whl"), key=lambda path: path.stat().st_mtime)


def compiled_for(level: str, package: Path, folder: Path, jobs: int, tasks: Sequence[str]) -> Path:
    """The folder of what is compiled from an unpacked wheel for one level of processors."""
    kept = folder / level
    environment = {
        **os.environ,
        "PYTHONPATH": str(package),
        "POWERSUM_CACHE_DIR": str(kept),
        "NUMBA_CPU_NAME": level,
        "NUMBA_CPU_FEATURES": "",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for name in ("POWERSUM_COMPILER", "POWERSUM_BOUNDSCHECK"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "powersum", "warmup", "--workers", str(jobs)]
    subprocess.run([*command, *(f"--task={task}" for task in tasks)], env=environment, cwd=folder, check=True)
    return kept / "powersum-kernels"


def linked_names(package: Path) -> set[str]:
    """Names of functions of ours that others of ours call: these are linked in LLVM's form, where that is compiled."""
    sys.path.insert(0, str(package))
    import powersum
    from powersum.core.jit import ours

    for module in pkgutil.walk_packages(powersum.__path__, "powersum."):
        if not module.name.startswith(("powersum.torch", "powersum.jax")) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    known = {id(function) for function in ours}
    found: set[str] = set()
    for function in list(ours):
        code, scope = function.py_func.__code__, function.py_func.__globals__
        cells = [cell.cell_contents for cell in function.py_func.__closure__ or ()]
        for one in [scope.get(name) for name in code.co_names] + cells:
            inside = vars(one).values() if isinstance(one, ModuleType) else [one]
            found.update(called.py_func.__name__ for called in inside if id(called) in known)
    return found


def entries(kept: Path, linked: set[str]) -> Iterator[tuple[str, bytes]]:
    """What a wheel brings of compiled code: names below the level's folder, and bytes."""
    from powersum.core.backend import without_form
    from powersum.core.cache import seal

    for path in sorted(kept.glob("*/*")):
        content = path.read_bytes()
        if not path.parent.name.startswith("warmup-"):
            function = path.name.rpartition("-")[0]
            short = without_form(content[32:])
            if short is None:
                continue
            content = content if function in linked else seal(short)
        yield f"{path.parent.name}/{path.name}", content


def platform_tag() -> str:
    """The tag of wheels for this Python and system: there is no library in it that a system could lack."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    machine = platform.machine()
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if sys.platform == "linux":
        system = f"manylinux_2_17_{machine}.manylinux2014_{machine}"
    return f"{version}-none-{system}"


def write(pure: Path, tag: str, extra: Sequence[tuple[str, bytes]]) -> Path:
    """The pure wheel with more files, under another tag."""
    made = pure.with_name(pure.name.replace("py3-none-any", tag))
    lines: list[str] = []
    with zipfile.ZipFile(pure) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        files = [(name, old.read(name)) for name in old.namelist() if not name.endswith("/")]
        (record,) = (name for name, _ in files if name.endswith(".dist-info/RECORD"))
        for name, content in [*files, *extra]:
            if name == record:
                continue
            if name.endswith(".dist-info/WHEEL"):
                kept = [line for line in content.decode().splitlines() if line.split(":")[0] not in ("Tag", "")]
                python, abi, systems = tag.split("-")
                tags = [f"Tag: {python}-{abi}-{system}" for system in systems.split(".")]
                text = "\n".join(line.replace("Purelib: true", "Purelib: false") for line in [*kept, *tags])
                content = f"{text}\n".encode()
            new.writestr(zipfile.ZipInfo(name, MOMENT), content, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}")
        new.writestr(zipfile.ZipInfo(record, MOMENT), "\n".join([*lines, f"{record},,", ""]), zipfile.ZIP_DEFLATED)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the wheels")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that compile side by side")
    parser.add_argument("--level", action="append", default=[], help="levels to compile for; all that can run here")
    parser.add_argument("--task", action="append", default=[], help="tasks of warmup to compile for; all of them")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pure = pure_wheel(folder)
        package = folder / "package"
        zipfile.ZipFile(pure).extractall(package)
        sys.path.insert(0, str(package))
        from powersum.core.jit import TARGET
        from powersum.core.levels import usable

        able = [level.name for level in usable(TARGET.features)]
        wanted = chosen.level or able
        missing = [level for level in wanted if level not in able]
        if missing:
            parser.error(f"this machine cannot run code for {missing[0]}; it can for {', '.join(able)}")
        linked = linked_names(package)
        extra: list[tuple[str, bytes]] = []
        for level in wanted:
            print(f"compiling for {level}", flush=True)
            kept = compiled_for(level, package, folder, chosen.jobs, chosen.task)
            extra += [(f"powersum/machine/{level}/{name}", content) for name, content in entries(kept, linked)]
        made = write(pure, platform_tag(), extra)
        for path in (pure, made):
            shutil.copy(path, chosen.out)
            print(f"{chosen.out / path.name}: {path.stat().st_size / 1e6:.1f} MB")
        if made.stat().st_size > LIMIT:
            raise SystemExit(f"{made.name} has more than {LIMIT / 1e6:.0f} MB: compile for fewer levels, or for less")
    return 0


if __name__ == "__main__":
    sys.exit(main())
