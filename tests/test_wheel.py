"""The wheel with machine code: used where it fits, in a fresh environment that can keep nothing, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("build")

TASK = "exact sums"
"""Its limit counts work, so that the same functions are needed wherever it runs."""

ASK = """
from numba.core import event

from powersum.core import jit

made = []

class Ours(event.Listener):
    def on_start(self, event):
        if event.data["dispatcher"] in jit.ours:
            made.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event):
        pass

event.register("numba:compile", Ours())
from powersum.app.cli.warmup import TASKS
TASKS["exact sums"]()
print(made)
"""

FITS = """
import numba
CHANGE
from powersum.core import jit
from powersum.core.cache import SHIPPED
import powersum.exact.kernels
folders = {one._cache._folder for one in jit.ours}
print(any((SHIPPED / level / folder).is_dir() for level in LEVELS for folder in folders))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel for the plainest processors, with the code of one task."""
    from powersum.core.jit import TARGET
    from powersum.core.levels import usable

    folder = tmp_path_factory.mktemp("wheel")
    level = usable(TARGET.features)[-1].name
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "release.wheel", "--out", str(folder), "--level", level, "--task", TASK]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stderr
    (made,) = set(folder.glob("*.whl")) - set(folder.glob("*py3-none-any.whl"))
    return made


@pytest.fixture
def python(wheel: Path, tmp_path: Path) -> Path:
    """The interpreter of a fresh environment with the wheel; what it depends on comes from the present one."""
    place = tmp_path / "fresh"
    venv.create(place, with_pip=False)
    made = place / "bin/python"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(made), "install", "--no-deps", "--no-index", str(wheel)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (packages,) = place.glob("lib/python*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("\n".join(others), encoding="utf-8")
    return made


def ask(python: Path, code: str, tmp_path: Path) -> tuple[str, str]:
    """What a process prints that has an empty folder for temporary files, and no home that it could write to."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    # A file in its place: who runs the tests may be allowed to write to folders that are read-only.
    home.write_text("no folder", encoding="utf-8")
    temporary.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("POWERSUM", "XDG", "PYTHON"))}
    done = subprocess.run(
        [str(python), "-c", code],
        env={**kept, "HOME": str(home), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr
    assert not list(temporary.iterdir())
    return done.stdout.strip(), done.stderr


@pytest.mark.skipif(os.name == "nt", reason="paths of an environment are those of POSIX")
def test_a_hard_question_compiles_nothing_where_nothing_can_be_kept(python: Path, tmp_path: Path) -> None:
    assert ask(python, ASK, tmp_path) == ("[]", "")


@pytest.mark.skipif(os.name == "nt", reason="paths of an environment are those of POSIX")
def test_code_of_other_sources_or_versions_is_never_used(python: Path, tmp_path: Path) -> None:
    levels = "from powersum.core.levels import levels; LEVELS = [one.name for one in levels()]\n"

    def fits(change: str = "") -> str:
        return ask(python, levels + FITS.replace("CHANGE", change), tmp_path)[0]

    assert fits() == "True"
    assert fits("numba.__version__ = '0.68.99'") == "False"
    assert fits("import llvmlite; llvmlite.__version__ = '0.50.99'") == "False"
    assert fits("import sysconfig; sysconfig.get_config_var = lambda name: 'another'") == "False"
    # A comment at the end of one file that kernels are made of is enough.
    (source,) = python.parents[1].glob("lib/python*/site-packages/powersum/core/jit.py")
    source.write_text(source.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    assert fits() == "False"


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"-{version}-none-" in wheel.name
    with zipfile.ZipFile(wheel) as file:
        assert file.testzip() is None
        names = file.namelist()
        (record,) = (name for name in names if name.endswith("/RECORD"))
        listed = [line.split(",")[0] for line in file.read(record).decode().splitlines()]
        assert sorted(listed) == sorted(names)
        (about,) = (name for name in names if name.endswith("/WHEEL"))
        text = file.read(about).decode()
        assert "Root-Is-Purelib: false" in text
        assert f"Tag: {version}-none-" in text
        assert "py3-none-any" not in text
