"""Methods that tighten a bound, by name.

A new one is a new file that follows ``protocol.py``, one line here, and one in the test that has its types checked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from powersum.bounds.protocol import check_choices
from powersum.bounds.rivals import BOUNDS
from powersum.core.errors import InputError
from powersum.model.keys import as_text

if TYPE_CHECKING:
    from powersum.bounds.protocol import Tightener
    from powersum.core.arrays import IntArray
    from powersum.prepare.problem import Problem

METHODS: Mapping[str, str] = MappingProxyType(
    {
        "gdd": "powersum.bounds.gdd:GDD",
        "tree": "powersum.bounds.tree:CoveringTree",
        **BOUNDS,
    }
)
"""Name of each method and the class behind it, imported when it is used: compiled code takes its time to load."""

COUNTED = ("gdd", "tree")
"""Methods that say how much work they do (:func:`powersum.core.work_time.spend`)."""

DEFAULT_METHOD = "auto"
AUTOMATIC = "tree"
"""What ``auto`` stands for: the tree is exact where memory allows it, and the tightest bound for its time elsewhere."""


def method_named(method: Any) -> str:
    """The method behind a name: ``auto`` stands for the best one."""
    if not isinstance(method, str):
        raise InputError(f"method is {as_text(method)}: give the name of one: auto, {', '.join(METHODS)}")
    return AUTOMATIC if method == "auto" else method


def check_options(method: str, options: Mapping[str, Any]) -> None:
    """Refuse an unknown method, and options that it does not have, before anything long is done."""
    if method not in METHODS:
        raise InputError(f"no method is called {method!r}: there is auto, {', '.join(METHODS)}")
    if not options:
        return
    taken = ("problem", "order", "threads", "seed")
    known = [name for name in inspect.signature(_method_class(method)).parameters if name not in taken]
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"
            raise InputError(f"method {method} has no option {name!r}: {hint}")
    check_choices(_method_class(method), options)


def check_provable(method: str) -> None:
    """Refuse a method whose bound no certificate can express."""
    if not hasattr(_method_class(method), "certified"):
        able = [name for name in METHODS if hasattr(_method_class(name), "certified")]
        raise InputError(f"method {method} has no certificate: there is one for auto, {', '.join(able)}")


def check_counted(method: str) -> None:
    """Refuse a method that does not count its work."""
    if method not in COUNTED:
        raise InputError(f"method {method} does not count its work: give a time or sweeps, or one of auto, gdd, tree")


def start_method(
    method: str, problem: Problem, order: IntArray, *, threads: int, seed: int, options: Mapping[str, Any]
) -> Tightener:
    """Build the method's first bound on a problem."""
    return _method_class(method)(problem, order, threads=threads, seed=seed, **options)


def _method_class(method: str) -> Callable[..., Tightener]:
    """The class behind a name; a test holds each of them against :class:`~powersum.bounds.protocol.Method`."""
    module, _, name = METHODS[method].partition(":")
    found: Callable[..., Tightener] = getattr(import_module(module), name)
    return found
