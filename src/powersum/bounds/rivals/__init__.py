"""The methods that the paper compares itself with, one file each, with the interface of every other method."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

BOUNDS: Mapping[str, str] = MappingProxyType(
    {
        "mbe": "powersum.bounds.rivals.mbe:MBE",
        "wmb": "powersum.bounds.rivals.wmb:WMB",
        "lbfgs": "powersum.bounds.rivals.lbfgs:LBFGS",
        "reorder": "powersum.bounds.rivals.reorder:Reordered",
        "mas": "powersum.bounds.rivals.mas:MAS",
    }
)
"""Name of each rival that bounds and the class behind it, imported when it is used."""

BASELINES: Mapping[str, str] = MappingProxyType({**BOUNDS, "trw": "powersum.bounds.rivals.trw:TRW"})
"""All rivals: those, and one whose values are no bounds."""
