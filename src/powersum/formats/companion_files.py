"""The name rule: ``problem.uai`` goes with ``problem.uai.evid``, ``problem.uai.query`` and ``problem.uai.names``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from powersum.core.files import PathLike, plain_name


@dataclass(frozen=True, slots=True)
class Companions:
    """The files that lie beside a model; ``None`` where there is none."""

    evidence: Path | None
    query: Path | None
    names: Path | None = None


def companions(path: PathLike) -> Companions:
    """Find evidence and query of a model by their names; a compressed model has those of the plain one."""
    name = plain_name(path)
    found = [Path(name + ending) for ending in (".evid", ".query", ".names")]
    return Companions(*(path if path.is_file() else None for path in found))
