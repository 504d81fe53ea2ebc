"""powersum: guaranteed bounds and answers for marginal MAP, the partition function and MAP in graphical models."""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from powersum.bound import bound
from powersum.errors import InputError
from powersum.marginals import Marginals, marginals
from powersum.model import Model
from powersum.query import Query
from powersum.result import Residuals, Result, Snapshot, Status
from powersum.solve import Solver, solve

if TYPE_CHECKING:
    from powersum import generate
    from powersum.formats import read, read_evidence, read_order, read_query, write
    from powersum.interop import from_arrays, from_networkx, from_pgmpy, from_pyagrum, to_pyagrum, to_uai
    from powersum.many import solve_many
    from powersum.report.html import write_report

__version__ = "0.1.0"

__all__ = [
    "InputError",
    "Marginals",
    "Model",
    "Query",
    "Residuals",
    "Result",
    "Snapshot",
    "Solver",
    "Status",
    "__version__",
    "bound",
    "from_arrays",
    "from_networkx",
    "from_pgmpy",
    "from_pyagrum",
    "generate",
    "marginals",
    "read",
    "read_evidence",
    "read_order",
    "read_query",
    "solve",
    "solve_many",
    "to_pyagrum",
    "to_uai",
    "write",
    "write_report",
]

# Imported at first use, so that ``import powersum`` stays quick; a module stands for itself, other names for its parts.
_LAZY = MappingProxyType(
    {
        "generate": "powersum.generate",
        "solve_many": "powersum.many",
        "write_report": "powersum.report.html",
        **dict.fromkeys(("read", "read_evidence", "read_order", "read_query", "write"), "powersum.formats"),
        **dict.fromkeys(
            ("from_arrays", "from_networkx", "from_pgmpy", "from_pyagrum", "to_pyagrum", "to_uai"), "powersum.interop"
        ),
    }
)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'powersum' has no attribute {name!r}")
    module = import_module(_LAZY[name])
    return module if _LAZY[name] == f"powersum.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
