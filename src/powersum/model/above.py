"""Methods of models and results whose work is done in higher rooms, found by name at their first call.

``result.plot()`` is a convenience: what knows results knows nothing of pictures, and a kernel that reads a model is not
compiled anew because a picture has changed. This table is the only place where the room ``model`` names higher ones.
"""

from collections.abc import Callable
from importlib import import_module
from types import MappingProxyType
from typing import Any

ABOVE = MappingProxyType(
    {
        "model_from_tables": "powersum.interop.tables",
        "read": "powersum.formats",
        "explain": "powersum.api.explanation",
        **dict.fromkeys(("marginals_html", "model_html", "model_text", "result_html"), "powersum.app.report.notebook"),
        "plot_explanation": "powersum.app.report.explanation",
        "plot_history": "powersum.app.report.curves",
        "plot_model": "powersum.app.report.graph",
    }
)
"""Functions and their modules."""


def above(name: str) -> Callable[..., Any]:
    """Return a function of the table."""
    found: Callable[..., Any] = getattr(import_module(ABOVE[name]), name)
    return found
