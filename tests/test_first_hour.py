"""The first hour of a user: a wheel in a fresh environment, from the help to a checked proof, without a stumble."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from tests.interop.networks import CLINIC

pytest.importorskip("build")
ROOT = Path(__file__).parent.parent


class Environment:
    """A fresh environment with the wheel; what powersum depends on is that of the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        source = folder / "source"
        shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source)
        build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(source)]
        subprocess.run(build, check=True, capture_output=True)
        (wheel,) = folder.glob("*.whl")
        venv.create(folder / "env", with_pip=False)
        self._scripts = folder / "env" / "bin"
        pip = [sys.executable, "-m", "pip", "--python", str(self._scripts / "python"), "install"]
        subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
        (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
        # A path alone: files .pth in it, such as that of an editable powersum, are not followed.
        (packages / "dependencies.pth").write_text(str(Path(np.__file__).parent.parent) + "\n")

    def run(self, *words: object, code: int = 0) -> str:
        """What a command prints, on both streams."""
        script, *rest = map(str, words)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        command = [str(self._scripts / script), *rest]
        ran = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600)
        said = ran.stdout + ran.stderr
        assert ran.returncode == code, said
        assert "Traceback" not in said
        return said


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("first-hour"))
    ps.write(CLINIC, environment.folder / "clinic.bif")
    return environment


def test_the_package_is_the_wheel(fresh: Environment) -> None:
    where = fresh.run("python", "-c", "import powersum; print(powersum.__file__)").strip()
    assert where.startswith(str(fresh.folder / "env"))


def test_help(fresh: Environment) -> None:
    for words in (("-h",), ("solve", "-h"), ("generate", "grid", "-h"), ("--version",)):
        assert fresh.run("powersum", *words)


def test_a_question_a_misspelt_name_and_impossible_evidence(fresh: Environment) -> None:
    said = fresh.run("powersum", "solve", "clinic.bif", "--max", "cancer,bronchitis", "--evidence", "dyspnoea=much")
    wanted = ps.solve(CLINIC, ["cancer", "bronchitis"], evidence={"dyspnoea": "much"})
    assert f"probability: {wanted.probability}" in said
    assert "question: marginal MAP over cancer, bronchitis" in said
    wrong = fresh.run("powersum", "solve", "clinic.bif", "--max", "cancr", code=2)
    assert "did you mean 'cancer'" in wrong
    assert len(wrong.splitlines()) == 1


def test_marginals_and_what_to_ask(fresh: Environment) -> None:
    said = fresh.run("powersum", "marginals", "clinic.bif", "--evidence", "dyspnoea=much", "--csv", "beliefs.csv")
    assert "cancer" in said
    assert (fresh.folder / "beliefs.csv").read_text().startswith("variable,state,lower,upper")
    assert "observe" in fresh.run("powersum", "ask", "clinic.bif", "--about", "cancer")


def test_a_table_of_cases(fresh: Environment) -> None:
    (fresh.folder / "cases.csv").write_text("id,dyspnoea\n1,much\n2,\n3,lots\n")
    said = fresh.run(
        "powersum", "batch", "clinic.bif", "cases.csv", "--max", "cancer", "--keep", "id", "-o", "answers.csv", code=1
    )
    assert "row 3: " in said
    assert len((fresh.folder / "answers.csv").read_text().splitlines()) == 4


def test_a_checked_proof_in_two_commands(fresh: Environment) -> None:
    fresh.run(
        "powersum", "solve", "clinic.bif", "--max", "cancer", "--certificate", "proof.zip", "--json", "answer.json"
    )
    said = fresh.run("powersum-check", "proof.uai", "--as-claimed", "proof.zip")
    state = json.loads((fresh.folder / "answer.json").read_text())["assignment"]["cancer"]
    assert "verified: " in said
    assert f"cancer={state}" in said


def test_a_script(fresh: Environment) -> None:
    (fresh.folder / "script.py").write_text(
        "import powersum as ps\n"
        "model = ps.read('clinic.bif')\n"
        "result = ps.solve(model, ['cancer'], evidence={'dyspnoea': 'much'})\n"
        "print(f'{result.probability:.4f}', round(ps.marginals(model)['cancer'][result.assignment['cancer']], 3))\n"
        "print(len(ps.sample(model, 5)), [item.error for item in ps.solve_each(model, [{'maximize': ['cancer']}])])\n"
    )
    assert "5 [None]" in fresh.run("python", "script.py")
