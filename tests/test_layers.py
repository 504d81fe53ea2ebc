"""The rooms of the house and who may look into whom, read from the imports themselves, lazy ones too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
PACKAGE = SOURCE / "powersum"

BELOW: dict[str, tuple[str, ...]] = {
    "core": (),
    "model": ("core",),
    "generate": ("model",),
    "interop": ("model",),
    "formats": ("interop",),
    "prepare": ("model",),
    "cluster": ("model",),
    "exact": ("prepare",),
    "bounds": ("exact", "cluster"),
    "assign": ("exact",),
    "search": ("bounds", "assign"),
    "sums": ("bounds", "assign"),
    "divide": ("search", "sums"),
    "answer": ("divide",),
    "decisions": ("answer", "formats"),
    "learn": ("answer",),
    "jax": ("answer",),
    "torch": ("answer",),
    "report": ("answer", "formats", "generate"),
    "reproduce": ("report",),
    "explore": ("report",),
    "cli": ("reproduce", "explore", "decisions"),
}
"""The rooms that each room is built on, directly; it may import from them and from all that they are built on."""

LAZY_EDGES = {
    ("model/model.py", "interop"): "Model.from_tables hands over to the reader of tables",
    ("model/model.py", "report"): "Model.plot and the notebook form draw",
    ("model/certificate.py", "formats"): "Certificate.save writes a file whole or not at all",
    ("model/explanation.py", "report"): "Explanation.plot draws",
    ("model/question.py", "formats"): "a question about a path reads the file",
    ("model/result.py", "answer"): "Result.explain asks more questions",
    ("model/result.py", "report"): "Result.plot and the notebook form draw",
    ("model/result.py", "formats"): "Result.save writes a file whole or not at all, Result.load reads it",
}
"""Imports against the direction, inside functions only, each for a method that is there for convenience."""

HALL = {"__init__.py", "__main__.py", "_version.py", "py.typed"}


def allowed(room: str) -> set[str]:
    """The rooms that a room may import from, itself included."""
    return {room}.union(*(allowed(below) for below in BELOW[room]))


def imports_of(path: Path) -> list[tuple[str, bool, int]]:
    """Modules of the package that a file imports, whether inside a function, and the line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    found: list[tuple[str, bool, int]] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            names = [node.module or ""]
            if node.module == "powersum":
                names = [f"powersum.{alias.name}" for alias in node.names]
        found += [(name, id(node) in inside, node.lineno) for name in names if name.split(".")[0] == "powersum"]
    return found


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_follow_the_road(path: Path) -> None:
    name = path.relative_to(PACKAGE).as_posix()
    room = name.split("/")[0]
    wrong = []
    for module, lazy, line in imports_of(path):
        target = module.split(".")[1] if "." in module else ""
        if target in allowed(room) or target in {"", "_version", "__version__"}:
            continue
        if lazy and (name, target) in LAZY_EDGES:
            continue
        wrong.append(f"{name}:{line} imports {module}")
    assert not wrong


def test_every_listed_exception_is_still_needed() -> None:
    used = {
        (name, module.split(".")[1])
        for name in {name for name, _ in LAZY_EDGES}
        for module, lazy, _ in imports_of(PACKAGE / name)
        if lazy and "." in module
    }
    assert set(LAZY_EDGES) <= used


def test_nothing_else_lies_in_the_hall() -> None:
    lying = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert lying == HALL
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == set(BELOW)


def test_the_checker_imports_nothing_of_powersum() -> None:
    for path in (SOURCE / "powersum_check").rglob("*.py"):
        assert not imports_of(path), path


def test_tests_mirror_the_rooms() -> None:
    tests = Path(__file__).resolve().parent
    folders = {path.name for path in tests.iterdir() if path.is_dir() and not path.name.startswith(("__", "."))}
    assert folders <= set(BELOW) | {"check", "real_data", "soak"}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_no_function_hides_a_module(path: Path) -> None:
    """A name in a package that is also one of its modules would be the one or the other by the order of imports."""
    modules = {file.stem for file in path.parent.glob("*.py")}
    modules |= {file.parent.name for file in path.parent.glob("*/__init__.py")}
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    assert not names & modules


def test_benchmarks_import_nothing_from_tests() -> None:
    for path in (SOURCE.parent / "benchmarks").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("tests"), path
