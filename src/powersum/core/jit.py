"""The ways a function is compiled here: kept on disk, without the interpreter lock, without Python exceptions."""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import logging
import os
import re
import sys
import sysconfig
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.core import event

from powersum.core.ahead import helpers
from powersum.core.cache import NOT_KEPT, CompilingClaim, module_stamp, store
from powersum.core.clock import compilation
from powersum.core.errors import InputError
from powersum.core.levels import usable

LOCKED, COMPILED = "numba:compiler_lock", "numba:compile"
"""Numba's names of two events: the compiler's lock is asked for, and a function is compiled."""

TESTED = ((0, 60), (0, 69))
"""The first version of Numba that `make compat` has passed with, and the first that it was not run with."""

Function = TypeVar("Function", bound=Callable[..., Any])


def _plain() -> bool:
    """Whether only public names of Numba are to be used: where that is asked for, and with versions never tried."""
    helping = os.environ.get("POWERSUM_HELPERS", "")
    if helping and not helping.isdigit():
        raise InputError(f"POWERSUM_HELPERS: {helping!r} is no number of processes; 0 begins none")
    asked = os.environ.get("POWERSUM_COMPILER", "")
    if asked not in ("", "plain"):
        raise InputError(f"POWERSUM_COMPILER: {asked!r} is not known; set it to 'plain', or do not set it")
    version = tuple(int(part) for part in re.findall(r"\d+", numba.__version__)[:2])
    if asked == "plain" or TESTED[0] <= version < TESTED[1]:
        return asked == "plain"
    _tell_plain()
    return True


def _tell_plain() -> None:
    logging.getLogger("powersum").warning("powersum: note: Numba %s is not known here: %s", numba.__version__, NOT_KEPT)


PLAIN = _plain()
"""Whether functions are compiled in Numba's own way, by public names alone; they are then not kept between runs."""

if PLAIN:
    backend: Any = None
else:
    try:
        from powersum.core import backend
    except (ImportError, AttributeError):
        backend, PLAIN = None, True
        _tell_plain()


class _Requests(event.Listener):
    """Keeps the clock of compilation while one of our functions is compiled, is read from disk, or waits for that.

    Puts off the collection of cyclic garbage while one is compiled: Numba fills memory with small objects that stay,
    and looking through them again and again takes a seventh of the time. Functions of others change neither.
    """

    def __init__(self) -> None:
        self._present = _Request()
        self._resume = False

    def on_start(self, event: Any) -> None:
        """Numba's lock is asked for by this thread, or within that a function is compiled."""
        now = self._present
        if event.kind == LOCKED:
            if now.depth == 0:
                now.asked, now.ours, now.compiling = time.monotonic(), False, False
            now.depth += 1
        elif event.data["dispatcher"] in ours:
            self.ours()
            if not now.compiling:
                # This thread has the lock, so that no other is here.
                now.compiling, self._resume = True, gc.isenabled()
                gc.disable()
                compilation.compile()

    @property
    def compiling(self) -> bool:
        """Whether this thread compiles one of our functions."""
        return self._present.compiling and self._present.depth > 0

    def ours(self) -> None:
        """What this thread has asked Numba for is about one of our functions."""
        now = self._present
        if now.depth and not now.ours:
            now.ours = True
            compilation.enter(now.asked)

    def hold(self, name: str, claim: CompilingClaim) -> None:
        """A form is claimed that the present thread compiles."""
        self._present.claims[name] = claim

    def let_go(self, name: str) -> None:
        """A form is kept, or cannot be."""
        claim = self._present.claims.pop(name, None)
        if claim is not None:
            claim.release()

    def on_end(self, event: Any) -> None:
        """Take up collection again after a request for which something was compiled."""
        now = self._present
        if event.kind != LOCKED:
            return
        now.depth -= 1
        if now.depth or not now.ours:
            return
        if now.compiling and self._resume:
            # What has come together is looked through now, or it would be in the time of the next piece of work.
            gc.enable()
            gc.collect(1)
        for name in list(now.claims):
            self.let_go(name)
        compilation.leave()


class _Request(threading.local):
    """What a thread asks Numba for: requests nest, and only the outermost counts."""

    depth = 0
    asked = 0.0
    ours = False
    compiling = False

    def __init__(self) -> None:
        self.claims: dict[str, CompilingClaim] = {}


ours: weakref.WeakKeyDictionary[Any, _Kept | None] = weakref.WeakKeyDictionary()
"""Our compiled functions, and where their forms are kept."""

_requests = _Requests()
for kind in (LOCKED, COMPILED):
    event.register(kind, _requests)  # type: ignore[no-untyped-call]


BOUNDSCHECK = os.environ.get("POWERSUM_BOUNDSCHECK", "") not in ("", "0")
"""Whether every index of every kernel is checked, for the tests: an array that is too small is then an IndexError.

Numba wraps negative indices before it checks, so that only those beyond the length are seen.
"""

ENVIRONMENT = hashlib.sha256(
    repr(
        (
            numba.__version__,
            llvmlite.__version__,
            np.__version__.split(".")[:2],
            sysconfig.get_config_var("SOABI"),
            sys.platform,
            BOUNDSCHECK,
        )
    ).encode()
).hexdigest()[:8]
"""Stands for all but sources and processor that decides what is compiled: versions, and whether indices are checked.

Of Python and NumPy the versions count that their binary interfaces stand for, so that what a wheel brings serves all
of them.
"""


class Target(NamedTuple):
    """What machine code is for: a system, a processor, and which of its features may be used."""

    triple: str
    processor: str
    features: str


def _target() -> Target:
    """What Numba compiles for here: this processor, or what its own variables ask for."""
    name, features = numba.config.CPU_NAME, numba.config.CPU_FEATURES  # type: ignore[attr-defined]
    if features is None:
        # A home folder may be shared by several machines, so that the processor tells files apart.
        features = llvmlite.binding.get_host_cpu_features().flatten()
        if not numba.config.ENABLE_AVX:  # type: ignore[attr-defined]
            features = re.sub(r"\+(avx|fma)", r"-\1", features)
    return Target(llvmlite.binding.get_process_triple(), name or llvmlite.binding.get_host_cpu_name(), features)


TARGET = _target()
"""What this process compiles for."""

TARGETS = (
    TARGET,
    *(Target(TARGET.triple, level.name, "") for level in usable(TARGET.features) if store.ships(level.name)),
)
"""What this process can run: what it compiles, and the levels that the package brings code for, best first."""


def read_kept(folder: str, name: Callable[[Target], str]) -> bytes | None:
    """The content of a file for one of the targets that this process can run, or None."""
    content = store.read(folder, name(TARGET))
    for target in TARGETS[1:]:
        if content is None:
            content = store.shipped(target.processor, folder, name(target))
    return content


PATIENCE = 30.0
"""Seconds to wait for a function that another process compiles: none takes as long, but it may stand still."""


class _Kept:
    """The compiled forms of one function between runs, in the place of Numba's own cache.

    One file for each signature, named after all that tells it from others; so there is no list of them that two
    processes could spoil.
    """

    def __init__(self, function: Callable[..., Any], source: str, options: Mapping[str, Any]) -> None:
        self._function = function
        self._options = sorted(options.items())
        # Now and not at the first call: a file may be replaced while a process runs what it has read from it.
        # How code is kept is part of it, too: what is compiled may lie in a module that does not import this one.
        self._folder = f"{Path(source).stem}-{ENVIRONMENT}-{module_stamp(source)}-{module_stamp(__file__)[:8]}"

    @property
    def cache_path(self) -> str:
        """Where the files lie."""
        return str((store.folder or Path()) / self._folder)

    def enable(self) -> None:
        """Part of Numba's protocol."""

    def disable(self) -> None:
        """Part of Numba's protocol."""

    def flush(self) -> None:
        """Part of Numba's protocol."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled form for a signature, or None."""
        _requests.ours()
        content = read_kept(self._folder, functools.partial(self._name, sig))
        if content is None:
            if not _requests.compiling:
                helpers.asked(f"{self._function.__module__}:{self._function.__qualname__}")
            content = self._made_elsewhere(sig)
        # A function that is compiled now links what it calls, for which what the package brings may not do.
        return None if content is None else backend.unpacked(content, target_context, linking=_requests.compiling)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled form for a signature, unless it is of this process alone."""
        content = backend.packed(data)
        if content is not None:
            store.write(self._folder, self._name(sig, TARGET), content)
        _requests.let_go(self._name(sig, TARGET))

    def _made_elsewhere(self, sig: Any) -> bytes | None:
        """Claim a form that is not there; what another process is about to keep is waited for."""
        name = self._name(sig, TARGET)
        claim = store.claim(self._folder, name, PATIENCE)
        if claim is None:
            return None
        content = store.read(self._folder, name) if claim.waited else None
        if content is None:
            _requests.hold(name, claim)
        else:
            claim.release()
        return content

    def wanted(self, sig: Any) -> bool:
        """Whether a form is neither there nor made by another process."""
        if read_kept(self._folder, functools.partial(self._name, sig)) is not None:
            return False
        claim = store.claim(self._folder, self._name(sig, TARGET))
        if claim is None:
            return False
        claim.release()
        return True

    def _name(self, sig: Any, target: Target) -> str:
        closure = self._function.__closure__
        cells = b"" if closure is None else backend.dumps_closure(tuple(cell.cell_contents for cell in closure))
        place = self._function.__code__.co_firstlineno
        key = (str(sig), _fields(sig), tuple(target), place, cells, self._options)
        return f"{self._function.__name__}-{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}"


def _fields(kind: Any) -> Any:
    """Names of the fields of all named tuples in a type: its text has only their types, in their order."""
    parts = kind if isinstance(kind, tuple) else getattr(kind, "types", ())
    return (getattr(kind, "fields", ()), [_fields(part) for part in parts])


@functools.cache
def _source_of(module: str) -> str | None:
    """The file of a module."""
    path = Path(getattr(sys.modules.get(module), "__file__", None) or "").resolve()
    return str(path) if path.suffix == ".py" and path.is_file() else None


def _compile(function: Function, *, linked: bool = False, counting: bool = True, **options: Any) -> Function:
    options = {"nogil": True, "error_model": "numpy", "boundscheck": BOUNDSCHECK, **options}
    if PLAIN:
        kernel = numba.njit(**options)(function)
    else:
        # Without a source, in a notebook or an archive, nothing tells whether kept code is of the present function.
        source = _source_of(function.__module__)
        known = {"linked": linked, "counting": counting, **options}
        shelf = None if source is None else _Kept(function, source, known)
        kernel = backend.dispatcher(function, shelf, linked=linked, counting=counting, options=options)
    ours[kernel] = None if PLAIN else shelf
    return cast(Function, kernel)


def compile_ahead(module: str, name: str, kinds: tuple[Any, ...]) -> None:
    """Compile one of our functions for these kinds of arguments and keep it, unless that is done or under way."""
    kernel = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    shelf = ours.get(kernel)
    if shelf is not None and shelf.wanted(kinds):
        cast(Any, kernel).compile(kinds)


def compiled(function: Function) -> Function:
    """Compile with Numba on first call. Releases the interpreter lock, so that threads run kernels side by side."""
    return _compile(function)


def inner(function: Function) -> Function:
    """Compile a function that only other compiled functions call.

    It gets no entry from Python, whose unpacking of many arrays takes longer to compile than the function itself, and
    no machine code but that within its callers. Two of them must not call each other.
    """
    return _compile(function, linked=True)


def bare(function: Function) -> Function:
    """As :func:`inner`, for a function that makes no array, nor calls one that does: it counts no references.

    Counting takes an atomic operation for each array handed over, which is longer than a short row's work.
    """
    return _compile(function, linked=True, counting=False)


def without_counting(function: Function) -> Function:
    """As :func:`compiled`, for a function that makes no array, nor calls one that does: see :func:`bare`."""
    return _compile(function, counting=False)


def inlined(function: Function) -> Function:
    """Compile and copy it into every caller: for tiny functions inside hot loops."""
    return _compile(function, inline="always")
