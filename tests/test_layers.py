"""The rooms of the house and who may look into whom, read from the imports themselves, lazy ones too."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from powersum.model.above import ABOVE, above

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
    "proof": ("exact",),
    "bounds": ("proof", "cluster"),
    "assign": ("exact",),
    "search": ("bounds", "assign"),
    "sums": ("bounds", "assign"),
    "divide": ("search", "sums"),
    "run": ("divide",),
    "api": ("run", "formats"),
    "decisions": ("api",),
    "learn": ("api",),
    "jax": ("api",),
    "torch": ("api",),
    "app": ("app/cli",),
    "app/report": ("decisions", "generate"),
    "app/reproduce": ("app/report",),
    "app/explore": ("app/report",),
    "app/cli": ("app/reproduce", "app/explore"),
}
"""The rooms that each room is built on, directly; it may import from them and from all that they are built on."""

HALL = {"__init__.py", "__main__.py", "_version.py", "py.typed"}


def room_of(parts: Sequence[str]) -> str:
    """The room of a module, given the folders on the way to it; the rooms of ``app`` are told apart."""
    return "/".join(parts[: 2 if parts[0] == "app" and len(parts) > 1 else 1])


def allowed(room: str) -> set[str]:
    """The rooms that a room may import from, itself included."""
    return {room}.union(*(allowed(below) for below in BELOW[room]))


def imports_of(path: Path) -> list[tuple[str, int]]:
    """Modules of the package that a file imports, inside functions too, and the line."""
    found: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            names = [node.module or ""]
            if node.module == "powersum":
                names = [f"powersum.{alias.name}" for alias in node.names]
        found += [(name, node.lineno) for name in names if name.split(".")[0] == "powersum"]
    return found


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_follow_the_road(path: Path) -> None:
    name = path.relative_to(PACKAGE).as_posix()
    room = room_of(path.parent.relative_to(PACKAGE).parts)
    wrong = []
    for module, line in imports_of(path):
        target = room_of(module.split(".")[1:]) if "." in module else ""
        if target in allowed(room) or target in {"", "_version", "__version__"}:
            continue
        wrong.append(f"{name}:{line} imports {module}")
    assert not wrong


@pytest.mark.parametrize("name", ABOVE)
def test_what_models_and_results_find_above_is_there(name: str) -> None:
    """The table is the only way up: none of its modules is in the room itself or in one below, and all have users."""
    target = room_of(ABOVE[name].split(".")[1:])
    assert target not in allowed("model")
    assert callable(above(name))
    users = [
        path
        for room in ("model", "api")
        for path in (PACKAGE / room).glob("*.py")
        if f'above("{name}")' in path.read_text(encoding="utf-8")
    ]
    assert users


def test_nothing_else_lies_in_the_hall() -> None:
    lying = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert lying == HALL
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    rooms |= {
        f"app/{path.name}" for path in (PACKAGE / "app").iterdir() if path.is_dir() and path.name != "__pycache__"
    }
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


def test_every_class_name_means_one_thing() -> None:
    """Two classes of one name make readers guess which of them is meant."""
    names: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            names.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in names.items() if len(files) > 1} == {}
