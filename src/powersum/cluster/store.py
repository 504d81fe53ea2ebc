"""What a worker keeps between tasks: shared values that were sent to it once, and what it made of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

MOST_KEPT = 8
"""Values that a process keeps; of more, those that were not used longest go."""

MISSING = "powersum: this worker has not got the shared value yet"
"""What a task returns whose shared value has not come to its worker."""

_kept: OrderedDict[str, Any] = OrderedDict()
_lock = threading.Lock()


def keep(key: str, value: Any) -> Any:
    """Remember a value under its key."""
    with _lock:
        value = _kept.setdefault(key, value)
        _kept.move_to_end(key)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return value


def kept(key: str, make: Callable[[], Any]) -> Any:
    """The value under a key, made where there is none; two threads may both make one, and share that of the first."""
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    return keep(key, make())


def forget(key: str) -> None:
    """Let go of the value under a key."""
    with _lock:
        _kept.pop(key, None)


def run_with(
    function: Callable[..., Any], key: str, value: Any, carried: bool, arguments: tuple[Any, ...]
) -> tuple[bool, Any]:
    """Call a function with a shared value, which comes along or was sent before; False where it is missing."""
    if carried:
        value = keep(key, value)
    else:
        with _lock:
            if key not in _kept:
                return False, MISSING
            _kept.move_to_end(key)
            value = _kept[key]
    return True, function(value, *arguments)
