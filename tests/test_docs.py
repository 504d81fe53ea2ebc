"""Documentation that runs: examples in docstrings and on pages, links and pictures that exist, a site that builds."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import powersum

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = sorted(m.name for m in pkgutil.walk_packages(powersum.__path__, "powersum."))


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    if "networkx" in name and importlib.util.find_spec("networkx") is None:
        pytest.skip("networkx is not installed")
    assert doctest.testmod(module, optionflags=OPTIONS).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page: Path) -> None:
    assert doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS, encoding="utf-8").failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_public_names_have_docstrings_and_are_in_the_reference() -> None:
    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in powersum.__all__:
        if name in ("__version__", "generate"):
            continue
        assert (getattr(powersum, name).__doc__ or "").strip(), name
        assert re.search(rf"\.{name}$", reference, re.MULTILINE), name


def test_import_is_light() -> None:
    heavy = ("numba", "scipy", "matplotlib", "rich", "typer", "pyagrum", "networkx")
    script = f"import sys, powersum; print([name for name in {heavy!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"


@pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None,
    reason="the site's tools are not installed: pip install 'powersum[docs]'",
)
def test_site_builds(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "https://fonts" not in page
