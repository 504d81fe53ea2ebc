"""powersum: guaranteed bounds and answers for marginal MAP, the partition function and MAP in graphical models."""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from powersum._version import __version__

if TYPE_CHECKING:
    from powersum import generate, learn
    from powersum.api.bounding import bound
    from powersum.api.comparison import Comparison, compare
    from powersum.api.distribution import Distribution
    from powersum.api.engine import Engine
    from powersum.api.gradient import BoundFunction
    from powersum.api.inquiry import ask_next
    from powersum.api.marginals import Marginals, MarginalSolver, marginals
    from powersum.api.sampling import Samples, sample
    from powersum.api.stream import BatchItem, solve_each
    from powersum.api.tables import batch
    from powersum.app.report.html import write_report
    from powersum.core.errors import ImpossibleError, InputError
    from powersum.decisions.deciding import decide
    from powersum.decisions.decision import Decision
    from powersum.formats import (
        Formula,
        read,
        read_evidence,
        read_formula,
        read_names,
        read_order,
        read_query,
        to_uai,
        write,
    )
    from powersum.formats.diagrams import read_diagram
    from powersum.interop import from_arrays, from_networkx, from_pgmpy, from_pyagrum, to_pgmpy, to_pyagrum
    from powersum.interop.diagrams import diagram_from_pyagrum
    from powersum.model.certificate import Certificate
    from powersum.model.diagram import Diagram
    from powersum.model.explanation import Explanation
    from powersum.model.interval import Interval
    from powersum.model.model import Model
    from powersum.model.query import Query
    from powersum.model.result import Result, Snapshot, Status
    from powersum.run.solver import Solver, solve


__all__ = [
    "BatchItem",
    "BoundFunction",
    "Certificate",
    "Comparison",
    "Decision",
    "Diagram",
    "Distribution",
    "Engine",
    "Explanation",
    "Formula",
    "ImpossibleError",
    "InputError",
    "Interval",
    "MarginalSolver",
    "Marginals",
    "Model",
    "Query",
    "Result",
    "Samples",
    "Snapshot",
    "Solver",
    "Status",
    "__version__",
    "ask_next",
    "batch",
    "bound",
    "compare",
    "decide",
    "diagram_from_pyagrum",
    "from_arrays",
    "from_networkx",
    "from_pgmpy",
    "from_pyagrum",
    "generate",
    "learn",
    "marginals",
    "read",
    "read_diagram",
    "read_evidence",
    "read_formula",
    "read_names",
    "read_order",
    "read_query",
    "sample",
    "solve",
    "solve_each",
    "to_pgmpy",
    "to_pyagrum",
    "to_uai",
    "write",
    "write_report",
]

# Imported at first use, so that ``import powersum`` is quick, and the command line ready for Ctrl-C before much is
# loaded; a module stands for itself, other names for its parts.
_LAZY = MappingProxyType(
    {
        "Engine": "powersum.api.engine",
        "BoundFunction": "powersum.api.gradient",
        "generate": "powersum.generate",
        "learn": "powersum.learn",
        "ask_next": "powersum.api.inquiry",
        "bound": "powersum.api.bounding",
        **dict.fromkeys(("ImpossibleError", "InputError"), "powersum.core.errors"),
        "decide": "powersum.decisions.deciding",
        "Decision": "powersum.decisions.decision",
        "Diagram": "powersum.model.diagram",
        "read_diagram": "powersum.formats.diagrams",
        "diagram_from_pyagrum": "powersum.interop.diagrams",
        **dict.fromkeys(("Comparison", "compare"), "powersum.api.comparison"),
        "Distribution": "powersum.api.distribution",
        "Certificate": "powersum.model.certificate",
        "Explanation": "powersum.model.explanation",
        "Interval": "powersum.model.interval",
        "Model": "powersum.model.model",
        "Query": "powersum.model.query",
        **dict.fromkeys(("MarginalSolver", "Marginals", "marginals"), "powersum.api.marginals"),
        **dict.fromkeys(("Solver", "solve"), "powersum.run.solver"),
        **dict.fromkeys(("BatchItem", "solve_each"), "powersum.api.stream"),
        "batch": "powersum.api.tables",
        **dict.fromkeys(("Samples", "sample"), "powersum.api.sampling"),
        **dict.fromkeys(("Result", "Snapshot", "Status"), "powersum.model.result"),
        "write_report": "powersum.app.report.html",
        **dict.fromkeys(
            (
                "Formula",
                "read",
                "read_evidence",
                "read_formula",
                "read_names",
                "read_order",
                "read_query",
                "to_uai",
                "write",
            ),
            "powersum.formats",
        ),
        **dict.fromkeys(
            ("from_arrays", "from_networkx", "from_pgmpy", "from_pyagrum", "to_pgmpy", "to_pyagrum"), "powersum.interop"
        ),
    }
)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'powersum' has no attribute {name!r}")
    module = import_module(_LAZY[name])
    found = module if _LAZY[name] == f"powersum.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
