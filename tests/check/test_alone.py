"""The checker stands alone: the standard library, NumPy, nothing else; and as a command."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import powersum_check
import powersum_check as pc
from powersum.formats.evidence import write_evidence
from powersum.formats.query import write_query
from powersum.formats.uai import write_uai
from powersum.model.model import Model
from powersum_check.__main__ import main
from tests.check.helpers import random_draft, truth
from tests.check.writer import Draft, Setting, tree_arrays

SOURCES = sorted(Path(powersum_check.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_imports(path: Path) -> None:
    allowed = {"numpy", "powersum_check", "flint"} | set(sys.stdlib_module_names)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [node.module or ""]
        for name in names:
            assert name.split(".")[0] in allowed, name
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec", "compile", "__import__")


def test_the_kernel_does_not_import_what_stands_beside_it() -> None:
    beside = {"outside", "mean_field", "balls", "shares", "marginals"}
    for path in (path for path in SOURCES if path.stem not in beside | {"__init__", "__main__"}):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                node.body = [ast.Pass()]
        names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not names & {f"powersum_check.{name}" for name in beside}, path


def files_of(draft: Draft, folder: Path) -> list[str]:
    """The draft and its question as files, and the arguments that name them."""
    write_uai(draft.model, folder / "model.uai")
    write_query([v for v, w in enumerate(draft.weights) if w == 0.0], folder / "model.query")
    write_evidence(draft.evidence, folder / "model.evid")
    (folder / "proof.zip").write_bytes(draft.zip())
    paths = [str(folder / name) for name in ("model.uai", "proof.zip", "model.query", "model.evid")]
    return [*paths[:2], "--query", paths[2], "--evid", paths[3]]


def plain_draft(seed: int) -> Draft:
    """A certificate of exact elimination for a question that files can ask."""
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, plain=True)
    draft = Draft(draft.model, draft.weights, draft.evidence)
    setting = Setting.of(draft)
    draft.step("tree", tree_arrays(rng, setting, setting.random_order(rng), exact=True))
    return draft


def test_it_runs_beside_nothing_but_numpy(tmp_path: Path) -> None:
    draft = plain_draft(4)
    arguments = files_of(draft, tmp_path)
    folder = tmp_path / "alone"
    shutil.copytree(SOURCES[0].parent, folder / "powersum_check", ignore=shutil.ignore_patterns("__pycache__"))
    # Isolated, without site-packages; the folder is put on the path by hand, and NumPy's behind a finder that hides
    # everything else there.
    parent = str(Path(np.__file__).resolve().parents[1])
    script = (
        "import sys, importlib.machinery as m, runpy\n"
        "class OnlyNumpy:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        return m.PathFinder.find_spec(name, [{parent!r}]) if name == 'numpy' else None\n"
        "sys.meta_path.append(OnlyNumpy)\n"
        f"sys.path.insert(0, {str(folder)!r})\n"
        "runpy.run_module('powersum_check', run_name='__main__', alter_sys=True)\n"
    )
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", script, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    lower, _, _, _, _, upper = ran.stdout.splitlines()[1].removeprefix("verified: ").split()[:6]
    assert float(lower) <= truth(draft) + 1e-9
    assert float(upper) >= truth(draft) - 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_exit_codes(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draft = plain_draft(seed)
    arguments = files_of(draft, tmp_path)
    assert main(arguments) == 0
    asked, verified = capsys.readouterr().out.splitlines()[:2]
    assert verified.startswith("verified: ")
    for option in ("--as-claimed", "--show-question"):
        assert main([*arguments[: 2 if option == "--as-claimed" else None], option]) == 0
        short, full, again = capsys.readouterr().out.splitlines()[:3]
        assert (short, again) == (asked, verified)
        assert full.startswith("maximise [")
    draft.claim["log_lower"] = 1e6
    files_of(draft, tmp_path)
    assert main(arguments) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "NOT VERIFIED: it claims a lower bound" in told.err
    (tmp_path / "proof.zip").write_bytes(b"PK\x03\x04 and so on")
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert main([arguments[0], arguments[0]]) == 2
    assert main([str(tmp_path / "none.uai"), arguments[1]]) == 2
    assert main([*arguments[:2], "--as-claimed", "--map"]) == 2
    assert main([*arguments, "--map"]) == 2
    assert main([*arguments, "--memory", "10"]) == 2
    capsys.readouterr()


def test_a_reader_who_leaves_early_changes_nothing(tmp_path: Path) -> None:
    """As in ``powersum-check … | head -1``: no traceback, and the exit code is that of the check."""
    arguments = files_of(plain_draft(4), tmp_path)
    command = [sys.executable, "-m", "powersum_check", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_the_question_that_is_printed_is_the_one_that_was_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that is replaced after its first reading, as an attacker would: the file is opened once."""
    draft = plain_draft(4)
    arguments = files_of(draft, tmp_path)
    assert main([*arguments[:2], "--as-claimed"]) == 0
    before = capsys.readouterr().out
    opened = list[str]()
    plain_open = open

    def counting(path: object, *rest: object) -> object:
        opened.append(str(path))
        return plain_open(path, *rest)  # type: ignore[call-overload]

    monkeypatch.setattr("builtins.open", counting)
    assert main([*arguments[:2], "--as-claimed"]) == 0
    assert capsys.readouterr().out == before
    assert sorted(opened) == sorted(arguments[:2])


def test_an_empty_name_of_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As of a shell variable that is not set: log Z must not pass for the question that was meant."""
    draft = plain_draft(4)
    draft = Draft(draft.model, [1.0] * len(draft.weights))
    setting = Setting.of(draft)
    rng = np.random.default_rng(0)
    draft.step("tree", tree_arrays(rng, setting, setting.random_order(rng), exact=True))
    files = files_of(draft, tmp_path)[:2]
    assert main(files) == 0
    capsys.readouterr()
    for options in (["--query", ""], ["--evid", ""], ["--as-claimed", "--query", ""], ["--map", "--query", ""]):
        assert main([*files, *options]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert len(told.err.splitlines()) == 1


def test_a_certificate_that_proves_nothing_is_not_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draft = plain_draft(4)
    empty = Draft(draft.model, draft.weights, draft.evidence)
    assert main(files_of(empty, tmp_path)) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "powersum-check: NOT VERIFIED: nothing is proven\n"


def test_an_assignment_is_printed_only_where_something_is_proven_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Model.from_factors([2, 2], [((0, 1), [[0.1, 0.9], [0.4, 0.6]])])
    draft = Draft(model, [0.0, 1.0], assignment=[[0, 1]])
    setting = Setting.of(draft)
    rng = np.random.default_rng(0)
    arrays = tree_arrays(rng, setting, [1, 0], exact=True)
    draft.step("tree", arrays)
    assert main(files_of(draft, tmp_path)) == 0
    assert "assignment" not in capsys.readouterr().out
    draft.step("tree", arrays | {"box": np.array([[0, 1]])})
    assert main(files_of(draft, tmp_path)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "assignment: 1 0 1"


def test_questions_are_told_apart_by_their_digest() -> None:
    model = pc.Model((2, 3, 2), ())
    questions = [
        pc.Question.of(model),
        pc.Question.of(model, [0]),
        pc.Question.of(model, [1]),
        pc.Question.of(model, [1], {0: 1}),
        pc.Question.of(model, [1], {1: 1}),
        pc.Question.of(model, [1], None, {0: [1.0, 0.5]}),
        pc.Question.of(model, [1], None, {2: [1.0, 0.5]}),
        pc.Question((1.0, 0.0, 1.0), order=(1, 0, 2)),
        pc.Question((1.0, 0.0, 1.0), order=(0, 1, 2)),
        pc.Question((1.0, 0.0, 0.5)),
    ]
    assert len({question.digest() for question in questions}) == len(questions)
    for question in questions:
        for other in questions:
            assert (question.digest() == other.digest()) == question.same_as(other)
    same = pc.Question((1.0, -0.0, 1.0), order=(2, 0, 1))
    assert same.same_as(questions[2])
    assert same.digest() == questions[2].digest()


@pytest.mark.parametrize("variable", [-1, -3, 3])
def test_a_query_names_variables_that_exist(variable: int) -> None:
    with pytest.raises(pc.BadFile, match="does not exist"):
        pc.Question.of(pc.Model((2, 2, 2), ()), [variable])
