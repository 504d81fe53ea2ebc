"""The name rule: ``problem.uai`` goes with ``problem.uai.evid`` and ``problem.uai.query``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from powersum.core.files import PathLike, plain_name


@dataclass(frozen=True, slots=True)
class Companions:
    """The files that lie beside a model; ``None`` where there is none."""

    evidence: Path | None
    query: Path | None


def companions(path: PathLike) -> Companions:
    """Find evidence and query of a model by their names; a compressed model has those of the plain one."""
    name = plain_name(path)
    evidence, query = Path(name + ".evid"), Path(name + ".query")
    return Companions(evidence if evidence.is_file() else None, query if query.is_file() else None)
