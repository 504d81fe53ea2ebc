"""What is shipped: the wheel, what a user's type checker sees of it, and files and commands that the texts name."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.main import get_command

import powersum as ps
from powersum.app.cli.app import app, run_app
from powersum.formats import write_evidence, write_query
from powersum_check.__main__ import main as check_proof

ROOT = Path(__file__).resolve().parents[1]
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

USER = """
import powersum as ps

model: ps.Model = ps.read("clinic.bif")
answer = ps.solve(model, maximize=["cancer"], evidence={"cough": "yes"})
upper: float = answer.log_upper
states = dict(answer.assignment)
for snapshot in ps.Solver(model, maximize="all"):
    seconds: float = snapshot.seconds
reveal_type(answer)
ps.solve(model, time_limit="long")
"""


def commands_in_texts() -> Iterator[tuple[str, str]]:
    """Lines in blocks of shell commands and of consoles, and where they are from."""
    for text in TEXTS:
        page = text.read_text(encoding="utf-8")
        for kind, block in re.findall(r"^```(sh|console)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
            for line in block.splitlines():
                if kind == "sh" or line.startswith("$ "):
                    yield text.name, line.removeprefix("$ ")


def commands_in_help(command: Any = None) -> Iterator[tuple[str, str]]:
    """Examples at the end of each command's help."""
    command = get_command(app) if command is None else command
    for line in (command.epilog or "").split("\n\n"):
        yield f"{command.name} --help", line
    for inner in getattr(command, "commands", {}).values():
        yield from commands_in_help(inner)


QUICK = [
    pytest.param(line, id=f"{place}: {line[:60]}")
    for place, line in dict.fromkeys([*commands_in_texts(), *commands_in_help()])
    if line.startswith("powersum ")
    and ("clinic.bif" in line or "model.uai" in line)
    and "uai-solver" not in line
    # A cluster is started by the tests of that room.
    and "tcp://" not in line
]


@pytest.fixture
def shell_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the files that commands in the texts name."""
    (tmp_path / "examples").mkdir()
    for folder in (tmp_path, tmp_path / "examples"):
        shutil.copy(ROOT / "examples" / "clinic.bif", folder)
    model, query = ps.generate.grid(4, 4, seed=1)
    ps.write(model, tmp_path / "model.uai")
    write_query(query, tmp_path / "model.uai.query")
    write_evidence({0: 1}, tmp_path / "model.uai.evid")
    names = ["xray", *(f"pixel{v}" for v in range(1, model.n_variables))]
    (tmp_path / "model.names").write_text("\n".join(names) + "\n", encoding="utf-8")
    (tmp_path / "cases.csv").write_text("cough\nyes\n\nno\n", encoding="utf-8")
    (tmp_path / "cases.jsonl").write_text('{"cough": "yes"}\n{}\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", QUICK)
def test_commands_in_the_texts_work(line: str, shell_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "--keep id" in line:
        (shell_folder / "cases.csv").write_text("id,cough\n1,yes\n2,\n3,no\n", encoding="utf-8")
    if " explore " in line:
        # A server that ends at once; what it serves has tests of its own.
        pytest.importorskip("starlette")
        monkeypatch.setattr(pytest.importorskip("uvicorn").Server, "run", lambda *_, **__: None)
        monkeypatch.setattr("webbrowser.open", lambda _: True)
    assert run_app(shlex.split(line, comments=True)[1:]) == 0


@pytest.mark.usefixtures("shell_folder")
def test_the_diagnosis_prints_what_its_page_shows(capfd: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "proven-diagnosis.md").read_text(encoding="utf-8")
    shown = 0
    for kind, block in re.findall(r"^```(console|python)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        if kind == "python":
            exec(compile(block, "proven-diagnosis.md", "exec"), {})
            continue
        command, _, output = block.partition("\n")
        words = shlex.split(command.removeprefix("$ "))
        run = run_app if words[0] == "powersum" else check_proof
        assert run(words[1:]) == 0
        printed = capfd.readouterr()
        assert same_but_for_times(output, printed.out + printed.err), printed
        shown += bool(output)
    assert shown >= 3


def same_but_for_times(wanted: str, got: str) -> bool:
    """Whether the lines of a page, which may leave lines out by ``...``, are printed in this order."""
    plain = [re.sub(r"[\d.e-]+ s\b|\d+(\.\d+)?e-\d+", "#", text) for text in (wanted, got)]
    lines = [re.escape(line).replace("…", ".*") if line != "..." else r"(.*\n)*?.*" for line in plain[0].splitlines()]
    return re.search("\n".join(lines), plain[1]) is not None


def test_the_classifier_of_the_recipes_predicts(shell_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    (block,) = [b for b in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE) if "sklearn" in b]
    base = SimpleNamespace(BaseEstimator=type("BaseEstimator", (), {}), ClassifierMixin=type("ClassifierMixin", (), {}))
    monkeypatch.setitem(sys.modules, "sklearn", SimpleNamespace(base=base))
    monkeypatch.setitem(sys.modules, "sklearn.base", base)
    names: dict[str, Any] = {"ps": ps}
    exec(compile(block, "recipes.md", "exec"), names)
    cases = SimpleNamespace(to_dict=lambda _: [{"dyspnoea": "yes", "cough": float("nan")}, {"cough": "no"}])
    fitted = names["NetworkClassifier"](shell_folder / "clinic.bif", "bronchitis").fit(cases)
    assert fitted.predict(cases) == ["yes", "no"]


def test_there_are_commands_to_try() -> None:
    assert len(QUICK) >= 12
    assert "powersum solve examples/clinic.bif" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_command_reference_has_every_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    reference = importlib.import_module("command_reference")
    page = reference.on_page_markdown((ROOT / "docs" / "commands.md").read_text(encoding="utf-8"))
    assert reference.PLACE not in page
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f"## powersum {name}\n" in page
        for option in command.params:
            assert f"`{option.opts[0]}`" in page or option.param_type_name == "argument", (name, option.name)


@pytest.mark.skipif(importlib.util.find_spec("latex2mathml") is None, reason="latex2mathml is not installed")
def test_every_formula_can_be_typeset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    typeset = importlib.import_module("typeset")
    found = list(typeset.FORMULA.finditer((ROOT / "docs" / "theory.md").read_text(encoding="utf-8")))
    assert len(found) > 40
    for formula in found:
        made = typeset.mathml(formula["block"] or formula["inline"], block=formula["block"] is not None)
        assert made.startswith("<math")
        assert "\\" not in made


def test_a_users_script_under_mypy(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(USER)
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=", str(script)],
        capture_output=True,
        text=True,
        cwd=ROOT / "src",
        check=False,
    )
    lines = ran.stdout.splitlines()
    assert any('Revealed type is "powersum.model.result.Result"' in line for line in lines), ran.stdout
    errors = [line for line in lines if ": error:" in line]
    assert len(errors) == 1, ran.stdout
    assert 'Argument "time_limit"' in errors[0]


@pytest.mark.skipif(importlib.util.find_spec("build") is None, reason="the build tool is not installed")
def test_the_wheel_has_everything(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path), str(source)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert "powersum_start/__init__.py" in packed
    for package in ("powersum", "powersum_check"):
        ours = {
            path.relative_to(ROOT / "src").as_posix()
            for path in (ROOT / "src" / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert f"{package}/py.typed" in ours
        assert ours <= packed
    assert {"powersum/app/report/page.html", "powersum/app/report/page.css", "powersum/app/report/page.js"} <= packed
    assert not any(name.startswith(("tests", "docs", "soak", "benchmarks")) for name in packed)


def test_the_citation_is_the_readmes() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for fact in ("Ping", "Ihler", "2015"):
        assert fact in citation
        assert fact in readme
    assert "Decomposition Bounds for Marginal MAP" in citation
