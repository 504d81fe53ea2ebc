"""Compiled code that is kept: never of other sources, safe for several processes, and no trouble where it cannot be."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

import powersum
from powersum.core import cache

SOURCE = Path(powersum.__file__).resolve().parents[1]

CALLER = """
from powersum.core.jit import compiled
from powersum.model.callee import SHIFT, twice


@compiled
def called(x):
    return twice(x) + SHIFT
"""
CALLEE = """
from powersum.core.jit import inner

SHIFT = 100


@inner
def twice(x):
    return 2 * x
"""
ASK = "from powersum.model.caller import called; print(called(3), sum(called.stats.cache_hits.values()))"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder of a copy of the package with one kernel that calls another one of another file."""
    root = tmp_path / "copy"
    shutil.copytree(SOURCE / "powersum", root / "powersum", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "powersum/model/caller.py").write_text(CALLER, encoding="utf-8")
    (root / "powersum/model/callee.py").write_text(CALLEE, encoding="utf-8")
    return root


def environment(root: Path, **changes: str) -> dict[str, str]:
    """The present environment with other sources, and no place of one's own for what is kept."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("POWERSUM_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
    }
    return {**kept, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", **changes}


def ask(environment: dict[str, str], code: str = ASK) -> tuple[str, str]:
    """What a new process prints, on both streams."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_kept_code_is_used_again(package: Path, tmp_path: Path) -> None:
    there = environment(package, POWERSUM_CACHE_DIR=str(tmp_path / "kept"))
    assert ask(there) == ("106 0", "")
    assert ask(there) == ("106 1", "")
    assert not list(package.rglob("*.nb[ic]"))


@pytest.mark.parametrize(("old", "new", "expected"), [("2 * x", "5 * x", 115), ("SHIFT = 100", "SHIFT = 1", 7)])
def test_code_of_an_older_callee_or_constant_is_never_used(
    package: Path, tmp_path: Path, old: str, new: str, expected: int
) -> None:
    there = environment(package, POWERSUM_CACHE_DIR=str(tmp_path / "kept"))
    ask(there)
    callee = package / "powersum/model/callee.py"
    times = callee.stat()
    callee.write_text(CALLEE.replace(old, new), encoding="utf-8")
    # A copy that keeps the time of its original does not hide the change.
    os.utime(callee, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ask(there)[0] == f"{expected} 0"
    callee.write_text(CALLEE, encoding="utf-8")
    assert ask(there)[0] == "106 1"


MAKER = """
import numpy as np

from powersum.core.jit import compiled
from powersum.model.callee import twice


@compiled
def made(n):
    order = np.argsort(np.full(n, 1.5) + np.arange(n)[::-1])
    if twice(n) > 200:
        raise ValueError("too many")
    return order + np.iinfo(np.int8).max
"""
MAKE = "from powersum.model.maker import made; print(made(3).tolist(), sum(made.stats.cache_hits.values()))"


def test_kept_code_runs_without_what_only_a_compiler_needs(package: Path, tmp_path: Path) -> None:
    (package / "powersum/model/maker.py").write_text(MAKER, encoding="utf-8")
    there = environment(package, POWERSUM_CACHE_DIR=str(tmp_path / "kept"))
    assert ask(there, MAKE)[0] == "[129, 128, 127] 0"
    compiler = "numba.np.arraymath"
    imported = f"; import sys; print({compiler!r} in sys.modules)"
    assert ask(there, MAKE + imported)[0] == "[129, 128, 127] 1\nFalse"
    # What it raises arrives, and what calls a kept function can still be compiled.
    raised = f"""
{MAKE}
try:
    made(1000)
except ValueError as error:
    print(error)
from powersum.model.caller import called
print(called(3), called(3.5), sum(called.stats.cache_hits.values()))
"""
    ask(there, "from powersum.model.caller import called; called(3)")
    assert ask(there, raised)[0] == "[129, 128, 127] 1\ntoo many\n106 107.0 1"


def test_a_caller_is_compiled_with_a_callee_that_was_kept(package: Path, tmp_path: Path) -> None:
    there = environment(package, POWERSUM_CACHE_DIR=str(tmp_path / "kept"))
    ask(there)
    with (package / "powersum/model/caller.py").open("a", encoding="utf-8") as file:
        file.write("\n\n@compiled\ndef again(x):\n    return called(x) + twice(x)\n")
    found = (
        "from powersum.model.caller import again, called, twice; print(again(3), sum(twice.stats.cache_hits.values()))"
    )
    assert ask(there, found)[0] == "112 1"
    assert ask(there, found)[0] == "112 0"


CHANGES = {
    "a name is gone": "backend._library = None",
    "an entry at address 0": "backend._ReadyLibrary.get_pointer_to_function = lambda self, name: 0",
    "callees are not linked": "backend.LinkedLibrary._finalize_final_module = None",
    "a wrong number": "backend._halves = lambda values: values",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_where_the_trial_fails_numba_compiles_in_its_own_way(package: Path, tmp_path: Path, change: str) -> None:
    there = environment(package, POWERSUM_CACHE_DIR=str(tmp_path / "kept"))
    other = f"from powersum.core import backend; {change}; "
    for _ in range(2):
        out, told = ask(there, other + ASK + "; print(backend.trial.passed())")
        assert out == "106 0\nFalse"
        assert told.startswith("powersum: note: Numba")
        assert told.count("\n") == 1
    assert not list((tmp_path / "kept").rglob("called-*"))


VERSIONS = {
    "too new": ("import numba; numba.__version__ = '0.69.0rc1'; ", {}),
    "too old": ("import numba; numba.__version__ = '0.59.1'; ", {}),
    "no such name": ("import numba.core.compiler as names; del names.CompileResult._rebuild; ", {}),
    "asked for": ("", {"POWERSUM_COMPILER": "plain"}),
}


@pytest.mark.parametrize(("change", "variables"), VERSIONS.values(), ids=VERSIONS.keys())
def test_the_plain_way_touches_no_private_name(
    package: Path, tmp_path: Path, change: str, variables: dict[str, str]
) -> None:
    there = environment(package, POWERSUM_CACHE_DIR=str(tmp_path / "kept"), **variables)
    ask(there)
    plain = f"{change}{ASK}; from powersum.core import jit; print(jit.PLAIN, jit.backend)"
    for _ in range(2):
        out, told = ask(there, plain)
        assert out == "106 0\nTrue None"
        assert told.count("\n") == (0 if variables else 1)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("COMPILER", "short", "'short' is not known; set it to 'plain', or do not set it"),
        ("HELPERS", "some", "'some' is no number of processes; 0 begins none"),
    ],
)
def test_a_variable_with_another_value_is_refused_in_one_line(package: Path, name: str, value: str, told: str) -> None:
    there = environment(package, **{f"POWERSUM_{name}": value})
    begin = "from powersum.core.errors import InputError\ntry:\n import powersum.core.jit\n"
    out, _ = ask(there, f"{begin}except InputError as error:\n print(error)")
    assert out == f"POWERSUM_{name}: {told}"


def test_only_one_file_uses_private_names_of_the_compiler() -> None:
    """Numba documents itself, its types, extensions, events and `cgutils`; llvmlite its IR and its binding."""
    public = r"numba(\.types|\.extending|\.core\.event|\.core\.cgutils)?|llvmlite(\.ir|\.binding)?"
    for path in cache.PACKAGE.rglob("*.py"):
        if path.name == "backend.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named: list[str] = []
            if isinstance(node, ast.Import):
                named = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module in ("numba", "numba.core", "llvmlite"):
                named = [f"{node.module}.{one.name}" for one in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                named = [node.module]
            for name in named:
                if name.partition(".")[0] in ("numba", "llvmlite"):
                    assert re.fullmatch(public, name), f"{path}: {name}"


def test_an_unrelated_source_keeps_the_code(package: Path, tmp_path: Path) -> None:
    there = environment(package, POWERSUM_CACHE_DIR=str(tmp_path / "kept"))
    ask(there)
    with (package / "powersum/app/cli/app.py").open("a", encoding="utf-8") as file:
        file.write("# a remark\n")
    assert ask(there)[0] == "106 1"


def test_several_processes_fill_one_empty_folder(package: Path, tmp_path: Path) -> None:
    there = environment(package, POWERSUM_CACHE_DIR=str(tmp_path / "kept"))
    code = "from powersum.model.caller import called; print([called(x) for x in (3, 3.5, True)])"
    both = [
        subprocess.Popen([sys.executable, "-c", code], env=there, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for process in both:
        out, errors = process.communicate(timeout=1800)
        assert (out.decode().strip(), errors) == ("[106, 107.0, 102]", b"")
    assert ask(there, code + "; print(sum(called.stats.cache_misses.values()))")[0].endswith("\n0")
    assert not list((tmp_path / "kept").rglob("*.part"))


def test_a_damaged_file_is_replaced(package: Path, tmp_path: Path) -> None:
    there = environment(package, POWERSUM_CACHE_DIR=str(tmp_path / "kept"))
    ask(there)
    for path in (tmp_path / "kept").rglob("called-*"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    assert ask(there) == ("106 0", "")
    assert ask(there) == ("106 1", "")


def test_a_folder_that_cannot_be_made_is_told_of_in_one_line(package: Path, tmp_path: Path) -> None:
    # A file in its place, for whoever runs the tests may be allowed to write everywhere.
    (tmp_path / "home").write_text("no folder", encoding="utf-8")
    (tmp_path / "tmp").mkdir()
    for name in ("HOME", "XDG_CACHE_HOME", "POWERSUM_CACHE_DIR"):
        there = environment(package, TMPDIR=str(tmp_path / "tmp"), **{name: str(tmp_path / "home")})
        out, errors = ask(there, ASK.replace("called(3)", "called(3), called(3.5)"))
        assert out == "106 107.0 0"
        assert errors.count("\n") == 1
        assert errors.startswith("powersum: note: compiled code cannot be kept in")
        # A temporary folder keeps it, and is looked into from then on.
        assert ask(there) == ("106 1", "")
        shutil.rmtree(tmp_path / "tmp" / f"powersum-{os.getuid()}")


def test_a_temporary_folder_of_others_is_not_trusted(package: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder", encoding="utf-8")
    (tmp_path / f"powersum-{os.getuid()}").mkdir()
    (tmp_path / f"powersum-{os.getuid()}").chmod(0o777)
    out, errors = ask(environment(package, TMPDIR=str(tmp_path), HOME=str(tmp_path / "home")))
    assert out == "106 0"
    assert errors.count("\n") == 1
    assert "it is not kept" in errors


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_still_read(package: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    there = environment(package, POWERSUM_CACHE_DIR=str(kept), TMPDIR=str(tmp_path))
    ask(there)
    folders = [kept, *(path for path in kept.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        assert ask(there) == ("106 1", "")
        assert ask(there, ASK.replace("3", "3.5"))[1].count("\n") == 1
    finally:
        for folder in folders:
            folder.chmod(0o700)


def test_the_least_recently_used_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 250)
    for age in range(4):
        (tmp_path / str(age)).mkdir()
        (tmp_path / str(age) / "file").write_bytes(bytes(100))
        os.utime(tmp_path / str(age), (1e9 - age, 1e9 - age))
    cache.prune(tmp_path, keep=tmp_path / "3")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "3"]


def test_files_that_go_while_they_are_counted_leave_nothing_open(tmp_path: Path) -> None:
    """Several processes remove old folders at once; what was left open made some later test fail by a warning."""
    for name in ("first", "second"):
        (tmp_path / name).write_bytes(bytes(100))
    sizes = cache._sizes(tmp_path)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert next(sizes) == 100
        for name in ("first", "second"):
            (tmp_path / name).unlink()
        assert list(sizes) == []
    assert told == []


def test_sizes_and_clearing_touch_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERSUM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    (tmp_path / "letters").write_text("mine", encoding="utf-8")
    store = cache.Store()
    store.write("stamp", "name", b"content")
    assert store.read("stamp", "name") == b"content"
    assert cache.size() == (1, 39)
    cache.clear()
    assert cache.size() == (0, 0)
    assert store.read("stamp", "name") is None
    assert (tmp_path / "letters").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("from powersum.core.jit import compiled", {"core/__init__.py", "core/jit.py"}),
        ("from powersum.bounds import gdd", {"bounds/__init__.py", "bounds/gdd/__init__.py"}),
        (
            "    from powersum.core import (\n    cache,\n    jit,\n)",
            {"core/__init__.py", "core/cache.py", "core/jit.py"},
        ),
        ("    from powersum.core import cache", set()),
        ("import powersum.core.jit as jit, os", {"core/__init__.py", "core/jit.py"}),
        ("from collections.abc import powersum", set()),
    ],
)
def test_imports_are_found_by_their_lines(line: str, files: set[str], tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(f'"""Text."""\n\n{line}\n', encoding="utf-8")
    assert {Path(place).relative_to(cache.PACKAGE).as_posix() for place in cache._module(str(path)).imports} == files


EDGES = """
import builtins, importlib, sys
found, original = set(), builtins.__import__

def noting(name, globals=None, locals=None, fromlist=(), level=0):
    importer = (globals or {}).get("__name__", "")
    if importer.startswith("powersum.") and name.startswith("powersum."):
        found.update((importer, name, one) for one in fromlist or [""])
    return original(name, globals, locals, fromlist, level)

builtins.__import__ = noting
for name in sys.argv[1:]:
    importlib.import_module(name)
for edge in found:
    print(*edge, sep=",")
"""


def test_all_that_is_imported_while_constants_are_made_is_in_the_stamp() -> None:
    """Also what a function imports that a module calls while it is imported itself."""
    kernels = [path for path in cache.PACKAGE.rglob("*.py") if "core.jit import" in path.read_text(encoding="utf-8")]
    names = [".".join(("powersum", *path.relative_to(cache.PACKAGE).with_suffix("").parts)) for path in kernels]
    done = subprocess.run([sys.executable, "-c", EDGES, *names], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) > len(names) > 50
    for line in done.stdout.splitlines():
        importer, module, name = line.split(",")
        wanted = cache._places(module) | cache._places(f"{module}.{name}")
        assert wanted <= cache._module(file_of(importer)).imports, line


def file_of(module: str) -> str:
    """The source of a module of the package."""
    path = cache.PACKAGE.joinpath(*module.split(".")[1:])
    return str(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))


def test_how_code_is_kept_is_part_of_every_stamp(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module whose functions others compile does not import the compiler: its code, too, is made anew."""
    from powersum.core import jit

    stamp = cache.module_stamp
    source = str(Path(jit.__file__).parent / "errors.py")
    before = jit._Kept(int, source, {}).cache_path
    monkeypatch.setattr(jit, "module_stamp", lambda path: "0" * 24 if path == jit.__file__ else stamp(path))
    assert jit._Kept(int, source, {}).cache_path != before
