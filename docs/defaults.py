"""The reference shows defaults as values: a reader of ``memory=DEFAULT_MEMORY`` would have to look that up."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import griffe


class ValuesOfDefaults(griffe.Extension):
    """Called by mkdocstrings when it has read the package."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Replace names of constants by their values in every signature."""
        _in(pkg)


def _in(place: Any) -> None:
    for member in place.members.values():
        if member.is_alias:
            continue
        if member.is_function:
            for parameter in member.parameters:
                parameter.default = _shown(parameter.default)
        elif member.is_module or member.is_class:
            _in(member)


def _shown(default: Any) -> Any:
    """The value of a number or a word that has a name; anything else as it is."""
    name = str(default)
    if not isinstance(default, griffe.ExprName) or not name.isupper():
        return default
    module, _, own = default.canonical_path.rpartition(".")
    if not module:
        return default
    try:
        value = getattr(import_module(module), own)
    except ModuleNotFoundError:
        # A room that needs an extra; the reference has nothing of it.
        return default
    if isinstance(value, str):
        return f'"{value}"'
    if not isinstance(value, int | float):
        return default
    return f"{value:g}".replace("e+0", "e")
