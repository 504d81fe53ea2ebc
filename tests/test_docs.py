"""Documentation that runs: examples in docstrings and on pages, links and pictures that exist, a site that builds."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import powersum
from tests.browser import CHROMIUM, browsing

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PROMPT = re.compile(r"^ *>>> ", re.MULTILINE)
FILES = sorted((ROOT / "src" / "powersum").rglob("*.py"))


def n_examples(file: Path) -> int:
    """Examples in a file, as they look in its text."""
    return len(PROMPT.findall(file.read_text(encoding="utf-8")))


def with_examples(files: list[Path]) -> list[Path]:
    """Those in which there is something to run."""
    return [file for file in files if n_examples(file)]


@pytest.mark.parametrize("file", with_examples(FILES), ids=lambda file: str(file.relative_to(ROOT)))
def test_docstrings(file: Path) -> None:
    name = ".".join(file.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    if "networkx" in name and importlib.util.find_spec("networkx") is None:
        pytest.skip("networkx is not installed")
    ran = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert ran.failed == 0
    assert ran.attempted == n_examples(file), "some were not found"


@pytest.mark.parametrize("page", with_examples(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page: Path) -> None:
    ran = doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS, encoding="utf-8")
    assert ran.failed == 0
    assert ran.attempted == n_examples(page), "some were not found"


def test_what_users_call_has_an_example() -> None:
    calls = (powersum.bound, powersum.marginals, powersum.solve, powersum.solve_each, powersum.Solver)
    assert all(PROMPT.search(call.__doc__ or "") for call in calls)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_public_names_have_docstrings_and_are_in_the_reference() -> None:
    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in powersum.__all__:
        if name in ("__version__", "generate", "learn"):
            continue
        assert (getattr(powersum, name).__doc__ or "").strip(), name
        assert re.search(rf"\.{name}$", reference, re.MULTILINE), name


def test_import_is_light() -> None:
    heavy = ("numba", "scipy", "matplotlib", "rich", "typer", "pyagrum", "networkx")
    script = f"import sys, powersum; print([name for name in {heavy!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600)
    assert ran.stdout.strip() == "[]"


@pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None,
    reason="the site's tools are not installed: pip install 'powersum[docs]'",
)
def test_site_builds(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert ran.returncode == 0, ran.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        # Links may lead elsewhere; what a page is made of may not, for it is read offline.
        assert not re.findall(r'(?:src="|<link rel="(?:stylesheet|preconnect)" href=")https?:[^"]*', text), page
    if CHROMIUM is not None:
        searching(tmp_path / "site" / "examples" / "index.html", tmp_path)


def searching(page: Path, folder: Path) -> None:
    """The site's search finds something on a page that is opened from its folder, where there are no workers."""
    with browsing(folder) as browser:
        tab = browser.open(page.as_uri())
        tab.wait("document.querySelector('[data-md-component=search]')")
        tab.click("input.md-search__input")
        for letter in "certificate":
            tab.press(letter)
        tab.wait("document.querySelectorAll('.md-search-result__item').length > 1")
        assert tab.complaints() == []
