"""The recipe for Conda and the Dockerfile say what pyproject.toml says, and name files that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from powersum import __version__

ROOT = Path(__file__).resolve().parents[1]
RECIPE = (ROOT / "conda/recipe.yaml").read_text(encoding="utf-8")
OTHER_NAMES = {"matplotlib": "matplotlib-base"}
"""What Conda calls a package otherwise: its own matplotlib brings windows, which nothing here opens."""


def project() -> Any:
    """All of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def items(name: str) -> list[str]:
    """The list below a key of the recipe."""
    found = re.search(rf"^( *){name}:\n((?:\1 +- .*\n)+)", RECIPE, re.MULTILINE)
    assert found is not None, name
    return [line.strip().removeprefix("- ") for line in found[2].splitlines()]


def as_conda(requirement: str) -> str:
    """A requirement as Conda writes it."""
    found = re.fullmatch(r"([\w-]+)(.*)", requirement)
    assert found is not None
    return f"{OTHER_NAMES.get(found[1], found[1])} {found[2]}".strip()


def test_requirements_are_the_same() -> None:
    about = project()["project"]
    python = f"python {about['requires-python']}"
    assert sorted(items("run")) == sorted([python, *(as_conda(one) for one in about["dependencies"])])
    build = [as_conda(one) for one in project()["build-system"]["requires"]]
    assert sorted(items("host")) == sorted([python, "pip", *build])


def test_version_commands_and_licence_are_the_same() -> None:
    about = project()["project"]
    assert f'version: "{__version__}"' in RECIPE
    assert sorted(items("entry_points")) == sorted(f"{name} = {place}" for name, place in about["scripts"].items())
    assert f"summary: {about['description']}\n" in RECIPE
    assert f"license: {about['license']}\n" in RECIPE
    assert [f"license_file: {name}" in RECIPE for name in about["license-files"]] == [True]
    for name in items("imports"):
        assert (ROOT / "src" / name / "__init__.py").is_file()


def test_the_dockerfile_copies_what_there_is() -> None:
    """No Docker runs in the tests; what can be read is compared."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE) for name in line.split()]
    assert copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored, name
    for name in re.findall(r"python -m (release\.\w+)", text):
        assert (ROOT / f"{name.replace('.', '/')}.py").is_file()
    needed = {"pyproject.toml", "src", str(project()["project"]["readme"]), *project()["project"]["license-files"]}
    assert needed <= set(copied)
    versions = {"3.11", "3.12", "3.13"} & set(re.findall(r"^FROM python:(\d+\.\d+)-slim", text, re.MULTILINE))
    assert len(versions) == 1
    assert f"Programming Language :: Python :: {versions.pop()}" in project()["project"]["classifiers"]
